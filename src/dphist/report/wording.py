"""Selected cells as words: the question that `dphist query` understands, and the same in Python."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dphist.model.domain import Attribute, Domain, Nominal
from dphist.model.domain.hierarchy import category_text
from dphist.model.domain.scales import Bins, Dates, Integers
from dphist.model.domain.space import Span
from dphist.release.answers import Answer
from dphist.release.guarantee import Guarantee

Chosen = Mapping[str, Sequence[Span]]

_WORD = re.compile(r"[^\W\d][\w.-]*")
_KEYWORDS = ("and", "or", "not", "between", "in")


def question(domain: Domain, chosen: Chosen) -> str:
    """Write the question that selects exactly these cells."""
    parts = [
        f"{_name(attribute.name)} {condition}"
        for attribute in domain.attributes
        if attribute.name in chosen
        for condition in _conditions(attribute, chosen[attribute.name])
    ]
    return " and ".join(parts)


def python(domain: Domain, chosen: Chosen, *, guaranteed: bool = False) -> str:
    """Write the same question as an argument of `Release.answer`."""
    conditions = {
        attribute.name: _python(attribute, chosen[attribute.name])
        for attribute in domain.attributes
        if attribute.name in chosen
    }
    given = [f"where={conditions!r}"] if conditions else []
    given += ['interval="guaranteed"'] if guaranteed else []
    return f"release.answer({', '.join(given)})"


def whole(guarantee: Guarantee) -> str:
    """Name the sum of all cells: of everything or, where names were found in the records, of those that are shown."""
    return "All names that are shown" if guarantee.threshold else "In all"


def caveats(answer: Answer, guarantee: Guarantee) -> list[str]:
    """Say what an interval means and does not mean, in sentences for people who have never heard of noise."""
    percent = f"{100 * answer.confidence:g}"
    if answer.guess:
        return [
            "This was not measured by itself: the number is a guess from what was, and may be far off. Use its bounds "
            "instead.",
            f"The true number lies between {answer.low:,.0f} and {answer.high:,.0f}, which is all that the measured "
            f"numbers say of it; at least {percent} of 100 such bounds hold.",
            "Ask about fewer attributes at once, a larger group or whole bins for a number that was measured.",
        ]
    if not answer.measured:
        return [
            "This combination was not measured by itself, so nobody can say how far the number may be off: do not use "
            "it.",
            "Ask about fewer attributes at once, or about a larger group.",
        ]
    kind = answer.method.split(":")[0].strip()
    known = _KNOWN.get(kind, "How often it holds was not worked out.").format(percent=percent)
    said = [f"The true number most likely lies between {answer.low:,.0f} and {answer.high:,.0f}. {known}"]
    if answer.low <= 0 < answer.high:
        said.append("It may also be that there is nobody at all.")
    if guarantee.threshold:
        said.append(
            "Only names that are shown are counted in it: records whose name stayed below a noisy count of "
            f"{guarantee.threshold:,} are not."
        )
    said.append(
        "The number is off on purpose: noise was added, so that nobody can be recognised in it. Two numbers whose "
        "intervals overlap may well be the same."
    )
    return said


_KNOWN = {
    "exact": "The noise that was added is known exactly: {percent} of 100 such intervals hold the true number.",
    "exact for single names": (
        "The noise that was added is known exactly, and so is what choosing the names to show does to it: {percent} of "
        "100 such intervals hold the true number of a single name. Sums of names are reckoned from that."
    ),
    "calibrated": (
        "In tests on many data sets about {percent} of 100 such intervals held the true number; for these data that is "
        "likely, not proven."
    ),
    "guaranteed": (
        "Whatever the data are, at least {percent} of 100 such intervals hold the true number. That is proven, for a "
        "question chosen before seeing the numbers."
    ),
    "noise only": (
        "That allows for the noise, but not for what smoothing may have moved: the true number may lie outside more "
        "often than {percent} % suggests."
    ),
}


def names(attribute: Nominal, spans: Sequence[Span]) -> list[str]:
    """Name what is chosen of a nominal attribute, whole groups by the group's name."""
    return [category_text(value) for value in _values(attribute, spans)]


