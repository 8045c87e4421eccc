"""Noise whose covariance is written out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import NoiseErrors
from dphist.inference.intervals import Spread
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
