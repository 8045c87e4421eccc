"""What a mechanism for wide tables hands over: published tables that agree with each other, and their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, Interval, NoiseErrors, around
from dphist.inference.intervals import Spread, half_widths
from dphist.inference.residuals import TableResiduals, bounded_kinds
from dphist.inference.tables import Axes
from dphist.model.law import NoiseLaw
from dphist.model.phrases import mended
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Model(Protocol):
    """A distribution over whole records that says something of every table, measured or not."""

    def table(self, axes: Axes) -> FloatArray:
        """The probability of every cell of a table, its axes as named."""
        ...

    def boxes(self, low: IntArray, high: IntArray) -> FloatArray:
        """The probability of every box."""
        ...


class TableErrors(Errors, Protocol):
    """What is known of the errors of any box, and of all cells of a table at once."""

    def table_interval(self, axes: Axes, published: FloatArray, confidence: float) -> Interval:
        """Give an interval for every cell of a published table; not a number where it was not measured.

        Args:
            axes: The attributes that the table keeps, ascending.
            published: Its published cells.
            confidence: How sure each interval is to hold the true count.

        Returns:
            The bounds, in the table's shape.
        """
        ...


@dataclass(frozen=True, eq=False)
class TableEstimate:
    """Published tables of few attributes, what is known of their errors, and a word on how they came about.

    Args:
        tables: By their attributes, ascending; with each table every smaller one inside it, the total under ``()``.
        errors: Intervals for boxes inside these tables; not a number elsewhere.
        note: How it came about.
        model: What says something of tables that were not measured, if there is such a model: a guess.
        made_by: The mechanism with all that it chose filled in, where it chose: replaying that chooses nothing again.
    """

    tables: Mapping[Axes, FloatArray]
    errors: TableErrors
    note: str = ""
    model: Model | None = None
    made_by: object = None

    def __post_init__(self) -> None:
        """One of a thing is said as one, as in `Estimate`."""
        object.__setattr__(self, "note", mended(self.note))

    @property
    def total(self) -> float:
        """The published number of records."""
        return float(self.tables[()])


class LeastSquaresNoise(NoiseErrors):
    """Errors of tables under least squares over what was measured, exactly; elsewhere there is no interval."""

    theorem: ClassVar[bool] = True
    short: ClassVar[str] = (
        "exact: noise of least squares over the measured tables, widened to hold the answer"
    )
    method = (
        "exact variance of least squares over the measured tables; "
        "how attributes go together beyond these tables was not measured, and such answers have no interval"
    )

    if TYPE_CHECKING:

        def fitted(self, low: IntArray, high: IntArray) -> FloatArray:
            """Give least squares' own answer to every box."""
            ...

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Stand on the unbiased answers of least squares."""
        boxes = self.fitted(workload.low, workload.high)
        if workload.query is not None:
            whole = np.zeros(len(workload))
            np.add.at(whole, workload.query, boxes)
            boxes = whole
        return boxes, np.zeros(boxes.shape)


@dataclass(frozen=True, eq=False)
class ResidualNoise(LeastSquaresNoise):
    """Errors of tables that were fitted to residuals."""

    residuals: TableResiduals

    def fitted(self, low: IntArray, high: IntArray) -> FloatArray:
        """Give least squares' own answer to every box."""
        return self.residuals.answers(low, high)

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload: not a number where it was not measured."""
        return self._spread(workload.low, workload.high)

    def _spread(self, low: IntArray, high: IntArray) -> Spread:
        """The same; where one table was asked and nothing else, answers are plain sums of its draws: exact."""
        known = self.residuals
        if len(known.measured) == 1 and not known.trees:
            only = known.measured[0]
            inside = [axes for axes, _ in bounded_kinds(known.shape, low, high)]
            if not only.residual and not only.differences and all(known.covers(axes) for axes in inside):
                law = NoiseLaw("laplace" if only.scale else "gaussian", Fraction(only.scale or only.variance))
                terms = np.prod((high - low)[:, only.axes], axis=1).astype(np.int64)
                return Spread.of_terms(terms, law)
        return Spread(*known.spread(low, high))

    def table_interval(self, axes: Axes, published: FloatArray, confidence: float) -> Interval:
        """Around least squares, widened to hold the answer; cells have the same noise but where a tree was asked."""
        if not self.residuals.covers(axes):
            unknown = np.full(published.shape, np.nan)
            return Interval(unknown, unknown)
        stand = self.residuals.table(axes)
        if any(axis in self.residuals.trees for axis in axes):
            variance, heaviest = self.residuals.cell_spread(axes)
            each = half_widths(Spread(variance.reshape(-1), heaviest.reshape(-1)), confidence)
            return around(stand, each.reshape(stand.shape), published)
        shape = self.residuals.shape
        low = np.zeros((1, len(shape)), dtype=np.int64)
        high = np.array([[1 if axis in axes else size for axis, size in enumerate(shape)]], dtype=np.int64)
        width = half_widths(self._spread(low, high), confidence)[0]
        return around(stand, width, published)
