"""The standard decomposition: every axis in turn, in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import THREADS, together
from dphist.kernels.wavelets.axes import Axis

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Slots that are transformed along all their axes before the next ones are touched: 8 MiB.
SLAB = 1 << 20
# Slabs smaller than this are worked on several at a time: 2 MiB. (It is also enough draws to be worth tables.)
BATCH = 1 << 18
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
) -> None:
    """Apply one direction of every axis to an array of slots, columns or rows shared among threads."""
    threads = THREADS if array.size >= _WORTH_THREADS else 1
    for place, axis in enumerate(axes):
        _share(array.reshape(-1, axis.slots, prod(array.shape[place + 1 :])), step(axis), threads)


def _share(view: NDArray[Any], step: Callable[[NDArray[Any], int, int], None], threads: int) -> None:
    columns = view.shape[2]
    if columns >= 64 * threads:
        together(lambda first, last: step(view, first, last), columns, threads)
    else:
        together(lambda first, last: step(view[first:last], 0, columns), len(view), threads)


def batch(slab: Sequence[int]) -> int:
    """How many slabs of this shape to work on at a time."""
    return max(1, BATCH // prod(slab))
