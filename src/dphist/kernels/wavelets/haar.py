"""The Haar wavelet along one axis: differences of the sums of two halves, all the way down.

The axis is the middle one of ``cells[outer, slots, inner]`` and holds ``n`` cells in its first ``n`` slots.
The tree over it has 2^l ≥ n leaves, but padding is never stored: a node that covers only padding has no
coefficient, and a node whose right half is padding keeps its difference in one of the few slots after the
cells. Elsewhere the node over cells r … r + 2s − 1 keeps its difference in slot r + s, where its right half's
sum was, and the total ends in slot 0; so both directions work in place and in the natural order of the cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Columns worked on together: a few hundred slots of this many eight-byte columns stay in the second-level cache.
_COLUMNS = 512
# Levels of a long row worked on together: 2¹² eight-byte cells stay in the first-level cache.
_ROW_LEVELS = 12


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


@kernel
def haar_forward(cells: Array, n: int, beyond: IntArray, first: int, last: int) -> None:
    """Replace cells by the total and the differences, in the columns ``first`` up to ``last``."""
    for outer in range(cells.shape[0]):
        for begin in range(first, last, _COLUMNS):
            end = min(begin + _COLUMNS, last)
            for level in range(beyond.size):
                half = 1 << level
                for left in range(0, n - half, 2 * half):
                    right = left + half
                    for i in range(begin, end):
                        a, b = cells[outer, left, i], cells[outer, right, i]
                        cells[outer, left, i] = a + b
                        cells[outer, right, i] = a - b
                if beyond[level] >= 0:
                    left = (n - 1) // (2 * half) * (2 * half)
                    for i in range(begin, end):
                        cells[outer, beyond[level], i] = cells[outer, left, i]


@kernel
def haar_inverse(cells: Array, n: int, beyond: IntArray, weights: Array, first: int, last: int) -> None:
    """Replace the total and the differences by cells times 2^l, in the columns ``first`` up to ``last``.

    With sums at depth j held as numerators over 2^j, both halves of S are S ± 2^j·D over 2^(j+1): no
    division, so integers stay exact. ``weights[level]`` is that 2^j in the type of the cells.
    """
    for outer in range(cells.shape[0]):
        for begin in range(first, last, _COLUMNS):
            end = min(begin + _COLUMNS, last)
            for level in range(beyond.size - 1, -1, -1):
                half = 1 << level
                weight = weights[level]
                if beyond[level] >= 0:
                    left = (n - 1) // (2 * half) * (2 * half)
                    for i in range(begin, end):
                        cells[outer, left, i] += weight * cells[outer, beyond[level], i]
                for left in range(0, n - half, 2 * half):
                    right = left + half
                    for i in range(begin, end):
                        total, apart = cells[outer, left, i], weight * cells[outer, right, i]
                        cells[outer, left, i] = total + apart
                        cells[outer, right, i] = total - apart


@kernel
def haar_forward_rows(rows: Array, n: int, beyond: IntArray) -> None:
    """Do what `haar_forward` does for an axis whose cells lie next to each other: ``rows[row, slots]``."""
    low = min(_ROW_LEVELS, beyond.size)
    for row in range(rows.shape[0]):
        cells = rows[row]
        # All low levels of a block while it is in the cache, then the few sums that are left.
        for begin in range(0, n, 1 << _ROW_LEVELS):
            end = min(n, begin + (1 << _ROW_LEVELS))
            for level in range(low):
                _forward_level(cells, begin, end, n, level, beyond[level])
        for level in range(low, beyond.size):
            _forward_level(cells, 0, n, n, level, beyond[level])


@kernel
def haar_inverse_rows(rows: Array, n: int, beyond: IntArray, weights: Array) -> None:
    """Do what `haar_inverse` does for an axis whose cells lie next to each other: ``rows[row, slots]``."""
    low = min(_ROW_LEVELS, beyond.size)
    for row in range(rows.shape[0]):
        cells = rows[row]
        for level in range(beyond.size - 1, low - 1, -1):
            _inverse_level(cells, 0, n, n, level, beyond[level], weights[level])
        for begin in range(0, n, 1 << _ROW_LEVELS):
            end = min(n, begin + (1 << _ROW_LEVELS))
            for level in range(low - 1, 2, -1):
                _inverse_level(cells, begin, end, n, level, beyond[level], weights[level])
            whole = begin
            if low >= 3:
                whole = begin + (end - begin) // 8 * 8
                _inverse_eights(cells, begin, whole, weights[2], weights[1], weights[0])
            for level in range(min(low, 3) - 1, -1, -1):
                _inverse_level(cells, whole, end, n, level, beyond[level], weights[level])


@kernel
def _forward_level(cells: Array, begin: int, end: int, n: int, level: int, beyond: int) -> None:
    half = 1 << level
    for left in range(begin, end - half, 2 * half):
        a, b = cells[left], cells[left + half]
        cells[left] = a + b
        cells[left + half] = a - b
    if end == n and beyond >= 0:
        cells[beyond] = cells[(n - 1) // (2 * half) * (2 * half)]


@kernel
def _inverse_level(cells: Array, begin: int, end: int, n: int, level: int, beyond: int, weight: Any) -> None:
    half = 1 << level
    if end == n and beyond >= 0:
        cells[(n - 1) // (2 * half) * (2 * half)] += weight * cells[beyond]
    for left in range(begin, end - half, 2 * half):
        total, apart = cells[left], weight * cells[left + half]
        cells[left] = total + apart
        cells[left + half] = total - apart


@kernel
def _inverse_eights(cells: Array, begin: int, end: int, four: Any, two: Any, one: Any) -> None:
    # The three lowest levels hold seven eighths of the work; eight cells at a time they stay in registers.
    for i in range(begin, end, 8):
        total, apart = cells[i], four * cells[i + 4]
        left, right = total + apart, total - apart
        apart = two * cells[i + 2]
        a, b = left + apart, left - apart
        apart = two * cells[i + 6]
        c, d = right + apart, right - apart
        w, x, y, z = one * cells[i + 1], one * cells[i + 3], one * cells[i + 5], one * cells[i + 7]
        cells[i], cells[i + 1] = a + w, a - w
        cells[i + 2], cells[i + 3] = b + x, b - x
        cells[i + 4], cells[i + 5] = c + y, c - y
        cells[i + 6], cells[i + 7] = d + z, d - z


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
