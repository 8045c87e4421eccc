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
    Laplace noise of scale 1/ε (Dwork, McSherry, Nissim and Smith, 2006). Under a budget of ρ it pays for its ε with
    ε·tanh(ε/2); `Gaussian` is its sibling there, and less noisy.

    Example:
        >>> from dphist.mechanisms import Laplace
        >>> from dphist.testing import run
        >>> run(Laplace(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once."""
        noisy = data.measure(Identity(), "laplace", floats=True)
        return Estimate(noisy.values.astype(np.float64, copy=False), IndependentNoise(noisy.law, exact=True))


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Noise every cell on its own, with Gaussian noise: for budgets of ρ, or of ε with a δ.

    Unbiased, with exact intervals; the best choice for single cells of dense data under ρ. Private because one step
    moves one cell by one and each cell carries discrete Gaussian noise of variance 1/(2ρ), which is ρ-zCDP (Canonne,
    Kamath and Steinke, 2020). A person with k cells of c rows each moves them by c√k, and the variance is c²k/(2ρ).
    Under pure ε it is refused: Gaussian noise is not purely private.

    Example:
        >>> from dphist.mechanisms import Gaussian
        >>> from dphist.model.budget import Budget
        >>> from dphist.testing import run
        >>> run(Gaussian(), [9, 9, 9, 0, 0, 0, 5, 5], Budget.of(rho="1/2"), seed=1).counts.shape
        (8,)
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once."""
        noisy = data.measure(Identity(), "gaussian", floats=True)
        return Estimate(noisy.values.astype(np.float64, copy=False), IndependentNoise(noisy.law, exact=True))


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
