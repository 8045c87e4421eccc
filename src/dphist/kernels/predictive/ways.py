"""How a total divides in two: a prior learned from every measured split, and what stays unknown given the noisy parts.

A total t whose left part has a share f of the cells divides in one of these ways, numbered as `WAYS` are:

- near even: the left part has mean t·f and variance (t²c² + t)·f(1 − f), for seven c² from 0 to 0.1;
- uniform: anything from nothing to all;
- one-sided: all on one side, on the left with probability f;
- nearly one-sided: the rest on the other side is exponential, its mean two deviations of the noise.

Given t, the left part was seen as z = v(b_l/v_l + (t − b_r)/v_r) with 1/v = 1/v_l + 1/v_r, where b, v are the best
linear totals of the parts and their variances; each way then has a mean, a slope in t and a variance in closed form.
How often each way occurs is learned by expectation–maximisation, size by size, larger sizes handing down what they
learned (`learn_ways`).

Everything here reads values that are already released. Arrays in, arrays out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.predictive.halving import levels, size_classes
from dphist.kernels.special import ROOT_TWO_PI, scaled_tails

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ROOT_HALF, _ROOT_TWO = 0.5**0.5, 2.0**0.5
# Splits that are worked out together: their numbers stay near the processor.
_BLOCK = 1 << 13
# c² of the ways to divide; for the last three, what c² would give their variance.
WAYS = (0.0, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 1.0 / 3.0, 1.0, 0.98)
# Before anything was seen, exactly even is twice as likely as each other way.
FIRST = (2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
NEAR = 7
# What a size inherits from the next larger one, in observations.
CARRIED = 4.0
ROUNDS = 20
# Splits of one size that are looked at.
SAMPLE = 1536
# A split that tells nothing has a view as vague as this many times the total.
VAGUE = 10.0


def learn_ways(left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray) -> FloatArray:
    """How often each way to divide occurs, for every size class: by expectation–maximisation, largest sizes first."""
    inner = np.flatnonzero(left >= 0)
    # Small whole numbers are sorted in one pass.
    found = size_classes(size[inner]).astype(np.uint8)
    classes = int(size_classes(size[:1])[0]) + 1
    order = np.argsort(found, kind="stable")
    starts = np.searchsorted(found[order], np.arange(classes + 1))
    chances = np.empty((classes, len(WAYS)))
    prior = np.array(FIRST)
    prior /= prior.sum()
    for this in range(classes - 1, -1, -1):
        # At most 1,536 splits of the class, evenly picked, are looked at.
        mine = inner[order[starts[this] : starts[this + 1]]]
        every = (mine.size + SAMPLE - 1) // SAMPLE
        weight = prior
        if mine.size:
            evidence = _evidence(mine[every - 1 :: every], left, size, best, spread)
            for _ in range(ROUNDS):
                weighted = evidence * weight
                whole = weighted.sum(axis=1)
                gathered = CARRIED * prior + (weighted / whole[:, None]).sum(axis=0)
                weight = gathered / gathered.sum()
        chances[this] = prior = weight
    return chances


def _evidence(
    chosen: IntArray, left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray
) -> FloatArray:
    """Likelihoods of what was seen of some splits under every way, the likeliest one of each as 1."""
    total = np.maximum(np.maximum(best[chosen], 0.5 * np.sqrt(spread[chosen])), 1e-3)
    c = left[chosen]
    seen, vague, _ = _views(total, best[c], spread[c], best[c + 1], spread[c + 1])
    logs, _ = _log_chances(total, size[c] / size[chosen], seen, vague)
    return np.asarray(np.exp(logs - logs.max(axis=0)).T, dtype=np.float64)


def infer_splits(
    left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray, chances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean and variance of every node's total; for every split the left part's slope in the total, and what is left.

    Args:
        left: The left child of every node, −1 for a leaf; the right one is the next.
        size: How many cells each node has.
        best: Best linear totals from below.
        spread: Their variances.
        chances: How often each way to divide occurs, by size class.

    Returns:
        ``mean``, ``variance``, ``slope``, ``rest``: given its parent's total t, the left part has mean
        mean[left] + slope·(t − mean) and variance ``rest``.
    """
    mean, variance, slope, rest = (np.zeros(left.size) for _ in range(4))
    with np.errstate(all="ignore"):
        # The whole is not negative.
        mean[:1], variance[:1] = _cut_normal(best[:1], np.sqrt(spread[:1]), np.full(1, 1e30))
        for level in levels(left):
            for start in range(0, level.size, _BLOCK):
                i = level[start : start + _BLOCK]
                c = left[i]
                total = np.maximum(mean[i], 1e-9)
                view = _views(total, best[c], spread[c], best[c + 1], spread[c + 1])
                here = chances[size_classes(size[i])].T
                mean[c], rest[i], slope[i] = _moments(total, size[c] / size[i], *view, here)
                mean[c + 1] = total - mean[c]
                variance[c] = slope[i] ** 2 * variance[i] + rest[i]
                variance[c + 1] = (1.0 - slope[i]) ** 2 * variance[i] + rest[i]
    return mean, variance, slope, rest


