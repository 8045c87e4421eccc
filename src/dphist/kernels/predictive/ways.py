"""How totals divide, learned and weighed for many splits at once in NumPy; what each way means is said in `splits`.

They are twins of the kernels of the same name, and serve trees of some ten thousand nodes while numba is not loaded.
Elementary functions are Python's own, number by number: NumPy's differ from machine code's in the last bit, and which
of the two has run must not show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.normal import ROOT_TWO_PI, scaled_tails
from dphist.kernels.special import ROOT_HALF, each

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

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


def _sum(rows: FloatArray) -> FloatArray:
    """Sums over the first axis, one after the other as a loop adds."""
    return np.asarray(np.cumsum(rows, axis=0)[-1], dtype=np.float64)


def size_classes(size: FloatArray) -> IntArray:
    """The nearest powers of two: as `size_class`, for many."""
    part, exponent = np.frexp(size)
    return np.asarray(np.maximum(exponent - (part <= 0.75), 0), dtype=np.int64)


def levels(left: IntArray) -> Iterator[slice]:
    """The levels of a halved tree from the root down; children of neighbours are neighbours."""
    start, stop = 0, 1
    while start < stop:
        yield slice(start, stop)
        start, stop = stop, stop + 2 * int(np.count_nonzero(left[start:stop] >= 0))


def learn_cost(left: IntArray, *others: FloatArray) -> float:
    """About how many microseconds learning takes: a sample of every size is looked at, and there are few sizes."""
    return 10_000.0 + 4.0 * min(left.size, 16 * SAMPLE)


def learn_ways(left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray) -> FloatArray:
    """As the kernel of this name, a size class at a time."""
    inner = np.flatnonzero(left >= 0)
    # Small whole numbers are sorted in one pass.
    found = size_classes(size[inner]).astype(np.uint8)
    classes = int(size_classes(size[:1])[0]) + 1
    order = np.argsort(found, kind="stable")
    starts = np.searchsorted(found[order], np.arange(classes + 1))
    chances = np.empty((classes, len(WAYS)))
    prior = np.array(FIRST)
    prior /= _sum(prior)
    for this in range(classes - 1, -1, -1):
        # Every so many-th split of the class is looked at.
        mine = inner[order[starts[this] : starts[this + 1]]]
        every = (mine.size + SAMPLE - 1) // SAMPLE
        weight = prior
        if mine.size:
            evidence = _evidence(mine[every - 1 :: every], left, size, best, spread)
            for _ in range(ROUNDS):
                weighted = evidence * weight
                whole = _sum(weighted.T)
                gathered = _sum(np.vstack([CARRIED * prior, weighted / whole[:, None]]))
                weight = gathered / _sum(gathered)
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
    return each(math.exp, logs - logs.max(axis=0)).T


def infer_splits(
    left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray, chances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """As the kernel of this name, level by level."""
    mean, variance, slope, rest = (np.zeros(left.size) for _ in range(4))
    with np.errstate(all="ignore"):
        mean[:1], variance[:1] = _cut_normal(best[:1], np.sqrt(spread[:1]), np.full(1, 1e30))
        for level in levels(left):
            i = level.start + np.flatnonzero(left[level] >= 0)
            _infer(i, left, size, best, spread, chances, mean, variance, slope, rest)
    return mean, variance, slope, rest


def boxes_cost(left: IntArray, low: IntArray, *others: FloatArray) -> float:
    """About how many microseconds `infer_for_boxes` takes: what boxes cut, but never more than every split."""
    nodes, axes = low.shape
    cut = 3.0 if axes == 1 else float(nodes) ** (1.0 - 1.0 / axes)
    return 2_000.0 + float(min(len(others[-1]) * 10.0 * cut, 3.4 * nodes))


def infer_for_boxes(
    left: IntArray,
    low: ShortArray,
    high: ShortArray,
    size: FloatArray,
    best: FloatArray,
    spread: FloatArray,
    chances: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
    ready: BoolArray,
    box_low: IntArray,
    box_high: IntArray,
) -> None:
    """As the kernel of this name, level by level: whoever cuts a node has cut its parent."""
    box, node = np.arange(len(box_low)), np.zeros(len(box_low), dtype=np.int64)
    with np.errstate(all="ignore"):
        while box.size:
            lows, highs, one, two = low[node], high[node], box_low[box], box_high[box]
            inside = ((one <= lows) & (two >= highs)).all(axis=1)
            outside = ((one >= highs) | (two <= lows)).any(axis=1)
            cut = np.flatnonzero(~inside & ~outside & (left[node] >= 0))
            box, node = np.repeat(box[cut], 2), node[cut]
            new = np.sort(node[~ready[node]])
            new = new[np.append(new[1:] != new[:-1], True)] if new.size else new
            _infer(new, left, size, best, spread, chances, mean, variance, slope, rest)
            ready[new] = True
            node = np.stack([left[node], left[node] + 1], axis=1).reshape(-1)


def _infer(
    i: IntArray,
    left: IntArray,
    size: FloatArray,
    best: FloatArray,
    spread: FloatArray,
    chances: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
) -> None:
    """Work some splits out, none of them below another."""
    if not i.size:
        return
    c = left[i]
    total = np.maximum(mean[i], 1e-9)
    view = _views(total, best[c], spread[c], best[c + 1], spread[c + 1])
    here = chances[size_classes(size[i])].T
    first, rest[i], slope[i] = _moments(total, size[c] / size[i], *view, here)
    mean[c], mean[c + 1] = first, total - first
    variance[c] = slope[i] ** 2 * variance[i] + rest[i]
    variance[c + 1] = (1.0 - slope[i]) ** 2 * variance[i] + rest[i]


def _views(
    total: FloatArray,
    left_best: FloatArray,
    left_spread: FloatArray,
    right_best: FloatArray,
    right_spread: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    both = left_spread + right_spread
    seen = (left_best * right_spread + (total - right_best) * left_spread) / both
    spread = left_spread / both * right_spread
    vague = (VAGUE * total) ** 2
    nothing = spread > vague
    return (
        np.where(nothing, 0.5 * total, seen),
        np.where(nothing, vague, spread),
        np.where(nothing, 0.5, left_spread / both),
    )


def _tail_log(q: FloatArray) -> FloatArray:
    return np.where(q < 9.0, -0.5 * q, 4.5 - 3.0 * np.sqrt(q))


def _exponential_log(x: FloatArray, spread: FloatArray, mean: FloatArray) -> FloatArray:
    deviation = np.sqrt(spread)
    t = deviation / mean - x / deviation
    far = t < -6.0
    tail = np.ones(t.size)
    tail[~far] = scaled_tails(t[~far])
    logs = each(math.log, np.where(far, ROOT_TWO_PI / mean, tail * ROOT_TWO_PI / mean))
    return np.where(far, 0.5 * spread / (mean * mean) - x / mean + logs, logs - 0.5 * x * x / spread)


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
        out[k] = _tail_log(gap * gap / whole) - 0.5 * each(math.log, whole)
    inside = 0.5 * (
        each(math.erfc, -(total - seen) / deviation * ROOT_HALF)
        - each(math.erfc, seen / deviation * ROOT_HALF)
    )
    outside = np.maximum(np.maximum(-seen, seen - total), 0.0) / deviation
    floor = _tail_log(outside * outside) - 3.0
    out[NEAR] = np.maximum(
        each(math.log, np.maximum(inside, 1e-300) * ROOT_TWO_PI / total),
        floor + each(math.log, 1.0 / total),
    )
    exactly = _tail_log(seen * seen / spread), _tail_log((seen - total) ** 2 / spread)
    out[NEAR + 1] = _either(*exactly, share) - each(math.log, deviation)
    nearly = (
        _exponential_log(seen, spread, 2.0 * deviation),
        _exponential_log(total - seen, spread, 2.0 * deviation),
    )
    out[NEAR + 2] = _either(*nearly, share)
    return out, [exactly, nearly]


def _either(none: FloatArray, whole: FloatArray, share: FloatArray) -> FloatArray:
    """Log likelihood of nothing or all being on the left, which has this share of the cells."""
    top = np.maximum(none, whole)
    mixed = (1.0 - share) * each(math.exp, none - top) + share * each(math.exp, whole - top)
    return top + each(math.log, mixed)


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
    logs = here * each(math.exp, logs - logs.max(axis=0))
    chances = logs / _sum(logs)
    deviation = np.sqrt(vague)
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
            odds = each(math.exp, np.minimum(np.maximum(none - all_left, -600.0), 600.0))
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
    mass = 0.5 * (each(math.erfc, a * ROOT_HALF) - each(math.erfc, b * ROOT_HALF))
    at_a = each(math.exp, -0.5 * a * a) / ROOT_TWO_PI
    at_b = each(math.exp, -0.5 * np.minimum(b * b, 700.0)) / ROOT_TWO_PI
    shift = (at_a - at_b) / mass
    shrink = 1.0 + (a * at_a - b * at_b) / mass - shift * shift
    mean[at] = np.minimum(np.maximum(centre + deviation * shift, 0.0), top)
    variance[at] = deviation * deviation * np.minimum(np.maximum(shrink, 1e-6), 1.0)
    return mean, variance
