"""Cells grouped into parts: sums per part, the cells in part order, parts that go two ways, and parts cut smaller."""

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
