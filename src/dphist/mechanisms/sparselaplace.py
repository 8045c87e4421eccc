"""The sparse mechanism: for domains of billions of cells that are never enumerated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.mechanisms.options import Count, checked
from dphist.private.gate import Noisy, PrivateCounts
from dphist.private.sparse import Above, probability

# Empty cells that pass an automatic threshold, on average.
_BY_CHANCE = 100
# More cells than this by chance alone are refused: they would drown the records, and take memory.
_TOO_MANY = 50_000_000


@checked
@dataclass(frozen=True, kw_only=True)
class SparseLaplace:
    """Noise every cell, publish those that reach a threshold, and visit only those that hold records.

    For very large, mostly empty domains: 10¹² cells cost no more than their records. Purely ε-private because its
    output has exactly the law of discrete Laplace noise of scale 1/ε on every cell followed by dropping what lies
    below ``threshold``; the proof stands in `dphist.private.sparse`. Cells below the threshold count as zero, so
    ranges with many small counts come out too low; records spread thinly need an ordinary mechanism over wider bins.
    Without a threshold, the least one is taken at which about a hundred empty cells pass by chance: a function of ε
    and the number of cells alone.

    Args:
        threshold: The least noisy count that is published; None for the least at which about a hundred empty cells
            pass.

    Example:
        >>> from dphist.mechanisms import SparseLaplace
        >>> from dphist.testing import run
        >>> run(SparseLaplace(threshold=3), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    threshold: Count | None = None

    def level(self, scale: Fraction, cells: int) -> int:
        """The threshold for noise of a ``scale`` on a domain of ``cells`` cells."""
        if self.threshold is not None:
            return self.threshold
        # Solve cells · α^τ ÷ (1 + α) = _BY_CHANCE for τ.
        excess = math.log(max(1.0, cells / _BY_CHANCE)) - math.log1p(math.exp(-float(1 / scale)))
        return max(1, math.ceil(float(scale) * excess - 1e-9))

    def check(self, scale: Fraction, cells: int) -> None:
        """Refuse a threshold that far too many empty counts would pass; public numbers decide."""
        expected = cells * probability(scale, self.level(scale, cells))
        if expected > _TOO_MANY:
            raise MechanismError(
                f"threshold: about {expected:.2g} empty counts would pass {self.level(scale, cells)} by chance; "
                f"raise it, or leave it out for {SparseLaplace().level(scale, cells)}"
            )

    def measure(self, data: PrivateCounts) -> Noisy:
        """Ask once for the pairs (cell, value) that reach the threshold."""
        self.check(data.unit_scale, data.size)
        return data.measure(Above(self.level(data.unit_scale, data.size)))

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Give a dense estimate, where one fits; `publish` keeps a sparse one."""
        noisy = self.measure(data)
        counts = np.zeros(data.size)
        counts[noisy.values[:, 0]] = noisy.values[:, 1]
        level = self.level(data.unit_scale, data.size)
        method = (
            f"noise of every cell in the range; not covered: cells below {level}, which are published as zero"
        )
        return Estimate(counts.reshape(data.shape), IndependentNoise(noisy.law, method))
