"""What other cells say of one: a prior of levels that all cells left out suggest, everywhere or nearby.

Every cell looks at few levels: none at all, and those its value may come of. Counts are Poisson about their level, but
for a half percent of it, and discrete Laplace noise lies on top. A cell's prior is what the other cells believe of
themselves, so that it hardly hears its own echo (a collapsed mean field, Asuncion et al. 2009).

Everything here reads values that are already private. Arrays in, arrays out, sums one after the other.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_once_hot
from dphist.kernels.levels.likelihood import (
    GAUSSIAN_FROM,
    NEGLIGIBLE,
    _gaussian_halves,
    _truncated,
    likelihoods,
    moments,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Levels lie one deviation of a value apart, but those far below the noise: these grow by a ratio from a small part of
# it. A value looks at so many levels on either side.
_LOW, _RATIO, _SIDE = 0.02, 1.6, 6
# The least deviation of the noise that is reckoned with: at a large ε whole numbers are next to exact.
_LEAST = 0.1
# How far counts scatter about their level beyond sampling, as a part of it: so that few levels reach high.
_SCATTER = 0.005
# What no cell nearby has seen is not impossible.
_NEVER = 1e-300


class Looks(NamedTuple):
    """What distinct values say of the levels that they look at: zero, and a row of levels from some level on."""

    starts: IntArray
    likely: FloatArray
    """How likely the value is at each, beside the likeliest; by value and level."""
    mean: FloatArray
    """What count is expected at each."""
    variance: FloatArray
    best: FloatArray
    """Log-likelihood at the likeliest level."""


def level_steps(values: IntArray, rate: float) -> tuple[FloatArray, int]:
    """The levels that counts may have, the first of them zero; and how many of them are far below the noise."""
    noise = max(2.0 * math.exp(-rate) / math.expm1(-rate) ** 2, _LEAST * _LEAST)
    deviation = math.sqrt(noise)
    levels, level = [0.0], _LOW * deviation
    while level < 0.7 * deviation:
        levels.append(level)
        level *= _RATIO
    low = len(levels) - 1
    top, level = float(values.max()) + deviation, deviation
    while level < top:
        levels.append(level)
        level += math.sqrt(noise + level + (_SCATTER * level) ** 2)
    levels.append(level)
    return np.array(levels), low


def looked_at(distinct: IntArray, levels: FloatArray, low: int, rate: float) -> Looks:
    """Have each of some values, in order, look at the levels it may come of."""
    nearest = np.searchsorted(levels, distinct)
    starts = np.where(nearest - _SIDE <= low + 1, 1, nearest - _SIDE).astype(np.int64)
    width = 2 * _SIDE + 2 + low
    # Where counts are few enough to be listed one by one.
    listed = int(np.searchsorted(levels + (_SCATTER * levels) ** 2, GAUSSIAN_FROM))
    few = distinct[: max(int(np.searchsorted(starts, listed)), 1)]
    table, scales = likelihoods(few, levels[:listed], _SCATTER, 0.0, rate)
    first, second = moments(few, levels[:listed], _SCATTER, 0.0, rate, table)
    likely, mean, variance = (np.empty((distinct.size, width)) for _ in range(3))
    looks = Looks(starts, likely, mean, variance, np.empty(distinct.size))
    _look(distinct, levels, rate, table, scales, first, second, *looks)
    return looks


def _by_look(each: float) -> Any:
    """About how many microseconds Python takes for a look of a value, or of a cell, at a level."""

    def cost(cells: NDArray[Any], *others: Any) -> float:
        return (
            each * cells.size * max(int(other.shape[1]) for other in others if getattr(other, "ndim", 0) == 2)
        )

    return cost


@kernel_once_hot(_by_look(6.0))
def _look(
    values: IntArray,
    levels: FloatArray,
    rate: float,
    table: FloatArray,
    scales: FloatArray,
    first: FloatArray,
    second: FloatArray,
    starts: IntArray,
    likely: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    best: FloatArray,
) -> None:
    none = math.log(math.tanh(0.5 * rate))
    base = math.log(0.5 * rate)
    listed = table.shape[1]
    for i in range(values.size):
        likely[i, 0] = none - rate * abs(values[i])
        mean[i, 0] = 0.0
        variance[i, 0] = 0.0
        high = likely[i, 0]
        for w in range(1, likely.shape[1]):
            k = starts[i] + w - 1
            mean[i, w] = 0.0
            variance[i, w] = 0.0
            likely[i, w] = -math.inf
            if k >= levels.size:
                continue
            if k < listed:
                if table[i, k] > 0.0:
                    likely[i, w] = math.log(table[i, k]) + scales[i]
                    mean[i, w] = first[i, k]
                    variance[i, w] = second[i, k]
            else:
                level = levels[k]
                v = level + (_SCATTER * level) * (_SCATTER * level)
                s = math.sqrt(v)
                d = values[i] - level
                shift, below, above, lower, upper = _gaussian_halves(d, v, rate)
                likely[i, w] = base + shift + math.log(below + above)
                part = below / (below + above)
                m1, v1 = _truncated((d - rate * v) / s, lower)
                m2, v2 = _truncated(-(d + rate * v) / s, upper)
                m1 = values[i] - s * m1
                m2 = values[i] + s * m2
                m = part * m1 + (1.0 - part) * m2
                square = part * (m1 * m1 + v * v1) + (1.0 - part) * (m2 * m2 + v * v2)
                mean[i, w] = max(m, 0.0)
                variance[i, w] = max(square - m * m, 0.0)
            high = max(high, likely[i, w])
        best[i] = high
        for w in range(likely.shape[1]):
            gap = likely[i, w] - high
            likely[i, w] = math.exp(gap) if gap > NEGLIGIBLE else 0.0


@kernel_once_hot(_by_look(4.0))
def settle(
    rows: IntArray, starts: IntArray, likely: FloatArray, prior: FloatArray, rounds: int, believed: FloatArray
) -> FloatArray:
    """Have every cell believe by what all others believe and a prior, in rounds; gives how many cells hold each level.

    Args:
        rows: Which of the distinct values each cell has.
        starts: The first level each of these looks at beside zero.
        likely: As `Looks` has it.
        prior: How many cells' worth of each level there are before anything is seen.
        rounds: How often every cell is looked at, after a first time without the others.
        believed: How probable every cell finds its levels; filled.
    """
    held = np.zeros(prior.size)
    width = likely.shape[1]
    for turn in range(rounds + 1):
        for i in range(rows.size):
            row = rows[i]
            total = 0.0
            for w in range(width):
                k = starts[row] + w - 1 if w > 0 else 0
                x = 0.0
                if likely[row, w] > 0.0:
                    others = 0.0
                    if turn > 0:
                        held[k] -= believed[i, w]
                        others = max(held[k], 0.0)
                    x = (others + prior[k]) * likely[row, w]
                believed[i, w] = x
                total += x
            total = 1.0 / total
            for w in range(width):
                if likely[row, w] > 0.0:
                    k = starts[row] + w - 1 if w > 0 else 0
                    believed[i, w] *= total
                    if turn > 0:
                        held[k] += believed[i, w]
        if turn == 0:
            for i in range(rows.size):
                row = rows[i]
                for w in range(width):
                    if likely[row, w] > 0.0:
                        held[starts[row] + w - 1 if w > 0 else 0] += believed[i, w]
    return held


@kernel_once_hot(_by_look(2.0))
def by_all(
    rows: IntArray,
    starts: IntArray,
    likely: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    best: FloatArray,
    believed: FloatArray,
    held: FloatArray,
    prior: FloatArray,
    told: FloatArray,
) -> None:
    """What all other cells, and the prior, make of each: log-probability of its value, mean and variance of its count.

    These are the three rows of ``told``. The others are as `settle` has them.
    """
    whole = rows.size - 1.0
    for k in range(prior.size):
        whole += prior[k]
    for i in range(rows.size):
        row = rows[i]
        total = 0.0
        m = 0.0
        square = 0.0
        for w in range(likely.shape[1]):
            if likely[row, w] > 0.0:
                k = starts[row] + w - 1 if w > 0 else 0
                x = (max(held[k] - believed[i, w], 0.0) + prior[k]) * likely[row, w]
                total += x
                m += x * mean[row, w]
                square += x * (variance[row, w] + mean[row, w] * mean[row, w])
        told[0, i] = math.log(total / whole) + best[row]
        told[1, i] = m / total
        told[2, i] = max(square / total - told[1, i] * told[1, i], 0.0)


@kernel_once_hot(_by_look(4.0))
def by_near(
    rows: IntArray,
    starts: IntArray,
    likely: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    best: FloatArray,
    believed: FloatArray,
    held: FloatArray,
    fade: float,
    told: FloatArray,
) -> None:
    """The same of the other cells nearby: one ``fade`` less for every cell farther away."""
    n = rows.size
    width = likely.shape[1]
    heard = np.zeros(held.size)
    last = np.zeros(held.size, dtype=np.int64)
    faded = np.empty(n)
    faded[0] = 1.0
    for i in range(1, n):
        faded[i] = faded[i - 1] * fade
    before = np.empty((n, width))
    for i in range(n):
        row = rows[i]
        for w in range(width):
            if likely[row, w] > 0.0:
                k = starts[row] + w - 1 if w > 0 else 0
                x = heard[k] * faded[i - last[k]]
                before[i, w] = x
                heard[k] = x + believed[i, w]
                last[k] = i
    for k in range(held.size):
        heard[k] = 0.0
        last[k] = n - 1
    for back in range(n):
        i = n - 1 - back
        row = rows[i]
        total = 0.0
        m = 0.0
        square = 0.0
        for w in range(width):
            if likely[row, w] > 0.0:
                k = starts[row] + w - 1 if w > 0 else 0
                x = heard[k] * faded[last[k] - i]
                heard[k] = x + believed[i, w]
                last[k] = i
                x = (before[i, w] + x) * likely[row, w]
                total += x
                m += x * mean[row, w]
                square += x * (variance[row, w] + mean[row, w] * mean[row, w])
        weight = fade * ((1.0 - faded[i]) + (1.0 - faded[back])) / (1.0 - fade)
        told[0, i] = math.log(total / weight + _NEVER) + best[row]
        told[1, i] = m / total if total > 0.0 else 0.0
        told[2, i] = max(square / total - told[1, i] * told[1, i], 0.0) if total > 0.0 else 0.0


@kernel_once_hot(lambda logs, prior, weights, rounds: 0.3 * rounds * logs.size)
def stack(logs: FloatArray, prior: FloatArray, weights: FloatArray, rounds: int) -> None:
    """Weights of some laws in their mixture under which the values are likeliest, by expectation–maximisation.

    Args:
        logs: What each law says of each value, as logarithms; by value and law.
        prior: How many values' worth each law has before.
        weights: Where they begin; filled.
        rounds: How many.
    """
    n, laws = logs.shape
    likely = np.empty((n, laws))
    for i in range(n):
        high = logs[i, 0]
        for k in range(1, laws):
            high = max(high, logs[i, k])
        for k in range(laws):
            likely[i, k] = math.exp(logs[i, k] - high)
    often = np.empty(laws)
    for _ in range(rounds):
        for k in range(laws):
            often[k] = prior[k]
        for i in range(n):
            total = 0.0
            for k in range(laws):
                total += weights[k] * likely[i, k]
            for k in range(laws):
                often[k] += weights[k] * likely[i, k] / total
        total = 0.0
        for k in range(laws):
            total += often[k]
        for k in range(laws):
            weights[k] = often[k] / total
