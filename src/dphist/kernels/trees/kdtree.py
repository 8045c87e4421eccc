"""Trees of boxes grown on cells by least weighted variance, in any number of dimensions.

Sums over boxes come from summed-area tables, so trying every cut of a box costs 2^(d-1) look-ups for each cut
and never a walk over its cells. A tree is arrays: node i covers ``low[i] ≤ cell < high[i]``, its children are
``left[i]`` and ``left[i] + 1``, or ``left[i] = -1`` for a leaf.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel
from dphist.kernels.summed_area import running_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Squares of values up to this, over 2^22 cells, still leave the rounded table good enough to tell when to use it.
_LARGEST_VALUE = 2**40
_LARGEST_TABLE = 2**61


def tables(values: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Running sums of values and of their squares, flat, exact modulo 2^64; and rounded squares where those may wrap.

    A sum that fits in 63 bits is exact however the running sums wrapped. The third table has a single entry when
    every sum of squares fits. Values beyond 2^40, or beyond what all cells together can hold, count as the limit.
    """
    limit = min(_LARGEST_VALUE, _LARGEST_TABLE // max(1, values.size))
    tallest = max(abs(int(values.max(initial=0))), abs(int(values.min(initial=0))))
    cells = values if tallest <= limit else np.clip(values, -limit, limit)
    tallest = min(tallest, limit)
    fits = tallest * tallest * values.size < _LARGEST_TABLE
    loose = np.zeros(1) if fits else running_sums(cells.astype(np.float64) ** 2).reshape(-1)
    return running_sums(cells).reshape(-1), running_sums(cells * cells).reshape(-1), loose


@kernel
def _corners(
    low: IntArray, high: IntArray, strides: IntArray, skip: int, place: IntArray, sign: IntArray
) -> int:
    """Offsets and signs of a box's corners in a summed-area table, leaving out one axis (or none, -1)."""
    axes = len(low)
    count = 0
    for corner in range(1 << axes):
        if skip >= 0 and (corner >> skip) & 1:
            continue
        where = 0
        odd = 0
        for a in range(axes):
            if a == skip:
                continue
            if (corner >> a) & 1:
                where += low[a] * strides[a]
                odd ^= 1
            else:
                where += high[a] * strides[a]
        place[count] = where
        sign[count] = -1 if odd else 1
        count += 1
    return count


@kernel
def _spread_in_box(
    total: int,
    cells: int,
    squares: IntArray,
    loose: FloatArray,
    place: IntArray,
    sign: IntArray,
    corners: int,
) -> float:
    """Sum of squared distances from the mean; first about the mean's whole part, in integers, so nothing cancels."""
    if len(loose) > 1:
        rough = 0.0
        for k in range(corners):
            rough += sign[k] * loose[place[k]]
        rough -= float(total) * (float(total) / cells)
        if rough > 2.0**60:
            return rough
    exact = 0
    for k in range(corners):
        exact += sign[k] * squares[place[k]]
    middle = total // cells
    rest = total - middle * cells
    exact = exact - 2 * middle * total + cells * middle * middle
    return max(0.0, float(exact) - float(rest) * (float(rest) / cells))


@kernel
def grow(
    sums: IntArray,
    squares: IntArray,
    loose: FloatArray,
    shape: IntArray,
    variance: float,
    slack: float,
    lost: int,
    notable: float,
) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """Split boxes while they are uneven, each at the cut that leaves the least weighted variance (Algorithm 3).

    A box of n cells is uneven when SSE ÷ (n − lost) > variance · (1 + slack ÷ √n). It is also split when its best cut
    takes more than notable + 2·variance·ln(cuts tried) off the SSE: a broad slope hides in the cells' own noise, but
    not in the sums of its halves (infinite ``notable`` never does this). Returns, per node, its left child (-1 for a
    leaf), its SSE and its box. Ties go to the first axis and the first place.
    """
    axes = len(shape)
    strides = np.ones(axes, np.int64)
    for a in range(axes - 2, -1, -1):
        strides[a] = strides[a + 1] * (shape[a + 1] + 1)
    # Nodes are looked at in the order in which they are made. Room for all that there may be costs nothing until used.
    room = 2 * sums.size
    left, axis, cut = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    lows, highs, sse = np.empty((room, axes), np.int64), np.empty((room, axes), np.int64), np.empty(room)
    lows[0], highs[0] = 0, shape
    place = np.zeros(1 << axes, np.int64)
    sign = np.zeros(1 << axes, np.int64)
    nodes = 1
    node = -1
    while node + 1 < nodes:
        node += 1
        left[node], sse[node] = -1, 0.0
        low, high = lows[node], highs[node]
        cells = 1
        for a in range(axes):
            cells *= high[a] - low[a]
        if cells <= 1:
            continue
        corners = _corners(low, high, strides, -1, place, sign)
        total = 0
        for k in range(corners):
            total += sign[k] * sums[place[k]]
        sse[node] = _spread_in_box(total, cells, squares, loose, place, sign, corners)
        uneven = sse[node] > (cells - lost) * variance * (1.0 + slack / np.sqrt(cells))
        if not uneven and sse[node] <= notable:
            continue
        middle = total // cells
        rest = float(total - middle * cells)
        best = -1.0
        tried = 0
        for a in range(axes):
            if high[a] - low[a] < 2:
                continue
            tried += high[a] - low[a] - 1
            corners = _corners(low, high, strides, a, place, sign)
            slab = cells // (high[a] - low[a])
            before = 0
            for k in range(corners):
                before += sign[k] * sums[place[k] + low[a] * strides[a]]
            for c in range(low[a] + 1, high[a]):
                below = -before
                for k in range(corners):
                    below += sign[k] * sums[place[k] + c * strides[a]]
                first = slab * (c - low[a])
                # What the cut takes off the SSE: the squared distance of the halves' means, weighted.
                away = float(below - middle * first) - rest * (float(first) / cells)
                gain = away * away / first / (cells - first)
                if gain > best:
                    best = gain
                    axis[node] = a
                    cut[node] = c
        if not uneven and best * cells <= notable + 2.0 * variance * np.log(tried):
            continue
        left[node] = nodes
        for half in range(2):
            lows[nodes + half], highs[nodes + half] = low, high
        highs[nodes, axis[node]] = lows[nodes + 1, axis[node]] = cut[node]
        nodes += 2
    return left[:nodes], sse[:nodes], lows[:nodes], highs[:nodes]


@kernel
def prune(left: IntArray, sse: FloatArray, price: float) -> None:
    """Undo splits that do not pay, in place: each leaf costs its SSE and ``price``, and the cheapest tree stays."""
    cost = np.empty(len(left))
    for i in range(len(left) - 1, -1, -1):
        own = sse[i] + price
        if left[i] < 0:
            cost[i] = own
            continue
        below = cost[left[i]] + cost[left[i] + 1]
        if own <= below:
            left[i] = -1
            cost[i] = own
        else:
            cost[i] = below


def settle(left: IntArray, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Number the nodes that are left, parents first: left child, parent, and the box of each."""
    keep = np.zeros(left.size, dtype=bool)
    level = np.zeros(1, dtype=np.int64)
    while level.size:
        keep[level] = True
        first = left[level[left[level] >= 0]]
        level = np.concatenate([first, first + 1])
    number = np.cumsum(keep) - 1
    kept = left[keep]
    split = kept >= 0
    child, parent = np.where(split, number[kept], -1), np.full(kept.size, -1, dtype=np.int64)
    for half in range(2):
        parent[child[split] + half] = np.flatnonzero(split)
    return child, parent, low[keep], high[keep]


@kernel
def leaf_spread(
    left: IntArray,
    parent: IntArray,
    low: IntArray,
    high: IntArray,
    pull: FloatArray,
    cell_scale: float,
    leaf_scale: float,
    query_low: IntArray,
    query_high: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Variance of every box sum, and its heaviest draw, when cell i is yᵢ + pull · (leaf total − Σ y) in each leaf.

    A box that takes s of a leaf's n cells carries pull·s of the leaf's own draw, 1 − pull·s of the draws inside and
    −pull·s of those outside. Boxes that swallow a whole subtree read its sum at once.
    """
    nodes, axes = low.shape
    whole = np.zeros(nodes)
    most = np.zeros(nodes)
    cell_variance = 2.0 * cell_scale * cell_scale
    leaf_variance = 2.0 * leaf_scale * leaf_scale
    for i in range(nodes - 1, -1, -1):
        if left[i] < 0:
            n = 1.0
            for a in range(axes):
                n *= high[i, a] - low[i, a]
            share = pull[i] * n
            whole[i] = share * share * leaf_variance + n * (1.0 - share) ** 2 * cell_variance
            most[i] = max(share * leaf_scale, abs(1.0 - share) * cell_scale)
        if parent[i] >= 0:
            whole[parent[i]] += whole[i]
            most[parent[i]] = max(most[parent[i]], most[i])
    variance = np.zeros(len(query_low))
    largest = np.zeros(len(query_low))
    stack = np.zeros(nodes + 1, np.int64)
    for q in range(len(query_low)):
        top = 1
        stack[0] = 0
        while top > 0:
            top -= 1
            i = stack[top]
            n = 1.0
            s = 1.0
            for a in range(axes):
                n *= high[i, a] - low[i, a]
                s *= max(0, min(high[i, a], query_high[q, a]) - max(low[i, a], query_low[q, a]))
            if s == 0.0:
                continue
            if s == n:
                variance[q] += whole[i]
                largest[q] = max(largest[q], most[i])
            elif left[i] >= 0:
                stack[top] = left[i]
                stack[top + 1] = left[i] + 1
                top += 2
            else:
                share = pull[i] * s
                inside = s * (1.0 - share) ** 2 + (n - s) * share * share
                variance[q] += share * share * leaf_variance + inside * cell_variance
                heaviest = max(abs(1.0 - share), share) * cell_scale
                largest[q] = max(largest[q], max(share * leaf_scale, heaviest))
    return variance, largest
