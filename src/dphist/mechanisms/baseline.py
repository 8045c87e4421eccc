"""The baselines everything else is measured against."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphist.inference.estimate import Estimate, IndependentNoise, PieceNoise
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity, Totals


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Noise every cell on its own.

    Unbiased, with exact intervals, and the best choice for single cells of dense data; a range of L cells
    gathers the noise of L draws. Private because one step moves one cell by one and each cell carries discrete
    Laplace noise of scale 1/ε (Dwork, McSherry, Nissim and Smith, 2006).

    Example:
        >>> from dphist.mechanisms import Laplace
        >>> from dphist.testing import run
        >>> run(Laplace(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once."""
        noisy = data.measure(Identity())
        return Estimate(noisy.values.astype(np.float64), IndependentNoise(noisy.scale))


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Ask for the total only and spread it evenly.

    The best choice when there is next to no data for the budget. Private because one step moves the total by one.

    Example:
        >>> from dphist.mechanisms import Uniform
        >>> from dphist.testing import run
        >>> run(Uniform(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for the total once."""
        noisy = data.measure(Totals())
        counts = np.full(data.shape, max(0.0, float(noisy.values[0])) / data.size)
        labels = np.zeros(data.size, dtype=np.int64)
        return Estimate(counts, PieceNoise(data.shape, labels, np.array([float(noisy.scale)])))
