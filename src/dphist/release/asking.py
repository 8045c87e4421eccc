"""What is asked of a release: counts of ranges and tables of fewer attributes, each with an interval.

Questions may be written as people write them: ``age between 30 and 40 and sex = 'F'``. Such a question is conditions
joined by ``and``; each names an attribute and restricts it by ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=``, ``between
… and …`` or ``in (…)``. Values are numbers, days such as 2024-01-31, 'quoted text' or bare words. The language can do
nothing but select cells of the release it is asked of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, Unpack, overload

import numpy as np

from dphist.arguments import explained
from dphist.errors import QueryError
from dphist.inference.estimate import How, Words
from dphist.inference.intervals import read_confidence
from dphist.model.domain import Attribute, Domain, Nominal
from dphist.model.domain.ordinal import Stretch, whole_cells
from dphist.model.domain.space import Span, both, equal, pieces, stretches, union
from dphist.model.workload import Workload
from dphist.model.workload.questions import overlapping
from dphist.release.answers import Answer, Answers, Projection, spoken
from dphist.release.contents import Contents

IntervalKind = Literal["calibrated", "guaranteed"]
BinsKind = Literal["whole", "spread"]

_MOST_BOXES = 100_000
_SPREAD = Words(
    "bounds: from none to all records of the bins that the question cuts; holds with {percent} %",
    "the number spreads a bin's records evenly over it, which is a guess",
)
_LONGEST = 10_000
_LONGEST_NUMBER = 400
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<day>\d{4}-\d\d-\d\d(?![\w.-]))
      | (?P<number>[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?(?![\w.]))
      | '(?P<text>(?:[^']|'')*)'
      | "(?P<quoted>(?:[^"]|"")*)"
      | (?P<word>[^\W\d][\w.-]*)
      | (?P<sign><=|>=|!=|<>|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_HINT = "write for example: age between 30 and 40 and sex = 'F'"


@explained
class Asking(Contents):
    """The part of a `Release` that answers."""

    @overload
    def answer(
        self,
        workload: Workload,
        *,
        confidence: float = 0.95,
        interval: IntervalKind = "calibrated",
        simultaneous: bool = False,
    ) -> Answers: ...

    @overload
    def answer(
        self,
        workload: str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        interval: IntervalKind = "calibrated",
        bins: BinsKind = "whole",
    ) -> Answer: ...

    def answer(
        self,
        workload: Workload | str | None = None,
        *,
        where: Mapping[str, Any] | None = None,
        confidence: float = 0.95,
        interval: IntervalKind = "calibrated",
        simultaneous: bool = False,
        bins: BinsKind = "whole",
    ) -> Answer | Answers:
        """Count the records in one range (``where``, or text) or in many (a workload), each with an interval.

        Args:
            workload: Many ranges at once, or one question as on the command line: ``"age between 30 and 40"``.
            where: Maps attributes to a value, an inclusive pair of bounds (where there is an order), a list of values
                or the name of a group or a bin, all in the attribute's own values; those left out are summed over.
            confidence: How sure the interval is to hold the true count.
            interval: "calibrated" holds as often as stated on average over such questions (exactly so where the noise
                is known exactly); "guaranteed" is a theorem for any data and a question fixed in advance.
            simultaneous: Whether all intervals of a workload hold together with that confidence.
            bins: "whole" refuses a question that cuts a bin, a week or a month; "spread" answers it by a guess, with
                bounds from none to all of the bin's records. Between edges that are all whole, whole bounds mean whole
                numbers: 40 to 44 is the bin [40, 45).

        Returns:
            An `Answer` for one question, `Answers` (arrays) for a workload.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(100))])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full(100, 50)), epsilon=1, mechanism="laplace")
            >>> one = release.answer(where={"age": (30, 40)})
            >>> one.value == release.answer("age between 30 and 40").value
            True
            >>> len(release.answer(dphist.Workload.prefixes(domain)))
            100
        """
        if workload is not None and where is not None:
            raise QueryError("give a workload or where=, not both")
        if not isinstance(interval, str) or interval not in ("calibrated", "guaranteed"):
            raise QueryError("interval must be 'calibrated' or 'guaranteed'")
        if not isinstance(simultaneous, bool):
            raise QueryError("simultaneous must be True or False")
        if not isinstance(bins, str) or bins not in ("whole", "spread"):
            raise QueryError("bins must be 'whole' or 'spread'")
        kind: How = {"guaranteed": interval == "guaranteed", "simultaneous": simultaneous}
        if workload is not None and not isinstance(workload, Workload | str):
            raise QueryError(f"workload must be a dphist.Workload or text, not a {type(workload).__name__}")
        if where is not None and not isinstance(where, Mapping):
            raise QueryError("where must map attributes to what is asked of them")
        if bins == "spread":
            if isinstance(workload, Workload):
                raise QueryError("bins: a workload asks for whole bins only; bins= is for one question")
            return self._spread(workload if workload is not None else where or {}, confidence, **kind)
        if isinstance(workload, str):
            return self._answers(read_question(workload, self.domain), confidence, **kind)[0]
        asked = workload if workload is not None else Workload.where(self.domain, where or {})
        if asked.domain != self.domain:
            raise QueryError(
                "workload is about another domain than the release; build it from release.domain"
            )
        if asked.query is not None and overlapping(asked.low, asked.high, asked.query):
            # A cell that counts twice has its noise twice: no interval here knows of that.
            raise QueryError("workload: boxes of one question must not overlap; ask about each by itself")
        answers = self._answers(asked, confidence, **kind)
        return answers if workload is not None else answers[0]

    def _spread(self, asked: str | Mapping[str, Any], confidence: float, **how: Unpack[How]) -> Answer:
        """Answer one question that may cut bins."""
        chosen = (
            read_stretches(asked, self.domain)
            if isinstance(asked, str)
            else {name: stretches(self.domain.attribute(name), each) for name, each in asked.items()}
        )

        def ask(workload: Workload, at_once: bool) -> Answers:
            together: How = {**how, "simultaneous": True} if at_once else how
            return self._answers(workload, confidence, **together)

        return spread_answer(self.domain, chosen, ask, read_confidence(confidence))

    def _answers(self, workload: Workload, confidence: float, **how: Unpack[How]) -> Answers:
        return self.cells.answers(self, workload, read_confidence(confidence), **how)

    def project(self, *names: str | Sequence[str], confidence: float = 0.95) -> Projection:
        """Sum over all other attributes, with an interval for every cell that is left: a marginal.

        Args:
            names: The attributes to keep, as ``project("age", "sex")`` or ``project(["age", "sex"])``.
            confidence: How sure each interval is to hold the true count.

        Returns:
            Counts and intervals over the attributes that were kept.

        Example:
            >>> import dphist, numpy as np
            >>> domain = dphist.Domain([dphist.Ordinal("age", range(9)), dphist.Nominal("sex", ["F", "M"])])
            >>> release = dphist.publish(dphist.Histogram(domain, np.full((9, 2), 50)), epsilon=1, mechanism="laplace")
            >>> release.project("sex").counts.shape, release.project("sex", "age").counts.shape
            ((2,), (2, 9))
        """
        listed = all(isinstance(each, str | Sequence) for each in names)
        kept = (
            [name for each in names for name in ([each] if isinstance(each, str) else each)] if listed else []
        )
        if not kept or not all(isinstance(name, str) for name in kept):
            raise QueryError("name the attributes to keep, such as project('age') or project('age', 'sex')")
        return self.cells.project(self, kept, read_confidence(confidence))


def spread_answer(
    domain: Domain,
    chosen: Mapping[str, Sequence[Stretch]],
    ask: Callable[[Workload, bool], Answers],
    confidence: float,
) -> Answer:
    """Answer one question that may cut bins; as any other if it cuts none.

    Of the records in a bin that a question cuts anything from none to all may be meant. So the answer lies between what
    the question holds whole and all that it touches, and bounds that hold for both hold for it. The guess spreads the
    records of a bin evenly over it.
    """
    axes = [pieces(chosen.get(each.name, [((0, 0.0), (each.size, 0.0))])) for each in domain.attributes]
    if math.prod(map(len, axes)) > _MOST_BOXES:
        raise QueryError("the question lists too many separate values; ask for ranges or groups instead")
    made = np.array(list(product(*axes))).reshape(-1, len(axes), 3)
    low, high = made[:, :, 0].astype(np.int64), made[:, :, 1].astype(np.int64)
    share = made[:, :, 2].prod(axis=1)
    whole = share == 1.0
    every, inside = np.zeros(len(low), dtype=np.int64), np.ones(int(whole.sum()), dtype=np.int64)
    if inside.size == every.size:
        return ask(Workload(domain, low, high, every), False)[0]
    value = ask(Workload(domain, low, high), False).value @ share
    lows, highs = np.concatenate([low, low[whole]]), np.concatenate([high, high[whole]])
    found = ask(Workload(domain, lows, highs, np.concatenate([every, inside])), bool(inside.size))
    most = float(found.high[0])
    least = min(float(found.low[1]), most) if inside.size else 0.0
    short, details = spoken(_SPREAD, confidence)
    return Answer(float(value), least, most, confidence, short, f"{details}; {found.details}", guess=True)


@dataclass(frozen=True)
class Request:
    """What is asked of the measures: ``mean cost where age < 30``, ``sum(cost)``, ``ratio cost to hours where …``.

    Args:
        kind: What is worked out.
        names: Of which measures.
        where: The conditions, as a question of counts has them.
    """

    kind: Literal["sum", "mean", "variance", "std", "clipped", "ratio"]
    names: tuple[str, ...]
    where: str


_NAME = r"""(?:"(?:[^"]|"")*"|[^\W\d][\w.-]*)"""
_REQUEST = re.compile(
    rf"""\s*(?P<kind>sum|mean|variance|std|clipped)\s*(?:\(\s*(?P<inner>{_NAME})\s*\)|\s(?P<plain>{_NAME}))
       |\s*ratio\s*(?:\(\s*(?P<above>{_NAME})\s*,\s*(?P<below>{_NAME})\s*\)
                    |\s(?P<over>{_NAME})\s+to\s+(?P<under>{_NAME}))""",
    re.VERBOSE | re.IGNORECASE,
)
_WHERE = re.compile(r"\s*(?:$|where\b)", re.IGNORECASE)