def _name(name: str) -> str:
    if _WORD.fullmatch(name) and name.lower() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _conditions(attribute: Attribute, spans: Sequence[Span]) -> list[str]:
    whole = (0, attribute.size)
    if list(spans) == [whole]:
        return []
    if not any(start < stop for start, stop in spans):
        # Two conditions that no cell meets together: an empty selection is a question too.
        one = _literal(_value(attribute, 0))
        return [f"= {one}", f"!= {one}"]
    # The cell outside the bounds is in no range.
    if not isinstance(attribute, Nominal) and len(spans) == 1 and spans[0][1] <= attribute.scale.size:
        low, high = map(_literal, bounds(attribute, spans[0]))
        if isinstance(attribute.scale, Bins):
            return [f">= {low}", f"{'<' if spans[0][1] < attribute.scale.size else '<='} {high}"]
        return [f"= {low}" if low == high else f"between {low} and {high}"]
    values = [_literal(value) for value in _values(attribute, spans)]
    if isinstance(attribute, Nominal) and len(spans) == 1 and len(values) > 2:
        first, last = (_literal(_value(attribute, cell)) for cell in (spans[0][0], spans[0][1] - 1))
        return [f"between {first} and {last}"]
    return [f"= {values[0]}"] if len(values) == 1 else [f"in ({', '.join(values)})"]


def bounds(attribute: Attribute, span: Span) -> tuple[Any, Any]:
    """Give the bounds that select exactly these cells of an ordered attribute: inclusive, or edges of bins."""
    start, stop = span
    assert not isinstance(attribute, Nominal)  # noqa: S101 -- callers know; this tells the type checker
    scale = attribute.scale
    if isinstance(scale, Bins):
        return scale.edges[start], scale.edges[stop]
    if isinstance(scale, Dates):
        return scale.begin(start).isoformat(), (scale.begin(stop) - dt.timedelta(days=1)).isoformat()
    return _value(attribute, start), _value(attribute, stop - 1)


def _values(attribute: Attribute, spans: Sequence[Span]) -> list[Any]:
    """Name every selected cell, a whole group of a hierarchy by the group's name."""
    named: list[Any] = []
    for start, stop in spans:
        at = start
        while at < stop:
            node = _widest(attribute, at, stop) if isinstance(attribute, Nominal) else None
            if node is None:
                named.append(_value(attribute, at))
                at += 1
            else:
                named.append(node[0])
                at = node[1]
    return named


def _widest(attribute: Nominal, start: int, stop: int) -> tuple[str, int] | None:
    """Find the widest group that begins here and ends inside the selection."""
    tree = attribute.hierarchy
    fits = (tree.start == start) & (tree.stop <= stop) & (tree.stop - tree.start > 1)
    fits[0] = False
    found = fits.nonzero()[0]
    return (tree.names[found[0]], int(tree.stop[found[0]])) if found.size else None


def _value(attribute: Attribute, cell: int) -> Any:
    if cell == attribute.other_cell:
        return "other"
    if isinstance(attribute, Nominal):
        value = attribute.categories[cell]
        return attribute.labels[cell] if isinstance(value, bool) else value
    scale = attribute.scale
    if isinstance(scale, Integers):
        return scale.values[cell]
    return scale.label(cell)


def _literal(value: Any) -> str:
    return repr(value) if isinstance(value, int | float) else "'" + str(value).replace("'", "''") + "'"


def _python(attribute: Attribute, spans: Sequence[Span]) -> Any:
    if isinstance(attribute, Nominal):
        values = _values(attribute, spans)
        return values[0] if len(values) == 1 else values
    found: list[Any] = []
    for span in spans:
        if span[1] > attribute.scale.size:
            found += [_value(attribute, cell) for cell in range(*span)]
        else:
            found.append(
                attribute.scale.joined(*span)
                if isinstance(attribute.scale, Bins)
                else bounds(attribute, span)
            )
    return found[0] if len(found) == 1 else found
