"""Sums over boxes of cells, each from 2^d corners of a table of running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


def running_sums(values: Array) -> Array:
    """A table one longer on each axis: entry (i, j, …) is the sum of the cells below i, j, ….

    Integers stay integers. Should a running sum pass 2^63 it wraps around, and the difference that an answer
    takes wraps back, so every answer that fits in 64 bits is exact.
    """
    if not values.ndim:
        return values.copy()
    table = np.zeros(tuple(n + 1 for n in values.shape), dtype=values.dtype)
    inner = table[tuple(slice(1, None) for _ in values.shape)]
    inner[...] = values
    for axis in range(values.ndim):
        np.cumsum(inner, axis=axis, out=inner)
    return table


def add_box_sums(
    table: Array, strides: IntArray, low: IntArray, high: IntArray, query: IntArray, out: Array
) -> None:
    """Add the sum over each half-open box to ``out[query]``.

    ``table`` is the flat table of running sums, ``strides`` how far apart neighbours are along each axis in
    it. Corner c takes the upper bound on the axes whose bit of c is clear; its sign is the parity of the bits
    set. Nothing lies below 0: an axis on which every box begins there has no lower corners, and of a dozen axes
    most are of that kind.
    """
    total = np.zeros(len(low), dtype=table.dtype)
    last = high @ strides
    cut = np.flatnonzero((low > 0).any(axis=0))
    steps = ((high - low) * strides)[:, cut]
    for corner in range(1 << cut.size):
        taken = (corner >> np.arange(cut.size)) & 1
        at = table[last - steps @ taken]
        total = total - at if taken.sum() % 2 else total + at
    total[(high <= low).any(axis=1)] = 0
    np.add.at(out, query, total)


def all_range_sums(table: Array, first: int, out: Array) -> None:
    """Fill ``out`` with the sums of the ranges [i, j) of a line in order, i slowest, from i = ``first``."""
    while out.size:
        sums = table[first + 1 :] - table[first]
        out[: sums.size] = sums[: out.size]
        out, first = out[sums.size :], first + 1


def box_sums(table: Array, low: IntArray, high: IntArray) -> npt.NDArray[np.float64]:
    """Sum an array over many boxes, each ``low ≤ place < high`` on every axis."""
    return sums_between(running_sums(table), low, high)


def sums_between(sums: Array, low: IntArray, high: IntArray) -> npt.NDArray[np.float64]:
    """Sum over many boxes from running sums that are kept."""
    if not sums.ndim:
        return np.full(len(low), float(sums))
    out = np.zeros(len(low))
    strides = np.array(sums.strides, dtype=np.int64) // sums.itemsize
    add_box_sums(sums.reshape(-1), strides, low, high, np.arange(len(low)), out)
    return out
