"""Attributes with an order: ages, incomes, dates, school grades."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, overload

import numpy as np

from dphist.arguments import explained
from dphist.errors import DomainError, QueryError
from dphist.model.domain.scales import (
    LARGEST,
    Bins,
    Dates,
    IntArray,
    Integers,
    Place,
    Scale,
    Steps,
    _some,
    cells_of,
)
from dphist.model.domain.zones import UTC
from dphist.reminding import remind_of_data

# Where a range of values begins and ends.
Stretch = tuple[Place, Place]
OTHER = "other"


class Labels(Sequence[str]):
    """One readable text per cell, as a sequence that costs nothing until it is read."""

    __slots__ = ("_label", "_range")

    def __init__(self, label: Callable[[int], str], cells: range) -> None:
        self._label = label
        self._range = cells

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Labels: ...

    def __getitem__(self, index: int | slice) -> str | Labels:
        if isinstance(index, slice):
            return Labels(self._label, self._range[index])
        return self._label(self._range[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(self[:4])
        return f"Labels({shown}{', …' if len(self) > 4 else ''})"


@explained
@dataclass(frozen=True, slots=True, init=False, repr=False)
class Ordinal:
    """An attribute whose cells stand in order, so that a range of them is a question worth asking.

    Give exactly one of::

        Ordinal("age", range(100))                          # the integers 0..99, a cell each
        Ordinal("grade", ["low", "middle", "high"])         # ordered categories
        Ordinal("income", edges=[0, 10_000, 25_000, 1e6])   # [0, 10000), [10000, 25000), [25000, 1000000]
        Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo"))   # stop excluded; steps d, w, mo, y
        Ordinal("day", dates=("2024-01-01", "2025-01-01"), zone="Europe/Berlin")   # of times with an offset

    A range stays a range: ten million cells cost a few bytes. Rows with no cell (beyond the bounds, NULL,
    NaN, infinite, between the integers) are dropped, or counted in one more, last cell with ``other=True``.

    Args:
        name: What it is called, and the column it is read from.
        values: A range of integers, or ordered categories.
        edges: The bounds of bins.
        dates: First day, the day after the last, and the step.
        zone: Whose calendar says in which day a time with an offset lies; UTC by default. What has no offset lies in
            the day that it says.
        other: Whether rows without a cell are counted in one of their own.

    Example:
        >>> Ordinal("age", range(100)).size
        100
        >>> list(Ordinal("income", edges=[0, 10, 100]).labels)
        ['[0, 10)', '[10, 100]']
    """

    name: str
    scale: Scale
    other: bool
    kind: ClassVar[Literal["ordinal"]] = "ordinal"

    def __init__(
        self,
        name: str,
        values: range | Iterable[str] | None = None,
        *,
        edges: Iterable[float] | None = None,
        dates: tuple[Any, Any, str] | tuple[Any, Any] | None = None,
        zone: str | None = None,
        other: bool = False,
    ) -> None:
        check_name(name)
        if sum(given is not None for given in (values, edges, dates)) != 1:
            raise DomainError(f"{name}: give exactly one of a range, ordered categories, edges or dates")
        if isinstance(edges, list | tuple) and any(isinstance(edge, np.generic) for edge in edges):
            remind_of_data(name, "edges that an array gave", depth=3)
        try:
            scale = _scale(values, edges, dates, zone)
        except DomainError as error:
            raise DomainError(f"{name}: {error}") from None
        if other and isinstance(scale, Steps) and OTHER in scale.categories:
            raise DomainError(f'{name}: "{OTHER}" is a category already, so other=True would make two of it')
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "other", bool(other))

    @property
    def size(self) -> int:
        """How many cells, the other cell included."""
        return self.scale.size + self.other

    @property
    def other_cell(self) -> int | None:
        """The cell of everything out of the domain, if declared."""
        return self.scale.size if self.other else None

    @property
    def labels(self) -> Labels:
        """A readable text per cell."""
        return Labels(self._label, range(self.size))

    def _label(self, cell: int) -> str:
        return OTHER if cell == self.scale.size else self.scale.label(cell)

    def index(self, value: Any) -> int:
        """The cell that holds a value given in the attribute's own units.

        Args:
            value: In the attribute's own units.

        Returns:
            The number of its cell.
        """
        if self.other and isinstance(value, str) and value == OTHER:
            return self.scale.size
        try:
            cell = self.scale.find(value)
        except QueryError as error:
            raise QueryError(f"{self.name}: {error}") from None
        if cell < 0:
            raise QueryError(f"{self.name}: the release has no such value; it has {_some(self.labels)}")
        return cell

    def span(self, low: Any = None, high: Any = None) -> tuple[int, int]:
        """The cells from ``low`` to ``high``, both included, as a half-open range; None leaves a side open.

        Nothing looks inside a cell, so a range that cuts a bin, a week or a month is refused. Between edges that are
        all whole a whole bound means whole numbers: from 40 to 44 is [40, 45). The other cell is in no range. A range
        that runs backwards or touches no cell is refused: its answer would be a zero that says nothing about anybody.

        Args:
            low: The first value; None for no bound.
            high: The last value, included; None for no bound.

        Returns:
            The half-open range of its cells.
        """
        ((start, stop),) = whole_cells(self, [self.places(low, high)])
        return start, stop

    def places(
        self, low: Any = None, high: Any = None, *, above: bool = False, below: bool = False
    ) -> Stretch:
        """Where a range of values begins and ends: between cells, or inside one, behind a share of it.

        Args:
            low: The first value; None for no bound.
            high: The last value; None for no bound.
            above: Whether the first is left out.
            below: Whether the last is left out.

        Returns:
            Both places: a cell, and the share of it that lies before.
        """
        try:
            start = (0, 0.0) if low is None else self.scale.place(low, after=above)
            stop = (self.scale.size, 0.0) if high is None else self.scale.place(high, after=not below)
        except QueryError as error:
            raise QueryError(f"{self.name}: {error}") from None
        if start >= stop:
            raise QueryError(f"{self.name}: {_nowhere(self, low, high)}")
        return start, stop

    def cells(self, values: Iterable[Any]) -> IntArray:
        """The cell of every value; the other cell, or -1, for those that have none.

        Args:
            values: In the attribute's own units.

        Returns:
            The number of each value's cell.
        """
        if not isinstance(values, np.ndarray):
            values = list(values)
        found = cells_of(self.scale, values)
        if (masked := getattr(values, "mask", None)) is not None:
            # What NumPy masks is missing, whatever lies under the mask.
            found = np.where(masked, -1, np.asarray(found))
        return np.where(found < 0, self.scale.size, found) if self.other else found

    def __repr__(self) -> str:
        match self.scale:
            case Integers(values=values):
                inside = repr(values)
            case Bins(edges=edges):
                inside = f"edges={edges!r}" if isinstance(edges, range) else f"edges=[{_some(edges)}]"
            case Steps(categories=categories):
                inside = f"[{_some([repr(c) for c in categories])}]"
            case Dates(start=start, stop=stop, step=step, zone=zone):
                inside = f"dates=('{start}', '{stop}', '{step}')" + f", zone={zone!r}" * (zone != UTC)
        return f"Ordinal({self.name!r}, {inside}{', other=True' if self.other else ''})"


def whole_cells(attribute: Any, allowed: Iterable[Stretch]) -> list[tuple[int, int]]:
    """The cells of stretches that cut none: what they cut is refused, for nothing looks inside a cell."""
    allowed = list(allowed)
    cut = sorted({place[0] for stretch in allowed for place in stretch if place[1]})
    if not cut:
        return [(start, stop) for (start, _), (stop, _) in allowed]
    scale, labels = attribute.scale, attribute.labels
    # What may have been meant: the nearest edges, or a bin that the question lies inside of.
    (begin, before), (end, until) = next(each for each in allowed if each[0][1] or each[1][1])
    start, stop = begin + (before >= 0.5), min(end + (until >= 0.5), scale.size)
    if start >= stop:
        start, stop = cut[0], cut[0] + 1
    below = "<=" if isinstance(scale, Bins) and stop == scale.size else "<"
    ends = _some(sorted({scale.begin(at) for cell in cut for at in (cell, cell + 1)}))
    named, inside = attribute.name, _some([labels[cell] for cell in cut])
    raise QueryError(
        f"{named}: nothing looks inside {inside}, which the question cuts. Let bounds lie at {ends}, as {named} >= "
        f"{scale.begin(start)} and {named} {below} {scale.begin(stop)} has them, or take a whole bin by its name, as "
        f'{named} = "{labels[cut[0]]}"; for a guess with bounds: bins="spread"'
    )


def _nowhere(attribute: Ordinal, low: Any, high: Any) -> str:
    """Why a range holds no cell."""
    try:
        backwards = low is not None and high is not None and bool(low > high)
    except TypeError:
        backwards = False
    if backwards or isinstance(attribute.scale, Steps):
        return "the range runs backwards: give the lower bound first"
    first, last = attribute.labels[0], attribute.labels[attribute.scale.size - 1]
    return f"no value lies in this range: they go from {first} to {last}, and nothing outside was counted"


def writable(text: str) -> bool:
    """Whether a text can stand in a file: half of a character cannot, and a release with one could not be saved."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_name(name: object) -> None:
    """An attribute is named by a text that is not empty."""
    if not isinstance(name, str) or not name.strip():
        raise DomainError("an attribute needs a name: the column it stands for")
    if not writable(name):
        raise DomainError("the name of an attribute must be text that UTF-8 can write")


