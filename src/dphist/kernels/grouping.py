"""Cells grouped into parts: sums per part and the cells in part order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin

IntArray = NDArray[np.int64]


def _sums(counts: IntArray, labels: IntArray, parts: int) -> IntArray:
    sums = np.zeros(parts, dtype=np.int64)
    np.add.at(sums, labels, counts)
    return sums


def _order(labels: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=parts))])
    return np.argsort(labels, kind="stable"), starts


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
