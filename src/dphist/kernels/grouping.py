"""Cells grouped into parts: their sums, middles and order, parts that are cut, and noise spread evenly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def part_sums(counts: IntArray, labels: IntArray, parts: int) -> IntArray:
    """Sum the counts of every part, in integers (``np.bincount`` would sum in floating point)."""
    sums = np.zeros(parts, dtype=np.int64)
    np.add.at(sums, labels, counts)
    return sums


def group_order(labels: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    """Give the cells in order of their part (a counting sort, so stable) and where each part starts."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=parts))])
    return np.argsort(labels, kind="stable"), starts


def two_ways(labels: IntArray, chosen: BoolArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Give the cells of the chosen parts with these numbered anew from 0 on, and the same of the other parts."""
    found = []
    for keep in (chosen, ~chosen):
        cells = np.flatnonzero(keep[labels])
        found += [cells, (np.cumsum(keep, dtype=np.int64) - 1)[labels[cells]]]
    return found[0], found[1], found[2], found[3]


def cut(
    cells: IntArray, labels: IntArray, parts: int, rows: IntArray, columns: IntArray, fan: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut every part into up to ``fan`` smaller ones, by a number for every row and column of a table of cells.

    Gives the smaller part of every cell, in order of the parts and of those numbers; the part that each lies in; and
    the last cell of each. Cells are in ascending order, so that a row is looked up where one begins.
    """
    row, column = np.divmod(cells, columns.size)
    label = labels * fan + (rows[row] + columns[column])
    present = np.zeros(parts * fan, dtype=bool)
    present[label] = True
    owner = np.flatnonzero(present) // fan
    smaller = (np.cumsum(present) - 1)[label]
    last = np.empty(owner.size, dtype=np.int64)
    last[smaller] = cells
    return smaller, owner, last


def largest_label(labels: IntArray) -> int:
    """Give the largest label in one pass: −1 if there is none, and the largest integer if one is below zero."""
    if labels.size == 0:
        return -1
    return int(min(labels.astype(np.int64, copy=False).view(np.uint64).max(), np.uint64(2**63 - 1)))


def labels_ok(labels: IntArray, parts: int) -> bool:
    """Tell whether every label names a part."""
    return bool(largest_label(labels) < parts) or labels.size == 0


def part_middles(counts: IntArray, order: IntArray, starts: IntArray) -> IntArray:
    """Give each part's middle count, or the sum of the two if it has an even number of cells; 0 if none."""
    sizes = np.diff(starts)
    part = np.repeat(np.arange(sizes.size), sizes)
    values = counts[order[starts[0] : starts[-1]]]
    ordered = values[np.lexsort((values, part))]
    middles = np.zeros(sizes.size, dtype=np.int64)
    some = np.flatnonzero(sizes)
    upper = (starts[:-1] - starts[0] + sizes // 2)[some]
    middles[some] = ordered[upper] + np.where(sizes[some] % 2 == 0, ordered[upper - 1], 0)
    return middles


FloatArray = NDArray[np.float64]


def box_part_squares(
    low: IntArray, high: IntArray, shape: tuple[int, ...], labels: IntArray, weight: FloatArray
) -> FloatArray:
    """For every box, sum over parts (cells of the part in the box)² · weight[part].

    This is how noise of parts adds up where it was spread evenly over their cells. Looks at the cells of each box;
    ``low`` and ``high`` are half-open corners, queries × axes.
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
