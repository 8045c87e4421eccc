"""Noise of answers when each part's total was spread evenly over its cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def box_part_squares(
    low: IntArray, high: IntArray, strides: IntArray, labels: IntArray, weight: FloatArray
) -> FloatArray:
    """For every box, sum over parts (cells of the part in the box)² · weight[part].

    Walks the cells of each box; ``low`` and ``high`` are half-open corners, queries × axes.
    """
    queries, axes = low.shape
    inside = np.zeros(weight.size, dtype=np.int64)
    seen = np.empty(weight.size, dtype=np.int64)
    result = np.zeros(queries)
    position = np.empty(axes, dtype=np.int64)
    for q in range(queries):
        empty = False
        for a in range(axes):
            position[a] = low[q, a]
            empty = empty or high[q, a] <= low[q, a]
        if empty:
            continue
        found = 0
        last = axes - 1
        while True:
            base = 0
            for a in range(last):
                base += position[a] * strides[a]
            for i in range(low[q, last], high[q, last]):
                part = labels[base + i * strides[last]]
                if inside[part] == 0:
                    seen[found] = part
                    found += 1
                inside[part] += 1
            a = last - 1
            while a >= 0:
                position[a] += 1
                if position[a] < high[q, a]:
                    break
                position[a] = low[q, a]
                a -= 1
            if a < 0:
                break
        for k in range(found):
            part = seen[k]
            result[q] += float(inside[part]) ** 2 * weight[part]
            inside[part] = 0
    return result


def interval_part_squares(low: IntArray, high: IntArray, starts: IntArray, weight: FloatArray) -> FloatArray:
    """Do the same for intervals of cells and parts that are intervals too, in O(log parts) a query.

    Part p is ``starts[p] … starts[p + 1] − 1``.
    """
    sizes = np.diff(starts).astype(np.float64)
    whole = np.concatenate([[0.0], np.cumsum(sizes * sizes * weight)])
    first = np.searchsorted(starts, low, side="right") - 1
    last = np.searchsorted(starts, high - 1, side="right") - 1
    alone = first == last
    left = np.where(alone, high - low, starts[np.minimum(first + 1, weight.size)] - low).astype(np.float64)
    right = np.where(alone, 0, high - starts[last]).astype(np.float64)
    between = np.where(alone, 0.0, whole[last] - whole[np.minimum(first + 1, weight.size)])
    found = left * left * weight[first] + right * right * weight[last] + between
    return np.where(high > low, found, 0.0)
