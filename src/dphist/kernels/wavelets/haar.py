"""The Haar wavelet along one axis: differences of the sums of two halves, all the way down.

The axis is the middle one of ``cells[outer, slots, inner]`` and holds ``n`` cells in its first ``n`` slots.
The tree over it has 2^l ≥ n leaves, but padding is never stored: a node that covers only padding has no
coefficient, and a node whose right half is padding keeps its difference in one of the few slots after the
cells. Elsewhere the node over cells r … r + 2s − 1 keeps its difference in slot r + s, where its right half's
sum was, and the total ends in slot 0; so both directions work in place and in the natural order of the cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Columns worked on together: a few hundred slots of this many eight-byte columns stay in the second-level cache.
_COLUMNS = 512
# Numbers worked on together, so that they stay in a cache and little room is needed beside them.
_AT_ONCE = 1 << 15


def haar_levels(n: int) -> int:
    """How many times the padded axis halves: log₂ of its padded size."""
    return (n - 1).bit_length()


def haar_beyond(n: int) -> NDArray[np.int64]:
    """Give the slot after the cells that each level's last node needs, or −1; the lowest level first."""
    beyond = np.full(haar_levels(n), -1, dtype=np.int64)
    # The last node of a level has nothing but padding on its right exactly where n − 1 has a zero bit.
    levels = [level for level in range(beyond.size) if not (n - 1) >> level & 1]
    beyond[levels] = n + np.arange(len(levels))
    return beyond


def haar_slots(n: int) -> int:
    """How many slots the coefficients of ``n`` cells need: one for each node that covers a cell, and the total's."""
    return n + haar_levels(n) - (n - 1).bit_count()


def haar_depths(n: int) -> NDArray[np.int64]:
    """Give the level of every slot's coefficient: 0 for the total, then 1 for the root's difference, and so on."""
    levels = haar_levels(n)
    depth = np.zeros(haar_slots(n), dtype=np.int64)
    for level, slot in enumerate(haar_beyond(n)):
        half = 1 << level
        depth[half : n : 2 * half] = levels - level
        if slot >= 0:
            depth[slot] = levels - level
    return depth


def haar_forward(cells: Array, n: int, beyond: IntArray, first: int, last: int) -> None:
    """Replace cells by the total and the differences, in the columns ``first`` up to ``last``."""
    for part in pieces(cells, first, last):
        for level, slot in enumerate(beyond.tolist()):
            for left, right in _halves(part, n, level):
                apart = left - right
                left += right
                right[...] = apart
            if slot >= 0:
                part[:, slot] = part[:, (n - 1) >> (level + 1) << (level + 1)]


def haar_inverse(cells: Array, n: int, beyond: IntArray, weights: Array, first: int, last: int) -> None:
    """Replace the total and the differences by cells times 2^l, in the columns ``first`` up to ``last``.

    With sums at depth j held as numerators over 2^j, both halves of S are S ± 2^j·D over 2^(j+1): no
    division, so integers stay exact. ``weights[level]`` is that 2^j in the type of the cells.
    """
    for part in pieces(cells, first, last):
        for level in range(beyond.size - 1, -1, -1):
            weight = weights[level]
            if beyond[level] >= 0:
                part[:, (n - 1) >> (level + 1) << (level + 1)] += weight * part[:, beyond[level]]
            for left, right in _halves(part, n, level):
                apart = weight * right
                np.subtract(left, apart, out=right)
                left += apart


def pieces(cells: Array, first: int, last: int) -> Iterator[Array]:
    """Some rows and columns at a time."""
    rows = _AT_ONCE // min(_COLUMNS, max(last - first, 1))
    for outer in range(0, cells.shape[0], rows):
        for begin in range(first, last, _COLUMNS):
            yield cells[outer : outer + rows, :, begin : min(begin + _COLUMNS, last)]


def _halves(part: Array, n: int, level: int) -> Iterator[tuple[Array, Array]]:
    """Where the sums of both halves of a level's nodes are, some at a time; the last may have padding for its right."""
    half = 1 << level
    left, right = part[:, 0 : n - half : 2 * half], part[:, half : n : 2 * half]
    nodes = max(1, _AT_ONCE // (part.shape[0] * part.shape[2]))
    for begin in range(0, left.shape[1], nodes):
        yield left[:, begin : begin + nodes], right[:, begin : begin + nodes]


def haar_spread(
    low: NDArray[np.int64], high: NDArray[np.int64], n: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """How noise of variance one in every coefficient adds up in the sums of cells ``low`` up to ``high``.

    A range weighs the total by L ÷ m' (its length over the padded size) and the difference of a node by (α −
    β) ÷ W: the cells it takes of the left half less those of the right, over the node's size. Only nodes cut
    by an end of the range are unequal, two at most on a level. Returns the sum of squared weights and the
    largest weight, per range.
    """
    levels = haar_levels(n)
    length = (high - low).astype(np.float64)
    empty = high <= low
    share = length / (1 << levels)
    total, largest = share * share, share.copy()
    for level in range(1, levels + 1):
        size = 1 << level
        one, other = low // size, (high - 1) // size
        for node, skip in ((one, None), (other, one == other)):
            start = node * size
            middle, stop = start + size // 2, start + size
            left = np.minimum(high, middle) - np.maximum(low, start)
            right = np.minimum(high, stop) - np.maximum(low, middle)
            weight = np.abs(np.maximum(left, 0) - np.maximum(right, 0)) / size
            if skip is not None:
                weight = np.where(skip, 0.0, weight)
            total += weight * weight
            np.maximum(largest, weight, out=largest)
    return np.where(empty, 0.0, total), np.where(empty, 0.0, largest)
