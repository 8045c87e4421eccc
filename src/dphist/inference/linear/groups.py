"""Noise of ranges from that of groups of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, NoiseErrors, spread_of
from dphist.inference.intervals import Spread
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BucketNoise(NoiseErrors):
    """Noise of a range of cells from that of ranges of groups, when groups are runs of neighbours.

    A range that takes shares a and b of its first and last group is the mixture (1−a)(1−b), a(1−b), (1−a)b, ab of four
    ranges of whole groups. A standard deviation is a norm, so the mixture's is at most the mixture of theirs.
    """

    inner: Errors
    sizes: IntArray

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

    inner: Errors
    labels: IntArray
    sizes: IntArray
    shape: tuple[int, ...]

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
