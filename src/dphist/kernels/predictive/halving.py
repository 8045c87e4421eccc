"""Any measured tree as a binary one: families are halved by position, so every split is a left and a right part.

Node i's children are ``left[i]`` and ``left[i] + 1`` (−1 for a leaf), parents come first. A node's ``low … high`` is
the hull of its cells: half a family need not be a box, but what its hull lies in holds it, and what misses the hull
misses it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel, kernel_with_twin
from dphist.kernels.predictive import twins

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]


@kernel
def _part(members: IntArray, low: IntArray, high: IntArray, size: FloatArray) -> int:
    """Order some boxes along the longest side of their hull on which they differ, in place; say where to halve them.

    The place is a boundary between boxes that start apart, the one that parts the cells most evenly: halves of a grid
    of boxes are grids of boxes.
    """
    count = members.size
    axis = -1
    longest = 0
    for a in range(low.shape[1]):
        least = low[members[0], a]
        most = high[members[0], a]
        apart = False
        for m in members:
            if low[m, a] != low[members[0], a]:
                apart = True
            least = min(least, low[m, a])
            most = max(most, high[m, a])
        if apart and most - least > longest:
            longest = most - least
            axis = a
    if axis < 0:
        return count // 2
    place = np.empty(count, dtype=np.int64)
    for j in range(count):
        place[j] = low[members[j], axis]
    order = np.argsort(place, kind="mergesort")
    sorted_members = members[order]
    total = 0.0
    for j in range(count):
        members[j] = sorted_members[j]
        total += size[members[j]]
    cut = 1
    best = np.inf
    before = 0.0
    for j in range(1, count):
        before += size[members[j - 1]]
        if low[members[j], axis] != low[members[j - 1], axis] and abs(2.0 * before - total) < best:
            best = abs(2.0 * before - total)
            cut = j
    return cut


@kernel_with_twin(twins.halve_families, cost=0.9)
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

    Returns ``left``, ``low``, ``high``, ``size``, ``value``, ``variance``. An only child is the same cells measured
    once more: the two measurements become one.
    """
    nodes = first.size
    axes = low.shape[1]
    room = 2 * nodes + 1
    left = np.full(room, -1, dtype=np.int64)
    lows = np.empty((room, axes), dtype=np.int32)
    highs = np.empty((room, axes), dtype=np.int32)
    sizes = np.empty(room)
    values = np.zeros(room)
    variances = np.full(room, np.inf)
    # What a binary node stands for: members[start:stop], of which a single one is a node of the tree itself.
    members = np.arange(nodes)
    start = np.empty(room, dtype=np.int64)
    stop = np.empty(room, dtype=np.int64)
    start[0] = 0
    stop[0] = 1
    made = 1
    i = 0
    while i < made:
        for a in range(axes):
            least = low[members[start[i]], a]
            most = high[members[start[i]], a]
            for j in range(start[i] + 1, stop[i]):
                least = min(least, low[members[j], a])
                most = max(most, high[members[j], a])
            lows[i, a] = least
            highs[i, a] = most
        cells = 0.0
        for j in range(start[i], stop[i]):
            cells += size[members[j]]
        sizes[i] = cells
        lo, hi = start[i], stop[i]
        if hi - lo == 1:
            node = members[lo]
            values[i] = value[node]
            variances[i] = variance[node]
            while first[node] >= 0 and last[node] - first[node] == 1:
                node = first[node]
                if np.isfinite(variance[node]):
                    if np.isfinite(variances[i]):
                        whole = variances[i] + variance[node]
                        values[i] = (values[i] * variance[node] + value[node] * variances[i]) / whole
                        variances[i] = variances[i] * variance[node] / whole
                    else:
                        values[i] = value[node]
                        variances[i] = variance[node]
            if first[node] < 0:
                i += 1
                continue
            lo, hi = first[node], last[node]
        cut = lo + _part(members[lo:hi], low, high, size)
        left[i] = made
        start[made], stop[made] = lo, cut
        start[made + 1], stop[made + 1] = cut, hi
        made += 2
        i += 1
    return left[:made], lows[:made], highs[:made], sizes[:made], values[:made], variances[:made]


@kernel_with_twin(twins.halve_cells, cost=twins.halving_cost)
def halve_cells(shape: IntArray) -> tuple[IntArray, ShortArray, ShortArray, IntArray]:
    """Halve a grid along its longest side down to single cells.

    Returns ``left``, ``low``, ``high``, and for every leaf the flat number of its cell (−1 for inner nodes).
    """
    axes = shape.size
    total = 1
    for a in range(axes):
        total *= shape[a]
    room = 2 * total - 1
    left = np.full(room, -1, dtype=np.int64)
    low = np.zeros((room, axes), dtype=np.int32)
    high = np.empty((room, axes), dtype=np.int32)
    cell = np.full(room, -1, dtype=np.int64)
    for a in range(axes):
        high[0, a] = shape[a]
    made = 1
    for i in range(room):
        axis = 0
        for a in range(1, axes):
            if high[i, a] - low[i, a] > high[i, axis] - low[i, axis]:
                axis = a
        length = high[i, axis] - low[i, axis]
        if length == 1:
            flat = 0
            for a in range(axes):
                flat = flat * shape[a] + low[i, a]
            cell[i] = flat
            continue
        left[i] = made
        for side in range(2):
            for a in range(axes):
                low[made + side, a] = low[i, a]
                high[made + side, a] = high[i, a]
        middle = low[i, axis] + (length + 1) // 2
        high[made, axis] = middle
        low[made + 1, axis] = middle
        made += 2
    return left, low, high, cell
