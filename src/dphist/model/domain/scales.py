"""The four ways an ordered attribute says which value falls in which cell."""

from __future__ import annotations

import datetime as dt
import math
import numbers
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dphist.errors import DomainError, QueryError
from dphist.model.domain.zones import UTC, zone_of

IntArray = npt.NDArray[np.int64]
Number = int | float
# Where the line of an attribute's values is cut: in which cell, and behind which share of it.
Place = tuple[int, float]

# Cell indices and the integers of a range must fit the engines' 64-bit integers.
LARGEST = 2**63 - 1
# What lies inside of a bin has some share of it, and leaves some.
_LEAST, MOST = math.ulp(0.0), 1.0 - 2.0**-53


def _number(value: object, what: str) -> Number:
    """A plain int or float; numpy scalars are unwrapped, booleans and text are refused."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise QueryError(f"{what} takes numbers, not {type(value).__name__}")
    if isinstance(value, numbers.Integral):
        return int(value)
    try:
        return float(value)
    except OverflowError:
        # A fraction beyond all floats lies beyond all bounds too.
        return -math.inf if str(value).startswith("-") else math.inf


@dataclass(frozen=True, slots=True)
class Integers:
    """The integers of a range, one cell each. A value that is not one of them belongs to no cell."""

    values: range
    form: ClassVar[Literal["range"]] = "range"
    kinds: ClassVar[str] = "iuf"

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.values)

    def label(self, cell: int) -> str:
        """The integer itself."""
        return str(self.values[cell])

    def find(self, value: Any) -> int:
        """The cell of a value, or -1."""
        number = _number(value, "an integer range")
        # A whole number may be too long for a float; it is finite all the same.
        if (isinstance(number, float) and not math.isfinite(number)) or number != int(number):
            return -1
        try:
            return self.values.index(int(number))
        except ValueError:
            return -1

    def place(self, value: Any, *, after: bool) -> Place:
        """Where the line of values is cut right before a number, or right after it."""
        number, first, step = _bound(value), self.values.start, self.values.step
        if not first <= number <= self.values[-1]:
            return (self.size if number > first else 0), 0.0
        if after:
            return (math.floor(number) - first) // step + 1, 0.0
        return -((first - math.ceil(number)) // step), 0.0

    def cells(self, array: npt.NDArray[Any]) -> IntArray:
        """The cell of every number, -1 where there is none."""
        first, last, step = self.values[0], self.values[-1], self.values.step
        inside = (array >= first) & (array <= last)
        if array.dtype.kind == "f":
            inside &= np.floor(array) == array
        offset = np.where(inside, array, first).astype(np.int64) - first
        return np.where(inside & (offset % step == 0), offset // step, -1)


def _bound(value: Any) -> Number:
    number = _number(value, "a bound")
    if number != number:
        raise QueryError("a bound cannot be NaN")
    return number


def cells_of(scale: Scale, values: Iterable[Any]) -> IntArray:
    """The cell of every value, -1 where there is none: a value of the wrong type is only out of domain."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise DomainError(
            "values must be one list of single values; some of these are lists themselves"
        ) from None
    if not isinstance(scale, Steps) and array.dtype.kind in scale.kinds:
        return scale.cells(array)

    def find(value: Any) -> int:
        try:
            return scale.find(value)
        except QueryError:
            return -1

    return np.fromiter(map(find, array.reshape(-1).tolist()), np.int64, array.size)


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins between edges: each holds its lower edge, and the last one holds its upper edge too."""

    edges: range | tuple[Number, ...]
    _whole: bool = field(init=False, repr=False, compare=False, hash=False)
    form: ClassVar[Literal["edges"]] = "edges"
    kinds: ClassVar[str] = "iuf"

    def __post_init__(self) -> None:
        whole = isinstance(self.edges, range) or all(isinstance(edge, int) for edge in self.edges)
        object.__setattr__(self, "_whole", whole)

    @staticmethod
    def of(edges: Iterable[Any]) -> Bins:
        """Check the edges; equally spaced integers are kept as a range."""
        if isinstance(edges, range) and edges.step > 0:
            listed: range | tuple[Number, ...] = edges
        else:
            listed = tuple(_edge(edge) for edge in edges)
            if any(a >= b for a, b in pairwise(listed)):
                raise DomainError("edges must increase: each one above the one before")
            if len(listed) > 1 and all(isinstance(edge, int) for edge in listed):
                step = int(listed[1] - listed[0])
                even = range(int(listed[0]), int(listed[-1]) + 1, step)
                if len(even) == len(listed) and all(a == b for a, b in zip(even, listed, strict=True)):
                    listed = even
        if len(listed) < 2:
            raise DomainError("edges must be at least two: n edges make n - 1 bins")
        return Bins(listed)

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.edges) - 1

    def label(self, cell: int) -> str:
        """The bin as an interval."""
        return self.joined(cell, cell + 1)

    def joined(self, start: int, stop: int) -> str:
        """Several bins as one interval."""
        closing = "]" if stop == self.size else ")"
        return f"[{self.edges[start]!r}, {self.edges[stop]!r}{closing}"

    def find(self, value: Any) -> int:
        """The bin that holds a value, or -1."""
        number = _number(value, "a binned attribute")
        if not self.edges[0] <= number <= self.edges[-1]:
            return -1
        if isinstance(self.edges, range):
            # Floor first: it is exact, while the difference of two floats may round up to an edge.
            return min((math.floor(number) - self.edges.start) // self.edges.step, self.size - 1)
        return min(bisect_right(self.edges, number) - 1, self.size - 1)

    def place(self, value: Any, *, after: bool) -> Place:
        """Where the line of values is cut right before a number, or right after it.

        Between edges that are all whole, whole bounds mean whole numbers: right after 44 begins [45, 50), as it does
        right before 45. Not so where the number is an edge itself, as 0 is of [0, 1): above 0 there may be 0.5.
        """
        number = _bound(value)
        if not self.edges[0] <= number <= self.edges[-1]:
            return (self.size if number > self.edges[0] else 0), 0.0
        cell = self.find(number)
        # The last bin holds its upper edge, too: of whole numbers one more.
        begin, end = self.edges[cell], self.edges[cell + 1] + (self._whole and cell == self.size - 1)
        if after and number == self.edges[-1]:
            return self.size, 0.0
        # From a number to the next one: one, of whole numbers, and next to nothing of others.
        step = int(after and number == int(number) and self._whole)
        if step and number + step == end and number > begin:
            return cell + 1, 0.0
        if number == begin and not after:
            return cell, 0.0
        share = min(max(float((number - begin + step) / (end - begin)), _LEAST), math.nextafter(MOST, 0.0))
        return cell, math.nextafter(share, 1.0) if after else share

    def begin(self, cell: int) -> Number:
        """The lower edge of a bin; of the bin after the last, the upper edge of the last."""
        return self.edges[cell]

    def named(self, text: str) -> tuple[int, int]:
        """The bins of an interval between two edges, written as labels are: ``[0, 10)``; none if it is not."""
        low, _, high = text[1:-1].partition(",")
        try:
            start, stop = self.find(float(low)), self.find(float(high))
        except ValueError:
            return 0, 0
        stop += text.endswith("]")
        return (start, stop) if 0 <= start < stop and text == self.joined(start, stop) else (0, 0)

    def cells(self, array: npt.NDArray[Any]) -> IntArray:
        """The bin of every number, -1 where there is none."""
        edges = np.asarray(self.edges)
        found = np.searchsorted(edges, array, side="right") - 1
        found = np.where(array == edges[-1], self.size - 1, found)
        return np.where((array >= edges[0]) & (array <= edges[-1]), found, -1).astype(np.int64)


def _edge(edge: object) -> Number:
    if isinstance(edge, bool | np.bool_) or not isinstance(edge, numbers.Real):
        raise DomainError(f"edges must be numbers, not {type(edge).__name__}")
    number: Number = int(edge) if isinstance(edge, numbers.Integral) else float(edge)
    if not math.isfinite(number):
        raise DomainError("edges must be finite numbers: values beyond the last edge are out of the domain")
    if isinstance(number, float) and number.is_integer() and abs(number) <= 2**53:
        number = int(number)
    if isinstance(number, int) and abs(number) > LARGEST:
        raise DomainError("edges must fit in 64 bits")
    return number


@dataclass(frozen=True, slots=True)
class Steps:
    """Ordered categories, one cell each."""

    categories: tuple[str, ...]
    _places: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)
    form: ClassVar[Literal["categories"]] = "categories"

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {name: place for place, name in enumerate(self.categories)})

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.categories)

    def label(self, cell: int) -> str:
        """The category."""
        return self.categories[cell]

    def find(self, value: Any) -> int:
        """The cell of a category, or -1."""
        return self._places.get(value, -1) if isinstance(value, str) else -1

    def place(self, value: Any, *, after: bool) -> Place:
        """Where the line of categories is cut right before one of them, or right after it."""
        cell = self.find(value)
        if cell < 0:
            raise QueryError(f"a bound is not one of the categories {_some(self.categories)}")
        return cell + after, 0.0


def _some(names: Sequence[object]) -> str:
    shown = ", ".join(str(name) for name in names[:8])
    return f"{shown}, …" if len(names) > 8 else shown


_STEP = re.compile(r"(?P<count>[1-9]\d{0,5})\s*(?P<unit>d|w|mo|y)")
_EPOCH = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Dates:
    """Calendar days from ``start`` up to, not including, ``stop``, in equal steps of days or of months.

    The last cell is cut short where the steps do not end on ``stop``. A time with an offset is the moment that it
    names, and lies in the day that calendars of the ``zone`` showed then; one without lies in the day that it says.
    """

    start: dt.date
    stop: dt.date
    step: str
    days: int
    months: int
    zone: str = UTC
    form: ClassVar[Literal["dates"]] = "dates"
    kinds: ClassVar[str] = "M"

    @staticmethod
    def of(start: Any, stop: Any, step: Any, zone: Any) -> Dates:
        """Check the dates and read a step such as ``1d``, ``2w``, ``1mo``, ``1y``."""
        if not isinstance(zone, str):
            raise DomainError("zone: give the name of a time zone, such as Europe/Berlin")
        zone_of(zone)
        first, last = day_of(start), day_of(stop)
        if first is None or last is None:
            raise DomainError("dates must be calendar days such as 2024-01-31")
        if last <= first:
            raise DomainError("dates must end after they start: the stop date itself is not included")
        matched = _STEP.fullmatch(step.strip()) if isinstance(step, str) else None
        if matched is None:
            raise DomainError("the step of dates must be a number of d, w, mo or y, such as 1d, 2w, 1mo, 1y")
        count, unit = int(matched["count"]), matched["unit"]
        days = count * {"d": 1, "w": 7}.get(unit, 0)
        months = count * {"mo": 1, "y": 12}.get(unit, 0)
        if months and first.day > 28:
            raise DomainError(
                "dates stepped by months must start on a day up to the 28th, which every month has"
            )
        return Dates(first, last, f"{count}{unit}", days, months, zone)

    @property
    def size(self) -> int:
        """How many cells."""
        return self._place(self.stop - dt.timedelta(days=1)) + 1

    def _place(self, day: dt.date) -> int:
        if self.days:
            return (day - self.start).days // self.days
        apart = (day.year - self.start.year) * 12 + day.month - self.start.month - (day.day < self.start.day)
        return apart // self.months

    def begin(self, cell: int) -> dt.date:
        """The first day of a cell; of the cell after the last, the stop date."""
        if cell >= self.size:
            return self.stop
        if self.days:
            return self.start + dt.timedelta(days=cell * self.days)
        years, month = divmod(self.start.month - 1 + cell * self.months, 12)
        return self.start.replace(year=self.start.year + years, month=month + 1)

    def label(self, cell: int) -> str:
        """The day, the month, or the first and last day of the cell."""
        begin = self.begin(cell)
        if self.days == 1:
            return begin.isoformat()
        if self.months == 1 and self.start.day == 1 and self.stop.day == 1:
            return begin.isoformat()[:7]
        end = self.begin(cell + 1) - dt.timedelta(days=1)
        return f"{begin.isoformat()} to {end.isoformat()}"

    def _day(self, value: Any) -> dt.date:
        day = day_of(value, self.zone)
        if day is None:
            raise QueryError("a date attribute takes days such as 2024-01-31")
        return day

    def find(self, value: Any) -> int:
        """The cell of a day, or -1."""
        day = self._day(value)
        return self._place(day) if self.start <= day < self.stop else -1

    def place(self, value: Any, *, after: bool) -> Place:
        """Where the line of days is cut right before a day, or right after it."""
        day = self._day(value)
        if not self.start <= day < self.stop:
            return (self.size if day >= self.stop else 0), 0.0
        cell = self._place(day)
        begin, end = self.begin(cell), self.begin(cell + 1)
        share = ((day - begin).days + after) / (end - begin).days
        return (cell + 1, 0.0) if share == 1.0 else (cell, share)

    def named(self, text: str) -> tuple[int, int]:
        """The cell that is called so, such as a month: ``2024-03``; none if no cell is."""
        day = day_of(text[:10] if len(text) > len("2024-03") else f"{text}-01")
        cell = -1 if day is None else self.find(day)
        return (cell, cell + 1) if cell >= 0 and self.label(cell) == text else (0, 0)

    def cells(self, array: npt.NDArray[Any]) -> IntArray:
        """The cell of every moment, -1 where there is none."""
        days = array.astype("datetime64[D]")
        begins = np.array([self.begin(cell) for cell in range(self.size)], dtype="datetime64[D]")
        inside = (days >= begins[0]) & (days < np.datetime64(self.stop, "D"))
        return np.where(inside, np.searchsorted(begins, days, side="right") - 1, -1).astype(np.int64)


def day_of(value: Any, zone: str = UTC) -> dt.date | None:
    """A calendar day from a date, a datetime, a numpy datetime or ISO text; of a moment, the day in a zone."""
    if isinstance(value, str):
        try:
            value = dt.date.fromisoformat(value)
        except ValueError:
            try:
                value = dt.datetime.fromisoformat(value)
            except ValueError:
                return None
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            return None
        value = value.astype("datetime64[D]").item()
    if isinstance(value, dt.datetime):
        if value != value:
            # pandas' NaT claims to be a datetime but has no day.
            return None
        try:
            return (value if value.tzinfo is None else value.astimezone(zone_of(zone))).date()
        except OverflowError:
            return None
    return value if isinstance(value, dt.date) else None


Scale = Integers | Bins | Steps | Dates
