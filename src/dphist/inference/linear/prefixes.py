"""Noise of ranges as differences of prefix sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import NoiseErrors
from dphist.inference.intervals import Spread
from dphist.kernels.linear import range_weights
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