def read_request(text: str) -> Request | None:
    """Read what is asked of measures; None if the text is a question of counts."""
    match = _REQUEST.match(text) if len(text) <= _LONGEST else None
    # An attribute may be called like one of these words: then a sign or another word of conditions follows it.
    if match is None or (rest := _WHERE.match(text, match.end())) is None:
        return None
    found = [name for name in match.groups()[1:] if name is not None]
    names = tuple(n[1:-1].replace('""', '"') if n.startswith('"') else n for n in found)
    kind: Any = (match["kind"] or "ratio").lower()
    return Request(kind, names, text[rest.end() :].strip())


def read_question(text: str, domain: Domain) -> Workload:
    """Turn one question into the boxes of cells it selects; an empty question selects everything."""
    return boxes(read_conditions(text, domain), domain)


def read_questions(texts: Sequence[str], domain: Domain) -> Workload:
    """Turn several questions into one workload, which can then hold together."""
    each = [read_question(text, domain) for text in texts]
    owners = [number for number, one in enumerate(each) for _ in range(len(one.low))]
    low, high = (np.concatenate([getattr(one, side) for one in each]) for side in ("low", "high"))
    return Workload(domain, low, high, None if owners == list(range(len(each))) else owners)


def read_conditions(text: str, domain: Domain) -> dict[str, list[Span]]:
    """Turn one question into the cells it allows on each attribute it names, as half-open ranges in order.

    Nothing looks inside a bin, so a question that cuts one is refused.
    """
    return {
        name: whole_cells(domain.attribute(name), each) for name, each in read_stretches(text, domain).items()
    }


