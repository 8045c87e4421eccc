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

from dphist.kernels.normal import DENSITY, scaled_tails
from dphist.kernels.special import LOG_ROOT_TWO_PI, each
from dphist.kernels.trees.passes import families, levels, row_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Variances of a block's total about its even share, in squared shares: the models between even and anything.
SPREADS = (1e-4, 1e-3, 1e-2, 0.05, 0.2)
# The chance of exactly even before anything was seen; the others share the rest equally.
EVEN = 0.6


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
    for level in levels(first, last):
        for i, c in families(level[pool[level] & (totals[level] > 0.0)], first, last):
            totals[c] = likely_divisions(seen[c], variance[c[:, 0]], size[c], totals[i])


@np.errstate(all="ignore")
def likely_divisions(
    seen: FloatArray, variance: FloatArray, size: FloatArray, total: FloatArray
) -> FloatArray:
    """Divide totals among blocks that were seen with these variances, a row each: means over how even they may be."""
    even = total[:, None] * size / row_sums(size)[:, None]
    models = [_near_even(seen, variance, even, total, spread) for spread in (0.0, *SPREADS)]
    models.append(_anything(seen, variance, even, total))
    logs = np.stack([model[0] for model in models], axis=1)
    chances = each(math.exp, logs - logs.max(axis=1)[:, None])
    chances[:, 0] *= EVEN
    chances[:, 1:] *= (1.0 - EVEN) / (len(models) - 1)
    whole = row_sums(chances)
    answer = np.zeros(seen.shape)
    for m, (_, means) in enumerate(models):
        answer += (chances[:, m] / whole)[:, None] * means
    return answer


def _near_even(
    seen: FloatArray, variance: FloatArray, even: FloatArray, total: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray]:
    """Gaussian deviations of variance ``spread``·even² that sum to zero: the log evidence and the means.

    ``variance`` is that of the noise of every family, each a row.
    """
    noise = variance[:, None]
    t = spread * even * even
    gap = seen - even
    terms = 0.5 * (gap * gap / (noise + t) + each(math.log, noise + t)) + LOG_ROOT_TWO_PI
    logs = row_sums(-terms)
    pull = t / (t + noise)
    out = even + pull * gap
    left = row_sums(pull * noise)
    beyond = total - row_sums(out)
    given = left != 0.0
    if not given.any():
        return logs, out
    logs = np.where(
        given,
        logs + 0.5 * (each(math.log, np.where(given, row_sums(t) / left, 1.0)) - beyond * beyond / left),
        logs,
    )
    moved = np.maximum(out + beyond[:, None] * t * noise / ((t + noise) * left[:, None]), 0.0)
    moved *= (total / row_sums(moved))[:, None]
    return logs, np.where(given[:, None], moved, out)


def _anything(
    seen: FloatArray, variance: FloatArray, even: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Exponential totals given their sum: the log evidence and the means.

    Given their sum, exponential totals are any division as likely as any other. The condition is a tilt e^(−λx)
    of each, with λ such that the means add up to the total: the saddle point of the exact integral. Newton's steps; one
    that overshoots is replaced by half the bracket, or by a look further out on its open side.
    """
    rows, width = seen.shape
    deviation = np.sqrt(variance)
    tilt = (row_sums(seen) - total) / (variance * width)
    low, high = np.full(rows, -np.inf), np.full(rows, np.inf)
    out, logs, unknown = np.zeros(seen.shape), np.zeros(rows), np.zeros(rows)
    going = np.arange(rows)
    for _ in range(60):
        d, v, e = deviation[going, None], variance[going, None], even[going]
        t = (seen[going] - (tilt[going, None] + 1.0 / e) * v) / d
        m, s, terms = _tilted(t, d / e)
        out[going] = m * d
        logs[going] = row_sums(terms)
        unknown[going] = row_sums(s * v)
        gap = row_sums(out[going]) - total[going]
        still = np.abs(gap) > 1e-6 * total[going]
        going, gap = going[still], gap[still]
        if not going.size:
            break
        low[going] = np.where(gap > 0.0, tilt[going], low[going])
        high[going] = np.where(gap > 0.0, high[going], tilt[going])
        a, b = low[going], high[going]
        step = tilt[going] + gap / unknown[going]
        bracket = np.where(
            np.isfinite(a) & np.isfinite(b),
            0.5 * (a + b),
            np.where(
                np.isfinite(a),
                a + 2.0 * np.abs(a) + 1.0 / total[going],
                b - 2.0 * np.abs(b) - 1.0 / total[going],
            ),
        )
        tilt[going] = np.where((a < step) & (step < b), step, bracket)
    gaps = seen / deviation[:, None]
    terms = 0.5 * gaps * gaps + each(math.log, deviation)[:, None] + LOG_ROOT_TWO_PI
    logs = np.cumsum(np.concatenate([logs[:, None], -terms], axis=1), axis=1)[:, -1]
    out *= (total / row_sums(out))[:, None]
    return logs + tilt * total + 0.5 * each(math.log, row_sums(even * even) / unknown), out


def _tilted(t: FloatArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of each total in deviations of its noise, and its part of the log evidence."""
    high, low = t > 8.0, t < -12.0
    tail = np.ones(t.shape)
    tail[~high] = scaled_tails(-t[~high])
    u = 1.0 / (t * t)
    hazard = DENSITY / tail
    m = np.where(high, t, np.where(low, -(1.0 - 2.0 * u + 10.0 * u * u) / t, t + hazard))
    s = np.where(
        high, 1.0, np.where(low, u * (1.0 - 6.0 * u), np.maximum(1.0 - t * hazard - hazard * hazard, 0.0))
    )
    logs = each(math.log, np.where(high, ratio, ratio * tail)) + LOG_ROOT_TWO_PI
    return m, s, np.where(high, logs + 0.5 * t * t, logs)
