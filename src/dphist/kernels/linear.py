"""Sparse integer matrices times vectors, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def sparse_product(rows: IntArray, columns: IntArray, weights: IntArray, values: IntArray) -> IntArray:
    """Row r of the answer is the sum of weights times values over places ``rows[r] … rows[r + 1] − 1``.

    Running sums that pass 2⁶³ wrap around, and their differences wrap back.
    """
    running = np.concatenate([[0], np.cumsum(weights * values[columns])])
    return np.asarray(running[rows[1:]] - running[rows[:-1]], dtype=np.int64)


def range_weights(prefix: FloatArray, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
    """For ranges low … high − 1: the sum of squared weights of the draws in them, and the largest weight.

    The sum of the first t cells carries draw k with weight ``prefix[t − 1 − k]``; a range is the difference of two.
    """
    squares, largest = np.zeros(len(low)), np.zeros(len(low))
    for q, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if a < b:
            weights = prefix[:b].copy()
            weights[b - a :] -= prefix[:a]
            squares[q], largest[q] = weights @ weights, np.abs(weights).max()
    return squares, largest


def column_sums(columns: IntArray, weights: IntArray, count: int) -> IntArray:
    """Sum of the absolute weights in every column."""
    out = np.zeros(count, np.int64)
    np.add.at(out, columns, np.abs(weights))
    return out


def column_squares(rows: IntArray, columns: IntArray, weights: IntArray, count: int) -> IntArray:
    """Sum of the squared weights in every column; −1 in the first if a row names a column twice."""
    out = np.zeros(count, np.int64)
    places = np.sort(np.repeat(np.arange(len(rows) - 1), np.diff(rows)) * count + columns)
    if (places[1:] == places[:-1]).any():
        out[0] = -1
        return out
    np.add.at(out, columns, weights * weights)
    return out


def rises(rows: IntArray) -> bool:
    """Tell whether no row pointer is below the one before it."""
    return bool((rows[1:] >= rows[:-1]).all())
