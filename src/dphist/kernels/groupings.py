"""The cheapest way to cut a row of cells into buckets, exactly, by dynamic programming.

``best[j]`` is the least cost of the first j cells. Costs are pushed forward from each start in turn, so a row of
bucket costs is used and forgotten and memory stays linear. Among equal costs the smallest last cut wins,
recursively: starts come in increasing order and only a strictly smaller cost replaces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel
from dphist.kernels.deviations import mean_row, median_row, rank

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Worse than any cost, with room to add to it.
UNREACHED = np.int64(2**62)


@kernel
def starts_of(cut: IntArray) -> IntArray:
    """Where the buckets start, read back from the last cut before each end."""
    n = len(cut) - 1
    count = 0
    j = n
    while j > 0:
        j = cut[j]
        count += 1
    starts = np.empty(count, np.int64)
    j = n
    while j > 0:
        j = cut[j]
        count -= 1
        starts[count] = j
    return starts


@kernel
def push_deviation_rows(
    values: IntArray,
    distinct: IntArray,
    place: NDArray[np.int32],
    prefix: IntArray,
    first: int,
    last: int,
    grid: int,
    about_median: bool,
    price: int,
    short_noise: IntArray,
    long_noise: IntArray,
    best: IntArray,
    cut: IntArray,
) -> None:
    """Push every bucket that starts in ``first`` … ``last − 1``: its deviation, its price and its noise.

    ``short_noise[m − 1, i]`` belongs to the bucket of length m at start i. Buckets longer than its rows take theirs
    from ``long_noise`` in order. With no rows and no long noise the costs are used as they are.
    """
    n = len(values)
    shorts = short_noise.shape[0]
    taken = 0
    noised = len(long_noise) > 0
    inverse = np.zeros(n + 1)
    for m in range(1, n + 1):
        inverse[m] = 1.0 / m
    tally = np.zeros(len(distinct), np.int32)
    remainder = np.empty(n, np.int64)
    row = np.empty(n, np.int64)
    for i in range(first, last):
        if about_median:
            median_row(values, distinct, place, prefix, i, tally, row)
        else:
            mean_row(values, distinct, place, prefix, i, inverse, grid, tally, remainder, row)
        base = best[i] + price
        near = min(shorts, n - i)
        for m in range(near):
            row[m] += short_noise[m, i]
        if noised:
            for m in range(near, n - i):
                row[m] += long_noise[taken + m - near]
            taken += n - i - near
        for m in range(n - i):
            cost = base + row[m]
            if cost < best[i + m + 1]:
                best[i + m + 1] = cost
                cut[i + m + 1] = i


def deviation_grouping(values: IntArray, price: int, *, grid: int, about_median: bool) -> IntArray:
    """Starts of the cheapest buckets at cost Σ|x − centre| + price, no noise: for values that are already public."""
    n = len(values)
    distinct, place = rank(values)
    prefix = np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])
    best = np.full(n + 1, UNREACHED, np.int64)
    cut = np.zeros(n + 1, np.int64)
    best[0] = 0
    none = np.zeros((0, 0), np.int64)
    push_deviation_rows(
        values, distinct, place, prefix, 0, n, grid, about_median, price, none, none.reshape(-1), best, cut
    )
    starts: IntArray = starts_of(cut)
    return starts


@kernel
def power_grouping(costs: IntArray, price: int) -> IntArray:
    """Starts of the cheapest buckets when lengths are powers of two; ``costs[k, i]`` is length 2^k at start i."""
    rows, n = costs.shape
    best = np.full(n + 1, UNREACHED, np.int64)
    cut = np.zeros(n + 1, np.int64)
    best[0] = 0
    for i in range(n):
        base = best[i] + price
        for k in range(rows):
            end = i + (1 << k)
            if end > n:
                break
            cost = base + costs[k, i]
            if cost < best[end]:
                best[end] = cost
                cut[end] = i
    return starts_of(cut)


@kernel
def tree_grouping(parent: IntArray, costs: IntArray, price: int) -> IntArray:
    """Which nodes become buckets when buckets are subtrees: true where a node is kept whole.

    Bottom-up, a node is kept when it costs no more than the best of its children together; then the topmost kept
    nodes are the buckets. Parents come before children in the numbering.
    """
    m = len(parent)
    below = np.zeros(m, np.int64)
    leaf = np.ones(m, np.bool_)
    whole = np.zeros(m, np.int64)
    for i in range(m - 1, -1, -1):
        own = costs[i] + price
        if leaf[i] or own <= below[i]:
            whole[i] = 1
            least = own
        else:
            least = below[i]
        if parent[i] >= 0:
            below[parent[i]] += least
            leaf[parent[i]] = False
    covered = np.zeros(m, np.bool_)
    for i in range(m):
        p = parent[i]
        if p >= 0 and (covered[p] or whole[p] == 1):
            covered[i] = True
            whole[i] = 0
    return whole


@kernel
def squared_grouping(values: FloatArray, prices: FloatArray) -> IntArray:
    """Starts of the cheapest buckets at cost Σ(x − mean)² + prices[length], every length allowed.

    Prefix sums give each cost in O(1). Values are centred first, so the sums of squares do not swallow the differences.
    """
    n = len(values)
    centre = 0.0
    for i in range(n):
        centre += values[i] / n
    total = np.zeros(n + 1)
    square = np.zeros(n + 1)
    for i in range(n):
        x = values[i] - centre
        total[i + 1] = total[i] + x
        square[i + 1] = square[i] + x * x
    inverse = np.zeros(n + 1)
    for m in range(1, n + 1):
        inverse[m] = 1.0 / m
    best = np.full(n + 1, np.inf)
    cut = np.zeros(n + 1, np.int64)
    best[0] = 0.0
    for i in range(n):
        base = best[i] - square[i]
        from_here = total[i]
        for j in range(i + 1, n + 1):
            t = total[j] - from_here
            cost = base + square[j] - t * t * inverse[j - i] + prices[j - i]
            if cost < best[j]:
                best[j] = cost
                cut[j] = i
    return starts_of(cut)


@kernel
def squared_power_grouping(values: FloatArray, prices: FloatArray) -> IntArray:
    """Like ``squared_grouping`` with lengths that are powers of two: O(n log n)."""
    n = len(values)
    centre = 0.0
    for i in range(n):
        centre += values[i] / n
    total = np.zeros(n + 1)
    square = np.zeros(n + 1)
    for i in range(n):
        x = values[i] - centre
        total[i + 1] = total[i] + x
        square[i + 1] = square[i] + x * x
    best = np.full(n + 1, np.inf)
    cut = np.zeros(n + 1, np.int64)
    best[0] = 0.0
    for i in range(n):
        m = 1
        while i + m <= n:
            t = total[i + m] - total[i]
            cost = best[i] + max(0.0, square[i + m] - square[i] - t * t / m) + prices[m]
            if cost < best[i + m]:
                best[i + m] = cost
                cut[i + m] = i
            m *= 2
    return starts_of(cut)


@kernel
def squared_tree_grouping(
    parent: IntArray, values: FloatArray, lows: IntArray, highs: IntArray, prices: FloatArray
) -> IntArray:
    """Which nodes become buckets at cost Σ(x − mean)² + prices[node]; as ``tree_grouping``, on noisy values."""
    m = len(parent)
    n = len(values)
    total = np.zeros(n + 1)
    square = np.zeros(n + 1)
    for i in range(n):
        total[i + 1] = total[i] + values[i]
        square[i + 1] = square[i] + values[i] * values[i]
    below = np.zeros(m)
    leaf = np.ones(m, np.bool_)
    whole = np.zeros(m, np.int64)
    for i in range(m - 1, -1, -1):
        length = highs[i] - lows[i]
        t = total[highs[i]] - total[lows[i]]
        own = max(0.0, square[highs[i]] - square[lows[i]] - t * t / length) + prices[i]
        if leaf[i] or own <= below[i]:
            whole[i] = 1
            least = own
        else:
            least = below[i]
        if parent[i] >= 0:
            below[parent[i]] += least
            leaf[parent[i]] = False
    covered = np.zeros(m, np.bool_)
    for i in range(m):
        p = parent[i]
        if p >= 0 and (covered[p] or whole[p] == 1):
            covered[i] = True
            whole[i] = 0
    return whole