def _scale(values: object, edges: Iterable[Any] | None, dates: object, zone: str | None) -> Scale:
    if zone is not None and dates is None:
        raise DomainError("zone: dates alone have one")
    if edges is not None:
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise DomainError("edges must be a list of numbers")
        return Bins.of(edges)
    if dates is not None:
        if not isinstance(dates, tuple | list) or not 2 <= len(dates) <= 3:
            raise DomainError("dates must be (start, stop, length), such as 2024-01-01, 2025-01-01, 1mo")
        step = dates[2] if len(dates) == 3 else "1d"
        return Dates.of(dates[0], dates[1], step, UTC if zone is None else zone)
    if isinstance(values, range):
        if values.step < 1:
            raise DomainError("a range must go upwards")
        if not values:
            raise DomainError("the range is empty: its end must be above its start")
        if max(abs(values.start), abs(values[-1])) > LARGEST:
            raise DomainError("a range must fit in 64 bits")
        # range(0, 10, 3) and range(0, 12, 3) are the same values; keep one spelling of each.
        return Integers(range(values[0], values[-1] + 1, values.step if len(values) > 1 else 1))
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise DomainError("ordered categories must be a list of texts")
    categories = tuple(values)
    if not categories:
        raise DomainError("there are no categories")
    if not all(isinstance(category, str) for category in categories):
        raise DomainError("ordered categories must be texts; for numbers give a range or edges")
    if not all(map(writable, categories)):
        raise DomainError("a category must be text that UTF-8 can write")
    if len(set(categories)) != len(categories):
        raise DomainError("a category is listed twice")
    return Steps(categories)
