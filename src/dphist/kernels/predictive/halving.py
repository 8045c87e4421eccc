"""Any measured tree as a binary one: families are halved by position, so every split is a left and a right part.

Node i's children are ``left[i]`` and ``left[i] + 1`` (−1 for a leaf), parents come first, level by level. A node's
``low … high`` is the hull of its cells: half a family need not be a box, but what its hull lies in holds it, and what
misses the hull misses it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]


def halve_cells(shape: IntArray) -> tuple[IntArray, ShortArray, ShortArray, IntArray]:
    """Halve a grid along its longest side down to single cells: the first of the longest, the larger half first.

    Args:
        shape: How many cells there are along each axis.

    Returns:
        ``left``, ``low``, ``high``, and for every leaf the flat number of its cell (−1 for inner nodes).
    """
    low, high = np.zeros((1, shape.size), dtype=np.int32), shape.astype(np.int32)[None]
    made, parts = 1, []
    while len(low):
        sides = high - low
        axis = np.argmax(sides, axis=1)
        length = sides[np.arange(len(low)), axis]
        inner = np.flatnonzero(length > 1)
        left, cell = (np.full(len(low), -1, dtype=np.int64) for _ in range(2))
        left[inner] = made + 2 * np.arange(inner.size)
        made += 2 * inner.size
        alone = np.flatnonzero(length == 1)
        flat = np.zeros(alone.size, dtype=np.int64)
        for each in range(shape.size):
            flat = flat * shape[each] + low[alone, each]
        cell[alone] = flat
        parts.append((left, low, high, cell))
        middle = low[inner, axis[inner]] + (length[inner] + 1) // 2
        low, high = np.repeat(low[inner], 2, axis=0), np.repeat(high[inner], 2, axis=0)
        first = 2 * np.arange(inner.size)
        high[first, axis[inner]] = middle
        low[first + 1, axis[inner]] = middle
    left, low, high, cell = (np.concatenate([part[which] for part in parts]) for which in range(4))
    return left, low, high, cell


def halve_families(
    first: IntArray,
    last: IntArray,
    low: IntArray,
    high: IntArray,
    size: FloatArray,
    value: FloatArray,
    variance: FloatArray,
) -> tuple[IntArray, ShortArray, ShortArray, FloatArray, FloatArray, FloatArray]:
    """Halve every family until all splits are in two.

    Boxes of a family, or of what is left of one, are put in order along the longest side of their hull on which they
    begin apart (the first such side). They are cut between boxes that begin apart, where the cells of both parts come
    nearest to each other (the first such place); boxes that all begin at one place, at half their number.

    An only child is the same cells measured once more: the two measurements become one.

    Args:
        first: The first child of each node, −1 for a leaf.
        last: One past the last.
        low: Where each node begins.
        high: One past where it ends.
        size: How many cells it has.
        value: What was measured of it.
        variance: With what variance; infinite where nothing was.

    Returns:
        ``left``, ``low``, ``high``, ``size``, ``value``, ``variance`` of the halved tree.
    """
    members = np.arange(first.size)
    start, stop = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    made, parts = 1, []
    while start.size:
        place, heads = _places(start, stop)
        mine = members[place]
        lows, highs = np.minimum.reduceat(low[mine], heads), np.maximum.reduceat(high[mine], heads)
        sizes = np.add.reduceat(size[mine], heads)
        left = np.full(start.size, -1, dtype=np.int64)
        values, variances = np.zeros(start.size), np.full(start.size, np.inf)
        begin, end = start.copy(), stop.copy()
        single = np.flatnonzero(stop - start == 1)
        node = members[start[single]]
        values[single], variances[single] = value[node], variance[node]
        only = np.flatnonzero((first[node] >= 0) & (last[node] - first[node] == 1))
        while only.size:
            node[only] = first[node[only]]
            _again(single[only], node[only], values, variances, value, variance)
            only = only[(first[node[only]] >= 0) & (last[node[only]] - first[node[only]] == 1)]
        begin[single], end[single] = first[node], last[node]
        inner = np.flatnonzero(begin >= 0)
        begin, end = begin[inner], end[inner]
        cut = begin + _part(members, begin, end, low, high, size)
        left[inner] = made + 2 * np.arange(inner.size)
        made += 2 * inner.size
        parts.append((left, lows.astype(np.int32), highs.astype(np.int32), sizes, values, variances))
        start, stop = np.stack([begin, cut], axis=1).reshape(-1), np.stack([cut, end], axis=1).reshape(-1)
    left, lows, highs, sizes, values, variances = (
        np.concatenate([part[which] for part in parts]) for which in range(6)
    )
    return left, lows, highs, sizes, values, variances


def _places(start: IntArray, stop: IntArray) -> tuple[IntArray, IntArray]:
    """All places of some ranges one after the other, and where each range begins in them."""
    count = stop - start
    heads = np.cumsum(count) - count
    return np.arange(int(count.sum())) + np.repeat(start - heads, count), heads


def _again(
    at: IntArray,
    node: IntArray,
    values: FloatArray,
    variances: FloatArray,
    value: FloatArray,
    variance: FloatArray,
) -> None:
    """Join what was measured of an only child with what is known of the same cells."""
    known = np.isfinite(variance[node])
    at, node = at[known], node[known]
    both = np.isfinite(variances[at])
    i, n = at[both], node[both]
    whole = variances[i] + variance[n]
    values[i] = (values[i] * variance[n] + value[n] * variances[i]) / whole
    variances[i] = variances[i] * variance[n] / whole
    values[at[~both]], variances[at[~both]] = value[node[~both]], variance[node[~both]]


def _part(
    members: IntArray, begin: IntArray, end: IntArray, low: IntArray, high: IntArray, size: FloatArray
) -> IntArray:
    """Order the boxes of every range along its longest side, in place; say where to halve each."""
    count = end - begin
    if not count.size:
        return count
    place, heads = _places(begin, end)
    group = np.repeat(np.arange(count.size), count)
    mine = members[place]
    lows = low[mine]
    length = np.maximum.reduceat(high[mine], heads) - np.minimum.reduceat(lows, heads)
    apart = np.logical_or.reduceat(lows != lows[heads][group], heads)
    length = np.where(apart, length, 0)
    axis = np.argmax(length, axis=1)
    alike = length[np.arange(count.size), axis] <= 0
    key = np.where(alike[group], 0, lows[np.arange(mine.size), axis[group]])
    order = np.lexsort((key, group))
    mine, key = mine[order], key[order]
    members[place] = mine
    sizes = size[mine]
    total = np.add.reduceat(sizes, heads)
    # Sizes are whole numbers, so running sums from the very start lose nothing.
    before = np.cumsum(sizes) - sizes
    before -= before[heads][group]
    uneven = np.abs(2.0 * before - total[group])
    possible = np.concatenate([[False], (key[1:] != key[:-1]) & (group[1:] == group[:-1])])
    uneven[~possible] = np.inf
    best = np.flatnonzero(uneven == np.minimum.reduceat(uneven, heads)[group])
    cut = best[np.searchsorted(best, heads)] - heads
    return np.where(alike, count // 2, np.maximum(cut, 1))


def size_classes(size: FloatArray) -> IntArray:
    """The nearest power of two of each, as sizes share what they learned: 2 and 3 give 1, 4 to 6 give 2."""
    part, exponent = np.frexp(size)
    return np.asarray(np.maximum(exponent - (part <= 0.75), 0), dtype=np.int64)


def levels(left: IntArray) -> Iterator[IntArray]:
    """The splits of every level of a halved tree from the root down; children of neighbours are neighbours."""
    start, stop = 0, 1
    while start < stop:
        splits = start + np.flatnonzero(left[start:stop] >= 0)
        yield splits
        start, stop = stop, stop + 2 * splits.size


def best_totals(left: IntArray, value: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Best linear total of every node from what was measured at it and below, and its variance."""
    known = variance < 1e30
    best, spread = np.where(known, value, 0.0), np.where(known, variance, 1e30)
    for i in reversed(list(levels(left))):
        c = left[i]
        best[i] = best[c] + best[c + 1]
        spread[i] = np.minimum(spread[c] + spread[c + 1], 1e30)
        i = i[known[i]]
        whole = variance[i] + spread[i]
        best[i] = (best[i] * variance[i] + value[i] * spread[i]) / whole
        spread[i] = variance[i] * spread[i] / whole
    return best, spread


def least_squares_splits(
    left: IntArray, best: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Plain least squares of a halved tree: every node's mean, and of every split its slope and what is left.

    Given its parent's total t, the left part has mean mean[left] + slope·(t − mean) and variance ``rest``.
    """
    mean, slope, rest = best.copy(), np.zeros(left.size), np.zeros(left.size)
    i = np.flatnonzero(left >= 0)
    c = left[i]
    both = spread[c] + spread[c + 1]
    slope[i] = spread[c] / both
    rest[i] = spread[c] / both * spread[c + 1]
    for i in levels(left):
        c = left[i]
        mean[c] = best[c] + slope[i] * (mean[i] - best[c] - best[c + 1])
        mean[c + 1] = mean[i] - mean[c]
    return mean, slope, rest


def path_variances(left: IntArray, slope: FloatArray, rest: FloatArray, top: float) -> FloatArray:
    """What a slope of one in each node adds to a variance, along the path from the root."""
    along = np.zeros(left.size)
    along[0] = top
    for i in levels(left):
        c, s = left[i], slope[i]
        along[c] = rest[i] + s * s * along[i]
        along[c + 1] = rest[i] + (1.0 - s) * (1.0 - s) * along[i]
    return along
