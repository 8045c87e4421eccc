"""The cheapest way to cut a row of cells into buckets, exactly, by dynamic programming.

``best[j]`` is the least cost of the first j cells. Costs are pushed forward from each start in turn, so a row of
bucket costs is used and forgotten and memory stays linear. Among equal costs the smallest last cut wins,
recursively: starts come in increasing order and only a strictly smaller cost replaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.buckets.deviations import grow, rank
from dphist.kernels.compile import kernel

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
    place: IntArray,
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
    tally = np.empty(len(distinct), np.int64)
    row = np.empty(n, np.int64)
    for i in range(first, last):
        grow(values, distinct, place, i, n - i, 1, grid, 1, about_median, tally, row)
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
    best = np.full(n + 1, UNREACHED, np.int64)
    cut = np.zeros(n + 1, np.int64)
    best[0] = 0
    none = np.zeros((0, 0), np.int64)
    push_deviation_rows(
        values, *rank(values), 0, n, grid, about_median, price, none, none.reshape(-1), best, cut
    )
    starts: IntArray = starts_of(cut)
    return starts


@kernel
def prefix_squares(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Running sums of the values and of their squares, the squares with a second word for what rounding loses.

    One huge value would otherwise swallow the differences among small ones behind it. Values are moved by their
    median first, made whole so that sums of integers stay exact.
    """
    n = len(values)
    centre = np.floor(np.sort(values)[n // 2])
    total = np.zeros(n + 1)
    square = np.zeros(n + 1)
    lost = np.zeros(n + 1)
    for i in range(n):
        x = values[i] - centre
        total[i + 1] = total[i] + x
        a, b = square[i], x * x
        s = a + b
        back = s - a
        square[i + 1] = s
        lost[i + 1] = lost[i] + ((a - (s - back)) + (b - back))
    return total, square, lost


@kernel
def squared_grouping(values: FloatArray, prices: FloatArray) -> IntArray:
    """Starts of the cheapest buckets at cost Σ(x − mean)² + prices[length], every length allowed: quadratic time."""
    n = len(values)
    total, square, lost = prefix_squares(values)
    best, cut = np.full(n + 1, np.inf), np.zeros(n + 1, np.int64)
    best[0] = 0.0
    for i in range(n):
        for j in range(i + 1, n + 1):
            whole = total[j] - total[i]
            spread = ((square[j] - square[i]) + (lost[j] - lost[i])) - whole * whole * (1.0 / (j - i))
            cost = best[i] + (max(spread, 0.0) + prices[j - i])
            if cost < best[j]:
                best[j], cut[j] = cost, i
    return starts_of(cut)


@kernel
def power_grouping(costs: NDArray[Any], price: int, worst: Any = UNREACHED) -> IntArray:
    """Starts of the cheapest buckets when lengths are powers of two; ``costs[k, i]`` is length 2^k at start i."""
    rows, n = costs.shape
    best = np.full(n + 1, worst, costs.dtype)
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


def nested_buckets(n: int, lengths: tuple[int, ...]) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Parents, lows, highs and levels of a tree's blocks over n cells; each length is a multiple of the next.

    The last blocks end by the last cell. A block that covers the very cells of the block above it is that block, so
    no bucket is there twice. The finest blocks become the leaves.
    """
    parents, lows, highs, levels = [], [], [], []
    made = 0
    above = np.zeros(0, np.int64)
    above_length = 0
    for level, length in enumerate(lengths):
        low = np.arange(0, n, length, dtype=np.int64)
        high = np.minimum(low + length, n)
        if made == 0:
            parent = np.full(low.size, -1, np.int64)
            fresh = np.ones(low.size, np.bool_)
        else:
            over = low // above_length
            parent = above[over]
            fresh = (low != over * above_length) | (high != np.minimum((over + 1) * above_length, n))
        node = np.where(fresh, made + np.cumsum(fresh) - 1, parent)
        parents.append(parent[fresh])
        lows.append(low[fresh])
        highs.append(high[fresh])
        levels.append(np.full(int(fresh.sum()), level, np.int64))
        made += int(fresh.sum())
        above, above_length = node, length
    return np.concatenate(parents), np.concatenate(lows), np.concatenate(highs), np.concatenate(levels)


@kernel
def tree_grouping(parent: IntArray, costs: NDArray[Any]) -> IntArray:
    """Which nodes become buckets when buckets are subtrees: 1 where a node is kept whole, else 0.

    Bottom-up, a node is kept when it costs no more than the best of its children together; then the topmost kept
    nodes are the buckets. Parents come before children in the numbering.
    """
    m = len(parent)
    below = np.zeros_like(costs)
    leaf = np.ones(m, np.bool_)
    whole = np.zeros(m, np.int64)
    for i in range(m - 1, -1, -1):
        if leaf[i] or costs[i] <= below[i]:
            whole[i] = 1
            least = costs[i]
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


def squared_power_grouping(values: FloatArray, prices: FloatArray) -> IntArray:
    """Starts of the cheapest buckets at cost Σ(x − mean)² + prices[length], lengths being powers of two: O(n log n)."""
    n = len(values)
    costs = np.zeros((n.bit_length(), n))
    for k, row in enumerate(costs):
        low = np.arange(n + 1 - (1 << k))
        row[: low.size] = squared_deviations(values, low, low + (1 << k)) + prices[1 << k]
    starts: IntArray = power_grouping(costs, 0, np.inf)
    return starts


def squared_deviations(values: FloatArray, lows: IntArray, highs: IntArray) -> FloatArray:
    """Σ(x − mean)² of the given buckets, each in O(1) by prefix sums."""
    whole, square, lost = (sums[highs] - sums[lows] for sums in prefix_squares(values))
    return np.maximum((square + lost) - whole * whole / (highs - lows), 0.0)
