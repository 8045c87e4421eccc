"""The plainest questions: every cell, and the total of every part."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.kernels.grouping import part_sums
from dphist.private.questions import IntArray, Layout, proven


@proven
@dataclass(frozen=True)
class Identity:
    """Every cell's count. One step moves one answer by one, so scale 1 keeps the promise."""

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Give the counts in the shape of the cells."""
        return counts.reshape(layout.shape)

    def scales(self, layout: Layout) -> Fraction:
        """Noise of scale one at ε = 1."""
        return Fraction(1)


@proven
@dataclass(frozen=True)
class Totals:
    """The sum of every part. Parts are disjoint: one step moves one total by one, so scale 1 keeps the promise."""

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Sum each part in integers."""
        if layout.labels is None:
            return np.array([counts.sum()], dtype=np.int64)
        return part_sums(counts, layout.labels, layout.parts)

    def scales(self, layout: Layout) -> Fraction:
        """Noise of scale one at ε = 1."""
        return Fraction(1)
