"""Neighbouring cells: tables of half as many of them, and an order in which they stay close."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def halved(array: FloatArray, axes: Iterable[int]) -> FloatArray:
    """Add neighbours in pairs along some axes; a last one without a partner stays alone."""
    for axis in axes:
        array = np.add.reduceat(array, np.arange(0, array.shape[axis], 2), axis=axis)
    return array


def doubled(array: NDArray[Any], shape: tuple[int, ...], axes: Iterable[int]) -> NDArray[Any]:
    """Repeat every entry for the pair of a table of this shape that it stands for."""
    for axis in axes:
        array = np.repeat(array, 2, axis=axis).take(np.arange(shape[axis]), axis=axis)
    return array


IntArray = NDArray[np.int64]


def hilbert_order(shape: tuple[int, ...]) -> IntArray:
    """List the cells of a grid along the Hilbert curve, on which neighbours stay close, in any dimension.

    After J. Skilling, "Programming the Hilbert curve" (2004): Gray-code the coordinates' bits, undo the excess
    turns, interleave. Cells beyond a side that is no power of two are skipped.
    """
    size = math.prod(shape)
    bits = max(1, max(n - 1 for n in shape).bit_length())
    if len(shape) * bits > 62:
        # The distance would not fit a machine word; C order keeps neighbours along the last axis close.
        return np.arange(size, dtype=np.int64)
    x = list(np.indices(shape).reshape(len(shape), size))
    for bit in range(bits - 1, 0, -1):
        below = (1 << bit) - 1
        for a in range(len(x)):
            turned = x[a] >> bit & 1 == 1
            swapped = np.where(turned, 0, (x[0] ^ x[a]) & below)
            x[0] = x[0] ^ np.where(turned, below, swapped)
            x[a] = x[a] ^ (swapped if a else 0)
    for a in range(1, len(x)):
        x[a] ^= x[a - 1]
    undone = np.zeros(size, dtype=np.int64)
    for bit in range(bits - 1, 0, -1):
        undone ^= np.where(x[-1] >> bit & 1, (1 << bit) - 1, 0)
    places = np.zeros(size, dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for axis in x:
            places = places << 1 | (axis ^ undone) >> bit & 1
    return np.argsort(places, kind="stable")
