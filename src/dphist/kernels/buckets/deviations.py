"""Sums of absolute deviations of buckets of neighbouring counts, exact in integers.

About the mean the deviation is a fraction, so it is given on a grid: round(grid · Σ|x − mean|), halves up, with no
floating-point doubt. About the median it is an integer by itself (grid 1).

The sweep keeps a pointer into the sorted distinct values, just above the current centre, with the count and the sum
of everything below it. One more cell moves the centre a little and the pointer with it, so a row of buckets that
share their first cell costs a few steps a bucket, and no tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]


# Sums of values must stay below this, or `divide` could be off by more than one.
LARGEST_SUM = 2**50


def rank(values: IntArray) -> tuple[IntArray, NDArray[np.int32]]:
    """Sorted distinct values, and the place of every value among them."""
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, places.astype(np.int32).reshape(-1)


@kernel
def divide(numerator: int, divisor: int, inverse: float) -> tuple[Any, Any]:
    """Floor quotient and remainder by a multiplication with 1/divisor that is then put right: faster than dividing.

    For |numerator| < 2^51 the product is off by less than a half, so the floor is off by at most one.
    """
    quotient = np.int64(np.floor(numerator * inverse))
    remainder = numerator - quotient * divisor
    under = np.int64(remainder < 0)
    over = np.int64(remainder >= divisor)
    return quotient - under + over, remainder + (under - over) * divisor


@kernel
def on_grid(
    below: int, sum_below: int, floor_mean: int, remainder: int, length: int, inverse: float, grid: int
) -> Any:
    """round(grid · Σ|x − mean|): twice what lies below the mean, Σ(mean − x), whole part and fraction apart."""
    whole = 2 * grid * (below * floor_mean - sum_below)
    fraction, _ = divide(4 * grid * below * remainder + length, 2 * length, 0.5 * inverse)
    return whole + fraction


@kernel
def mean_row(
    values: IntArray,
    distinct: IntArray,
    place: NDArray[np.int32],
    prefix: IntArray,
    start: int,
    inverse: NDArray[np.float64],
    grid: int,
    tally: NDArray[np.int32],
    remainder: IntArray,
    out: IntArray,
) -> None:
    """Deviations about the mean of every bucket that begins at ``start``: ``out[m − 1]`` is for length m.

    ``prefix`` holds the running sums and ``inverse[m]`` = 1/m. Three passes: the means and the rounding are
    arithmetic without branches, so only the walk in between waits for anything.
    """
    lengths = len(values) - start
    top = len(distinct)
    for k in range(lengths):
        out[k], remainder[k] = divide(prefix[start + k + 1] - prefix[start], k + 1, inverse[k + 1])
    tally[:] = 0
    pointer = np.int64(place[start])
    below = np.int64(0)
    sum_below = np.int64(0)
    for k in range(lengths):
        x = values[start + k]
        tally[place[start + k]] += 1
        under = np.int64(place[start + k] < pointer)
        below += under
        sum_below += under * x
        mean = out[k]
        while pointer > 0 and distinct[pointer - 1] > mean:
            pointer -= 1
            count = np.int64(tally[pointer])
            below -= count
            sum_below -= count * distinct[pointer]
        while pointer < top and distinct[pointer] <= mean:
            count = np.int64(tally[pointer])
            below += count
            sum_below += count * distinct[pointer]
            pointer += 1
        out[k] = 2 * grid * (below * mean - sum_below)
        remainder[k] *= below
    for k in range(lengths):
        length = k + 1
        fraction, _ = divide(4 * grid * remainder[k] + length, 2 * length, 0.5 * inverse[length])
        out[k] += fraction


@kernel
def median_row(
    values: IntArray,
    distinct: IntArray,
    place: NDArray[np.int32],
    prefix: IntArray,
    start: int,
    tally: NDArray[np.int32],
    out: IntArray,
) -> None:
    """Deviations about the median of every bucket that begins at ``start``: ``out[m − 1]`` is for length m."""
    tally[:] = 0
    pointer = np.int64(place[start])
    below = np.int64(0)
    sum_below = np.int64(0)
    for k in range(len(values) - start):
        length = k + 1
        x = values[start + k]
        tally[place[start + k]] += 1
        under = np.int64(place[start + k] < pointer)
        below += under
        sum_below += under * x
        middle = k // 2
        while below > middle:
            pointer -= 1
            count = np.int64(tally[pointer])
            below -= count
            sum_below -= count * distinct[pointer]
        while below + tally[pointer] <= middle:
            count = np.int64(tally[pointer])
            below += count
            sum_below += count * distinct[pointer]
            pointer += 1
        total = prefix[start + length] - prefix[start]
        out[k] = total - 2 * sum_below + (2 * below - length) * distinct[pointer]


@kernel
def power_deviations(
    values: IntArray, distinct: IntArray, place: NDArray[np.int32], grid: int, about_median: bool
) -> IntArray:
    """Deviations of every bucket whose length is a power of two: row k holds length 2^k at each start.

    The window slides, so the centre moves little from one start to the next. Starts where the bucket would not fit
    hold 0 and must not be read.
    """
    n = len(values)
    rows = 1
    while (1 << rows) <= n:
        rows += 1
    out = np.zeros((rows, n), np.int64)
    tally = np.zeros(len(distinct), np.int64)
    top = len(distinct)
    for k in range(1, rows):
        length = 1 << k
        inverse = 1.0 / length
        middle = (length - 1) // 2
        tally[:] = 0
        total = 0
        for j in range(length):
            tally[place[j]] += 1
            total += values[j]
        pointer = 0
        below = 0
        sum_below = 0
        for i in range(n - length + 1):
            if about_median:
                while below > middle:
                    pointer -= 1
                    below -= tally[pointer]
                    sum_below -= tally[pointer] * distinct[pointer]
                while below + tally[pointer] <= middle:
                    below += tally[pointer]
                    sum_below += tally[pointer] * distinct[pointer]
                    pointer += 1
                out[k, i] = total - 2 * sum_below + (2 * below - length) * distinct[pointer]
            else:
                mean, remainder = divide(total, length, inverse)
                while pointer > 0 and distinct[pointer - 1] > mean:
                    pointer -= 1
                    below -= tally[pointer]
                    sum_below -= tally[pointer] * distinct[pointer]
                while pointer < top and distinct[pointer] <= mean:
                    below += tally[pointer]
                    sum_below += tally[pointer] * distinct[pointer]
                    pointer += 1
                out[k, i] = on_grid(below, sum_below, mean, remainder, length, inverse, grid)
            if i + length < n:
                leaving, entering = place[i], place[i + length]
                tally[leaving] -= 1
                tally[entering] += 1
                total += values[i + length] - values[i]
                if leaving < pointer:
                    below -= 1
                    sum_below -= values[i]
                if entering < pointer:
                    below += 1
                    sum_below += values[i + length]
    return out


@kernel
def bucket_deviations(
    values: IntArray, starts: IntArray, stops: IntArray, grid: int, about_median: bool
) -> IntArray:
    """Deviations of the given buckets, each straight from its cells: for the buckets of a tree, O(n) a level."""
    out = np.zeros(len(starts), np.int64)
    for b in range(len(starts)):
        length = stops[b] - starts[b]
        if length < 2:
            continue
        cells = values[starts[b] : stops[b]]
        if about_median:
            ordered = np.sort(cells)
            half = length // 2
            for j in range(half):
                out[b] += ordered[length - 1 - j] - ordered[j]
        else:
            total = 0
            for j in range(length):
                total += cells[j]
            inverse = 1.0 / length
            mean, remainder = divide(total, length, inverse)
            below = 0
            sum_below = 0
            for j in range(length):
                if cells[j] <= mean:
                    below += 1
                    sum_below += cells[j]
            out[b] = on_grid(below, sum_below, mean, remainder, length, inverse, grid)
    return out
