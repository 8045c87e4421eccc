"""Why a value has no cell: the handful of reasons that files go wrong by, told from the value and the schema alone."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from dphist.model.domain import Attribute, Nominal
from dphist.model.domain.scales import Bins, Dates, Integers, Steps, day_of

MISSING = "missing"
_NOTHING = {"", "na", "n/a", "nan", "null", "none", "nil", "-", "--", ".", "?", "#n/a", "missing", "unknown"}
_COMMA = re.compile(r"[-+]?\d{1,3}(?:[. ]?\d{3})*,\d+")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:[, '\u00a0\u202f]\d{3})+(?:\.\d+)?")
_DAY = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}(?:[ T].*)?")
# UTF-8 that was read as Latin-1 and written again, and the sign for what could not be read.
_BROKEN = re.compile(r"[ÃÂ][\u0080-\u00ff\u2018-\u201d€™]|\ufffd")


def reason(attribute: Attribute, text: str | None) -> str:
    """Say in a few words why this value is in no cell of the attribute, and what to do.

    Example:
        >>> import dphist
        >>> reason(dphist.Nominal("smokes", ["yes", "no"]), "YES")
        'written in other letters than the schema (YES for yes)'
        >>> reason(dphist.Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo")), "31/12/2024")
        'a date written another way: write it as 2024-12-31'
    """
    if text is None or text.strip().lower() in _NOTHING:
        return MISSING
    text = text.strip()
    if isinstance(attribute, Nominal):
        return _category(attribute.categories, text)
    match attribute.scale:
        case Steps(categories=categories):
            return _category(categories, text)
        case Dates() as dates:
            return _date(text, dates)
        case Integers(values=values):
            return _number(text, values[0], values[-1], values.step)
        case Bins(edges=edges):
            return _number(text, edges[0], edges[-1], None)


def _category(categories: Sequence[str | int | bool], text: str) -> str:
    folded = {str(category).strip().casefold(): category for category in categories}
    meant = folded.get(text.casefold())
    if meant is not None:
        return f"written in other letters than the schema ({text} for {meant})"
    if _BROKEN.search(text):
        return "in another encoding: convert the file to UTF-8 (iconv -f latin1 -t utf-8)"
    return "not in the schema's list"


def _date(text: str, dates: Dates) -> str:
    day = day_of(text, dates.zone)
    if day is None:
        if _DAY.fullmatch(text):
            return "a date written another way: write it as 2024-12-31"
        return "not a date"
    return "before the schema's first date" if day < dates.start else "at or after the schema's end"


def _number(text: str, low: float, high: float, step: int | None) -> str:
    try:
        value = float(text)
    except ValueError:
        if _THOUSANDS.fullmatch(text):
            return "a number with signs between its thousands: write 1234"
        if _COMMA.fullmatch(text):
            return "a decimal comma: write 3.5, not 3,5"
        return "a number with a unit or a sign beside it" if re.search(r"\d", text) else "not a number"
    if math.isnan(value):
        return MISSING
    if value < low:
        return "below the schema's range"
    if value > high:
        return "above the schema's range"
    return "between the schema's values" if step is not None else "outside every bin"
