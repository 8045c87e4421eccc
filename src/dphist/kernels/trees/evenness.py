"""How much of the differences between noisy totals is real: an average over how even their blocks may be.

Blocks that were measured once and then together hold two kinds of news: a good total, and what they differed by the
first time. Throwing the latter away says that they are exactly even; believing it says that nothing was noise.
Here both, and all between, are weighed by their evidence: exactly even; nearly even, with deviations that are a
given part of the even share; or anything at all (every division of the total as likely as every other).

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel, kernel_with_twin
from dphist.kernels.normal import scaled_tail, truncated
from dphist.kernels.special import LOG_ROOT_TWO_PI
from dphist.kernels.trees import twins
from dphist.kernels.trees.twins import EVEN, SPREADS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@kernel
def _near_even(
    seen: FloatArray, variance: float, even: FloatArray, total: float, spread: float, out: FloatArray
) -> float:
    """Gaussian deviations of variance ``spread``·even² that sum to zero: fills the means, returns the log evidence."""
    logs = 0.0
    mean = 0.0
    left = 0.0
    prior = 0.0
    for c in range(seen.size):
        t = spread * even[c] * even[c]
        gap = seen[c] - even[c]
        logs -= 0.5 * (gap * gap / (variance + t) + math.log(variance + t)) + LOG_ROOT_TWO_PI
        pull = t / (t + variance)
        out[c] = even[c] + pull * gap
        mean += out[c]
        left += pull * variance
        prior += t
    if left == 0.0:
        return logs
    # Given that all of them sum to the total.
    gap = total - mean
    logs += 0.5 * (math.log(prior / left) - gap * gap / left)
    mean = 0.0
    for c in range(seen.size):
        t = spread * even[c] * even[c]
        out[c] = max(out[c] + gap * t * variance / ((t + variance) * left), 0.0)
        mean += out[c]
    out *= total / mean
    return logs


@kernel
def _anything(seen: FloatArray, variance: float, even: FloatArray, total: float, out: FloatArray) -> float:
    """Exponential totals given their sum: fills the means, returns the log evidence.

    Given their sum, exponential totals are any division as likely as any other. The condition is a tilt e^(−λx)
    of each, with λ such that the means add up to the total: the saddle point of the exact integral.
    """
    deviation = math.sqrt(variance)
    tilt = (seen.sum() - total) / (variance * seen.size)
    low = -math.inf
    high = math.inf
    logs = 0.0
    unknown = 0.0
    for _ in range(60):
        logs = 0.0
        mean = 0.0
        unknown = 0.0
        for c in range(seen.size):
            t = (seen[c] - (tilt + 1.0 / even[c]) * variance) / deviation
            if t > 8.0:
                logs += math.log(deviation / even[c]) + LOG_ROOT_TWO_PI + 0.5 * t * t
                m = t
                s = 1.0
            else:
                tail = scaled_tail(-t)
                logs += math.log(deviation / even[c] * tail) + LOG_ROOT_TWO_PI
                m, s = truncated(t, tail)
            out[c] = m * deviation
            mean += out[c]
            unknown += s * variance
        gap = mean - total
        if abs(gap) <= 1e-6 * total:
            break
        if gap > 0.0:
            low = tilt
        else:
            high = tilt
        tilt += gap / unknown
        if not low < tilt < high:
            # Newton overshot: halve the bracket, or look further out on its open side.
            if low > -math.inf and high < math.inf:
                tilt = 0.5 * (low + high)
            elif low > -math.inf:
                tilt = low + 2.0 * abs(low) + 1.0 / total
            else:
                tilt = high - 2.0 * abs(high) - 1.0 / total
    prior = 0.0
    for c in range(seen.size):
        gap = seen[c] / deviation
        logs -= 0.5 * gap * gap + math.log(deviation) + LOG_ROOT_TWO_PI
        prior += even[c] * even[c]
    out *= total / out.sum()
    answer: float = logs + tilt * total + 0.5 * math.log(prior / unknown)
    return answer


@kernel
def likely_division(seen: FloatArray, variance: float, size: FloatArray, total: float) -> FloatArray:
    """Divide a total among blocks that were seen with this variance: the mean over how even they may be."""
    models = len(SPREADS) + 2
    even = total * size / size.sum()
    means = np.empty((models, seen.size))
    logs = np.empty(models)
    logs[0] = _near_even(seen, variance, even, total, 0.0, means[0])
    for m in range(len(SPREADS)):
        logs[m + 1] = _near_even(seen, variance, even, total, SPREADS[m], means[m + 1])
    logs[models - 1] = _anything(seen, variance, even, total, means[models - 1])
    chances = np.exp(logs - logs.max())
    chances[0] *= EVEN
    chances[1:] *= (1.0 - EVEN) / (models - 1)
    answer: FloatArray = np.zeros(seen.size)
    for m in range(models):
        answer += chances[m] / chances.sum() * means[m]
    return answer


@kernel_with_twin(twins.divide_pools, cost=1.0)
def divide_pools(
    first: IntArray,
    last: IntArray,
    pool: BoolArray,
    size: FloatArray,
    seen: FloatArray,
    variance: FloatArray,
    totals: FloatArray,
) -> None:
    """Divide every pool's total anew among its blocks, in place: by what was seen of each before they were pooled."""
    for i in range(pool.size):
        if pool[i] and totals[i] > 0.0:
            a, b = first[i], last[i]
            totals[a:b] = likely_division(seen[a:b], variance[a], size[a:b], totals[i])