def read_stretches(text: str, domain: Domain) -> dict[str, list[Stretch]]:
    """Turn one question into the values it allows on each attribute it names: these may cut bins."""
    if len(text) > _LONGEST:
        raise QueryError(f"the question is longer than {_LONGEST:,} characters")
    chosen: dict[str, list[Stretch]] = {}
    tokens = _Tokens(text)
    while not tokens.done:
        attribute = domain.attribute(_known(tokens.name(), domain))
        found = _condition(tokens, attribute)
        chosen[attribute.name] = both(chosen.get(attribute.name, [((0, 0.0), (attribute.size, 0.0))]), found)
        if not chosen[attribute.name]:
            raise QueryError(f"{attribute.name}: its conditions exclude each other, and ask for nobody")
        if not tokens.done:
            tokens.expect("and")
            if tokens.done:
                raise QueryError(f"the question ends after 'and'; {_HINT}")
    return chosen


def boxes(chosen: Mapping[str, Sequence[Span]], domain: Domain) -> Workload:
    """Turn the cells allowed on each attribute into one question; attributes left out are not restricted."""
    axes = [chosen.get(attribute.name, [(0, attribute.size)]) for attribute in domain.attributes]
    # A condition that no cell meets still has an answer: the empty box.
    axes = [list(spans) or [(0, 0)] for spans in axes]
    total = 1
    for spans in axes:
        total *= len(spans)
    if total > _MOST_BOXES:
        raise QueryError("the question lists too many separate values; ask for ranges or groups instead")
    made = list(product(*axes))
    low = [[start for start, _ in box] for box in made]
    high = [[stop for _, stop in box] for box in made]
    return Workload(domain, low, high, [0] * len(made) if len(made) > 1 else None)


