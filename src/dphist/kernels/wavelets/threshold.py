"""How far to shrink the noisy coefficients of a subband, so that what stays is as spread out as the clean ones were."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def thresholds(sizes: FloatArray, variance: float) -> FloatArray:
    """Find the θ of CompThresh (mended) from the absolute normalised coefficients of a subband, a row for each.

    ``variance`` is that of the noise in each, 2λ². The clean variance is estimated as σ² = Σc² ÷ (|S| − 1) −
    2λ², and θ makes Σ max(|c| − θ, 0)² equal (|S| − 1)σ². That sum falls as θ rises from one coefficient to the
    next, and between two it is a quadratic. If σ² ≤ 0 all is noise and everything goes; one coefficient alone has no
    spread and stays.
    """
    count = sizes.shape[1]
    if count < 2:
        return np.zeros(len(sizes))
    ordered = np.sort(sizes, axis=1)[:, ::-1]
    sums, squares = np.cumsum(ordered, axis=1), np.cumsum(ordered * ordered, axis=1)
    wanted = squares[:, -1:] - (count - 1) * variance
    left = squares - 2.0 * ordered * sums + np.arange(1.0, count + 1) * ordered * ordered
    above = np.maximum((left < wanted).sum(axis=1), 1)[:, None]
    alpha, beta = (np.take_along_axis(each, above - 1, axis=1) for each in (squares, sums))
    # α − 2βθ + iθ² = wanted, its smaller root.
    root = np.sqrt(np.maximum(beta * beta - above * (alpha - wanted), 0.0))
    exact = np.divide(alpha - wanted, beta + root, out=np.zeros_like(beta), where=beta > 0.0)
    return np.asarray(np.where(wanted <= 0.0, ordered[:, :1], np.minimum(exact, ordered[:, :1]))[:, 0])


def shrink_subbands(
    coefficients: FloatArray, order: IntArray, starts: IntArray, deviations: FloatArray, variance: float
) -> None:
    """Soft-threshold every subband of every sub-matrix, in place.

    ``coefficients[m]`` are those of sub-matrix m; subband s of it lies at ``order[starts[s]:starts[s + 1]]``.
    Dividing by ``deviations`` gives every coefficient noise of the same ``variance``.
    """
    for begin, end in pairwise(starts.tolist()):
        slots = order[begin:end]
        values, deviation = coefficients[:, slots], deviations[slots]
        sizes = np.abs(values)
        bars = thresholds(sizes / deviation, variance)[:, None] * deviation
        coefficients[:, slots] = np.copysign(np.maximum(sizes - bars, 0.0), values)
