"""Which totals of a measured tree stand out of the noise: arithmetic on released totals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def mirror_threshold(scores: FloatArray) -> float:
    """Where to cut small positive scores, learned from the negative ones: the noise is symmetric.

    With scores in deviations, keeping a score costs its noise and dropping it costs its signal; the negatives show
    how much of the positives is noise. Returns the t ≥ 0 that minimises Σ_{0<q≤t}(q²−1) + Σ_{−t≤q<0}(1−2q²), among
    those where the scores within t of zero sum to nothing, up to 2.5 deviations: many small true totals cost little
    one by one, but a range that holds them all would miss their sum.
    """
    if scores.size < 16:
        return 0.0
    q = scores[np.argsort(np.abs(scores), kind="stable")]
    # Running sums one after the other, as a loop adds; the last that is below all before it says where to cut.
    running = np.cumsum(np.where(q > 0.0, q * q - 1.0, 1.0 - 2.0 * q * q))
    centred = np.cumsum(q) <= 2.5 * np.sqrt(np.cumsum(q * q))
    allowed = np.where(centred, running, np.inf)
    falls = np.flatnonzero(allowed < np.minimum.accumulate(np.append(0.0, allowed[:-1])))
    return float(abs(q[falls[-1]])) if falls.size else 0.0


def level_cuts(parent: IntArray, level: IntArray, best: FloatArray, variance: FloatArray) -> FloatArray:
    """A mirror threshold for the boxes of every level whose parents hold something, handed to them."""
    cut = np.zeros(best.size)
    split = best[parent] > 0.0
    split[0] = False
    for this in range(1, int(level.max()) + 1):
        mine = level == this
        mine[0] = False
        asked = mine & split
        cut[parent[mine]] = mirror_threshold(best[asked] / np.sqrt(variance[asked]))
    return cut