def _views(
    total: FloatArray,
    left_best: FloatArray,
    left_spread: FloatArray,
    right_best: FloatArray,
    right_spread: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The left part as it was seen, given the total: value, variance, slope in the total."""
    both = left_spread + right_spread
    seen = (left_best * right_spread + (total - right_best) * left_spread) / both
    spread = left_spread / both * right_spread
    vague = (VAGUE * total) ** 2
    # Nothing was seen: any view so vague says the same, and keeps the numbers in range.
    nothing = spread > vague
    return (
        np.where(nothing, 0.5 * total, seen),
        np.where(nothing, vague, spread),
        np.where(nothing, 0.5, left_spread / both),
    )


def _tail_log(q: FloatArray) -> FloatArray:
    """−q/2, but straight beyond three deviations: Laplace noise strays further than normal noise."""
    return np.where(q < 9.0, -0.5 * q, 4.5 - 3.0 * np.sqrt(q))


def _exponential_log(x: FloatArray, spread: FloatArray, mean: FloatArray) -> FloatArray:
    """Log density at x of an exponential of this mean under normal noise, times √(2π)."""
    deviation = np.sqrt(spread)
    t = deviation / mean - x / deviation
    far = t < -6.0
    tail = np.where(far, 1.0, scaled_tails(np.maximum(t, -6.0)))
    logs = np.log(tail * ROOT_TWO_PI / mean)
    return logs + np.where(far, 0.5 * spread / (mean * mean) - x / mean, -0.5 * x * x / spread)


def _erfc(x: FloatArray) -> FloatArray:
    """The complementary error function."""
    far = np.abs(x)
    tail = 2.0 * scaled_tails(far * _ROOT_TWO) * np.exp(-far * far)
    return np.asarray(np.where(x < 0.0, 2.0 - tail, tail), dtype=np.float64)


def _log_chances(
    total: FloatArray, share: FloatArray, seen: FloatArray, spread: FloatArray
) -> tuple[FloatArray, list[tuple[FloatArray, FloatArray]]]:
    """Log likelihood of views of left parts, a row for each way to divide; and that of nothing and of all there."""
    out = np.empty((len(WAYS), total.size))
    deviation = np.sqrt(spread)
    even = share * (1.0 - share)
    gap = seen - total * share
    for k in range(NEAR):
        whole = spread + (total * total * WAYS[k] + total) * even
        out[k] = _tail_log(gap * gap / whole) - 0.5 * np.log(whole)
    inside = 0.5 * (_erfc(-(total - seen) / deviation * _ROOT_HALF) - _erfc(seen / deviation * _ROOT_HALF))
    # A view far outside fits nothing well; under this way it fits like the noise at the nearer end.
    outside = np.maximum(np.maximum(-seen, seen - total), 0.0) / deviation
    floor = _tail_log(outside * outside) - 3.0
    out[NEAR] = np.maximum(
        np.log(np.maximum(inside, 1e-300) * ROOT_TWO_PI / total),
        floor + np.log(1.0 / total),
    )
    exactly = _tail_log(seen * seen / spread), _tail_log((seen - total) ** 2 / spread)
    out[NEAR + 1] = _either(*exactly, share) - np.log(deviation)
    nearly = (
        _exponential_log(seen, spread, 2.0 * deviation),
        _exponential_log(total - seen, spread, 2.0 * deviation),
    )
    out[NEAR + 2] = _either(*nearly, share)
    return out, [exactly, nearly]


def _either(none: FloatArray, whole: FloatArray, share: FloatArray) -> FloatArray:
    """Log likelihood of nothing or all being on the left, which has this share of the cells."""
    top = np.maximum(none, whole)
    mixed = (1.0 - share) * np.exp(none - top) + share * np.exp(whole - top)
    return top + np.log(mixed)


def _moments(
    total: FloatArray,
    share: FloatArray,
    seen: FloatArray,
    vague: FloatArray,
    follows: FloatArray,
    here: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean of the left part given the total, its variance, and its slope in the total."""
    logs, sides = _log_chances(total, share, seen, vague)
    logs = here * np.exp(logs - logs.max(axis=0))
    chances = logs / logs.sum(axis=0)
    deviation = np.sqrt(vague)
    # Moments about a point near by: squares of large totals would drown the variance in rounding.
    near = np.minimum(np.maximum(seen, 0.0), total)
    sure, first, second, tilt = (np.zeros(total.size) for _ in range(4))
    for k in range(len(WAYS)):
        at = np.flatnonzero(chances[k] >= 1e-7)
        t, s, z, w, f = total[at], share[at], seen[at], vague[at], follows[at]
        if k < NEAR:
            prior = (t * t * WAYS[k] + t) * s * (1.0 - s)
            pull = prior / (prior + w)
            m, v = _cut_normal(t * s + pull * (z - t * s), np.sqrt(pull * w) + 1e-12, t)
            d = s * (1.0 - pull) + pull * f
        elif k == NEAR:
            m, v = _cut_normal(z, deviation[at], t)
            d = f
        else:
            low = low_v = other = other_v = np.zeros(at.size)
            none, all_left = (each[at] for each in sides[k - NEAR - 1])
            if k == NEAR + 2:
                apart = deviation[at]
                low, low_v = _cut_normal(z - 0.5 * apart, apart, t)
                other, other_v = _cut_normal(t - z - 0.5 * apart, apart, t)
            high = t - other
            odds = np.exp(np.minimum(np.maximum(none - all_left, -600.0), 600.0))
            d = s / (s + (1.0 - s) * odds)
            m = d * high + (1.0 - d) * low
            v = d * (other_v + (high - m) ** 2) + (1.0 - d) * (low_v + (low - m) ** 2)
        chance = chances[k, at]
        sure[at] += chance
        first[at] += chance * (m - near[at])
        second[at] += chance * (v + (m - near[at]) ** 2)
        tilt[at] += chance * d
    first /= sure
    rest = np.maximum(second / sure - first * first, 0.0)
    slope = np.minimum(np.maximum(tilt / sure, 0.0), 1.0)
    return np.minimum(np.maximum(near + first, 0.0), total), rest, slope


def _cut_normal(centre: FloatArray, deviation: FloatArray, top: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of normals that are known to lie between 0 and ``top``."""
    a, b = -centre / deviation, (top - centre) / deviation
    mean, variance = centre.copy(), deviation * deviation
    left = ~((a < -5.0) & (b > 5.0))
    narrow = left & (b - a < 1e-3)
    mean[narrow], variance[narrow] = 0.5 * top[narrow], top[narrow] * top[narrow] / 12.0
    left &= ~narrow
    far = left & (a > 4.0)
    mean[far] = np.minimum(deviation[far] / a[far], 0.5 * top[far])
    variance[far] = mean[far] * mean[far]
    left &= ~far
    below = left & (b < -4.0)
    rest = np.minimum(deviation[below] / -b[below], 0.5 * top[below])
    mean[below], variance[below] = top[below] - rest, rest * rest
    at = np.flatnonzero(left & ~below)
    a, b, centre, deviation, top = a[at], b[at], centre[at], deviation[at], top[at]
    mass = 0.5 * (_erfc(a * _ROOT_HALF) - _erfc(b * _ROOT_HALF))
    at_a = np.exp(-0.5 * a * a) / ROOT_TWO_PI
    at_b = np.exp(-0.5 * np.minimum(b * b, 700.0)) / ROOT_TWO_PI
    shift = (at_a - at_b) / mass
    shrink = 1.0 + (a * at_a - b * at_b) / mass - shift * shift
    mean[at] = np.minimum(np.maximum(centre + deviation * shift, 0.0), top)
    variance[at] = deviation * deviation * np.minimum(np.maximum(shrink, 1e-6), 1.0)
    return mean, variance
