"""Sparse integer matrices times vectors, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@kernel
def sparse_product(rows: IntArray, columns: IntArray, weights: IntArray, values: IntArray) -> IntArray:
    """Row r of the answer is the sum of weights times values over places ``rows[r] … rows[r + 1] − 1``."""
    out = np.zeros(len(rows) - 1, np.int64)
    for r in range(len(out)):
        for place in range(rows[r], rows[r + 1]):
            out[r] += weights[place] * values[columns[place]]
    return out


@kernel
def range_weights(prefix: FloatArray, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
    """For ranges low … high − 1: the sum of squared weights of the draws in them, and the largest weight.

    The sum of the first t cells carries draw k with weight ``prefix[t − 1 − k]``; a range is the difference of two.
    """
    squares = np.zeros(len(low))
    largest = np.zeros(len(low))
    for q in range(len(low)):
        a, b = low[q], high[q]
        for k in range(b if b > a else 0):
            weight = prefix[b - 1 - k] - (prefix[a - 1 - k] if k < a else 0.0)
            squares[q] += weight * weight
            largest[q] = max(largest[q], abs(weight))
    return squares, largest


@kernel
def column_sums(columns: IntArray, weights: IntArray, count: int) -> IntArray:
    """Sum of the absolute weights in every column."""
    out = np.zeros(count, np.int64)
    for place in range(len(columns)):
        out[columns[place]] += abs(weights[place])
    return out


@kernel
def column_squares(rows: IntArray, columns: IntArray, weights: IntArray, count: int) -> IntArray:
    """Sum of the squared weights in every column; −1 in the first if a row names a column twice."""
    out = np.zeros(count, np.int64)
    seen = np.full(count, -1, np.int64)
    for r in range(len(rows) - 1):
        for place in range(rows[r], rows[r + 1]):
            column = columns[place]
            if seen[column] == r:
                out[0] = -1
                return out
            seen[column] = r
            out[column] += weights[place] * weights[place]
    return out


@kernel
def rises(rows: IntArray) -> bool:
    """Tell whether no row pointer is below the one before it."""
    falls = 0
    for r in range(1, len(rows)):
        falls += rows[r] < rows[r - 1]
    return falls == 0
