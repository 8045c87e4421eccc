"""Noise of answers when each part's total was spread evenly over its cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def box_part_squares(
    low: IntArray, high: IntArray, shape: tuple[int, ...], labels: IntArray, weight: FloatArray
) -> FloatArray:
    """For every box, sum over parts (cells of the part in the box)² · weight[part].

    Looks at the cells of each box; ``low`` and ``high`` are half-open corners, queries × axes.
    """
    grid = labels.reshape(shape)
    result = np.zeros(len(low))
    for q, (begin, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        parts = np.sort(grid[tuple(map(slice, begin, end))], axis=None)
        heads = np.flatnonzero(np.append(parts[:1] == parts[:1], parts[1:] != parts[:-1]))
        held = np.diff(np.append(heads, parts.size)).astype(np.float64)
        result[q] = held * held @ weight[parts[heads]]
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
