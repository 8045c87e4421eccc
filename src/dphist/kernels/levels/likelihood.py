"""A hidden level under every cell: what the noisy counts say once neighbours may share a level.

The model behind ``Posterior``. Cell i has a hidden level on a grid μ_0 = 0 < μ_1 < …; given its level the
count is Poisson or negative binomial with variance μ + (cμ)², and what we see is the count plus discrete Laplace noise,
or discrete Gaussian noise (``normal``, its variance, above zero). Here is what one noisy value says of its level and
its count; `dphist.kernels.levels.chain` puts neighbours together.

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel
from dphist.kernels.levels.listed import count_weights, normal_base, tail_of
from dphist.kernels.normal import DENSITY, scaled_tail, truncated

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# From this variance on a count given its level is treated as Gaussian.
GAUSSIAN_FROM = 60.0
# A log-likelihood this far below the best level's cannot matter, whatever the neighbours say.
NEGLIGIBLE = -75.0
# From here on the tail of a Gaussian is read off a series that is as near as the fit.
_SERIES_FROM = 12.0


def level_grid(values: IntArray, rate: float, ratio: float = 1.15, normal: float = 0.0) -> FloatArray:
    """Lay out the levels a count may have: zero, fine steps inside the noise, then constant ratios.

    ``rate`` is one over the noise scale. Levels far below the noise cannot be told from zero, so the grid
    starts at 1/150 of its deviation; it ends just above the largest noisy value.
    """
    sigma = deviation(rate, normal)
    top = max(1.05 * float(values.max()), 2.0 * sigma, 1.0)
    first = max(sigma / 150.0, 0.002)
    fine = first * 1.3 ** np.arange(12)
    coarse = max(0, math.ceil(math.log(top / fine[-1]) / math.log(ratio)))
    return np.concatenate([[0.0], fine, fine[-1] * ratio ** np.arange(1, coarse + 1)])


def deviation(rate: float, normal: float = 0.0) -> float:
    """The standard deviation of the noise: discrete Laplace of scale 1/``rate``, or Gaussian of variance ``normal``."""
    return math.sqrt(normal) if normal > 0.0 else math.sqrt(2.0 * math.exp(-rate)) / -math.expm1(-rate)


@kernel
def _tail(t: float) -> float:
    """`scaled_tail`, by its series where that is as near: most levels that count are high above the noise."""
    if t < _SERIES_FROM:
        return scaled_tail(t)
    u = 1.0 / (t * t)
    return DENSITY / t * (1.0 - u * (1.0 - u * (3.0 - u * (15.0 - u * 105.0))))


@kernel
def _gaussian_halves(d: float, v: float, rate: float) -> tuple[float, float, float, float, float]:
    """Gaussian ⊛ Laplace in halves (count below, count above what we saw), both times e^−shift; and their two tails.

    Returns shift, below, above, and the scaled tails that `truncated` asks for: each is worked out once.
    """
    s = math.sqrt(v)
    a = (d - rate * v) / s
    b = (d + rate * v) / s
    lower = _tail(-a) if a < 8.0 else math.inf
    upper = _tail(b) if b > -8.0 else math.inf
    h = 0.5 * rate * rate * v
    # The scaled tail grows without bound on its long side, where the plain exponential is exact.
    if a >= 5.0:
        return h - rate * d, 1.0, upper * math.exp(-0.5 * a * a), lower, upper
    if b <= -5.0:
        return h + rate * d, lower * math.exp(-0.5 * b * b), 1.0, lower, upper
    return -0.5 * d * d / v, lower, upper, lower, upper


@kernel
def _far(value: int, level: float, v: float, rate: float) -> bool:
    """Whether a level is so far from a value that its likelihood cannot count: negligible beside the best level's.

    The best level of a positive value is next to it; of a negative one it is zero, at e^(rate·value).
    """
    d = value - level
    gap = abs(d)
    most = rate * max(0.0, -float(value)) - NEGLIGIBLE
    if gap > rate * v:
        return rate * gap - 0.5 * rate * rate * v > most
    return d * d > 2.0 * most * v


@kernel
def _listed_laplace(
    values: IntArray, level: float, c: float, rate: float, order: int, out: FloatArray
) -> None:
    """Exact log-likelihood (order 0) or else E[count^order | seen], for a level whose counts are few enough to list."""
    tail = tail_of(level, c)
    p = count_weights(level, c, tail)
    # below[j] = Σ_{x≤j} p(x) e^{rate(x−j)} and above[j] = Σ_{x>j} p(x) e^{−rate(x−j)}: running, so nothing overflows.
    fade = math.exp(-rate)
    below = np.empty(tail + 1)
    above = np.zeros(tail + 2)
    below_m = np.empty(tail + 1)
    above_m = np.zeros(tail + 2)
    run = 0.0
    run_m = 0.0
    for x in range(tail + 1):
        power = 1.0 if order == 0 else float(x) if order == 1 else float(x) * x
        run = run * fade + p[x]
        run_m = run_m * fade + p[x] * power
        below[x] = run
        below_m[x] = run_m
    run = 0.0
    run_m = 0.0
    for x in range(tail, -1, -1):
        above[x] = run
        above_m[x] = run_m
        power = 1.0 if order == 0 else float(x) if order == 1 else float(x) * x
        run = (run + p[x]) * fade
        run_m = (run_m + p[x] * power) * fade
    base = math.log(math.tanh(0.5 * rate))
    # Most values lie beyond the counts that are listed.
    log_below, log_beyond = math.log(run + 1e-300), math.log(below[tail] + 1e-300)
    for i in range(values.size):
        y = values[i]
        if y < 0:
            total, weighted, shift = run, run_m, rate * (y + 1)
        elif y > tail:
            total, weighted, shift = below[tail], below_m[tail], -rate * (y - tail)
        else:
            total, weighted, shift = below[y] + above[y], below_m[y] + above_m[y], 0.0
        if order == 0:
            log = log_below if y < 0 else log_beyond if y > tail else math.log(total + 1e-300)
            out[i] = base + shift + log
        else:
            out[i] = weighted / (total + 1e-300)


@kernel
def _listed_normal(
    values: IntArray, level: float, c: float, normal: float, order: int, out: FloatArray
) -> None:
    """As `_listed_laplace`, under Gaussian noise: the listed counts one by one, those near the value only."""
    tail = tail_of(level, c)
    p = count_weights(level, c, tail)
    logs = np.empty(tail + 1)
    for x in range(tail + 1):
        logs[x] = math.log(p[x] + 1e-300)
    base = normal_base(normal)
    half = 0.5 / normal
    for i in range(values.size):
        y = values[i]
        best = -math.inf
        for x in range(tail + 1):
            best = max(best, logs[x] - half * (y - x) * (y - x))
        total = 0.0
        weighted = 0.0
        for x in range(tail + 1):
            gap = logs[x] - half * (y - x) * (y - x) - best
            if gap > -40.0:
                weight = math.exp(gap)
                total += weight
                weighted += weight * (1.0 if order == 0 else float(x) if order == 1 else float(x) * x)
        out[i] = base + best + math.log(total) if order == 0 else weighted / total


@kernel
def _listed(
    values: IntArray, level: float, c: float, rate: float, normal: float, order: int, out: FloatArray
) -> None:
    """Log-likelihood of a level whose counts are few enough to list (order 0), or else E[count^order | seen]."""
    if normal > 0.0:
        _listed_normal(values, level, c, normal, order, out)
    else:
        _listed_laplace(values, level, c, rate, order, out)


def likelihoods(
    values: IntArray, grid: FloatArray, c: float, rate: float, normal: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Likelihood of each value at each level, every row scaled to a largest entry of 1, and the scales' logs."""
    table = np.empty((values.size, grid.size))
    _logs(values, grid, c, rate, normal, table)
    return table, _rescaled(table)


