"""A numeric column that is added up: clipped to public bounds, counted in whole steps, so that sums are exact integers.

A value v becomes k = ⌊v ÷ step + ½⌋, clipped to ``low ÷ step … high ÷ step``: a function of the row alone. A cell's
sum is then Σ k, an exact integer, and one row moves one cell by at most ``reach`` steps: group privacy of that many
*steps* (one cell changing by one) is all that the gate needs to know.

**Centred sums.** With the public middle m = ⌊(low + high) ÷ 2⌋ in steps, Σ (k − m) has half the reach of values between
0 and ``high``, and Σ k = Σ (k − m) + m · count. The count is measured anyway. A forecast in public numbers decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.arguments import explained
from dphist.errors import InputError
from dphist.model.domain import Domain, Ordinal
from dphist.model.domain.ordinal import writable
from dphist.model.domain.scales import Dates, Steps
from dphist.model.exact import exact, fraction
from dphist.model.unit import Unit

# A row may move a cell by at most 2^40: millions of rows then stay far below 2^63, on every engine.
LARGEST_REACH = 2**40
_LARGEST_PRODUCT = 2**62
_KEYS = ("name", "low", "high", "step", "missing", "per_person", "squares", "clipped", "column")

Amount = int | float | str | Fraction


@explained
@dataclass(frozen=True)
class Measure:
    """A numeric column to be added up in every cell, between bounds that are public.

    Values beyond the bounds are clipped to them. A row whose value is missing or cannot be read (NULL, NaN, a text that
    is no number) is in no cell, of the counts too, so that a mean is one over the rows that have a value; ``missing``
    names a value that such rows have instead. Either is decided by the row alone.

    Args:
        name: What it is called, and the column unless ``column`` says otherwise.
        low: The least value that counts; public, as are all of these.
        high: The largest value that counts.
        step: How finely values are kept; ``low`` and ``high`` are whole multiples of it.
        missing: What a row without a value has; None drops the row.
        per_person: How much the rows of one person may add up to at most, in absolute values; needs a unit with an id.
            Whoever has more has each value cut by the same factor.
        squares: Whether squares are added up too, which variances need; they are paid for like a further measure.
        clipped: Whether records beyond the bounds are counted, too, so that the release can say what share of them was
            clipped; paid for like a further measure.
        column: The column, where it has another name.

    Example:
        >>> cost = Measure("cost", low=0, high=5_000)
        >>> cost.lowest, cost.highest, cost.middle
        (0, 5000, 2500)
        >>> Measure("cost", 0, "99.99", step="0.01").highest
        9999
    """

    name: str
    low: Amount
    high: Amount
    step: Amount = 1
    missing: Amount | None = None
    per_person: Amount | None = None
    squares: bool = False
    clipped: bool = False
    column: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not writable(self.name):
            raise InputError("measure: name must be the name of a column")

        def insist(holds: bool, otherwise: str) -> None:
            if not holds:
                raise InputError(f"measure {self.name}: {otherwise}")

        named = self.column is None or (
            isinstance(self.column, str) and bool(self.column) and writable(self.column)
        )
        insist(named, "column must be the name of a column")
        true_or_false = isinstance(self.squares, bool) and isinstance(self.clipped, bool)
        insist(true_or_false, "squares and clipped must be true or false")
        for field in ("low", "high", "step", "missing", "per_person"):
            value = getattr(self, field)
            if value is not None or field in ("low", "high", "step"):
                # A file may hold longer fractions than people write.
                value = fraction(value) if isinstance(value, str) and "/" in value else value
                object.__setattr__(self, field, exact(value, f"measure {self.name}: {field}"))
        insist(self.size > 0, "step must be above zero")
        low, high = Fraction(self.low), Fraction(self.high)
        insist(low < high, "low must be below high")
        for field in ("low", "high", "missing", "per_person"):
            value = getattr(self, field)
            insist(
                value is None or (value / self.size).denominator == 1,
                f"{field} must be a whole multiple of step; give another step, such as 0.01",
            )
        inside = self.missing is None or low <= Fraction(self.missing) <= high
        insist(inside, "missing must lie between low and high")
        most = max(abs(self.lowest), abs(self.highest))
        insist(
            most <= LARGEST_REACH,
            "its bounds are more than 2^40 steps from zero, and sums might not fit in 64 bits; take a coarser step",
        )
        # Steps of a value before squaring, and of a share of somebody's limit: products stay below 2^62.
        small = not self.squares or self.half <= 2**20
        insist(small, "squares need bounds of at most 2^21 steps; take a coarser step")
        if self.per_person is not None:
            insist(not self.squares, "squares and per_person do not go together")
            insist(
                self.limit >= 1 and self.limit * most < _LARGEST_PRODUCT,
                "per_person must be above zero, and times the bounds below 2^62 steps; take a coarser step",
            )

    @property
    def size(self) -> Fraction:
        """One step."""
        return Fraction(self.step)

    @property
    def lowest(self) -> int:
        """The lower bound in steps."""
        return int(Fraction(self.low) / self.size)

    @property
    def highest(self) -> int:
        """The upper bound in steps."""
        return int(Fraction(self.high) / self.size)

    @property
    def middle(self) -> int:
        """The middle of the bounds in steps, rounded down."""
        return (self.lowest + self.highest) // 2

    @property
    def half(self) -> int:
        """How far a value can be from the middle, in steps."""
        return max(self.highest - self.middle, self.middle - self.lowest)

    @property
    def limit(self) -> int:
        """What one person may add up to, in steps."""
        return 0 if self.per_person is None else int(Fraction(self.per_person) / self.size)

    @property
    def source(self) -> str:
        """The column that it is read from."""
        return self.column or self.name

    def describe(self) -> str:
        """The measure in plain words.

        Returns:
            A phrase such as ``cost, clipped to 0 to 5000, in steps of 1``.
        """
        low, high, step = (f"{float(Fraction(each)):g}" for each in (self.low, self.high, self.step))
        return f"{self.name}, clipped to {low} to {high}, in steps of {step}"

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` turns back into an equal measure.

        Returns:
            A mapping of plain values; what was left out is left out.
        """
        written: dict[str, Any] = {"name": self.name}
        for field in ("low", "high", "step", "missing", "per_person"):
            value = getattr(self, field)
            if value is not None:
                written[field] = int(value) if value.denominator == 1 else str(value)
        for field in ("squares", "clipped"):
            if getattr(self, field):
                written[field] = True
        if self.column is not None:
            written["column"] = self.column
        return written

    @staticmethod
    def from_json(value: Any) -> Measure:
        """Read what `to_json` wrote.

        Args:
            value: What `to_json` gave, or a ``[[measure]]`` of a schema.

        Returns:
            An equal measure.
        """
        if not isinstance(value, Mapping) or not {"name", "low", "high"} <= set(value) <= set(_KEYS):
            raise InputError(
                f"a measure is a table with name, low and high, and perhaps {', '.join(_KEYS[3:])}"
            )
        return Measure(**value)

    @staticmethod
    def parse(text: str) -> Measure:
        """Read ``cost:0:5000`` or ``cost:0:5000:1``, as on the command line.

        Args:
            text: Name, low, high and perhaps the step, with colons between; ``:squares`` may follow.

        Returns:
            The measure.

        Example:
            >>> Measure.parse("cost:0:5000:1/100").highest
            500000
        """
        parts = text.split(":")
        squares = parts[-1] == "squares"
        parts = parts[: len(parts) - squares]
        if not 3 <= len(parts) <= 4:
            raise InputError("a measure is name:low:high or name:low:high:step, such as cost:0:5000:1")
        name, low, high, step = [*parts, "1"][:4]
        return Measure(name, low, high, step, squares=squares)


