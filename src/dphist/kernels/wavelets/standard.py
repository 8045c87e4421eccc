"""The standard decomposition: every axis in turn, in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.wavelets.axes import Axis

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Slots that are transformed along all their axes before the next ones are touched: 8 MiB.
SLAB = 1 << 20
# Slabs smaller than this are worked on several at a time: 2 MiB. (It is also enough draws to be worth tables.)
BATCH = 1 << 18
# Columns and numbers worked on together: a few hundred slots of 512 columns stay in the second-level cache.
_COLUMNS, _AT_ONCE = 512, 1 << 15


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


def sweep(array: Array, axes: Sequence[Axis], step: Callable[[Axis], Callable[[Array], None]]) -> None:
    """Apply one direction of every axis to an array of slots, 32,768 numbers at a time, which stay in a cache."""
    for place, axis in enumerate(axes):
        view, turn = array.reshape(-1, axis.slots, prod(array.shape[place + 1 :])), step(axis)
        columns = view.shape[2]
        rows = _AT_ONCE // min(_COLUMNS, columns)
        for outer in range(0, len(view), rows):
            for begin in range(0, columns, _COLUMNS):
                turn(view[outer : outer + rows, :, begin : begin + _COLUMNS])


def batch(slab: Sequence[int]) -> int:
    """How many slabs of this shape to work on at a time."""
    return max(1, BATCH // prod(slab))