# Loops are spelled out: numba takes seconds to compile the assignment of a slice, and the same bits come of both.
@kernel
def _logs(
    values: IntArray,
    grid: FloatArray,
    c: float,
    rate: float,
    normal: float,
    table: FloatArray,
) -> None:
    """Log-likelihoods of every value at every level."""
    n = values.size
    column = np.empty(n)
    zero = normal_base(normal) if normal > 0.0 else math.log(math.tanh(0.5 * rate))
    for k in range(grid.size):
        level = grid[k]
        v = level + (c * level) * (c * level)
        if 0.0 < v < GAUSSIAN_FROM:
            _listed(values, level, c, rate, normal, 0, column)
            for i in range(n):
                table[i, k] = column[i]
        elif normal > 0.0:
            base = zero if level == 0.0 else -0.5 * math.log(2.0 * math.pi * (v + normal))
            for i in range(n):
                table[i, k] = base - 0.5 * ((values[i] - level) * (values[i] - level)) / (v + normal)
        elif level == 0.0:
            for i in range(n):
                table[i, k] = zero - rate * abs(values[i])
        else:
            for i in range(n):
                table[i, k] = -math.inf
                if not _far(values[i], level, v, rate):
                    shift, below, above, _, _ = _gaussian_halves(values[i] - level, v, rate)
                    table[i, k] = math.log(0.5 * rate * (below + above)) + shift


