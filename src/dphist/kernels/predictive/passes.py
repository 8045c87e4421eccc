"""Passes over a halved tree, level by level: least squares, and what is known of a node along its path."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def size_classes(size: FloatArray) -> IntArray:
    """The nearest power of two of each, as sizes share what they learned: 2 and 3 give 1, 4 to 6 give 2."""
    part, exponent = np.frexp(size)
    return np.asarray(np.maximum(exponent - (part <= 0.75), 0), dtype=np.int64)


def levels(left: IntArray) -> Iterator[IntArray]:
    """The splits of every level of a halved tree from the root down; children of neighbours are neighbours."""
    start, stop = 0, 1
    while start < stop:
        splits = start + np.flatnonzero(left[start:stop] >= 0)
        yield splits
        start, stop = stop, stop + 2 * splits.size


def best_totals(left: IntArray, value: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Best linear total of every node from what was measured at it and below, and its variance."""
    known = variance < 1e30
    best, spread = np.where(known, value, 0.0), np.where(known, variance, 1e30)
    for i in reversed(list(levels(left))):
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
    """Plain least squares of a halved tree: every node's mean, and of every split its slope and what is left.

    Given its parent's total t, the left part has mean mean[left] + slope·(t − mean) and variance ``rest``.
    """
    mean, slope, rest = best.copy(), np.zeros(left.size), np.zeros(left.size)
    i = np.flatnonzero(left >= 0)
    c = left[i]
    both = spread[c] + spread[c + 1]
    slope[i] = spread[c] / both
    rest[i] = spread[c] / both * spread[c + 1]
    for i in levels(left):
        c = left[i]
        mean[c] = best[c] + slope[i] * (mean[i] - best[c] - best[c + 1])
        mean[c + 1] = mean[i] - mean[c]
    return mean, slope, rest


def path_variances(left: IntArray, slope: FloatArray, rest: FloatArray, top: float) -> FloatArray:
    """What a slope of one in each node adds to a variance, along the path from the root."""
    along = np.zeros(left.size)
    along[0] = top
    for i in levels(left):
        c, s = left[i], slope[i]
        along[c] = rest[i] + s * s * along[i]
        along[c + 1] = rest[i] + (1.0 - s) * (1.0 - s) * along[i]
    return along
