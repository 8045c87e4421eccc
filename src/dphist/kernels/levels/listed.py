"""Counts that are few enough to be listed one by one, given their level; and what Gaussian noise has at zero."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]

# A law whose variance is more than this many times its mean is cut off earlier: it is next to nothing but zeros.
MOST_SKEWED = 200.0


@kernel
def tail_of(level: float, c: float) -> int:
    """The largest count that is listed for a level."""
    v = level + (c * level) * (c * level)
    return int(level + 12.0 * math.sqrt(v) + 12.0 + 10.0 * min(v / level, MOST_SKEWED))


@kernel
def count_weights(level: float, c: float, tail: int) -> FloatArray:
    """Poisson (c = 0) or negative binomial probabilities of 0 … tail, by their recurrence, normalised."""
    p = np.empty(tail + 1)
    # Levels listed here are below 60, so the first probability is at least e⁻⁶⁰ and nothing underflows.
    if c * c * level < 1e-3:
        p[0] = math.exp(-level)
        for x in range(tail):
            p[x + 1] = p[x] * level / (x + 1.0)
    else:
        shape = 1.0 / (c * c)
        p[0] = math.exp(shape * math.log(shape / (shape + level)))
        step = level / (shape + level)
        for x in range(tail):
            p[x + 1] = p[x] * step * (x + shape) / (x + 1.0)
    # Written out: that compiles in less time, and adds in the same order.
    total = 0.0
    for x in range(tail + 1):
        total += p[x]
    for x in range(tail + 1):
        p[x] /= total
    return p


@kernel
def normal_base(normal: float) -> float:
    """Log of one over the sum of exp(−k²/2·normal) over all integers: the continuum's, but for very little noise."""
    if normal > 0.5:
        return -0.5 * math.log(2.0 * math.pi * normal)
    return -math.log(1.0 + 2.0 * math.exp(-0.5 / normal) + 2.0 * math.exp(-2.0 / normal))