def check_measures(
    measures: Iterable[Measure], unit: Unit, domain: Domain | None = None
) -> tuple[Measure, ...]:
    """Refuse, by public facts alone, measures that cannot be published together."""
    if isinstance(measures, Measure):
        raise InputError("measures: give a list of them, such as measures=[Measure(…)]")
    listed = tuple(measures)
    for measure in listed:
        if not isinstance(measure, Measure):
            raise InputError(f"measures: expected dphist.Measure, not a {type(measure).__name__}")
        if measure.per_person is not None and unit.id is None:
            raise InputError(
                f"measure {measure.name}: per_person needs a unit with an id: Unit(rows=…, id=…)"
            )
        if unit.rows * max(abs(measure.lowest), abs(measure.highest)) >= _LARGEST_PRODUCT:
            raise InputError(
                f"measure {measure.name}: a person's rows times their steps exceed 64 bits; take a coarser step"
            )
        if domain is not None and measure.source in domain.names and (held := _held(domain, measure.source)):
            raise InputError(
                f"measure {measure.name}: by the domain the column {measure.source} holds {held}, and numbers alone "
                "can be added up; name a column of numbers"
            )
    if len({measure.name for measure in listed}) != len(listed):
        raise InputError("measures: two have one name")
    return listed


def _held(domain: Domain, name: str) -> str:
    """What rows of a cell have in a column that they have no number in: told by the domain alone, "" if they may.

    A row with a number there would have no cell on that attribute, so none could be counted at all.
    """
    attribute = domain.attribute(name)
    if attribute.other_cell is not None:
        return ""
    if isinstance(attribute, Ordinal):
        if isinstance(attribute.scale, Dates):
            return "dates"
        listed: Sequence[object] = attribute.scale.categories if isinstance(attribute.scale, Steps) else ()
    else:
        listed = attribute.categories
    return "text" if listed and not any(_numeric(category) for category in listed) else ""


