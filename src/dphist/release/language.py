"""Questions as people write them: ``age between 30 and 40 and sex = 'F'``.

A question is conditions joined by ``and``; each names an attribute and restricts it by ``=``, ``!=``, ``<``, ``<=``,
``>``, ``>=``, ``between … and …`` or ``in (…)``. Values are numbers, days such as 2024-01-31,
'quoted text' or bare words. The language can do nothing but select cells of the release it is asked of.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from dphist.errors import QueryError
from dphist.model.domain import Attribute, Domain, Ordinal
from dphist.model.domain.scales import day_of
from dphist.model.workload import Workload

Span = tuple[int, int]

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
    """Read what is asked of measures; None if the text is a question of counts.

    Args:
        text: ``sum``, ``mean``, ``variance``, ``std`` or ``clipped`` of a measure, or ``ratio`` of two, and perhaps
            ``where`` and conditions.

    Returns:
        The request, or None.

    Example:
        >>> read_request("mean cost where age < 30")
        Request(kind='mean', names=('cost',), where='age < 30')
        >>> read_request("mean = 3") is None
        True
    """
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
    """Turn one question into the cells it allows on each attribute it names, as half-open ranges in order."""
    return _read(text, domain)[0]


def cut_bins(text: str, domain: Domain) -> list[str]:
    """Say which bins a question takes whole though a bound lies inside of them: nothing looks inside a bin.

    Weeks, months and years of days are bins, too. One day that is asked for by itself stands for all of its cell.

    Args:
        text: The question.
        domain: What it is asked about.

    Returns:
        A sentence for each such bound.

    Example:
        >>> domain = Domain([Ordinal("cost", edges=[0, 1, 100])])
        >>> cut_bins("cost > 0", domain)
        ['cost > 0 counts all of [0, 1), for nothing looks inside a bin']
        >>> cut_bins("cost >= 1", domain)
        []
        >>> cut_bins("day >= 2024-03-15", Domain([Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo"))]))
        ['day >= 2024-03-15 counts all of 2024-03, for nothing looks inside a bin']
    """
    return _read(text, domain)[1]


def _read(text: str, domain: Domain) -> tuple[dict[str, list[Span]], list[str]]:
    """The cells that a question allows, and what it takes of bins that it cuts."""
    if len(text) > _LONGEST:
        raise QueryError(f"the question is longer than {_LONGEST:,} characters")
    chosen: dict[str, list[Span]] = {}
    tokens = _Tokens(text)
    while not tokens.done:
        attribute = domain.attribute(_known(tokens.name(), domain))
        spans = _condition(tokens, attribute)
        before = chosen.get(attribute.name, [(0, attribute.size)])
        chosen[attribute.name] = _both(before, spans)
        if not chosen[attribute.name]:
            raise QueryError(f"{attribute.name}: its conditions exclude each other, and ask for nobody")
        if not tokens.done:
            tokens.expect("and")
            if tokens.done:
                raise QueryError(f"the question ends after 'and'; {_HINT}")
    return chosen, tokens.cut


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
        self.cut: list[str] = []

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


def _condition(tokens: _Tokens, attribute: Attribute) -> list[Span]:
    operator = tokens.expect("=", "!=", "<>", "<", "<=", ">", ">=", "between", "in")
    if operator == "between":
        low = tokens.value()
        tokens.expect("and")
        high = tokens.value()
        span = attribute.span(low, high)
        tokens.cut += [*_cut(attribute, ">=", low, span), *_cut(attribute, "<=", high, span)]
        return [span]
    if operator == "in":
        tokens.expect("(")
        spans = [_one(tokens, attribute, "=", tokens.value())]
        while tokens.expect(",", ")") == ",":
            spans.append(_one(tokens, attribute, "=", tokens.value()))
        return _union(spans)
    value = tokens.value()
    if operator == "=":
        return [_one(tokens, attribute, operator, value)]
    if operator in ("!=", "<>"):
        start, stop = _one(tokens, attribute, operator, value)
        return [(0, start), (stop, attribute.size)]
    if attribute.kind == "nominal":
        raise QueryError(f"{attribute.name}: its categories have no order; use = or in (…)")
    if operator in (">=", "<="):
        span = attribute.span(value, None) if operator == ">=" else attribute.span(None, value)
        tokens.cut += _cut(attribute, operator, value, span)
        return [span]
    scale = attribute.scale
    if scale.form == "dates":
        # Days are whole: after one of them is from the next on.
        other = _next_day(value, operator)
        span = attribute.span(other, None) if operator == ">" else attribute.span(None, other)
        tokens.cut += _cut(attribute, operator, value, span)
        return [span]
    start, stop = attribute.span(value, None) if operator == ">" else attribute.span(None, value)
    # A strict bound leaves its own cell out where a cell is one value. Nothing looks inside a bin, so a bin that the
    # bound cuts stays; but nothing lies below the first edge, or above the last.
    if scale.form == "edges":
        if value >= scale.edges[-1] if operator == ">" else value <= scale.edges[0]:
            raise _no_cell(attribute)
        tokens.cut += _cut(attribute, operator, value, (start, stop))
        return [(start, stop)]
    own = scale.span(value, value)
    left = [(start, stop)]
    if own[1] > own[0]:
        left = _both(left, [(0, own[0]), (own[1], attribute.size)])
    if not left:
        raise _no_cell(attribute)
    return left


def _cut(attribute: Attribute, operator: str, value: Any, span: Span) -> list[str]:
    """What is said of the bin that a bound lies inside of, if it does; of cells of one number or day nothing."""
    if attribute.kind == "nominal" or attribute.scale.form not in ("edges", "dates"):
        return []
    cell = span[0] if operator[0] == ">" else span[1] - 1
    if attribute.scale.form == "dates":
        first, after = attribute.scale.begin(cell), attribute.scale.begin(cell + 1)
        inside = _divides(operator, day_of(value), first, after)
    else:
        low, high = attribute.scale.edges[cell], attribute.scale.edges[cell + 1]
        inside = low <= value < high if operator == ">" else low < value < high
    does = "leaves out" if operator in ("!=", "<>") else "counts"
    said = f"{attribute.name} {operator} {value} {does} all of {attribute.labels[cell]}, for nothing looks inside a bin"
    return [said] if inside else []


def _divides(operator: str, day: dt.date | None, first: dt.date, after: dt.date) -> bool:
    """Whether a condition means some days of a cell, and not all of them."""
    if day is None:
        return False
    if operator in ("=", "!=", "<>"):
        return after - first > dt.timedelta(days=1)
    # Days are cut apart before the day of a bound, or behind it.
    return first < (day + dt.timedelta(days=1) if operator in (">", "<=") else day) < after


def _no_cell(attribute: Ordinal) -> QueryError:
    return QueryError(
        f"{attribute.name}: no cell meets this condition; they go from {attribute.labels[0]} to "
        f"{attribute.labels[attribute.scale.size - 1]}"
    )


def _next_day(value: Any, operator: str) -> Any:
    """The day after another, or the one before; what is no day, or has no such neighbour, as it is."""
    day = day_of(value)
    try:
        return value if day is None else day + dt.timedelta(days=1 if operator == ">" else -1)
    except OverflowError:
        return value


def _equal(attribute: Attribute, value: Any) -> Span:
    if attribute.kind == "nominal":
        return attribute.span(value, value)
    cell = attribute.index(value)
    return cell, cell + 1


def _one(tokens: _Tokens, attribute: Attribute, operator: str, value: Any) -> Span:
    """The cells of one value; a day of many is said to stand for all of them."""
    span = _equal(attribute, value)
    if attribute.kind != "nominal" and attribute.scale.form == "dates":
        tokens.cut += _cut(attribute, operator, value, span)
    return span


def _union(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def _both(one: list[Span], other: list[Span]) -> list[Span]:
    met = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return [(start, stop) for start, stop in met if start < stop]
