"""The standard decomposition: every axis in turn, in place, a piece that fits in the cache at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.threads import THREADS, together
from dphist.kernels.wavelets.axes import Axis

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Slots that are transformed along all their axes before the next ones are touched: 8 MiB.
SLAB = 1 << 20
# Slabs smaller than this are worked on several at a time: 2 MiB. (It is also enough draws to be worth tables.)
BATCH = 1 << 18
# Cells that are written at a time, so that they stay in the cache.
_AT_ONCE = 1 << 15
# Below this a second thread costs more than it saves.
_WORTH_THREADS = 1 << 16


def slots(axes: Sequence[Axis]) -> tuple[int, ...]:
    """The shape of the coefficients."""
    return tuple(axis.slots for axis in axes)


def corner(axes: Sequence[Axis]) -> tuple[slice, ...]:
    """Where the cells lie in an array of that shape."""
    return tuple(slice(0, axis.size) for axis in axes)


def denominator(axes: Sequence[Axis]) -> int:
    """What `inverse` multiplies the cells by."""
    return prod(axis.denominator for axis in axes)


def slab_start(axes: Sequence[Axis]) -> int:
    """The first of the trailing axes that fit in the cache together; at least the last one counts."""
    start, size = len(axes) - 1, axes[-1].slots
    while start > 0 and size * axes[start - 1].slots <= SLAB:
        start -= 1
        size *= axes[start].slots
    return start


def forward(cells: NDArray[np.int64], axes: Sequence[Axis]) -> NDArray[np.int64]:
    """Give the integer coefficients of cells, in an array of their own."""
    coefficients = np.zeros(slots(axes), dtype=np.int64)
    coefficients[corner(axes)] = cells
    sweep(coefficients, axes, lambda axis: axis.forward)
    return coefficients


def inverse(coefficients: NDArray[Any], axes: Sequence[Axis]) -> NDArray[Any]:
    """Turn coefficients into cells times the denominator, in place; returns the view that holds the cells."""
    sweep(coefficients, axes, lambda axis: axis.inverse)
    return coefficients[corner(axes)]


def sweep(
    array: NDArray[Any],
    axes: Sequence[Axis],
    step: Callable[[Axis], Callable[[NDArray[Any], int, int], None]],
    threads: int = THREADS,
) -> None:
    """Apply one direction of every axis to an array of slots: first within slabs, then across them."""
    split = slab_start(axes)
    inner = slots(axes[split:])
    slabs = array.reshape(-1, *inner)
    threads = threads if array.size >= _WORTH_THREADS else 1

    def work(begin: int, end: int) -> None:
        for start in range(begin, end, batch(inner)):
            within(slabs[start : min(start + batch(inner), end)], axes[split:], step)

    together(work, len(slabs), threads)
    for axis in range(split):
        across(array, axes, axis, step, threads)


def batch(slab: Sequence[int]) -> int:
    """How many slabs of this shape to work on at a time."""
    return max(1, BATCH // prod(slab))


def within(
    slabs: NDArray[Any],
    axes: Sequence[Axis],
    step: Callable[[Axis], Callable[[NDArray[Any], int, int], None]],
) -> None:
    """Apply one direction of all the axes of some slabs, stacked along a first axis of their own."""
    for place, axis in enumerate(axes):
        view = slabs.reshape(-1, axis.slots, prod(slabs.shape[place + 2 :]))
        step(axis)(view, 0, view.shape[2])


def across(
    array: NDArray[Any],
    axes: Sequence[Axis],
    axis: int,
    step: Callable[[Axis], Callable[[NDArray[Any], int, int], None]],
    threads: int = THREADS,
) -> None:
    """Apply one direction of one axis to a whole array, its columns shared among threads."""
    view = array.reshape(-1, axes[axis].slots, prod(array.shape[axis + 1 :]))
    threads = threads if array.size >= _WORTH_THREADS else 1
    if view.shape[2] >= 64 * threads:
        together(lambda first, last: step(axes[axis])(view, first, last), view.shape[2], threads)
    else:
        columns = view.shape[2]
        together(lambda first, last: step(axes[axis])(view[first:last], 0, columns), len(view), threads)


def add_numerators(
    counts: IntArray,
    numerators: IntArray,
    offsets: IntArray,
    length: int,
    denominator: int,
    ceiling: int,
    out: Array,
) -> None:
    """Write (count · denominator + numerator) ÷ denominator: the exact sum in integers, then one rounding.

    Row r of ``numerators`` starts at ``offsets[r]``. ``out`` may be the memory of ``numerators`` when rows
    coincide: each number is read before its place is written.
    """
    for begin, rows in _rows(numerators, offsets, length):
        place = slice(begin, begin + rows.size)
        whole = np.minimum(counts[place], ceiling)
        whole *= denominator
        whole += rows
        np.divide(whole, float(denominator), out=out[place])


def copy_rows(numerators: IntArray, offsets: IntArray, length: int, out: Array) -> None:
    """Copy rows that start at ``offsets`` next to each other."""
    for begin, rows in _rows(numerators, offsets, length):
        out[begin : begin + rows.size] = rows


def _rows(numerators: IntArray, offsets: IntArray, length: int) -> Iterator[tuple[int, IntArray]]:
    """Rows that start at ``offsets``, and where they come when they stand side by side: pieces that fit in a cache."""
    if length >= _AT_ONCE:
        for row, offset in enumerate(offsets.tolist()):
            for begin in range(0, length, _AT_ONCE):
                end = min(begin + _AT_ONCE, length)
                yield row * length + begin, numerators[offset + begin : offset + end]
        return
    step = _AT_ONCE // length
    for row in range(0, offsets.size, step):
        places = offsets[row : row + step, None] + np.arange(length)
        yield row * length, numerators[places].reshape(-1)
