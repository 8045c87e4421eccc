"""Time zones, as Python's zoneinfo has them: no engine is asked what a clock showed, so none can differ."""

from __future__ import annotations

import datetime as dt
import re
from functools import cache

from dphist.errors import DomainError

UTC = "UTC"
# Clocks are set at most 14 hours before UTC, and 12 behind.
_REACH = dt.timedelta(days=2)
# No zone has set its clocks twice within three days.
_LOOK = dt.timedelta(days=1)


@cache
def zone_of(name: str) -> dt.tzinfo:
    """A zone by its name, such as Europe/Berlin.

    Files of this machine's own (localtime) and those that count leap seconds (right/…) begin with a small letter.
    """
    if name == UTC:
        return dt.UTC
    # Loaded here: few domains need it, and all would wait.
    from zoneinfo import ZoneInfo

    if re.fullmatch(r"[A-Z][\w+-]*(/[A-Z][\w+-]*)*", name, re.ASCII):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            # Not there, or a folder of zones.
            pass
    raise DomainError(
        f"zone: this machine knows no time zone {name!r}; they are called as in Europe/Berlin, and the package tzdata "
        "has them all"
    )


@cache
def turns(name: str, first: dt.date, last: dt.date) -> tuple[tuple[dt.datetime, int | None], ...]:
    """From when on the clocks of a zone were ahead of UTC by how many seconds, from some day to before another.

    Moments are in UTC and in order; behind the last day there are no seconds.

    Example:
        >>> turns("Europe/Berlin", dt.date(2024, 3, 1), dt.date(2024, 4, 1))[1]
        (datetime.datetime(2024, 3, 31, 1, 0), 7200)
    """
    zone = zone_of(name)
    least, most = dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29)
    begin = max(dt.datetime(first.year, first.month, first.day), least + _REACH) - _REACH
    end = min(dt.datetime(last.year, last.month, last.day), most - _REACH) + _REACH

    def ahead(moment: dt.datetime) -> int:
        away = moment.replace(tzinfo=dt.UTC).astimezone(zone).utcoffset()
        return round((away or dt.timedelta()).total_seconds())

    found: list[tuple[dt.datetime, int | None]] = [(begin, ahead(begin))]
    low = begin
    while low < end:
        high = min(low + _LOOK, end)
        if ahead(high) != found[-1][1]:
            before, after = low, high
            while after - before > dt.timedelta(seconds=1):
                middle = before + dt.timedelta(seconds=(after - before) // dt.timedelta(seconds=2))
                before, after = (middle, after) if ahead(middle) == found[-1][1] else (before, middle)
            found.append((after, ahead(high)))
        low = high
    return (*found, (end, None))
