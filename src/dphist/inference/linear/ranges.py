"""Noise of ranges from a covariance, from prefix sums or from groups of cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, NoiseErrors, spread_of
from dphist.inference.intervals import Spread
from dphist.kernels.linear import range_weights
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DenseNoise(NoiseErrors):
    """Noise of ranges of a few cells from their covariance written out."""

    covariance: FloatArray
    method: str = "exact variance of the strategy's least squares; not covered: the bias of cutting at zero"

    def spread(self, workload: Workload) -> Spread:
        """Sum the covariance over the range on both sides."""
        n = len(self.covariance)
        table = np.zeros((n + 1, n + 1))
        table[1:, 1:] = self.covariance.cumsum(axis=0).cumsum(axis=1)
        a, b = workload.low[:, 0], workload.high[:, 0]
        variance = np.maximum(table[b, b] - table[a, b] - table[b, a] + table[a, a], 0.0)
        # Which draw weighs most is not kept; the whole variance in one draw is the widest it can be.
        return Spread(variance, np.sqrt(variance / 2))


@dataclass(frozen=True, eq=False)
class PrefixNoise(NoiseErrors):
    """The noise in any range: a weighted sum of the draws before its end."""

    weights: FloatArray
    """What a prefix sum makes of one draw, by how many cells before its end that was."""
    law: NoiseLaw
    method: str = "exact variance of the noise in the range, a difference of two prefix sums"
    theorem = True

    @property
    def size(self) -> int:
        """How many cells."""
        return self.weights.size

    def spread(self, workload: Workload) -> Spread:
        """Weigh the draws of every range."""
        low, high = (
            np.ascontiguousarray(side[:, 0], dtype=np.int64) for side in (workload.low, workload.high)
        )
        squares, largest = self._of_ranges(low, high)
        heaviest = np.zeros(largest.shape) if self.law.gaussian else largest * float(self.law.scale)
        return Spread(squares * float(self.law.variance), heaviest)

    def _of_ranges(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """Sums of squared weights and the largest of each range; cells and prefixes are running sums."""
        squares, largest = np.zeros(low.size), np.zeros(low.size)
        cells = high == low + 1
        starts = (low == 0) & (high > 0) & ~cells
        for asked, kind in ((cells, 0), (starts, 1)):
            if asked.any():
                sums, most = self._running[kind]
                squares[asked], largest[asked] = sums[high[asked] - 1], most[high[asked] - 1]
        other = ~(cells | starts)
        if other.any():
            squares[other], largest[other] = range_weights(self.weights, low[other], high[other])
        return squares, largest

    @cached_property
    def _running(self) -> list[tuple[FloatArray, FloatArray]]:
        """Of a cell's weights and a prefix's, by where they end: running sums of squares, and the largest so far."""
        laws = (np.diff(self.weights, prepend=0.0), self.weights)
        return [(np.cumsum(weights**2), np.maximum.accumulate(np.abs(weights))) for weights in laws]


@dataclass(frozen=True, eq=False)
class BucketNoise(NoiseErrors):
    """Noise of a range of cells from that of ranges of groups, when groups are runs of neighbours.

    A range that takes shares a and b of its first and last group is the mixture (1−a)(1−b), a(1−b), (1−a)b, ab of four
    ranges of whole groups. A standard deviation is a norm, so the mixture's is at most the mixture of theirs.
    """

    sizes: IntArray
    inner: Errors

    @property
    def method(self) -> str:  # type: ignore[override]  # the same for all
        """How intervals are obtained."""
        return (
            "noise of the groups' totals, given the released groups, bounded at groups that the range cuts; "
            "not covered: the bias inside those groups"
        )

    def spread(self, workload: Workload) -> Spread:
        """Mix four whole-group ranges for every range."""
        ends = np.concatenate([[0], np.cumsum(self.sizes)])
        low, high = workload.low[:, 0], workload.high[:, 0]
        first = np.clip(np.searchsorted(ends, low, side="right") - 1, 0, self.sizes.size - 1)
        last = np.clip(np.searchsorted(ends, high, side="left"), 1, self.sizes.size)
        head = (np.minimum(ends[first + 1], high) - low) / self.sizes[first]
        tail = (high - np.maximum(ends[last - 1], low)) / self.sizes[last - 1]
        # A range inside one group is that group's total times the share it takes.
        single = last - first <= 1
        tail = np.where(single, 1.0, tail)
        empty = high <= low
        deviation, largest = np.zeros(len(low)), np.zeros(len(low))
        groups = _line(self.sizes.size)
        for skip_first, skip_last in ((0, 0), (1, 0), (0, 1), (1, 1)):
            weight = np.where(skip_first, 1 - head, head) * np.where(skip_last, 1 - tail, tail)
            start, stop = first + skip_first, last - skip_last
            used = (weight > 0) & (stop > start) & ~empty
            if not used.any():
                continue
            part = spread_of(self.inner, Workload(groups, start[used][:, None], stop[used][:, None]))
            deviation[used] += weight[used] * np.sqrt(part.variance)
            largest[used] += weight[used] * part.largest
        return Spread(deviation**2, np.minimum(largest, deviation / np.sqrt(2)))


@dataclass(frozen=True, eq=False)
class CellBound(NoiseErrors):
    """Noise of any box from that of single groups: standard deviations are added, which is never too little."""

    shape: tuple[int, ...]
    labels: IntArray
    sizes: IntArray
    inner: Errors

    @property
    def method(self) -> str:  # type: ignore[override]  # the same for all
        """How intervals are obtained."""
        return (
            "a bound that adds up the standard deviations of the groups, given the released groups; "
            "not covered: the bias inside groups that the range cuts"
        )

    def spread(self, workload: Workload) -> Spread:
        """Sum every cell's share of its group's standard deviation over the box."""
        each = spread_of(self.inner, Workload.cells(_line(self.sizes.size)))
        deviation = _boxes(workload, (np.sqrt(each.variance) / self.sizes)[self.labels].reshape(self.shape))
        return Spread(deviation**2, deviation / np.sqrt(2))


def _boxes(workload: Workload, cells: FloatArray) -> FloatArray:
    """Sums over every box of the workload, one by one also where a question unites several."""
    boxes = workload if workload.query is None else Workload(workload.domain, workload.low, workload.high)
    return np.maximum(np.asarray(boxes.answer(cells), dtype=np.float64), 0.0)


def _line(n: int) -> Domain:
    return Domain([Ordinal("group", range(n))])
