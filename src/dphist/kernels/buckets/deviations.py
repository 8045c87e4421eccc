"""Sums of absolute deviations of buckets of neighbouring counts, exact in integers.

About the mean the deviation is a fraction, so it is given on a grid: round(grid · Σ|x − mean|), halves up, or floored,
with no floating-point doubt. About the median it is an integer by itself (grid 1).

A sweep keeps a pointer into the sorted distinct values, just above the current centre, with the count and the sum
of everything below it. One more cell, or one less, moves the centre a little and the pointer with it, so a row of
buckets costs a few steps a bucket, and no tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]

# Sums of values must stay below this: what a deviation is multiplied by on the way has 12 bits of the 64 left.
LARGEST_SUM = 2**50


def rank(values: IntArray) -> tuple[IntArray, IntArray]:
    """Sorted distinct values, and the place of every value among them."""
    distinct, places = np.unique(values, return_inverse=True)
    return distinct, places.reshape(-1)


@kernel
def _on_grid(below: Any, sum_below: Any, total: Any, length: int, grid: int, half: int) -> Any:
    """Grid · Σ|x − mean| is twice what lies below the mean: rounded with a ``half`` of 1, floored with 0."""
    mean, rest = total // length, total % length
    return 2 * grid * (below * mean - sum_below) + (4 * grid * below * rest + half * length) // (2 * length)


@kernel
def _follow(
    distinct: IntArray,
    tally: IntArray,
    pointer: Any,
    below: Any,
    sum_below: Any,
    total: Any,
    length: int,
    about_median: bool,
) -> tuple[Any, Any, Any]:
    """Move the pointer to the centre: below it are all values up to the mean, or no more than half of the cells."""
    if about_median:
        middle = (length - 1) // 2
        while below > middle:
            pointer -= 1
            below -= tally[pointer]
            sum_below -= tally[pointer] * distinct[pointer]
        while below + tally[pointer] <= middle:
            below += tally[pointer]
            sum_below += tally[pointer] * distinct[pointer]
            pointer += 1
        return pointer, below, sum_below
    mean = total // length
    while pointer > 0 and distinct[pointer - 1] > mean:
        pointer -= 1
        below -= tally[pointer]
        sum_below -= tally[pointer] * distinct[pointer]
    while pointer < len(distinct) and distinct[pointer] <= mean:
        below += tally[pointer]
        sum_below += tally[pointer] * distinct[pointer]
        pointer += 1
    return pointer, below, sum_below


@kernel
def grow(
    values: IntArray,
    distinct: IntArray,
    place: IntArray,
    first: int,
    size: int,
    step: int,
    grid: int,
    half: int,
    about_median: bool,
    tally: IntArray,
    out: IntArray,
) -> None:
    """Deviations of the first 1, 2, … ``size`` cells from ``first`` on in direction ``step``, to ``out``."""
    tally[: len(distinct)] = 0
    pointer = place[first]
    below = sum_below = total = np.int64(0)
    for k in range(size):
        x, here = values[first + k * step], place[first + k * step]
        tally[here] += 1
        total += x
        if here < pointer:
            below += 1
            sum_below += x
        pointer, below, sum_below = _follow(
            distinct, tally, pointer, below, sum_below, total, k + 1, about_median
        )
        if about_median:
            out[k] = total - 2 * sum_below + (2 * below - k - 1) * distinct[pointer]
        else:
            out[k] = _on_grid(below, sum_below, total, k + 1, grid, half)


@kernel
def power_deviations(
    values: IntArray, distinct: IntArray, place: IntArray, grid: int, about_median: bool
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
    for k in range(1, rows):
        length = 1 << k
        tally = np.zeros(len(distinct), np.int64)
        pointer = below = sum_below = total = np.int64(0)
        for end in range(n):
            tally[place[end]] += 1
            total += values[end]
            if place[end] < pointer:
                below += 1
                sum_below += values[end]
            start = end - length + 1
            if start < 0:
                continue
            pointer, below, sum_below = _follow(
                distinct, tally, pointer, below, sum_below, total, length, about_median
            )
            if about_median:
                out[k, start] = total - 2 * sum_below + (2 * below - length) * distinct[pointer]
            else:
                out[k, start] = _on_grid(below, sum_below, total, length, grid, 1)
            tally[place[start]] -= 1
            total -= values[start]
            if place[start] < pointer:
                below -= 1
                sum_below -= values[start]
    return out


@kernel
def bucket_deviations(
    values: IntArray, starts: IntArray, stops: IntArray, grid: int, half: int, about_median: bool
) -> IntArray:
    """Deviations of the given buckets, each straight from its cells: for the buckets of a tree, O(n) a level."""
    out = np.zeros(len(starts), np.int64)
    for b in range(len(starts)):
        cells = values[starts[b] : stops[b]]
        length = len(cells)
        if about_median:
            ordered = np.sort(cells)
            for j in range(length // 2):
                out[b] += ordered[length - 1 - j] - ordered[j]
        else:
            total = cells.sum()
            mean = total // length
            below = sum_below = np.int64(0)
            for x in cells:
                if x <= mean:
                    below += 1
                    sum_below += x
            out[b] = _on_grid(below, sum_below, total, length, grid, half)
    return out


def bisection_errors(values: IntArray, starts: IntArray, grid: int) -> IntArray:
    """Deviation of every part about its mean left whole, and cut after its first 1, 2, … cells; each run's floored.

    A part of s cells has s entries, at ``starts[p]``: entry 0 is the whole part, entry i the sum of the
    deviations of its first i cells and of the rest.
    """
    sizes = np.diff(starts)
    part = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((values, part))
    ascending = values[order]
    fresh = np.append(True, (np.diff(ascending) != 0) | (np.diff(part) != 0))[: values.size]
    number = np.cumsum(fresh) - 1
    place = np.empty(values.size, dtype=np.int64)
    place[order] = number - number[starts[part]]
    bounds = np.searchsorted(part[fresh], np.arange(starts.size))
    return _bisection_errors(values, starts, ascending[fresh], bounds, place, grid)


@kernel
def _bisection_errors(
    values: IntArray, starts: IntArray, distinct: IntArray, bounds: IntArray, place: IntArray, grid: int
) -> IntArray:
    """`bisection_errors`; the distinct values of part p are those from ``bounds[p]`` on."""
    out = np.empty(len(values), np.int64)
    tally = np.empty(len(distinct), np.int64)
    heads, tails = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    for p in range(len(starts) - 1):
        a, b = starts[p], starts[p + 1]
        if b == a:
            continue
        own = distinct[bounds[p] : bounds[p + 1]]
        grow(values, own, place, a, b - a, 1, grid, 0, False, tally, heads)
        grow(values, own, place, b - 1, b - a, -1, grid, 0, False, tally, tails)
        out[a] = heads[b - a - 1]
        for i in range(1, b - a):
            out[a + i] = heads[i - 1] + tails[b - a - i - 1]
    return out
