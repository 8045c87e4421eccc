"""Counting many small tables at once: every table of a block of rows while the block lies in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin

IntArray = NDArray[np.int64]


# Rows that the twin takes at a time.
_AT_A_TIME = 1 << 16


def _twin(
    codes: Any,
    sizes: IntArray,
    axes: IntArray,
    starts: IntArray,
    offsets: IntArray,
    out: IntArray,
    block: int,
) -> None:
    rows, places = codes.shape[1], starts.tolist()
    for low in range(0, rows, _AT_A_TIME):
        part = codes[:, low : low + _AT_A_TIME]
        for begin, end, offset in zip(places[:-1], places[1:], offsets.tolist(), strict=False):
            cell = np.zeros(part.shape[1], dtype=np.int64)
            cells = 1
            for axis in axes[begin:end].tolist():
                cell *= sizes[axis]
                cell += part[axis]
                cells *= int(sizes[axis])
            out[offset : offset + cells] += np.bincount(cell, minlength=cells)


def _twin_cost(codes: Any, sizes: IntArray, axes: IntArray, starts: IntArray, *others: Any) -> float:
    """Microseconds: so much for every row and column of a table, and for every table of some rows."""
    rows = int(codes.shape[1])
    return 0.006 * rows * (axes.size + starts.size) + 10.0 * starts.size * (1 + rows // _AT_A_TIME)


@kernel_with_twin(_twin, cost=_twin_cost)
def count_tables(
    codes: Any,
    sizes: IntArray,
    axes: IntArray,
    starts: IntArray,
    offsets: IntArray,
    out: IntArray,
    block: int,
) -> None:
    """Add the rows of ``codes`` (columns × rows) to the cells of every table.

    Table t keeps the columns ``axes[starts[t]:starts[t + 1]]`` and its cells begin at ``offsets[t]`` of ``out``, in C
    order. Tables of one prefix should follow each other: their common columns are then combined once a block.
    """
    rows = codes.shape[1]
    prefix = np.empty(block, dtype=np.int64)
    for low in range(0, rows, block):
        high = min(rows, low + block)
        before, length = 0, 0
        for table in range(starts.size - 1):
            begin, end, offset = starts[table], starts[table + 1], offsets[table]
            ways = end - begin
            if ways == 0:
                out[offset] += high - low
            elif ways == 1:
                one = axes[begin]
                for row in range(low, high):
                    out[offset + np.int64(codes[one, row])] += 1
            elif ways == 2:
                one, other = axes[begin], axes[begin + 1]
                size = sizes[other]
                for row in range(low, high):
                    out[offset + np.int64(codes[one, row]) * size + np.int64(codes[other, row])] += 1
            else:
                same = length == ways - 1
                for place in range(ways - 1):
                    same = same and axes[before + place] == axes[begin + place]
                if not same:
                    before, length = begin, ways - 1
                    for row in range(low, high):
                        cell = np.int64(codes[axes[begin], row])
                        for place in range(begin + 1, end - 1):
                            cell = cell * sizes[axes[place]] + np.int64(codes[axes[place], row])
                        prefix[row - low] = cell
                other = axes[end - 1]
                size = sizes[other]
                for row in range(low, high):
                    out[offset + prefix[row - low] * size + np.int64(codes[other, row])] += 1
