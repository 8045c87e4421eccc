"""An order of the cells of a grid in which neighbours stay close: the Hilbert curve in any dimension.

After J. Skilling, "Programming the Hilbert curve" (2004): Gray-code the coordinates' bits, undo the excess
turns, interleave.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]


@kernel
def _places(shape: IntArray, bits: int, out: IntArray) -> None:
    """Fill ``out`` with every cell's distance along the curve, cells in C order."""
    axes = shape.size
    x = np.zeros(axes, dtype=np.int64)
    at = np.zeros(axes, dtype=np.int64)
    for cell in range(out.size):
        for a in range(axes):
            x[a] = at[a]
        q = 1 << (bits - 1)
        while q > 1:
            p = q - 1
            for a in range(axes):
                if x[a] & q:
                    x[0] ^= p
                else:
                    t = (x[0] ^ x[a]) & p
                    x[0] ^= t
                    x[a] ^= t
            q >>= 1
        for a in range(1, axes):
            x[a] ^= x[a - 1]
        t = 0
        q = 1 << (bits - 1)
        while q > 1:
            if x[axes - 1] & q:
                t ^= q - 1
            q >>= 1
        place = 0
        for bit in range(bits - 1, -1, -1):
            for a in range(axes):
                place = (place << 1) | (((x[a] ^ t) >> bit) & 1)
        out[cell] = place
        for a in range(axes - 1, -1, -1):
            at[a] += 1
            if at[a] < shape[a]:
                break
            at[a] = 0


def hilbert_order(shape: tuple[int, ...]) -> IntArray:
    """List the cells of a grid along the Hilbert curve; cells beyond a side that is no power of two are skipped."""
    size = math.prod(shape)
    bits = max(1, max(n - 1 for n in shape).bit_length())
    if len(shape) * bits > 62:
        # The distance would not fit a machine word; C order keeps neighbours along the last axis close.
        return np.arange(size, dtype=np.int64)
    places = np.empty(size, dtype=np.int64)
    _places(np.array(shape, dtype=np.int64), bits, places)
    return np.argsort(places, kind="stable").astype(np.int64)
