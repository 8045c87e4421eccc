"""Errors of tables under least squares over what was measured, at once or in stages; elsewhere what these allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import (
    CALIBRATED,
    EXACT,
    How,
    Interval,
    NoiseErrors,
    around,
    each_of,
    holding,
    nearest_whole,
    reach_of,
    shared_confidence,
)
from dphist.inference.intervals import Spread
from dphist.inference.tables.frechet import Bounding
from dphist.inference.tables.residuals import TableResiduals, bounded_kinds
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ResidualNoise(NoiseErrors):
    """Errors of tables under least squares over what was measured, exactly; elsewhere what these tables allow."""

    theorem = True
    short: ClassVar[str] = EXACT
    method = (
        "exact variance of least squares over the measured tables; "
        "how attributes go together beyond these tables was not measured"
    )

    residuals: TableResiduals

    @property
    def parts(self) -> tuple[TableResiduals, ...]:
        """What was measured, stage by stage: here all at once."""
        return (self.residuals,)

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload: not a number where it was not measured."""
        return self.box_spread(workload.low, workload.high)

    def box_spread(self, low: IntArray, high: IntArray) -> Spread:
        """Give the noise in every box; where one table was asked and nothing else, answers are plain sums: exact."""
        known = self.residuals
        if len(known.measured) == 1 and not known.trees:
            only = known.measured[0]
            inside = [axes for axes, _ in bounded_kinds(known.shape, low, high)]
            if not only.residual and not only.differences and all(known.covers(axes) for axes in inside):
                law = NoiseLaw("laplace" if only.scale else "gaussian", Fraction(only.scale or only.variance))
                terms = np.prod((high - low)[:, only.axes], axis=1).astype(np.int64)
                return Spread.of_terms(terms, law)
        return Spread(*known.spread(low, high))

    def stand(self, workload: Workload, published: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Stand on the unbiased answers of least squares."""
        stand = self._fitted(workload.low, workload.high, workload.query, len(workload))
        return stand, np.zeros(stand.shape)

    def _fitted(self, low: IntArray, high: IntArray, query: IntArray | None, count: int) -> FloatArray:
        boxes = self.residuals.answers(low, high)
        return boxes if query is None else np.bincount(query, boxes, count).astype(np.float64)

    def interval(
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """Read half-widths off the noise, in whole counts; bound what was not measured, widened to hold the guess."""
        found = nearest_whole(super().interval(workload, published, confidence, **how), published)
        share, guaranteed = shared_confidence(confidence, len(workload), how), how.get("guaranteed", False)
        return or_bounds(
            found, workload, published, lambda rest: self.allowed(rest, share, guaranteed=guaranteed)
        )

    def allowed(self, workload: Workload, confidence: float, *, guaranteed: bool = False) -> Interval:
        """What the measured tables allow of every question, whatever is published: an interval, or bounds."""
        ask = partial(self._ask, guaranteed)
        found = ask(workload.low, workload.high, workload.query, len(workload), confidence)
        unknown = np.isnan(found.low)
        if unknown.any():
            rest = some_of(workload, unknown)
            bounding = Bounding(self.residuals.shape, self.residuals.inside, ask)
            bounds = bounding.bounds((rest.low, rest.high), rest.query, confidence)
            found.low[unknown], found.high[unknown] = bounds.low, bounds.high
        return found

    def _ask(
        self,
        guaranteed: bool,
        low: IntArray,
        high: IntArray,
        query: IntArray | None,
        count: int,
        confidence: float,
    ) -> Interval:
        """The intervals of measured questions, about least squares itself."""
        spread = self.box_spread(low, high).combine(query, count)
        stand = self._fitted(low, high, query, count)
        return nearest_whole(around(stand, reach_of(spread, confidence, guaranteed=guaranteed), stand), stand)


@dataclass(frozen=True, eq=False)
class StagedNoise(ResidualNoise):
    """Errors of tables that were measured in stages, each chosen by what the ones before it showed.

    Least squares over all of them lets every stage tell what it knows. But its weights then depend on noise that they
    weigh, so that its known law is no theorem: measured, not proven. What is *guaranteed* stands on one stage at
    a time. Given all that was seen before, a stage's tables and its noise are fixed, and its own least squares, and the
    bounds of its own tables, miss the truth with the probability that their law says. Stage t gets β/(t(t + 1)) of the
    error probability β, which adds up to less than β however many there are, and all intervals are cut with each other.

    Args:
        residuals: What was measured, in all stages.
        stages: What was measured in each.
    """

    short: ClassVar[str] = CALIBRATED.short
    method = (
        "variance of least squares over the measured tables, of which some were chosen by what others showed; "
        "how attributes go together beyond these tables was not measured"
    )

    stages: tuple[TableResiduals, ...] = ()

    @property
    def parts(self) -> tuple[TableResiduals, ...]:
        """What was measured, stage by stage."""
        return self.stages

    def interval(
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """As least squares has it; what is guaranteed, by every stage alone."""
        if not how.get("guaranteed"):
            return super().interval(workload, published, confidence, **how)
        share = shared_confidence(confidence, len(workload), how)
        found = holding(self.allowed(workload, share, guaranteed=True), published)
        known = self._fitted(workload.low, workload.high, workload.query, len(workload))
        return Interval(found.low, found.high, np.isnan(known) & ~np.isnan(found.low))

    def allowed(self, workload: Workload, confidence: float, *, guaranteed: bool = False) -> Interval:
        """What the measured tables allow; what is guaranteed, by every stage alone."""
        if not guaranteed:
            return super().allowed(workload, confidence)
        low, high = np.full(len(workload), np.nan), np.full(len(workload), np.nan)
        for number, stage in enumerate(self.stages, start=1):
            sure = each_of(confidence, number * (number + 1))
            each = ResidualNoise(stage).allowed(workload, sure, guaranteed=True)
            low, high = np.fmax(low, each.low), np.fmin(high, each.high)
        # Intervals that have nothing in common cannot all hold: there is nothing to choose between them by.
        return Interval(np.minimum(low, high), np.maximum(low, high))


def noise_after(before: ResidualNoise | None, later: TableResiduals) -> ResidualNoise:
    """Errors of what was measured before, if anything was, and of what was measured after that had been seen."""
    if before is None:
        return ResidualNoise(later)
    seen = before.residuals
    both = TableResiduals(later.shape, [*seen.measured, *later.measured], {**later.trees, **seen.trees})
    return StagedNoise(both, (*before.parts, later))


def or_bounds(
    found: Interval, workload: Workload, published: FloatArray, allowed: Callable[[Workload], Interval]
) -> Interval:
    """Intervals, and what measured tables allow of questions that have none, widened to hold the published guess."""
    guessed = np.isnan(found.low) & ~np.isnan(published)
    if not guessed.any():
        return found
    bounds = holding(allowed(some_of(workload, guessed)), published[guessed])
    low, high = found.low.copy(), found.high.copy()
    low[guessed], high[guessed] = bounds.low, bounds.high
    return Interval(low, high, guessed & ~np.isnan(low))


def some_of(workload: Workload, chosen: BoolArray) -> Workload:
    """Some of the questions."""
    if workload.query is None:
        return Workload(workload.domain, workload.low[chosen], workload.high[chosen])
    mine = chosen[workload.query]
    number = np.cumsum(chosen) - 1
    return Workload(workload.domain, workload.low[mine], workload.high[mine], number[workload.query[mine]])
