"""How far to shrink the noisy coefficients of a subband, so that what stays is as spread out as the clean ones were."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Newton's method at least halves its distance on these curves and then doubles its digits; this many is never needed.
_MOST_STEPS = 200


@kernel
def threshold(sizes: FloatArray, variance: float) -> float:
    """Find the θ of CompThresh (mended) from the absolute normalised coefficients of one subband.

    ``variance`` is that of the noise in each, 2λ². The clean variance is estimated as σ² = Σc² ÷ (|S| − 1) −
    2λ², and θ makes Σ max(|c| − θ, 0)² equal (|S| − 1)σ². That sum is convex and falls from Σc² at θ = 0 to 0
    at the largest |c|, so Newton's method from zero approaches the one root from below; once no coefficient
    lies between θ and it, the rest is a quadratic and its smaller root is exact. This is the paper's root
    without sorting. If σ² ≤ 0 all is noise and everything goes; one coefficient alone has no spread and
    stays.
    """
    count = sizes.size
    if count < 2:
        return 0.0
    squares, largest = 0.0, 0.0
    for i in range(count):
        squares += sizes[i] * sizes[i]
        largest = max(largest, sizes[i])
    wanted = squares - (count - 1) * variance
    if wanted <= 0.0:
        return float(largest)
    theta = 0.0
    for _ in range(_MOST_STEPS):
        above, alpha, beta, nearest = 0, 0.0, 0.0, largest
        for i in range(count):
            over = sizes[i] - theta
            if over > 0.0:
                above += 1
                alpha += over * over
                beta += over
                nearest = min(nearest, sizes[i])
        if alpha <= wanted or above == 0:
            break
        # With the same coefficients above: α − 2βδ + iδ² = wanted for what is left to go, its smaller root.
        root = max(beta * beta - above * (alpha - wanted), 0.0)
        exact = theta + (alpha - wanted) / (beta + np.sqrt(root))
        if exact <= nearest:
            return float(min(exact, largest))
        theta += (alpha - wanted) / (2.0 * beta)
    return float(min(theta, largest))


@kernel
def shrink_subbands(
    coefficients: FloatArray, order: IntArray, starts: IntArray, deviations: FloatArray, variance: float
) -> None:
    """Soft-threshold every subband of every sub-matrix, in place.

    ``coefficients[m]`` are those of sub-matrix m; subband s of it lies at ``order[starts[s]:starts[s + 1]]``.
    Dividing by ``deviations`` gives every coefficient noise of the same ``variance``.
    """
    widest = 0
    for band in range(starts.size - 1):
        widest = max(widest, starts[band + 1] - starts[band])
    sizes = np.empty(widest)
    for matrix in range(coefficients.shape[0]):
        values = coefficients[matrix]
        for band in range(starts.size - 1):
            begin, end = starts[band], starts[band + 1]
            for place in range(begin, end):
                slot = order[place]
                sizes[place - begin] = abs(values[slot]) / deviations[slot]
            limit = threshold(sizes[: end - begin], variance)
            if limit <= 0.0:
                continue
            for place in range(begin, end):
                slot = order[place]
                value, bar = values[slot], limit * deviations[slot]
                if value > bar:
                    values[slot] = value - bar
                elif value < -bar:
                    values[slot] = value + bar
                else:
                    values[slot] = 0.0
