"""What a release holds, and what follows from it alone: the estimate that its transcript gives when it is asked again.

The parts of a `Release` (asking, tables, the file, verification) are written against `Contents` and know nothing of
each other; `dphist.release.release` puts them together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import QueryError, TooLargeError, VerificationError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.inference.intervals import possible
from dphist.inference.selected import SelectedNoise
from dphist.inference.tables.published import TableEstimate
from dphist.model.about import About
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.measure import Measure, Quantity
from dphist.model.transcript import Transcript
from dphist.model.workload import Workload
from dphist.release.cells import Cells, DenseCells, TableCells
from dphist.release.cells.cells import LARGEST_ARRAY, Pair, fitting
from dphist.release.columns import free
from dphist.release.guarantee import Deferred, Guarantee, Maker, Receipt, WhenAsked, write_mechanism
from dphist.release.held import Story, read

if TYPE_CHECKING:
    from dphist.mechanisms.protocol import Mechanism
    from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]
Made = TypeVar("Made")


@dataclass(frozen=True, eq=False)
class WrittenBounds:
    """The bounds that a file holds, which are read when somebody wants them, and all that it says of itself."""

    columns: Mapping[str, NDArray[Any]]
    low: str
    high: str
    confidence: float
    told: Mapping[bytes, bytes]
    """Its metadata."""
    raw: Any
    """The same file, byte for byte."""

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy goes to another process, and an open file cannot: there bounds are worked out again.
        return type(None), ()

    def rows(self, begin: int, end: int) -> Pair:
        """Some rows of both columns."""
        low, high = (
            np.asarray(self.columns[name][begin:end], dtype=np.float64) for name in (self.low, self.high)
        )
        return low, high


@dataclass(frozen=True, eq=False)
class Contents:
    """The numbers, the promise, the mechanism and every paid-for answer; `Release` says what each field is."""

    domain: Domain
    cells: Cells
    guarantee: Guarantee
    mechanism: Mechanism
    transcript: Transcript
    note: str = ""
    polish: tuple[str, ...] = ()
    workload: Workload | None = None
    receipt: Receipt | None = None
    about: About = field(default=About(), repr=False)
    # Noise from a test seed can be subtracted by whoever knows the seed.
    test: bool = field(default=False, repr=False)
    sums: tuple[MeasuredSums, ...] = ()
    # The estimate is a function of the transcript: at hand after publishing, in the file after loading.
    known: InitVar[Estimate | TableEstimate | None] = None
    # What the file says that this was read from; whatever changes the release forgets it.
    _story: Story | None = field(default=None, init=False, repr=False)
    _written: WrittenBounds | None = field(default=None, init=False, repr=False)
    # The interval of every cell at the confidence that was asked for last.
    _bounds: dict[float, Pair] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self, known: Estimate | TableEstimate | None) -> None:
        if known is not None:
            given: object = known
            if not isinstance(given, Estimate | TableEstimate):
                raise TypeError(f"known must be an Estimate, not a {type(given).__name__}")
            object.__setattr__(self, "_estimate", self._shaped(known))

    @property
    def budget(self) -> Budget:
        """The privacy loss that was paid for, and its currency."""
        return self.guarantee.budget

    @property
    def spent(self) -> Fraction:
        """What the questions about the counts and the sums cost, all together."""
        return self.transcript.spent() + sum((sums.release.spent for sums in self.sums), Fraction(0))

    @property
    def questions(self) -> int:
        """How many questions were asked of the records."""
        return len(self.transcript) + sum(sums.release.questions for sums in self.sums)

    @property
    def counts(self) -> FloatArray:
        """The estimate as an array of the domain's shape.

        Raises:
            TooLargeError: if the release is sparse and its domain has more cells than an array can.
        """
        return self.cells.dense(self)

    @cached_property
    def maker(self) -> Maker:
        """Who made it, in words: as the file says, where it comes from one."""
        return Maker.of(self.mechanism)

    @property
    def _described(self) -> dict[str, Any]:
        """The mechanism by name and options: as the file has it, where it comes from one."""
        held = self.__dict__["mechanism"]
        if isinstance(held, Deferred):
            return held.described
        return write_mechanism(held)

    @property
    def _own_budget(self) -> Budget:
        """What the counts may cost: all that the sums did not."""
        budget = self.guarantee.budget
        if not self.sums:
            return budget
        own = budget.amount - sum((sums.release.budget.amount for sums in self.sums), Fraction(0))
        if own <= 0:
            raise VerificationError("the sums spend all that the guarantee allows")
        return Budget(own, budget.currency)

    def _cell_bounds(self, begin: int, end: int, confidence: float) -> Pair:
        """The interval of some rows, each by itself: from the file that the release was read from where it has them."""
        if self._written is not None and self._written.confidence == confidence:
            return self._written.rows(begin, end)
        return self.cells.bounds(self, begin, end, confidence)

    # ---- replaying --------------------------------------------------------------------------------------

    @cached_property
    def _estimate(self) -> Any:
        """The estimate, for its errors: what the file says it is, or what a replay gives."""
        if self._story is not None:
            return read(self._story, self.domain, self.cells, self.note)
        return self._replay()

    @property
    def model(self) -> Any:
        """What answers and intervals are worked out of: the estimate with its errors."""
        return self._estimate

    @cached_property
    def _unpolished(self) -> DenseCells:
        return DenseCells(self._estimate.counts)

    def _replay(self) -> Any:
        # Loaded here: only a replay asks again.
        from dphist.mechanisms.protocol import goes_wide

        mechanism = self.mechanism
        if goes_wide(mechanism, self.domain, self.workload):
            made: Any = self._replayed(mechanism.estimate_tables)
        elif self.domain.size > LARGEST_ARRAY and self.cells.form != DenseCells.form:
            raise TooLargeError(
                f"the domain has {self.domain.size:,} combinations, too many for an estimate of every one: ask "
                "answer(), or project() on fewer attributes"
            )
        else:
            made = self._replayed(mechanism.estimate)
        return self._shaped(made)

    def _replayed(self, ask: Callable[[PrivateCounts], Made]) -> Made:
        """Ask the transcript what the mechanism asked the data."""
        # Loaded here: only a replay opens a gate.
        from dphist.private.gate import open_replay

        right, replay = open_replay(
            self.domain,
            self._own_budget,
            self.guarantee.unit,
            self.transcript,
            workload=self.workload,
        )
        with fitting():
            made = ask(right)
            replay.finish()
            return made

    def _shaped(self, estimate: Estimate | TableEstimate) -> Any:
        if isinstance(estimate, TableEstimate):
            if not isinstance(self.cells, DenseCells):
                return estimate
            # Somebody polished the product.
            estimate = Estimate(estimate.counts, estimate.errors, estimate.note, estimate.made_by)
        shaped = replace(estimate, counts=estimate.counts.reshape(self.domain.shape))
        if self.guarantee.threshold and isinstance(shaped.errors, IndependentNoise):
            # Keys that were discovered are shown because their noise was kind to them.
            errors = SelectedNoise(
                shaped.errors.law,
                exact=shaped.errors.exact,
                threshold=self.guarantee.threshold,
                counts=shaped.counts,
            )
            return replace(shaped, errors=errors)
        return shaped


# Set here, because a class body would make it the field's default.
Contents.mechanism = WhenAsked("mechanism")  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class MeasuredSums:
    """The noised sums of one quantity: a release of its own, over the same cells.

    What was noised are sums in whole steps, perhaps centred: Σ (k − centre). The sum of a range is then that of the
    steps plus centre times its count. Both parts are releases, so both have errors of a known law, both replay, and
    their budgets add up to what the whole release promises (sequential composition).

    Args:
        quantity: What was added up, and what was taken from each value before.
        release: The sums, in steps; its unit is how many steps one protected unit can move them.
    """

    quantity: Quantity
    release: Contents

    @property
    def measure(self) -> Measure:
        """Whose sums they are."""
        return self.quantity.measure


def measured(release: Contents, name: str, *, squared: bool = False, clipped: bool = False) -> MeasuredSums:
    """The sums of a measure by its name, or a refusal that says which there are."""
    for sums in release.sums:
        quantity = sums.quantity
        if sums.measure.name == name and (quantity.squared, quantity.clipped) == (squared, clipped):
            return sums
    if clipped and any(sums.measure.name == name for sums in release.sums):
        raise QueryError(f"{name}: clipped records were not counted; publish with clipped=True")
    if squared and any(sums.measure.name == name for sums in release.sums):
        raise QueryError(
            f"{name}: its squares were not published, which variances need; publish with squares=True"
        )
    known = ", ".join(dict.fromkeys(sums.measure.name for sums in release.sums))
    raise QueryError(
        f"there is no measure {name!r}; " + (f"there are {known}" if known else "there are none")
    )


def possible_sums(
    low: ArrayLike, high: ArrayLike, least: float, most: float
) -> tuple[FloatArray, FloatArray]:
    """An interval of a sum, cut to what sums of values between two ends can be: of none below zero none is.

    The number stays as it is: sums of groups add up.
    """
    return possible(low, high, 0.0 if least >= 0 else -np.inf, 0.0 if most <= 0 else np.inf)


def sum_columns(
    release: Contents, taken: set[str], rows: tuple[Cells, FloatArray] | None = None
) -> dict[str, FloatArray]:
    """The estimated sums of every row in the measures' own values, by the name of their column.

    ``rows`` are the cells whose rows they are, with the count of each; by default the release's own.
    """
    columns: dict[str, FloatArray] = {}
    cells, counts = rows or (release.cells, release.cells.numbers)
    for sums in release.sums:
        if sums.quantity.plain:
            steps = sums.release.counts
            if isinstance(cells, TableCells):
                every = range(steps.ndim)
                beyond = [tuple(axis for axis in every if axis not in axes) for axes in cells.order]
                steps = np.concatenate([steps.sum(axis=axes).reshape(-1) for axes in beyond])
            steps = steps.reshape(-1) + sums.quantity.centre * counts
            columns[free(f"sum_{sums.measure.name}", taken | set(columns))] = steps * float(
                sums.quantity.step
            )
    return columns


def column_words(release: Contents, taken: set[str]) -> dict[str, str]:
    """What these columns hold, for people."""
    plain = [sums.measure for sums in release.sums if sums.quantity.plain]
    return {
        name: f"the estimated sum of {measure.name} over the cell's records, each value clipped to "
        f"{float(Fraction(measure.low)):g} to {float(Fraction(measure.high)):g}; noise was added on purpose, and where "
        "the cell's attributes were not measured together it is a guess, which adds up to what was measured"
        for name, measure in zip(sum_columns(release, taken), plain, strict=True)
    }
