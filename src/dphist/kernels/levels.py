"""A hidden level under every cell: what the noisy counts say once neighbours may share a level.

The model behind ``Posterior``. Cell i has a hidden level on a grid μ_0 = 0 < μ_1 < …; given its level the
count is Poisson or negative binomial with variance μ + (cμ)², and what we see is the count plus discrete
Laplace noise. From one cell to the next the level stays, takes a small step, a larger step (two-sided
geometric kernels on the level's index), or jumps to a draw from π. The geometric kernels are two running
sums, so one cell costs O(levels) and not O(levels²).

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Ratio of the two-sided geometric kernels: a small step stays within a level or two, a large one within ten.
SMALL_STEP = 0.5
LARGE_STEP = 0.9
# From this variance on a count given its level is treated as Gaussian.
GAUSSIAN_FROM = 60.0


def level_grid(values: IntArray, rate: float, ratio: float = 1.15) -> FloatArray:
    """Lay out the levels a count may have: zero, fine steps inside the noise, then constant ratios.

    ``rate`` is one over the noise scale. Levels far below the noise cannot be told from zero, so the grid
    starts at 1/150 of its deviation; it ends just above the largest noisy value.
    """
    sigma = math.sqrt(2.0 * math.exp(-rate)) / -math.expm1(-rate)
    top = max(1.05 * float(values.max()), 2.0 * sigma, 1.0)
    first = max(sigma / 150.0, 0.002)
    fine = first * 1.3 ** np.arange(12)
    coarse = max(0, math.ceil(math.log(top / fine[-1]) / math.log(ratio)))
    return np.concatenate([[0.0], fine, fine[-1] * ratio ** np.arange(1, coarse + 1)])


@kernel
def _scaled_tail(t: float) -> float:
    """exp(t²/2)·P(N > t), to a relative 1.2e-7 (Numerical Recipes' Chebyshev fit of erfc, scaled)."""
    x = t * 0.7071067811865476
    z = abs(x)
    u = 1.0 / (1.0 + 0.5 * z)
    p = -1.13520398 + u * (1.48851587 + u * (-0.82215223 + u * 0.17087277))
    p = 0.37409196 + u * (0.09678418 + u * (-0.18628806 + u * (0.27886807 + u * p)))
    r = 0.5 * u * math.exp(-1.26551223 + u * (1.00002368 + u * p))
    return r if x >= 0.0 else math.exp(z * z) - r


@kernel
def _gaussian_pair(d: float, v: float, rate: float) -> tuple[float, float]:
    """Logarithms of the two halves (count below, count above what we saw) of Gaussian ⊛ Laplace."""
    s = math.sqrt(v)
    a = (d - rate * v) / s
    b = (d + rate * v) / s
    h = 0.5 * rate * rate * v
    q = -0.5 * d * d / v
    # The scaled tail overflows on its long side, where the plain exponential is exact.
    below = q + math.log(_scaled_tail(-a)) if a < 5.0 else h - rate * d
    above = q + math.log(_scaled_tail(b)) if b > -5.0 else h + rate * d
    return below, above


@kernel
def _far(d: float, v: float, rate: float) -> bool:
    """Whether a level is so far from a value that its likelihood cannot count: below about e⁻⁴⁰⁰."""
    gap = abs(d)
    if gap > rate * v:
        return rate * gap - 0.5 * rate * rate * v > 400.0
    return d * d > 800.0 * v


@kernel
def _truncated(t: float) -> tuple[float, float]:
    """Mean and variance of (bound − N) given N < bound, for a standard normal with its bound at t."""
    if t < -12.0:
        u = 1.0 / (t * t)
        return -(1.0 - 2.0 * u + 10.0 * u * u) / t, u * (1.0 - 6.0 * u)
    hazard = 0.3989422804014327 / _scaled_tail(-t) if t < 8.0 else 0.0
    return t + hazard, max(1.0 - t * hazard - hazard * hazard, 0.0)


@kernel
def _count_weights(level: float, c: float, tail: int) -> FloatArray:
    """Poisson (c = 0) or negative binomial probabilities of 0 … tail, by their recurrence, normalised."""
    p = np.empty(tail + 1)
    if c * c * level < 1e-3:
        logs = -level
        for x in range(tail + 1):
            p[x] = math.exp(logs)
            logs += math.log(level / (x + 1.0))
    else:
        shape = 1.0 / (c * c)
        logs = shape * math.log(shape / (shape + level))
        step = math.log(level / (shape + level))
        for x in range(tail + 1):
            p[x] = math.exp(logs)
            logs += step + math.log((x + shape) / (x + 1.0))
    normalised: FloatArray = p / p.sum()
    return normalised


@kernel
def _small_level(
    values: IntArray, level: float, c: float, rate: float, order: int, log_p: FloatArray, moment: FloatArray
) -> None:
    """Exact likelihood (order 0) or E[count^order | seen] for a level whose counts are few enough to list."""
    v = level + (c * level) ** 2
    tail = int(level + 12.0 * math.sqrt(v) + 12.0 + 10.0 * v / level)
    p = _count_weights(level, c, tail)
    # below[j] = Σ_{x≤j} p(x) e^{rate(x−j)} and above[j] = Σ_{x>j} p(x) e^{−rate(x−j)}: running, so nothing overflows.
    fade = math.exp(-rate)
    below = np.empty(tail + 1)
    above = np.zeros(tail + 2)
    below_m = np.empty(tail + 1)
    above_m = np.zeros(tail + 2)
    run = 0.0
    run_m = 0.0
    for x in range(tail + 1):
        run = run * fade + p[x]
        run_m = run_m * fade + p[x] * float(x) ** order
        below[x] = run
        below_m[x] = run_m
    run = 0.0
    run_m = 0.0
    for x in range(tail, -1, -1):
        above[x] = run
        above_m[x] = run_m
        run = (run + p[x]) * fade
        run_m = (run_m + p[x] * float(x) ** order) * fade
    base = math.log(math.tanh(0.5 * rate))
    for i in range(values.size):
        y = values[i]
        if y < 0:
            log_p[i] = base + rate * (y + 1) + math.log(run + 1e-300)
            moment[i] = run_m / (run + 1e-300)
        elif y > tail:
            log_p[i] = base - rate * (y - tail) + math.log(below[tail] + 1e-300)
            moment[i] = below_m[tail] / (below[tail] + 1e-300)
        else:
            total = below[y] + above[y] + 1e-300
            log_p[i] = base + math.log(total)
            moment[i] = (below_m[y] + above_m[y]) / total


@kernel
def likelihoods(values: IntArray, grid: FloatArray, c: float, rate: float) -> tuple[FloatArray, FloatArray]:
    """Likelihood of each value at each level, every row scaled to a largest entry of 1, and the scales' logs."""
    n, levels = values.size, grid.size
    table = np.empty((n, levels))
    log_p = np.empty(n)
    moment = np.empty(n)
    for k in range(levels):
        level = grid[k]
        v = level + (c * level) ** 2
        if level == 0.0:
            base = math.log(math.tanh(0.5 * rate))
            for i in range(n):
                table[i, k] = base - rate * abs(values[i])
        elif v < GAUSSIAN_FROM:
            _small_level(values, level, c, rate, 0, log_p, moment)
            table[:, k] = log_p
        else:
            base = math.log(0.5 * rate)
            for i in range(n):
                if _far(values[i] - level, v, rate):
                    table[i, k] = -math.inf
                    continue
                below, above = _gaussian_pair(values[i] - level, v, rate)
                high = max(below, above)
                gap = min(below, above) - high
                table[i, k] = base + high + (math.log1p(math.exp(gap)) if gap > -40.0 else 0.0)
    scales = np.empty(n)
    for i in range(n):
        high = table[i].max()
        scales[i] = high
        for k in range(levels):
            gap = table[i, k] - high
            table[i, k] = math.exp(gap) if gap > -200.0 else 0.0
    return table, scales


@kernel
def moments(values: IntArray, grid: FloatArray, c: float, rate: float) -> tuple[FloatArray, FloatArray]:
    """E[count] and Var[count] given each value and each level."""
    n, levels = values.size, grid.size
    first = np.zeros((n, levels))
    second = np.zeros((n, levels))
    log_p = np.empty(n)
    moment = np.empty(n)
    for k in range(1, levels):
        level = grid[k]
        v = level + (c * level) ** 2
        if v < GAUSSIAN_FROM:
            _small_level(values, level, c, rate, 1, log_p, moment)
            first[:, k] = moment
            _small_level(values, level, c, rate, 2, log_p, moment)
            second[:, k] = np.maximum(moment - first[:, k] ** 2, 0.0)
        else:
            s = math.sqrt(v)
            for i in range(n):
                d = values[i] - level
                if _far(d, v, rate):
                    continue
                below, above = _gaussian_pair(d, v, rate)
                w = 1.0 / (1.0 + math.exp(min(above - below, 700.0)))
                m1, v1 = _truncated((d - rate * v) / s)
                m2, v2 = _truncated(-(d + rate * v) / s)
                m1 = values[i] - s * m1
                m2 = values[i] + s * m2
                m = w * m1 + (1.0 - w) * m2
                second_moment = w * (m1 * m1 + v * v1) + (1.0 - w) * (m2 * m2 + v * v2)
                variance = second_moment - m * m
                first[i, k] = max(m, 0.0)
                second[i, k] = max(variance, 0.0)
    return first, second


@kernel
def _stretch(
    table: FloatArray,
    rows: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    forward: FloatArray,
    starts: FloatArray,
    moves: FloatArray,
    first: FloatArray,
    second: FloatArray,
    mean: FloatArray,
    within: FloatArray,
    between: FloatArray,
) -> float:
    """Forward–backward over one stretch; adds to ``starts`` and ``moves``, fills whatever else has room.

    Each two-sided geometric kernel is one running sum up the levels and one down; all work of a cell is fused
    into those two sweeps, because the sums' latency is what the time goes into.
    """
    n = rows.size
    levels = jump.size
    up_small = np.empty(levels)
    up_large = np.empty(levels)
    stay = np.empty(levels)
    v = np.empty(levels)
    evidence = 0.0
    r, g = SMALL_STEP, LARGE_STEP
    w0, w3 = weights[0], weights[3]
    w1 = weights[1] * (1.0 - r) / (1.0 + r)
    w2 = weights[2] * (1.0 - g) / (1.0 + g)
    for i in range(n):
        a = forward[i]
        b = table[rows[i]]
        total = 0.0
        if i == 0:
            for k in range(levels):
                a[k] = b[k] * jump[k]
                total += a[k]
        else:
            q = forward[i - 1]
            s = 0.0
            t = 0.0
            for k in range(levels):
                s = s * r + q[k]
                t = t * g + q[k]
                stay[k] = w0 * q[k] + w1 * s + w2 * t + w3 * jump[k]
            s = 0.0
            t = 0.0
            for k in range(levels - 1, -1, -1):
                s *= r
                t *= g
                x = b[k] * (stay[k] + w1 * s + w2 * t)
                a[k] = x
                total += x
                s += q[k]
                t += q[k]
        evidence += math.log(total)
        total = 1.0 / total
        for k in range(levels):
            a[k] *= total
    back = np.ones(levels)
    for i in range(n - 1, -1, -1):
        a = forward[i]
        b = table[rows[i]]
        if mean.size > 0:
            total = 0.0
            m = 0.0
            m2 = 0.0
            m3 = 0.0
            e1 = first[rows[i]]
            e2 = second[rows[i]]
            for k in range(levels):
                p = a[k] * back[k]
                total += p
                m += p * e1[k]
                m2 += p * e2[k]
                m3 += p * e1[k] * e1[k]
            mean[i] = m / total
            within[i] = m2 / total
            between[i] = max(m3 / total - mean[i] * mean[i], 0.0)
        if i == 0:
            total = 0.0
            for k in range(levels):
                total += a[k] * back[k]
            for k in range(levels):
                starts[k] += a[k] * back[k] / total
            break
        q = forward[i - 1]
        s = 0.0
        t = 0.0
        c0 = 0.0
        c3 = 0.0
        for k in range(levels):
            x = b[k] * back[k]
            v[k] = x
            s = s * r + x
            t = t * g + x
            up_small[k] = s
            up_large[k] = t
            c0 += q[k] * x
            c3 += jump[k] * x
        s = 0.0
        t = 0.0
        c1 = 0.0
        c2 = 0.0
        for k in range(levels - 1, -1, -1):
            x = up_small[k] + s * r
            z = up_large[k] + t * g
            s = s * r + v[k]
            t = t * g + v[k]
            c1 += q[k] * x
            c2 += q[k] * z
            stay[k] = w0 * v[k] + w1 * x + w2 * z
        f = 1.0 / (w0 * c0 + w1 * c1 + w2 * c2 + w3 * c3)
        moves[0] += w0 * c0 * f
        moves[1] += w1 * c1 * f
        moves[2] += w2 * c2 * f
        moves[3] += w3 * c3 * f
        j = w3 * f
        c3 *= w3
        for k in range(levels):
            starts[k] += j * jump[k] * v[k]
            back[k] = (stay[k] + c3) * f
    return evidence


@kernel
def expect(
    table: FloatArray,
    rows: IntArray,
    stretches: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    forward: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:
    """One expectation step: evidence, expected jumps into each level, expected moves of each kind.

    ``stretches`` holds [start, stop) pairs of cells; each stretch starts with a fresh draw from ``jump``.
    """
    starts = np.zeros(jump.size)
    moves = np.zeros(4)
    none = np.empty(0)
    empty = np.empty((0, 0))
    evidence = 0.0
    for s in range(stretches.shape[0]):
        part = rows[stretches[s, 0] : stretches[s, 1]]
        evidence += _stretch(
            table, part, jump, weights, forward, starts, moves, empty, empty, none, none, none
        )
    return evidence, starts, moves


@kernel
def infer(
    table: FloatArray,
    rows: IntArray,
    stretches: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    first: FloatArray,
    second: FloatArray,
    forward: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior mean of every cell's count, and its variance in two parts.

    The first part is what stays unknown of the count when its level is known: independent from cell to cell. The
    second is what the level adds: neighbours that share a level share it.
    """
    mean = np.empty(rows.size)
    within = np.empty(rows.size)
    between = np.empty(rows.size)
    starts = np.zeros(jump.size)
    moves = np.zeros(4)
    for s in range(stretches.shape[0]):
        lo, hi = stretches[s, 0], stretches[s, 1]
        _stretch(
            table,
            rows[lo:hi],
            jump,
            weights,
            forward,
            starts,
            moves,
            first,
            second,
            mean[lo:hi],
            within[lo:hi],
            between[lo:hi],
        )
    return mean, within, between
