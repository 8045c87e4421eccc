"""A level that bends gently along the cells: Kalman's filter, and back again.

The state of a cell is its level and its slope (the local linear trend of structural time series, Harvey 1989). From one
cell to the next the level moves by the slope, and both by a normal step of their own; a value is the level times the
profile of its cell, with normal noise.

Everything here reads values that are already private. Arrays in, arrays out, sums one after the other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]

# What is known of the first cell: its level within ten times itself, its slope within a tenth of that level.
_FIRST_LEVEL = 100.0
_FIRST_SLOPE = 0.01


@kernel
def filtered(
    values: FloatArray,
    profile: FloatArray,
    noise: FloatArray,
    level: FloatArray,
    bend: float,
    drift: float,
    kept: FloatArray,
) -> float:
    """Log-evidence of the values; their filtered states where ``kept`` has room, five numbers before a value and after.

    Args:
        values: What was seen of each cell.
        profile: How many times its level a cell is expected to hold.
        noise: Variance of each value about that.
        level: About how high the level is at each cell: steps are parts of it.
        bend: Variance of a slope's step, as a part of the level's square.
        drift: Variance of a level's own step, as a part of its square.
        kept: Nothing, or room for ten numbers a cell.
    """
    height, slope = level[0], 0.0
    own = _FIRST_LEVEL * level[0] * level[0]
    both = 0.0
    sloping = _FIRST_SLOPE * level[0] * level[0]
    evidence = 0.0
    for i in range(values.size):
        if i > 0:
            square = level[i] * level[i]
            height += slope
            own += 2.0 * both + sloping + drift * square
            both += sloping
            sloping += bend * square
        if kept.shape[0] > 0:
            kept[i, 0] = height
            kept[i, 1] = slope
            kept[i, 2] = own
            kept[i, 3] = both
            kept[i, 4] = sloping
        s = profile[i]
        total = s * s * own + noise[i]
        off = values[i] - s * height
        evidence -= 0.5 * (math.log(total) + off * off / total)
        to_height = own * s / total
        to_slope = both * s / total
        height += to_height * off
        slope += to_slope * off
        sloping -= to_slope * s * both
        both -= to_height * s * both
        own -= to_height * s * own
        if kept.shape[0] > 0:
            kept[i, 5] = height
            kept[i, 6] = slope
            kept[i, 7] = own
            kept[i, 8] = both
            kept[i, 9] = sloping
    return evidence


@kernel
def smoothed(kept: FloatArray, mean: FloatArray, variance: FloatArray) -> None:
    """Every cell's level given all values (Rauch, Tung and Striebel), from what `filtered` kept."""
    last = kept.shape[0] - 1
    height, slope = kept[last, 5], kept[last, 6]
    own, both, sloping = kept[last, 7], kept[last, 8], kept[last, 9]
    mean[last] = height
    variance[last] = own
    for j in range(last):
        i = last - 1 - j
        a, b, c = kept[i + 1, 2], kept[i + 1, 3], kept[i + 1, 4]
        # Covariances of this cell's state with the next one's, times the inverse of that one's variance.
        x00 = kept[i, 7] + kept[i, 8]
        x01 = kept[i, 8]
        x10 = kept[i, 8] + kept[i, 9]
        x11 = kept[i, 9]
        inverse = a * c - b * b
        if inverse > 1e-12 * a * c:
            g00 = (x00 * c - x01 * b) / inverse
            g01 = (x01 * a - x00 * b) / inverse
            g10 = (x10 * c - x11 * b) / inverse
            g11 = (x11 * a - x10 * b) / inverse
        else:
            g00, g01, g10, g11 = x00 / a, 0.0, x10 / a, 0.0
        ahead = height - kept[i + 1, 0]
        aslant = slope - kept[i + 1, 1]
        height = kept[i, 5] + g00 * ahead + g01 * aslant
        slope = kept[i, 6] + g10 * ahead + g11 * aslant
        a, b, c = own - a, both - b, sloping - c
        h00, h01 = g00 * a + g01 * b, g00 * b + g01 * c
        h10, h11 = g10 * a + g11 * b, g10 * b + g11 * c
        own = kept[i, 7] + h00 * g00 + h01 * g01
        both = kept[i, 8] + h00 * g10 + h01 * g11
        sloping = kept[i, 9] + h10 * g10 + h11 * g11
        mean[i] = height
        variance[i] = own


@kernel
def likeliest_period(
    weight: FloatArray, pull: FloatArray, longest: int, shortest: int, priors: FloatArray, price: float
) -> tuple[int, int]:
    """The period that explains most of how values depart, and which prior of departures; 1 if none does.

    Departures of a period's cells are normal about nothing before they are seen, so its evidence is a closed form. Its
    logarithms take longest, and hardly any period is heard even if all its cells told as little as the least.

    Args:
        weight: How much each cell says, as a precision.
        pull: Its departure, times that.
        longest: The longest period that is tried.
        shortest: The shortest.
        priors: Variances of departures.
        price: What a period of p cells must explain beyond 2 log p, in nats.
    """
    best, found, which = 0.0, 1, 0
    weights, pulls = np.empty(longest), np.empty(longest)
    for period in range(shortest, longest + 1):
        for k in range(period):
            weights[k] = 0.0
            pulls[k] = 0.0
        for begin in range(0, weight.size, period):
            # Numbered from their own beginning: sums of signed numbers would be looked at for their sign.
            some, other = weight[begin : begin + period], pull[begin : begin + period]
            for k in range(some.size):
                weights[k] += some[k]
                pulls[k] += other[k]
        least = weights[0]
        for k in range(1, period):
            least = min(least, weights[k])
        cost = 2.0 * math.log(float(period)) + price
        for one in range(priors.size):
            prior = priors[one]
            told = 0.0
            for k in range(period):
                told += prior * (pulls[k] * pulls[k]) / (1.0 + prior * weights[k])
            if 0.5 * (told - period * math.log1p(prior * least)) - cost <= best:
                continue
            taken = 0.0
            for k in range(period):
                taken += math.log1p(prior * weights[k])
            nats = 0.5 * (told - taken) - cost
            if nats > best:
                best, found, which = nats, period, one
    return found, which
