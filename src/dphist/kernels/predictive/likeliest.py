"""The fewest whole counts that hold a count as often as they promise, by a normal law of its error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel, kernel_once_hot
from dphist.kernels.special import ROOT_HALF

FloatArray = NDArray[np.float64]


@kernel_once_hot(30.0)
def likeliest_counts(
    published: FloatArray, deviation: FloatArray, deviations: float, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """The fewest whole counts in a row that have this much of the law, and what is published between the bounds.

    Count k has what a normal law about the published one gives to (k − ½, k + ½). Counts within ``deviations`` (the
    normal law's to both sides, for this confidence) have more than is needed; so the least likely at either end are
    dropped while enough is left. What the law has below zero counts as missed, though no count lies there: a reserve,
    as errors of what is nearly empty lie above.
    """
    low, high = np.empty(published.size), np.empty(published.size)
    for i in range(published.size):
        middle, spread = published[i], deviation[i]
        nearest = max(np.rint(middle), 0.0)
        first = max(min(np.rint(middle - deviations * spread), nearest), 0.0)
        last = max(np.rint(middle + deviations * spread), nearest)
        if spread > 0.0:
            spare = _below(last + 0.5, middle, spread) - _below(first - 0.5, middle, spread) - confidence
            while first < last:
                top = _below(last + 0.5, middle, spread) - _below(last - 0.5, middle, spread)
                bottom = _below(first + 0.5, middle, spread) - _below(first - 0.5, middle, spread)
                if last > nearest and (top <= bottom or first >= nearest):
                    if top > spare:
                        break
                    last, spare = last - 1.0, spare - top
                else:
                    if bottom > spare:
                        break
                    first, spare = first + 1.0, spare - bottom
        # Rounding below zero leaves a zero with a sign.
        low[i], high[i] = min(first, max(middle, 0.0)) + 0.0, max(last, middle) + 0.0
    return low, high


@kernel
def _below(count: float, middle: float, spread: float) -> float:
    """What the law has below a count."""
    return 0.5 * math.erfc((middle - count) / spread * ROOT_HALF)
