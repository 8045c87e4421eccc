"""Cells grouped into parts: sums per part, the cells in part order, parts that go two ways, and parts cut smaller."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def _sums(counts: IntArray, labels: IntArray, parts: int) -> IntArray:
    sums = np.zeros(parts, dtype=np.int64)
    np.add.at(sums, labels, counts)
    return sums


def _order(labels: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=parts))])
    return np.argsort(labels, kind="stable"), starts


def _two_ways(labels: IntArray, chosen: BoolArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    found = []
    for keep in (chosen, ~chosen):
        cells = np.flatnonzero(keep[labels])
        found += [cells, (np.cumsum(keep, dtype=np.int64) - 1)[labels[cells]]]
    return found[0], found[1], found[2], found[3]


def _cut(
    cells: IntArray, labels: IntArray, parts: int, rows: IntArray, columns: IntArray, fan: int
) -> tuple[IntArray, IntArray, IntArray]:
    row, column = np.divmod(cells, columns.size)
    label = labels * fan + (rows[row] + columns[column])
    present = np.zeros(parts * fan, dtype=bool)
    present[label] = True
    owner = np.flatnonzero(present) // fan
    smaller = (np.cumsum(present) - 1)[label]
    last = np.empty(owner.size, dtype=np.int64)
    last[smaller] = cells
    return smaller, owner, last


def _largest(labels: IntArray) -> int:
    if labels.size == 0:
        return -1
    return int(min(labels.astype(np.int64, copy=False).view(np.uint64).max(), np.uint64(2**63 - 1)))


@kernel_with_twin(_sums)
def part_sums(counts: IntArray, labels: IntArray, parts: int) -> IntArray:
    """Sum the counts of every part, in integers (``np.bincount`` would sum in floating point)."""
    sums = np.zeros(parts, dtype=np.int64)
    for i in range(counts.size):
        sums[labels[i]] += counts[i]
    return sums


@kernel_with_twin(_order)
def group_order(labels: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    """Give the cells in order of their part (a counting sort, so stable) and where each part starts."""
    starts = np.zeros(parts + 1, dtype=np.int64)
    for i in range(labels.size):
        starts[labels[i] + 1] += 1
    for p in range(parts):
        starts[p + 1] += starts[p]
    place = starts[:-1].copy()
    order = np.empty(labels.size, dtype=np.int64)
    for i in range(labels.size):
        order[place[labels[i]]] = i
        place[labels[i]] += 1
    return order, starts


@kernel_with_twin(_two_ways, cost=0.02)
def two_ways(labels: IntArray, chosen: BoolArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Give the cells of the chosen parts with these numbered anew from 0 on, and the same of the other parts."""
    number = np.empty(chosen.size, dtype=np.int64)
    here = there = 0
    for p in range(chosen.size):
        if chosen[p]:
            number[p] = here
            here += 1
        else:
            number[p] = there
            there += 1
    many = 0
    for i in range(labels.size):
        many += chosen[labels[i]]
    few = labels.size - many
    # Written on both sides, and on one of them written over by the next: a processor cannot foresee which way it goes.
    cells, part = np.empty(many + 1, dtype=np.int64), np.empty(many + 1, dtype=np.int64)
    others, other = np.empty(few + 1, dtype=np.int64), np.empty(few + 1, dtype=np.int64)
    here = there = 0
    for i in range(labels.size):
        label = labels[i]
        goes = int(chosen[label])
        cells[here] = others[there] = i
        part[here] = other[there] = number[label]
        here += goes
        there += 1 - goes
    return cells[:many], part[:many], others[:few], other[:few]


@kernel_with_twin(_cut, cost=0.05)
def cut(
    cells: IntArray, labels: IntArray, parts: int, rows: IntArray, columns: IntArray, fan: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Cut every part into up to ``fan`` smaller ones, by a number for every row and column of a table of cells.

    Gives the smaller part of every cell, in order of the parts and of those numbers; the part that each lies in; and
    the last cell of each. Cells are in ascending order, so that a row is looked up where one begins.
    """
    smaller = np.empty(cells.size, dtype=np.int64)
    number = np.full(parts * fan, -1, dtype=np.int64)
    begin = end = place = np.int64(0)
    for i in range(cells.size):
        cell = cells[i]
        if cell < begin or cell >= end:
            row = cell // columns.size
            begin = row * columns.size
            end = begin + columns.size
            place = rows[row]
        label = labels[i] * fan + place + columns[cell - begin]
        smaller[i] = label
        number[label] = 0
    many = 0
    for label in range(number.size):
        if number[label] == 0:
            number[label] = many
            many += 1
    owner, last = np.empty(many, dtype=np.int64), np.empty(many, dtype=np.int64)
    for label in range(number.size):
        if number[label] >= 0:
            owner[number[label]] = label // fan
    for i in range(cells.size):
        part = number[smaller[i]]
        smaller[i] = part
        last[part] = cells[i]
    return smaller, owner, last


@kernel_with_twin(_largest, cost=0.002)
def largest_label(labels: IntArray) -> np.int64:
    """Give the largest label in one pass: −1 if there is none, and the largest integer if one is below zero."""
    if labels.size == 0:
        return np.int64(-1)
    # As unsigned numbers those below zero are the largest of all.
    largest = np.uint64(0)
    for i in range(labels.size):
        largest = max(largest, np.uint64(labels[i]))
    return np.int64(min(largest, np.uint64(2**63 - 1)))


def labels_ok(labels: IntArray, parts: int) -> bool:
    """Tell whether every label names a part."""
    return bool(largest_label(labels) < parts) or labels.size == 0