class _Tokens:
    """The words of a question, taken one by one."""

    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text.rstrip()):
            match = _TOKEN.match(text, place)
            if match is None:
                raise QueryError(f"cannot read the question from character {place + 1} on; {_HINT}")
            kind = str(match.lastgroup)
            self._tokens.append((kind, match[kind]))
            place = match.end()
        self._next = 0

    @property
    def done(self) -> bool:
        return self._next == len(self._tokens)

    def take(self) -> tuple[str, str]:
        if self.done:
            raise QueryError(f"the question ends too early; {_HINT}")
        self._next += 1
        return self._tokens[self._next - 1]

    def name(self) -> str:
        kind, text = self.take()
        if kind not in ("word", "quoted"):
            raise QueryError(f"expected the name of an attribute; {_HINT}")
        return text.replace('""', '"')

    def word(self) -> str:
        kind, text = self.take()
        return text.lower() if kind in ("word", "sign") else ""

    def expect(self, *words: str) -> str:
        found = self.word()
        if found in ("or", "not"):
            raise QueryError(f"'{found}' is not understood; use in (…) or != , and ask separate questions")
        if found not in words:
            raise QueryError(f"expected {' or '.join(words)}; {_HINT}")
        return found

    def value(self) -> Any:
        kind, text = self.take()
        if kind == "sign":
            raise QueryError(f"expected a value; {_HINT}")
        if kind != "number":
            twice = {"text": "'", "quoted": '"'}.get(kind)
            return text if twice is None else text.replace(2 * twice, twice)
        # Python refuses to read integers of thousands of digits; as a float such a number is infinite, which will do.
        whole = len(text) <= _LONGEST_NUMBER and re.fullmatch(r"[-+]?\d+", text)
        return int(text) if whole else float(text)


def _known(name: str, domain: Domain) -> str:
    for known in domain.names:
        if known == name:
            return known
    folded = [known for known in domain.names if known.lower() == name.lower()]
    if len(folded) == 1:
        return folded[0]
    raise QueryError(f"there is no attribute {name!r}; there are {', '.join(domain.names)}")


def _condition(tokens: _Tokens, attribute: Attribute) -> list[Stretch]:
    operator = tokens.expect("=", "!=", "<>", "<", "<=", ">", ">=", "between", "in")
    if operator == "between":
        low = tokens.value()
        tokens.expect("and")
        high = tokens.value()
        if isinstance(attribute, Nominal):
            start, stop = attribute.span(low, high)
            return [((start, 0.0), (stop, 0.0))]
        return [attribute.places(low, high)]
    if operator == "in":
        tokens.expect("(")
        found = [equal(attribute, tokens.value())]
        while tokens.expect(",", ")") == ",":
            found.append(equal(attribute, tokens.value()))
        return union(found)
    value = tokens.value()
    if operator == "=":
        return [equal(attribute, value)]
    if operator in ("!=", "<>"):
        first, last = equal(attribute, value)
        return both([((0, 0.0), first), (last, (attribute.size, 0.0))], [((0, 0.0), (attribute.size, 0.0))])
    if isinstance(attribute, Nominal):
        raise QueryError(f"{attribute.name}: its categories have no order; use = or in (…)")
    open_ = len(operator) == 1
    if operator[0] == ">":
        return [attribute.places(value, None, above=open_)]
    return [attribute.places(None, value, below=open_)]
