"""The fewest whole counts that hold a count as often as they promise, by a normal law of its error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.special import ROOT_HALF, each

FloatArray = NDArray[np.float64]


def likeliest_counts(
    published: FloatArray, deviation: FloatArray, deviations: float, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """The fewest whole counts in a row that have this much of the law, and what is published between the bounds.

    Count k has what a normal law about the published one gives to (k − ½, k + ½). Counts within ``deviations`` (the
    normal law's to both sides, for this confidence) have more than is needed; so the least likely at either end are
    dropped while enough is left. What the law has below zero counts as missed, though no count lies there: a reserve,
    as errors of what is nearly empty lie above.

    Args:
        published: The counts.
        deviation: Of the error of each.
        deviations: How many the normal law needs to either side.
        confidence: How often the counts between the bounds are to hold.

    Returns:
        The bounds.
    """
    nearest = np.maximum(np.rint(published), 0.0)
    first = np.clip(np.rint(published - deviations * deviation), 0.0, nearest)
    last = np.maximum(np.rint(published + deviations * deviation), nearest)
    at = np.flatnonzero((deviation > 0.0) & (first < last))

    def below(count: FloatArray) -> FloatArray:
        return 0.5 * each(math.erfc, (published[at] - count) / deviation[at] * ROOT_HALF)

    spare = np.zeros(published.shape)
    spare[at] = below(last[at] + 0.5) - below(first[at] - 0.5) - confidence
    while at.size:
        # The farther, the less likely; of two as far the upper one goes, whatever rounding makes of their shares.
        farther = last[at] - published[at] >= published[at] - first[at]
        from_above = (last[at] > nearest[at]) & (farther | (first[at] >= nearest[at]))
        edge = np.where(from_above, last[at], first[at])
        share = below(edge + 0.5) - below(edge - 0.5)
        go = share <= spare[at]
        at, from_above, share = at[go], from_above[go], share[go]
        last[at] -= from_above
        first[at] += ~from_above
        spare[at] -= share
        at = at[first[at] < last[at]]
    # Rounding below zero leaves a zero with a sign.
    return np.minimum(first, np.maximum(published, 0.0)) + 0.0, np.maximum(last, published)
