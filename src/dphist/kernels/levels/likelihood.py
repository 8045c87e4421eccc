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
from dphist.kernels.special import DENSITY, scaled_tail, truncated

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


def _at_zero(rate: float, normal: float) -> float:
    """Log of the chance of no noise; of Gaussian noise the continuum's, but where there is very little."""
    if normal > 0.5:
        return -0.5 * math.log(2.0 * math.pi * normal)
    if normal > 0.0:
        return -math.log(1.0 + 2.0 * math.exp(-0.5 / normal) + 2.0 * math.exp(-2.0 / normal))
    return math.log(math.tanh(0.5 * rate))


def _listed(
    values: IntArray, grid: FloatArray, c: float, rate: float, normal: float
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """The levels whose counts are few enough to be listed; how likely noise brings values from counts; laws of counts.

    Noise is told beside that from the nearest listed count, whose logarithm comes last: values far beyond all counts
    still tell levels apart. Of laws there is a row for each level.
    """
    variance = grid + (c * grid) ** 2
    levels = np.flatnonzero((variance > 0.0) & (variance < GAUSSIAN_FROM))
    tails = grid + 12.0 * np.sqrt(variance) + 12.0 + 10.0 * (1.0 + c * c * grid)
    counts = np.arange(int(tails[levels].max(initial=0.0)) + 1)
    laws = np.zeros((levels.size, counts.size))
    for k, law in zip(levels, laws, strict=True):
        law[:] = _counted(grid[k], c, counts) * (counts <= int(tails[k]))
    nearest = np.abs(values - np.clip(values, 0, counts[-1]))
    gaps = np.abs(values[:, None] - counts)
    if normal > 0.0:
        base, logs = -0.5 * nearest * nearest / normal, -0.5 * gaps * gaps / normal
    else:
        base, logs = -rate * nearest, -rate * gaps
    return levels, np.exp(logs - base[:, None]), laws / laws.sum(axis=1, keepdims=True), base


def _counted(level: float, c: float, counts: IntArray) -> FloatArray:
    """Poisson (c = 0) or negative binomial probabilities of 0, 1, …, by their recurrence."""
    # Levels listed here are below 60, so the first probability is at least e⁻⁶⁰ and nothing underflows.
    if c * c * level < 1e-3:
        first, ratios = math.exp(-level), level / counts[1:]
    else:
        shape = 1.0 / (c * c)
        first = math.exp(shape * math.log(shape / (shape + level)))
        ratios = level / (shape + level) * (counts[:-1] + shape) / counts[1:]
    return np.cumprod(np.append(first, ratios))


def likelihoods(
    values: IntArray, grid: FloatArray, c: float, rate: float, normal: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Likelihood of each value at each level, every row scaled to a largest entry of 1, and the scales' logs."""
    table = np.empty((values.size, grid.size))
    zero = _at_zero(rate, normal)
    _logs(values, grid, c, rate, normal, zero, table)
    levels, near, laws, base = _listed(values, grid, c, rate, normal)
    table[:, levels] = np.log(near @ laws.T + 1e-300) + (base[:, None] + zero)
    return table, _rescaled(table)


# Loops are spelled out: numba takes seconds to compile the assignment of a slice, and the same bits come of both.
@kernel
def _logs(
    values: IntArray,
    grid: FloatArray,
    c: float,
    rate: float,
    normal: float,
    zero: float,
    table: FloatArray,
) -> None:
    """Log-likelihoods of every value at every level whose counts are not listed."""
    n = values.size
    for k in range(grid.size):
        level = grid[k]
        v = level + (c * level) * (c * level)
        if 0.0 < v < GAUSSIAN_FROM:
            continue
        if normal > 0.0:
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
    levels, near, laws, _ = _listed(values, grid, c, rate, normal)
    counts = np.arange(laws.shape[1])
    whole, once, twice = (near @ (laws * power).T for power in (1, counts, counts * counts))
    whole += 1e-300
    first[:, levels] = once / whole
    second[:, levels] = np.maximum(twice / whole - first[:, levels] ** 2, 0.0)
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
    for k in range(1, grid.size):
        level = grid[k]
        v = level + (c * level) * (c * level)
        if v < GAUSSIAN_FROM:
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
