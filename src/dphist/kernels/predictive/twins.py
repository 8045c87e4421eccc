"""The passes over a halved tree once more in NumPy, level by level: they serve while numba is not loaded.

What each computes is said at the kernel of its name. All but `ask_boxes` give the same bits; there a question's parts
are added level by level instead of branch by branch, which moves its last digits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.predictive.inside_twins import within
from dphist.kernels.predictive.ways import levels

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]

# Boxes that go down the tree together.
_BLOCK = 2048


def boxes_cost(left: IntArray, low: ShortArray, *others: NDArray[np.float64]) -> float:
    """About how many microseconds `ask_boxes` takes: for every box the nodes on its faces, level by level."""
    nodes, axes = low.shape
    faces: float = float(nodes) ** (1.0 - 1.0 / axes)
    depth = 2.0 * float(np.log2(nodes + 1.0))
    return 2_000.0 + len(others[-4]) * (0.3 * depth + 0.05 * faces)


def best_totals(left: IntArray, value: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """As the kernel of this name."""
    known = variance < 1e30
    best, spread = np.where(known, value, 0.0), np.where(known, variance, 1e30)
    for level in reversed(list(levels(left))):
        i = level.start + np.flatnonzero(left[level] >= 0)
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
    """As the kernel of this name."""
    mean, slope, rest = best.copy(), np.zeros(left.size), np.zeros(left.size)
    i = np.flatnonzero(left >= 0)
    c = left[i]
    both = spread[c] + spread[c + 1]
    slope[i] = spread[c] / both
    rest[i] = spread[c] / both * spread[c + 1]
    for level in levels(left):
        i = level.start + np.flatnonzero(left[level] >= 0)
        c = left[i]
        mean[c] = best[c] + slope[i] * (mean[i] - best[c] - best[c + 1])
        mean[c + 1] = mean[i] - mean[c]
    return mean, slope, rest


def path_variances(left: IntArray, slope: FloatArray, rest: FloatArray, top: float) -> FloatArray:
    """As the kernel of this name."""
    along = np.zeros(left.size)
    along[0] = top
    for level in levels(left):
        i = level.start + np.flatnonzero(left[level] >= 0)
        c, s = left[i], slope[i]
        along[c] = rest[i] + s * s * along[i]
        along[c + 1] = rest[i] + (1.0 - s) * (1.0 - s) * along[i]
    return along


# ---- halving ----


def halving_cost(shape: IntArray) -> float:
    """About how many microseconds `halve_cells` takes."""
    return 500.0 + 0.3 * float(np.prod(shape.astype(np.float64)))


def halve_cells(shape: IntArray) -> tuple[IntArray, ShortArray, ShortArray, IntArray]:
    """As the kernel of this name, level by level."""
    low, high = np.zeros((1, shape.size), dtype=np.int32), shape.astype(np.int32)[None]
    made, parts = 1, []
    while len(low):
        sides = high - low
        # The first of the longest, as the kernel finds it.
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
    """As the kernel of this name."""
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


# ---- asking ----


def ask_boxes(
    left: IntArray,
    low: ShortArray,
    high: ShortArray,
    mean: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
    tops: FloatArray,
    variance: FloatArray,
    unevenness: FloatArray,
    alike: float,
    box_low: IntArray,
    box_high: IntArray,
    weight: FloatArray,
    starts: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """As the kernel of this name."""
    questions = starts.size - 1
    means, variances = (np.zeros((questions, tops.size)) for _ in range(2))
    inner = np.zeros(questions)
    begin = 0
    while begin < questions:
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + _BLOCK, side="right")) - 1)
        boxes = slice(starts[begin], starts[end])
        asked = np.repeat(np.arange(end - begin), np.diff(starts[begin : end + 1]))
        bounds = box_low[boxes], box_high[boxes]
        sums, parted, cut = _go_down(
            left, low, high, mean, slope, rest, tops, *bounds, weight[boxes], asked, end - begin
        )
        means[begin:end], variances[begin:end] = sums, parted
        if unevenness.size:
            inner[begin:end] = within(
                *(*cut, low, high, mean[:, 0], variance, unevenness, alike),
                *(*bounds, weight[boxes], asked, end - begin),
            )
        begin = end
    return means, variances, np.maximum(inner, 0.0)


def _go_down(
    left: IntArray,
    low: ShortArray,
    high: ShortArray,
    mean: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
    tops: FloatArray,
    box_low: IntArray,
    box_high: IntArray,
    weight: FloatArray,
    asked: IntArray,
    questions: int,
) -> tuple[FloatArray, FloatArray, tuple[IntArray, IntArray]]:
    """Means and variances of questions, and which boxes cut which leaves."""
    laws = range(tops.size)
    means, variances = (np.zeros((questions, tops.size)) for _ in range(2))
    # Axis by axis: NumPy takes several times as long to look along rows of two numbers.
    axes = [
        tuple(np.ascontiguousarray(each[:, axis], dtype=np.int32) for each in (low, high, box_low, box_high))
        for axis in range(low.shape[1])
    ]
    box, node = np.arange(len(box_low)), np.zeros(len(box_low), dtype=np.int64)
    steps, cut_boxes, cut_leaves = [], [], []
    while box.size:
        inside, outside = np.ones(box.size, dtype=bool), np.zeros(box.size, dtype=bool)
        for lows, highs, begins, ends in axes:
            start, stop, one, two = lows[node], highs[node], begins[box], ends[box]
            inside &= (one <= start) & (two >= stop)
            outside |= (one >= stop) | (two <= start)
        # Where a box misses a node's hull it has none of it, even if the hull is empty.
        beta: FloatArray = np.asarray(inside & ~outside, dtype=np.float64)
        on = np.flatnonzero(~(inside | outside))
        ends_here = left[node[on]] < 0
        leaf, further = on[ends_here], on[~ends_here]
        shares = np.ones(leaf.size)
        of_box, of_node = box[leaf], node[leaf]
        for lows, highs, begins, ends in axes:
            start, stop = lows[of_node], highs[of_node]
            side = np.minimum(ends[of_box], stop) - np.maximum(begins[of_box], start)
            shares *= side / (stop - start)
        beta[leaf] = shares
        held = np.flatnonzero(beta)
        of_held = box[held]
        part = weight[of_held] * beta[held]
        for law in laws:
            means[:, law] += np.bincount(asked[of_held], part * mean[node[held], law], questions)
        cut_boxes.append(of_box)
        cut_leaves.append(of_node)
        steps.append((box, node, beta, further))
        child = left[node[further]]
        box, node = np.repeat(box[further], 2), np.stack([child, child + 1], axis=1).reshape(-1)
    several = asked.size > questions
    for law in laws:
        below: FloatArray = np.zeros(0)
        for box, node, seen, further in reversed(steps):
            i, b, g = node[further], box[further], slope[node[further], law]
            half, rest_of_it = below[0::2], below[1::2]
            beta = seen.copy()
            beta[further] = g * half + (1.0 - g) * rest_of_it
            apart = weight[b] * (half - rest_of_it)
            question = asked[b]
            if several and further.size:
                # Boxes of one question that part the same node: their contrasts add up before they are squared.
                key, where = np.unique(question * np.int64(left.size) + i, return_inverse=True)
                apart = np.asarray(np.bincount(where, apart), dtype=np.float64)
                question, i = key // left.size, key % left.size
            variances[:, law] += np.bincount(question, apart * apart * rest[i, law], questions)
            below = beta
        top = np.bincount(asked, weight * below, questions)
        variances[:, law] += top * top * tops[law]
    return means, variances, (np.concatenate(cut_boxes), np.concatenate(cut_leaves))
