"""Smoothing: find neighbours that are alike, so that they can share one noisy total."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from dphist.arrays import IntArray
from dphist.errors import MechanismError
from dphist.kernels.buckets.cheapest import (
    deviation_grouping,
    nested_buckets,
    power_grouping,
    squared_deviations,
    squared_grouping,
    squared_power_grouping,
    tree_grouping,
)
from dphist.kernels.buckets.deviations import LARGEST_SUM, power_deviations, rank
from dphist.kernels.compile import only_read
from dphist.mechanisms.options import Share, checked
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity
from dphist.private.segments import AbsoluteDeviation

# Buckets of every length are weighed one by one: beyond this many cells for longer than anybody waits.
_LONGEST_ALL = 1 << 17
# Up to this scale a draw of noise is one table look-up; a finer grid would cost more and decide nothing.
_FAST_SCALE = 64


@checked
@dataclass(frozen=True)
class Smooth:
    """How cells are grouped: by absolute deviations (S₁, S̃) or by squared ones (S₂).

    "absolute" pays ``share`` for a partition of least noisy cost Σ|x − centre| + the error of one more noisy total
    (`dphist.private.segments` has the proof). "squared" pays it for a noisy copy of the cells and does arithmetic on
    that: Σ(x̂ − mean)² less what noise alone would add, plus the variance of one noisy total spread over the bucket.

    ``sizes``: "all" buckets (quadratic time, so of at most 131,072 cells), "powers" of two (n log² n), or "tree" for
    blocks of the `Tree` that comes next, which then never looks inside a bucket.

    Args:
        metric: What a bucket costs: absolute or squared deviations.
        sizes: Which buckets are allowed: all, powers of two, or whole subtrees.
        share: The part of ε that finds the buckets.

    Example:
        >>> Smooth("absolute", sizes="powers", share="0.25").share
        Fraction(1, 4)
    """

    metric: Literal["absolute", "squared"]
    _: KW_ONLY
    sizes: Literal["all", "powers", "tree"] = "all"
    share: Share = Fraction(1, 4)
    centre: Literal["mean", "median"] = "mean"
    """What absolute deviations are taken about; about the median half the noise is enough."""

    def __post_init__(self) -> None:
        if self.metric == "squared" and self.centre != "mean":
            raise MechanismError("smooth: squared deviations are about the mean")

    def check(self, cells: int) -> None:
        """Refuse more cells than can be grouped, before anything is paid for."""
        if self.sizes == "all" and cells > _LONGEST_ALL:
            raise MechanismError(f'smooth: sizes "all" takes at most {_LONGEST_ALL:,} cells; use "powers"')

    def buckets(
        self, right: PrivateCounts, scales: tuple[Fraction, ...], lengths: tuple[int, ...]
    ) -> IntArray:
        """Spend the right on a partition of the cells in flat order; returns where its buckets start.

        ``scales`` are those of the noise that a bucket's total will get later, one for each level of a tree.
        """
        if self.metric == "absolute":
            return right.segment(self._costs(right.unit_scale, scales, lengths))
        noisy = right.measure(Identity())
        return self.on_values(noisy.values.reshape(-1), float(noisy.variance), scales, lengths)

    def on_values(
        self, values: IntArray, variance: float, scales: tuple[Fraction, ...], lengths: tuple[int, ...] = ()
    ) -> IntArray:
        """The same on values that are already noisy: nothing is spent."""
        if self.metric == "absolute":
            return self._absolute(values, scales)
        n = values.size
        x = values.astype(np.float64)
        if self.sizes == "tree":
            parent, lows, highs, levels = nested_buckets(n, lengths)
            totals = np.array([2.0 * float(scale) ** 2 for scale in scales])[levels]
            m = highs - lows
            costs = squared_deviations(x, lows, highs) - variance * (m - 1) + totals / m
            return np.sort(lows[tree_grouping(parent, costs) == 1])
        m = np.maximum(np.arange(n + 1), 1)
        prices = 2.0 * float(scales[0]) ** 2 / m - variance * (m - 1)
        search = squared_grouping if self.sizes == "all" else squared_power_grouping
        starts: IntArray = search(x, prices)
        return starts

    def _costs(
        self, unit_scale: Fraction, scales: tuple[Fraction, ...], lengths: tuple[int, ...]
    ) -> AbsoluteDeviation:
        grid = 16
        while grid > 1 and 4 * grid * unit_scale > _FAST_SCALE:
            grid //= 2
        if self.sizes == "tree":
            return AbsoluteDeviation(price=scales, sizes=lengths, centre=self.centre, grid=grid)
        return AbsoluteDeviation(price=scales[0], sizes=self.sizes, centre=self.centre, grid=grid)

    def _absolute(self, values: IntArray, scales: tuple[Fraction, ...]) -> IntArray:
        if self.sizes == "tree":
            raise MechanismError("smooth: blocks of a tree cannot be found on a copy; leave the order out")
        limit = LARGEST_SUM // max(1, values.size)
        cut = np.clip(values, -limit, limit)
        median = self.centre == "median"
        grid = 1 if median else 16
        price = round(scales[0] * grid)
        if self.sizes == "all":
            return deviation_grouping(cut, price, grid=grid, about_median=median)
        starts: IntArray = power_grouping(power_deviations(only_read(cut), *rank(cut), grid, median), price)
        return starts
