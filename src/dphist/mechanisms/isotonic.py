"""Counts that are known to rise, such as sorted ones (Hay, Rastogi, Miklau and Suciu, 2010)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphist.inference.estimate import Estimate, NoisyCells
from dphist.kernels.isotonic import isotonic
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity


@dataclass(frozen=True, kw_only=True)
class Isotonic:
    """Noise every count, then move to the nearest counts that never fall: the BoostMM of the literature.

    Made for `Histogram.unattributed()`, whose counts are sorted: where many are alike, noise averages out
    over them and almost nothing of it remains. On counts that do fall it smooths the fall away.

    Private because everything after the noise reads released numbers only; sorting integers keeps one step
    one step, so sorted counts need no more noise than others.

    Example:
        >>> from dphist.mechanisms import Isotonic
        >>> from dphist.testing import run
        >>> run(Isotonic(), [0, 0, 2, 3, 3, 9], epsilon=1, seed=1).counts.shape
        (6,)
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, in C-order."""
        noisy = data.measure(Identity())
        counts = isotonic(noisy.values.reshape(-1).astype(np.float64))
        # Around what is published they would hold no sum of counts that fall, and prove nothing of any.
        errors = NoisyCells(
            noisy.values.reshape(-1).astype(np.float64),
            noisy.law,
            method="noise of the counts before they were made to rise, around their sum; widened to hold the answer",
        )
        return Estimate(counts.reshape(data.shape), errors)
