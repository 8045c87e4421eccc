"""Questions as people write them: ``age between 30 and 40 and sex = 'F'``.

A question is conditions joined by ``and``; each names an attribute and restricts it by ``=``, ``!=``, ``<``, ``<=``,
``>``, ``>=``, ``between … and …`` or ``in (…)``. Values are numbers, days such as 2024-01-31,
'quoted text' or bare words. The language can do nothing but select cells of the release it is asked of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from dphist.errors import QueryError
from dphist.model.domain import Attribute, Domain, Nominal
from dphist.model.domain.ordinal import Stretch, whole_cells
from dphist.model.domain.space import Span, both, equal, union
from dphist.model.workload import Workload

_LONGEST = 10_000
_LONGEST_NUMBER = 400
_MOST_BOXES = 100_000
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
