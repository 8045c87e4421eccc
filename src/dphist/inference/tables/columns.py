"""One noisy column of counts, none of which can be negative: what it may be believed to hold.

The nearest column without negative counts (`dphist.inference.estimate.nonnegative`) is right where noise is small.
Where it is not, noise that happened to be positive stays in every rare value. Here a count has the prior of a mixture
of exponential laws of many sizes, from far below the mean count to far above it; the counts themselves say how often
each size is so (empirical Bayes; expectation–maximisation). Under normal noise of variance v and the size s, a count's
posterior is a normal law of mean y − v/s cut at zero, in closed form.

What is published is half way between both: on made-up columns (3 to 100 values, even to sparse) its total variation was
0.7 to 0.85 of the nearest column's where noise is as large as a mean count, and at most 1.02 of it where noise is
small. Arithmetic on released numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative
from dphist.kernels.special import log_normal

FloatArray = NDArray[np.float64]

# Sizes of counts beside the mean count, and how often what all sizes are expected to be is weighed as one count.
_SIZES = np.array([0.002, 0.02, 0.1, 0.3, 1.0, 3.0, 10.0])
_LEARNING = 12
# A column of fewer values has too little to learn from.
_FEWEST = 3


def believed(measured: FloatArray, variance: float, total: float) -> FloatArray:
    """Give a column without negative counts, of a known total, from a noisy one.

    Args:
        measured: Noisy counts of one attribute's values.
        variance: Of each.
        total: How many records there are, from what was released.

    Returns:
        The counts, as many as the total.

    Example:
        >>> import numpy as np
        >>> believed(np.array([90.0, 4.0, -7.0, 13.0]), 100.0, 100.0).round().tolist()
        [88.0, 2.0, 1.0, 8.0]
    """
    nearest = nonnegative(measured, total)
    if measured.size < _FEWEST or total <= 0.0 or variance <= 0.0:
        return nearest
    deviation = math.sqrt(variance)
    sizes = (total / measured.size * _SIZES)[:, None]
    place = (measured - variance / sizes) / deviation
    below = log_normal(place)
    log = variance / (2.0 * sizes**2) - measured / sizes - np.log(sizes) + below
    fits = np.exp(log - log.max(axis=0))
    inside = deviation * (place + np.exp(-0.5 * place**2 - 0.5 * math.log(2.0 * math.pi) - below))
    even = np.full(_SIZES.size, 1.0 / _SIZES.size)
    often = even
    for _ in range(_LEARNING):
        part = often[:, None] * fits
        often = ((part / part.sum(axis=0)).sum(axis=1) + even) / (measured.size + 1.0)
    part = often[:, None] * fits
    mean = (part * np.maximum(inside, 0.0)).sum(axis=0) / part.sum(axis=0)
    return np.asarray(0.5 * (nearest + nonnegative(mean, total)), dtype=np.float64)
