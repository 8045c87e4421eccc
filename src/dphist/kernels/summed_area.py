"""Sums over boxes of cells, each from 2^d corners of a table of running sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.kernels.compile import kernel, kernel_with_twin, only_read

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


def _add(table: Array, strides: IntArray, low: IntArray, high: IntArray, query: IntArray, out: Array) -> None:
    total = np.zeros(len(low), dtype=table.dtype)
    for corner in range(1 << low.shape[1]):
        upper = (corner >> np.arange(low.shape[1])) & 1 == 0
        at = table[np.where(upper, high, low) @ strides]
        total = total + at if (low.shape[1] - int(upper.sum())) % 2 == 0 else total - at
    total[(high <= low).any(axis=1)] = 0
    np.add.at(out, query, total)


def _add_cost(table: Array, strides: IntArray, low: IntArray, *others: Array) -> float:
    return 20.0 + 0.1 * len(low) * float(1 << low.shape[1])


@kernel_with_twin(_add, cost=_add_cost)
def add_box_sums(
    table: Array, strides: IntArray, low: IntArray, high: IntArray, query: IntArray, out: Array
) -> None:
    """Add the sum over each half-open box to ``out[query]``.

    ``table`` is the flat table of running sums, ``strides`` how far apart neighbours are along each axis in
    it. Corner c takes the upper bound on the axes whose bit of c is clear; its sign is the parity of the bits
    set. Nothing lies below 0: an axis on which a box begins there has no lower corners, and of a dozen axes most
    corners are of that kind.
    """
    boxes, axes = low.shape
    steps = np.empty(axes, np.int64)
    for box in range(boxes):
        total = table[0] - table[0]
        empty = False
        for axis in range(axes):
            if high[box, axis] <= low[box, axis]:
                empty = True
        if not empty:
            last = 0
            number = 0
            for axis in range(axes):
                last += high[box, axis] * strides[axis]
                if low[box, axis] > 0:
                    steps[number] = (high[box, axis] - low[box, axis]) * strides[axis]
                    number += 1
            for corner in range(1 << number):
                place = last
                odd = 0
                for axis in range(number):
                    if (corner >> axis) & 1:
                        place -= steps[axis]
                        odd ^= 1
                if odd:
                    total -= table[place]
                else:
                    total += table[place]
        out[query[box]] += total


def add_to_answers(
    table: Array, strides: IntArray, low: IntArray, high: IntArray, query: IntArray, out: Array
) -> None:
    """As `add_box_sums`, whoever may write the bounds: it is compiled once for all."""
    add_box_sums(table, strides, only_read(low), only_read(high), only_read(query), out)


@kernel
def all_range_sums(table: Array, first: int, out: Array) -> None:
    """Fill ``out`` with the sums of the ranges [i, j) of a line in order, i slowest, from i = ``first``."""
    size = table.shape[0] - 1
    place = 0
    low = first
    while place < out.shape[0]:
        for high in range(low + 1, size + 1):
            if place == out.shape[0]:
                break
            out[place] = table[high] - table[low]
            place += 1
        low += 1


def box_sums(table: Array, low: IntArray, high: IntArray) -> npt.NDArray[np.float64]:
    """Sum an array over many boxes, each ``low ≤ place < high`` on every axis."""
    return sums_between(running_sums(table), low, high)


def sums_between(sums: Array, low: IntArray, high: IntArray) -> npt.NDArray[np.float64]:
    """Sum over many boxes from running sums that are kept."""
    if not sums.ndim:
        return np.full(len(low), float(sums))
    out = np.zeros(len(low))
    strides = np.array(sums.strides, dtype=np.int64) // sums.itemsize
    add_to_answers(sums.reshape(-1), strides, low, high, np.arange(len(low)), out)
    return out
