"""The Haar wavelet along one axis: differences of the sums of two halves, all the way down.

The axis is the middle one of ``cells[outer, slots, inner]`` and holds ``n`` cells in its first ``n`` slots.
The tree over it has 2^l ≥ n leaves, but padding is never stored: a node that covers only padding has no
coefficient, and a node whose right half is padding keeps its difference in one of the few slots after the
cells. Elsewhere the node over cells r … r + 2s − 1 keeps its difference in slot r + s, where its right half's
sum was, and the total ends in slot 0; so both directions work in place and in the natural order of the cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dphist.kernels.wavelets.axes import Array, Axis, FloatArray, IntArray


@dataclass(frozen=True)
class HaarAxis(Axis):
    """An ordered axis: the total, and left sum − right sum of every node of a binary tree.

    A cell lies under one node of each of the l levels, so one step moves l differences and the total by one
    each: sensitivity 1 + l and weight 1 everywhere.
    """

    size: int

    @property
    def levels(self) -> int:
        """How many times the padded axis halves: log₂ of its padded size."""
        return (self.size - 1).bit_length()

    @property
    def slots(self) -> int:
        """One for each node that covers a cell, and the total's: padding has none."""
        return self.size + self.levels - (self.size - 1).bit_count()

    @property
    def padded(self) -> int:
        """The next power of two."""
        return 1 << self.levels

    @property
    def denominator(self) -> int:
        """The padded size."""
        return self.padded

    @property
    def sensitivity(self) -> int:
        """1 + log₂ of the padded size."""
        return 1 + self.levels

    @property
    def bound(self) -> float:
        """(2 + log₂ of the padded size) ÷ 2."""
        return (2 + self.levels) / 2

    @cached_property
    def depths(self) -> IntArray:
        """The total, then the root's difference, and so on down."""
        depth = np.zeros(self.slots, dtype=np.int64)
        for level, slot in enumerate(self._beyond.tolist()):
            half = 1 << level
            depth[half : self.size : 2 * half] = self.levels - level
            if slot >= 0:
                depth[slot] = self.levels - level
        return depth

    @cached_property
    def _beyond(self) -> IntArray:
        """The slot after the cells that each level's last node needs, or −1; the lowest level first."""
        beyond = np.full(self.levels, -1, dtype=np.int64)
        # The last node of a level has nothing but padding on its right exactly where n − 1 has a zero bit.
        levels = [level for level in range(beyond.size) if not (self.size - 1) >> level & 1]
        beyond[levels] = self.size + np.arange(len(levels))
        return beyond

    def forward(self, cells: Array) -> None:
        """Sum and difference, level by level."""
        for level, slot in enumerate(self._beyond.tolist()):
            left, right = _halves(cells, self.size, level)
            apart = left - right
            left += right
            right[...] = apart
            if slot >= 0:
                cells[:, slot] = cells[:, (self.size - 1) >> (level + 1) << (level + 1)]

    def inverse(self, cells: Array) -> None:
        """Halves from their sum and difference, top down, as numerators.

        With sums at depth j held as numerators over 2^j, both halves of S are S ± 2^j·D over 2^(j+1): no
        division, so integers stay exact.
        """
        for level, slot in reversed(list(enumerate(self._beyond.tolist()))):
            weight = cells.dtype.type(1 << (self.levels - 1 - level))
            if slot >= 0:
                cells[:, (self.size - 1) >> (level + 1) << (level + 1)] += weight * cells[:, slot]
            left, right = _halves(cells, self.size, level)
            apart = weight * right
            np.subtract(left, apart, out=right)
            left += apart

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """How noise of variance one in every coefficient adds up in ranges of cells.

        A range weighs the total by L ÷ m' (its length over the padded size) and the difference of a node by (α −
        β) ÷ W: the cells it takes of the left half less those of the right, over the node's size. Only nodes cut
        by an end of the range are unequal, two at most on a level.
        """
        length = (high - low).astype(np.float64)
        empty = high <= low
        share = length / (1 << self.levels)
        total, largest = share * share, share.copy()
        for level in range(1, self.levels + 1):
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


def _halves(cells: Array, n: int, level: int) -> tuple[Array, Array]:
    """Where the sums of both halves of a level's nodes are; the last node may have padding for its right."""
    half = 1 << level
    return cells[:, 0 : n - half : 2 * half], cells[:, half : n : 2 * half]
