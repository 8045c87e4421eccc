"""What is public about a column, in a few words that a person types: ``0 to 99``, ``F, M``, ``low < middle < high``."""

from __future__ import annotations

import datetime as dt
import re

from dphist.errors import DomainError
from dphist.model.domain.nominal import Nominal
from dphist.model.domain.ordinal import Ordinal
from dphist.model.domain.space import Attribute

FORMS = (
    "0 to 99 (whole numbers, each counted by itself) · bins 0, 18, 65, 120 · bins 0 to 200 by 5 · "
    "dates 2024-01-01 to 2024-12-31 by 1mo · F, M (a list) · low < middle < high (a list in order) · "
    "add “or other” to count everything else, too · leave empty to leave the column out"
)
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\s*(?:to|\.\.|–)\s*({_NUMBER})(?:\s+by\s+(\d+))?")
_BINS = re.compile(r"bins\b\s*(.*)", re.IGNORECASE)
# A day is known by its two separators, so the word in front of it can be left out.
_DATES = re.compile(r"(?:dates\s+|(?=\d+[-/.]\d+[-/.]\d))(\S+)\s+to\s+(\S+)(?:\s+by\s+(\S+))?", re.IGNORECASE)
_OTHER = re.compile(r"(?:\s|,)\s*or\s+(?:others?|(?:any|every|some)thing\s+else)\s*$", re.IGNORECASE)


def attribute_from_words(name: str, words: str) -> Attribute | None:
    """Read what a person says is public about a column; both ends are included. None leaves the column out.

    Example:
        >>> attribute_from_words("age", "0 to 99"), attribute_from_words("sex", "F, M or other")
        (Ordinal('age', range(0, 100)), Nominal('sex', ['F', 'M'], other=True))
        >>> attribute_from_words("day", "dates 2024-01-01 to 2024-12-31 by 1mo")
        Ordinal('day', dates=('2024-01-01', '2025-01-01', '1mo'))
        >>> attribute_from_words("day", "2024-01-01 to 2024-01-31")
        Ordinal('day', dates=('2024-01-01', '2024-02-01', '1d'))
        >>> attribute_from_words("comment", "") is None
        True
    """
    text = words.strip()
    if not text or text.lower() in ("skip", "-"):
        return None
    other = _OTHER.search(text) is not None
    text = _OTHER.sub("", text)
    if (found := _DATES.fullmatch(text)) is not None:
        return Ordinal(name, dates=(found[1], _day_after(name, found[2]), found[3] or "1d"), other=other)
    if (found := _BINS.fullmatch(text)) is not None:
        return Ordinal(name, edges=_edges(name, found[1]), other=other)
    if (found := _RANGE.fullmatch(text)) is not None:
        first, last = (_whole(name, end) for end in (found[1], found[2]))
        if last < first:
            raise DomainError(f"{name}: {text} runs backwards; write the lower bound first")
        if found[3] and not int(found[3]):
            raise DomainError(f"{name}: {text} never reaches its end; write 1 or more after by")
        return Ordinal(name, range(first, last + 1, int(found[3] or 1)), other=other)
    if "<" in text:
        return Ordinal(name, _listed(name, text.split("<")), other=other)
    if "," in text:
        return Nominal(name, _listed(name, text.split(",")), other=other)
    raise DomainError(f"{name}: {text[:60]!r} is not understood; write {FORMS}")


def _listed(name: str, parts: list[str]) -> list[str]:
    listed = [part.strip().strip("\"'") for part in parts]
    if not all(listed):
        raise DomainError(f"{name}: the list has an empty entry")
    return listed


def _whole(name: str, text: str) -> int:
    if "." in text:
        raise DomainError(
            f"{name}: a range holds whole numbers; for others write bins, such as bins 0, 2.5, 10"
        )
    return int(text)


def _edges(name: str, text: str) -> list[float] | range:
    if (found := _RANGE.fullmatch(text)) is not None and found[3]:
        first, last, width = _whole(name, found[1]), _whole(name, found[2]), int(found[3])
        if width < 1 or last <= first or (last - first) % width:
            raise DomainError(f"{name}: the width must divide the distance between the ends")
        return range(first, last + 1, width)
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise DomainError(
            f"{name}: bins are edges such as bins 0, 18, 65, 120, or bins 0 to 200 by 5"
        ) from None


def _day_after(name: str, text: str) -> str:
    try:
        return (dt.date.fromisoformat(text) + dt.timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        raise DomainError(f"{name}: dates are written as 2024-12-31") from None