@kernel
def _rescaled(table: FloatArray) -> FloatArray:
    """Take exponentials beside the largest of every row, in place; give the logs of these."""
    n, levels = table.shape
    scales = np.empty(n)
    for i in range(n):
        high = table[i, 0]
        for k in range(1, levels):
            high = max(high, table[i, k])
        scales[i] = high
        for k in range(levels):
            gap = table[i, k] - high
            table[i, k] = math.exp(gap) if gap > NEGLIGIBLE else 0.0
    return scales


def moments(
    values: IntArray,
    grid: FloatArray,
    c: float,
    rate: float,
    table: FloatArray,
    normal: float = 0.0,
) -> tuple[FloatArray, FloatArray]:
    """E[count] and Var[count] given each value and each level; 0 where ``table`` says that the level cannot be."""
    first, second = np.zeros(table.shape), np.zeros(table.shape)
    _moments(values, grid, c, rate, normal, table, first, second)
    return first, second


@kernel
def _moments(
    values: IntArray,
    grid: FloatArray,
    c: float,
    rate: float,
    normal: float,
    table: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> None:
    n = values.size
    column = np.empty(n)
    for k in range(1, grid.size):
        level = grid[k]
        v = level + (c * level) * (c * level)
        if v < GAUSSIAN_FROM:
            # The order is handed over, not written in: of constants numba compiles one version each.
            for order in range(1, 3):
                _listed(values, level, c, rate, normal, order, column)
                for i in range(n):
                    if order == 1:
                        first[i, k] = column[i]
                    else:
                        second[i, k] = max(column[i] - first[i, k] * first[i, k], 0.0)
            continue
        s = math.sqrt(v)
        for i in range(n):
            if table[i, k] == 0.0:
                continue
            d = values[i] - level
            if normal > 0.0:
                first[i, k] = max(level + v / (v + normal) * d, 0.0)
                second[i, k] = v * normal / (v + normal)
                continue
            _, below, above, lower, upper = _gaussian_halves(d, v, rate)
            w = below / (below + above)
            m1, v1 = truncated((d - rate * v) / s, lower)
            m2, v2 = truncated(-(d + rate * v) / s, upper)
            m1 = values[i] - s * m1
            m2 = values[i] + s * m2
            m = w * m1 + (1.0 - w) * m2
            second_moment = w * (m1 * m1 + v * v1) + (1.0 - w) * (m2 * m2 + v * v2)
            first[i, k] = max(m, 0.0)
            second[i, k] = max(second_moment - m * m, 0.0)
