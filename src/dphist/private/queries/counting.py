"""The plainest questions: every cell, and the total of every part."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dphist.kernels.grouping import part_sums
from dphist.private.questions import IntArray, Layout, Moves, proven


@proven
@dataclass(frozen=True)
class Identity:
    """Every cell's count. One step moves one answer by one, so scale 1 and variance 1 keep the promises.

    Different cells have different answers: what a person's cells move is apart.
    """

    moves: ClassVar[Moves] = "apart"

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Give the counts in the shape of the cells."""
        return counts.reshape(layout.shape)

    def scales(self, layout: Layout) -> Fraction:
        """Noise of scale one at ε = 1."""
        return Fraction(1)

    def variances(self, layout: Layout) -> Fraction:
        """Noise of variance one at ρ = 1/2."""
        return Fraction(1)


@proven
@dataclass(frozen=True)
class Totals:
    """The sum of every part. Parts are disjoint: one step moves one total by one, so scale and variance 1 will do.

    Cells of one part add up, all with weight one.
    """

    moves: ClassVar[Moves] = "alike"

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Sum each part in integers."""
        if layout.labels is None:
            return np.array([counts.sum()], dtype=np.int64)
        return part_sums(counts, layout.labels, layout.parts)

    def scales(self, layout: Layout) -> Fraction:
        """Noise of scale one at ε = 1."""
        return Fraction(1)

    def variances(self, layout: Layout) -> Fraction:
        """Noise of variance one at ρ = 1/2."""
        return Fraction(1)
