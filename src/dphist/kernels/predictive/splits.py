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

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel, kernel_once_hot, kernel_with_twin
from dphist.kernels.normal import ROOT_TWO_PI, scaled_tail
from dphist.kernels.predictive import twins, ways
from dphist.kernels.predictive.ways import CARRIED, FIRST, NEAR, ROUNDS, SAMPLE, VAGUE, WAYS
from dphist.kernels.special import ROOT_HALF

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def size_class(size: float) -> int:
    """The nearest power of two, as sizes share what they learned: 2 and 3 give 1, 4 to 6 give 2."""
    number = 0
    while size > 1.5:
        size *= 0.5
        number += 1
    return number


@kernel_with_twin(twins.best_totals)
def best_totals(left: IntArray, value: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Best linear total of every node from what was measured at it and below, and its variance."""
    best = np.empty(value.size)
    spread = np.empty(value.size)
    for i in range(value.size - 1, -1, -1):
        c = left[i]
        if c < 0:
            best[i] = value[i]
            spread[i] = variance[i]
            if not variance[i] < 1e30:
                best[i] = 0.0
                spread[i] = 1e30
            continue
        best[i] = best[c] + best[c + 1]
        spread[i] = min(spread[c] + spread[c + 1], 1e30)
        if variance[i] < 1e30:
            whole = variance[i] + spread[i]
            best[i] = (best[i] * variance[i] + value[i] * spread[i]) / whole
            spread[i] = variance[i] * spread[i] / whole
    return best, spread


@kernel
def _view(
    total: float, left_best: float, left_spread: float, right_best: float, right_spread: float
) -> tuple[float, float, float]:
    """The left part as it was seen, given the total: value, variance, slope in the total."""
    both = left_spread + right_spread
    seen = (left_best * right_spread + (total - right_best) * left_spread) / both
    spread = left_spread / both * right_spread
    slope = left_spread / both
    vague = (VAGUE * total) ** 2
    if spread > vague:
        # Nothing was seen: any view so vague says the same, and keeps the numbers in range.
        return 0.5 * total, vague, 0.5
    return seen, spread, slope


@kernel
def _tail_log(q: float) -> float:
    """−q/2, but straight beyond three deviations: Laplace noise strays further than normal noise."""
    return -0.5 * q if q < 9.0 else 4.5 - 3.0 * math.sqrt(q)


@kernel
def _exponential_log(x: float, spread: float, mean: float) -> float:
    """Log density at x of an exponential of this mean under normal noise, times √(2π)."""
    deviation = math.sqrt(spread)
    t = deviation / mean - x / deviation
    if t < -6.0:
        return 0.5 * spread / (mean * mean) - x / mean + math.log(ROOT_TWO_PI / mean)
    return math.log(scaled_tail(t) * ROOT_TWO_PI / mean) - 0.5 * x * x / spread


@kernel
def _log_chances(total: float, share: float, seen: float, spread: float, out: FloatArray) -> None:
    """Log likelihood of a view of the left part under every way to divide."""
    deviation = math.sqrt(spread)
    even = share * (1.0 - share)
    for k in range(NEAR):
        whole = spread + (total * total * WAYS[k] + total) * even
        gap = seen - total * share
        out[k] = _tail_log(gap * gap / whole) - 0.5 * math.log(whole)
    inside = 0.5 * (
        math.erfc(-(total - seen) / deviation * ROOT_HALF) - math.erfc(seen / deviation * ROOT_HALF)
    )
    # A view far outside fits nothing well; under this way it fits like the noise at the nearer end.
    outside = max(-seen, seen - total, 0.0) / deviation
    floor = _tail_log(outside * outside) - 3.0
    out[NEAR] = max(math.log(max(inside, 1e-300) * ROOT_TWO_PI / total), floor + math.log(1.0 / total))
    none = _tail_log(seen * seen / spread)
    whole_side = _tail_log((seen - total) ** 2 / spread)
    top = max(none, whole_side)
    out[NEAR + 1] = (
        top
        + math.log((1.0 - share) * math.exp(none - top) + share * math.exp(whole_side - top))
        - math.log(deviation)
    )
    none = _exponential_log(seen, spread, 2.0 * deviation)
    whole_side = _exponential_log(total - seen, spread, 2.0 * deviation)
    top = max(none, whole_side)
    out[NEAR + 2] = top + math.log((1.0 - share) * math.exp(none - top) + share * math.exp(whole_side - top))


@kernel_with_twin(ways.learn_ways, cost=ways.learn_cost)
def learn_ways(left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray) -> FloatArray:
    """How often each way to divide occurs, for every size class: by expectation–maximisation, largest sizes first."""
    number = len(WAYS)
    classes = size_class(size[0]) + 1
    chances = np.empty((classes, number))
    prior = np.empty(number)
    whole = 0.0
    for k in range(number):
        whole += FIRST[k]
    for k in range(number):
        prior[k] = FIRST[k] / whole
    count = np.zeros(classes, dtype=np.int64)
    for i in range(left.size):
        if left[i] >= 0:
            count[size_class(size[i])] += 1
    # Every so many-th split of each class is looked at.
    chosen = np.empty((classes, SAMPLE), dtype=np.int64)
    taken = np.zeros(classes, dtype=np.int64)
    met = np.zeros(classes, dtype=np.int64)
    for i in range(left.size):
        if left[i] < 0:
            continue
        this = size_class(size[i])
        met[this] += 1
        if met[this] % ((count[this] + SAMPLE - 1) // SAMPLE) == 0:
            chosen[this, taken[this]] = i
            taken[this] += 1
    evidence = np.empty((SAMPLE, number))
    gathered = np.empty(number)
    for this in range(classes - 1, -1, -1):
        rows = taken[this]
        for j in range(rows):
            i = chosen[this, j]
            c = left[i]
            total = max(best[i], 0.5 * math.sqrt(spread[i]), 1e-3)
            seen, vague, _ = _view(total, best[c], spread[c], best[c + 1], spread[c + 1])
            row = evidence[j]
            _log_chances(total, size[c] / size[i], seen, vague, row)
            top = row.max()
            for k in range(number):
                row[k] = math.exp(row[k] - top)
        weight = prior.copy()
        for _ in range(ROUNDS if rows > 0 else 0):
            for k in range(number):
                gathered[k] = CARRIED * prior[k]
            for j in range(rows):
                whole = 0.0
                for k in range(number):
                    whole += evidence[j, k] * weight[k]
                for k in range(number):
                    gathered[k] += evidence[j, k] * weight[k] / whole
            whole = 0.0
            for k in range(number):
                whole += gathered[k]
            for k in range(number):
                weight[k] = gathered[k] / whole
        for k in range(number):
            chances[this, k] = prior[k] = weight[k]
    return chances


@kernel
def _cut_normal(centre: float, deviation: float, top: float) -> tuple[float, float]:
    """Mean and variance of a normal that is known to lie between 0 and ``top``."""
    a = -centre / deviation
    b = (top - centre) / deviation
    if a < -5.0 and b > 5.0:
        return centre, deviation * deviation
    if b - a < 1e-3:
        return 0.5 * top, top * top / 12.0
    if a > 4.0:
        # Far in the upper tail: an exponential of this rate, cut at the top.
        mean = min(deviation / a, 0.5 * top)
        return mean, mean * mean
    if b < -4.0:
        rest = min(deviation / -b, 0.5 * top)
        return top - rest, rest * rest
    mass = 0.5 * (math.erfc(a * ROOT_HALF) - math.erfc(b * ROOT_HALF))
    at_a = math.exp(-0.5 * a * a) / ROOT_TWO_PI
    at_b = math.exp(-0.5 * min(b * b, 700.0)) / ROOT_TWO_PI
    shift = (at_a - at_b) / mass
    shrink = 1.0 + (a * at_a - b * at_b) / mass - shift * shift
    mean = min(max(centre + deviation * shift, 0.0), top)
    return mean, deviation * deviation * min(max(shrink, 1e-6), 1.0)


@kernel
def infer_split(
    i: int,
    left: IntArray,
    size: FloatArray,
    best: FloatArray,
    spread: FloatArray,
    chances: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
    logs: FloatArray,
) -> None:
    """Work out how one node's total divides, given its mean and variance: those of its children, in place."""
    c = left[i]
    total = max(mean[i], 1e-9)
    share = size[c] / size[i]
    seen, vague, follows = _view(total, best[c], spread[c], best[c + 1], spread[c + 1])
    _log_chances(total, share, seen, vague, logs)
    here = chances[size_class(size[i])]
    top = logs.max()
    whole = 0.0
    for k in range(logs.size):
        logs[k] = here[k] * math.exp(logs[k] - top)
        whole += logs[k]
    deviation = math.sqrt(vague)
    # Moments about a point near by: squares of large totals would drown the variance in rounding.
    near = min(max(seen, 0.0), total)
    sure = 0.0
    first = 0.0
    second = 0.0
    tilt = 0.0
    for k in range(logs.size):
        chance = logs[k] / whole
        if chance < 1e-7:
            continue
        if k < NEAR:
            prior = (total * total * WAYS[k] + total) * share * (1.0 - share)
            pull = prior / (prior + vague)
            m, v = _cut_normal(
                total * share + pull * (seen - total * share), math.sqrt(pull * vague) + 1e-12, total
            )
            d = share * (1.0 - pull) + pull * follows
        elif k == NEAR:
            m, v = _cut_normal(seen, deviation, total)
            d = follows
        else:
            if k == NEAR + 1:
                none = _tail_log(seen * seen / vague)
                all_left = _tail_log((seen - total) ** 2 / vague)
                low, low_v, other, other_v = 0.0, 0.0, 0.0, 0.0
            else:
                none = _exponential_log(seen, vague, 2.0 * deviation)
                all_left = _exponential_log(total - seen, vague, 2.0 * deviation)
                low, low_v = _cut_normal(seen - 0.5 * deviation, deviation, total)
                other, other_v = _cut_normal(total - seen - 0.5 * deviation, deviation, total)
            high = total - other
            d = share / (share + (1.0 - share) * math.exp(min(max(none - all_left, -600.0), 600.0)))
            m = d * high + (1.0 - d) * low
            v = d * (other_v + (high - m) ** 2) + (1.0 - d) * (low_v + (low - m) ** 2)
        sure += chance
        first += chance * (m - near)
        second += chance * (v + (m - near) ** 2)
        tilt += chance * d
    first /= sure
    rest[i] = max(second / sure - first * first, 0.0)
    slope[i] = min(max(tilt / sure, 0.0), 1.0)
    first = min(max(near + first, 0.0), total)
    mean[c] = first
    mean[c + 1] = total - first
    variance[c] = slope[i] ** 2 * variance[i] + rest[i]
    variance[c + 1] = (1.0 - slope[i]) ** 2 * variance[i] + rest[i]


@kernel_once_hot(lambda *_: 5.0)
def infer_root(best: float, spread: float) -> tuple[float, float]:
    """Mean and variance of the whole, which is not negative."""
    return _cut_normal(best, math.sqrt(spread), 1e30)


@kernel_with_twin(ways.infer_splits, cost=3.4)
def infer_splits(
    left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray, chances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean and variance of every node's total; for every split the left part's slope in the total, and what is left.

    Returns ``mean``, ``variance``, ``slope``, ``rest``: given its parent's total t, the left part has mean
    mean[left] + slope·(t − mean) and variance ``rest``.
    """
    nodes = left.size
    mean = np.zeros(nodes)
    variance = np.zeros(nodes)
    slope = np.zeros(nodes)
    rest = np.zeros(nodes)
    logs = np.empty(len(WAYS))
    mean[0], variance[0] = infer_root(best[0], spread[0])
    for i in range(nodes):
        if left[i] >= 0:
            infer_split(i, left, size, best, spread, chances, mean, variance, slope, rest, logs)
    return mean, variance, slope, rest


@kernel_with_twin(twins.least_squares_splits)
def least_squares_splits(
    left: IntArray, best: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same for plain least squares, which knows nothing of how totals divide: ``mean``, ``slope``, ``rest``."""
    mean = best.copy()
    slope = np.zeros(left.size)
    rest = np.zeros(left.size)
    for i in range(left.size):
        c = left[i]
        if c < 0:
            continue
        both = spread[c] + spread[c + 1]
        slope[i] = spread[c] / both
        rest[i] = spread[c] / both * spread[c + 1]
        mean[c] = best[c] + slope[i] * (mean[i] - best[c] - best[c + 1])
        mean[c + 1] = mean[i] - mean[c]
    return mean, slope, rest
