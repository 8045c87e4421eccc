"""From a promise at ε = 1 and the budget that is charged to the noise that is drawn: the only place where they meet."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.private.noise import Noise
from dphist.private.questions import Candidates, IntArray, Scales


@dataclass(frozen=True, eq=False)
class Priced:
    """Noise for one right: scales are stated for ε = 1 and divided by the budget that is charged."""

    noise: Noise
    budget: Fraction

    def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> IntArray:
        """Draw discrete Laplace noise of ``scale`` ÷ budget."""
        return self.noise.laplace(scale / self.budget, shape)

    def add_laplace(self, values: IntArray, scale: Fraction, out: IntArray | None = None) -> IntArray:
        """Add such noise to every value."""
        return self.noise.add_laplace(values, scale / self.budget, out)

    def hits(self, cells: int, scale: Fraction, threshold: int) -> IntArray:
        """Say in which of so many cells such noise reaches a threshold."""
        return self.noise.hits(cells, scale / self.budget, threshold)


def add_noise(exact: IntArray, scales: Fraction | Scales, noise: Priced) -> IntArray:
    """Add to every answer noise of its own scale."""
    if isinstance(scales, Fraction):
        return noise.add_laplace(exact, scales)
    noisy = np.empty_like(exact)
    # Raises if there is not one index for each answer.
    index = scales.index.reshape(exact.shape)
    for i, scale in enumerate(scales.values):
        here = index == i
        noisy[here] = noise.add_laplace(exact[here], scale)
    return noisy


def select(candidates: Candidates, budget: Fraction, noise: Noise) -> IntArray:
    """Choose in every part by the exponential mechanism: at budget ÷ range."""
    ranges = candidates.ranges
    if isinstance(ranges, int):
        return noise.select(candidates.scores, candidates.starts, budget / ranges)
    return noise.select(candidates.scores, candidates.starts, budget, ranges)