def _numeric(category: object) -> bool:
    """Whether a category may be read as a number; a truth value may not."""
    try:
        float(str(category))
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Quantity:
    """What is added up and noised for a measure: its values, squares of distances from the middle, or clipped records.

    ``centre`` is what is taken from every value before it is added: 0, or a middle.

    Args:
        measure: The measure.
        squared: Whether the squared distances from its middle are meant.
        clipped: Whether values beyond the bounds are counted.
        centre: What is taken from each value, in steps.
    """

    measure: Measure
    squared: bool = False
    centre: int = 0
    clipped: bool = False

    @property
    def plain(self) -> bool:
        """Whether the values themselves are added up."""
        return not self.squared and not self.clipped

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest that a row adds before centring, in steps."""
        if self.squared:
            return 0, self.measure.half**2
        if self.clipped:
            return 0, 1
        return self.measure.lowest, self.measure.highest

    @property
    def middle(self) -> int:
        """The centre that makes the reach least."""
        low, high = self.bounds
        return (low + high) // 2

    @property
    def reach(self) -> int:
        """How far one row moves its cell at most, in steps."""
        low, high = self.bounds
        return max(high - self.centre, self.centre - low, 1)

    @property
    def step(self) -> Fraction:
        """What one step is worth in the measure's own values."""
        return Fraction(1) if self.clipped else self.measure.size ** (2 if self.squared else 1)

    def in_steps(self, unit: Unit) -> Unit:
        """The unit that the gate must hide among sums: as many *steps* as one protected unit can move them.

        One row moves one cell by at most ``reach`` steps, so ``rows`` rows move the sums by rows · reach in L1, and no
        more in L2. Who is replaced takes that away and adds as much: also to the same cell, where a negative value
        that leaves and a positive one that comes move it the same way. So finer L2 factors, which hold for counts (of
        a replaced row; of few rows in each of several cells), are not used for sums: the unit given here is that many
        steps of either sign, anywhere, which group privacy covers for every question. With ``per_person`` the L1 move
        of a person is at most that limit.
        """
        times = 2 if unit.replace else 1
        if self.measure.per_person is not None and self.plain:
            return Unit(rows=self.measure.limit * times)
        return Unit(rows=unit.rows * self.reach * times)


class Sums:
    """Exact sums over the cells of a domain, in steps: as secret as counts, and like them never shown.

    Args:
        domain: What the cells are.
        counts: A 64-bit integer for every cell, of either sign.
    """

    __slots__ = ("counts", "domain")

    def __init__(self, domain: Domain, counts: npt.ArrayLike) -> None:
        array = np.asarray(counts)
        if array.dtype.kind != "i" or array.shape != domain.shape:
            raise InputError("sums: give a 64-bit integer for every count")
        own = np.ascontiguousarray(array, dtype=np.int64).view()
        own.setflags(write=False)
        self.domain, self.counts = domain, own

    def __repr__(self) -> str:
        axes = " × ".join(f"{a.name}[{a.size}]" for a in self.domain.attributes)
        return f"Sums({axes}; they are secret)"
