"""The plainest questions: every cell, the total of every part, what of it lies in low cells, and its middle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.grouping import part_middles, part_sums
from dphist.private.questions import IntArray, Layout, Moves, proven


class _One:
    """What is promised where one step moves one answer, by one at most."""

    def scales(self, layout: Layout) -> Fraction:
        """Noise of scale one at ε = 1."""
        return Fraction(1)

    def variances(self, layout: Layout) -> Fraction:
        """Noise of variance one at ρ = 1/2."""
        return Fraction(1)


@proven
@dataclass(frozen=True)
class Identity(_One):
    """Every cell's count. One step moves one answer by one, so scale 1 and variance 1 keep the promises.

    Different cells have different answers: the answers that a person's cells move are disjoint.
    """

    moves: ClassVar[Moves] = "disjoint"

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Give the counts in the shape of the cells."""
        return counts.reshape(layout.shape)


@proven
@dataclass(frozen=True)
class Totals(_One):
    """The sum of every part. Parts are disjoint: one step moves one total by one, so scale and variance 1 will do.

    Cells of one part add up, all with weight one.
    """

    moves: ClassVar[Moves] = "nonnegative"

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Sum each part in integers."""
        if layout.labels is None:
            return np.array([counts.sum()], dtype=np.int64)
        return part_sums(counts, layout.labels, layout.parts)


@proven
@dataclass(frozen=True)
class Heights(_One):
    """What lies in cells up to a height: of every part the sum of min(x, h).

    That function of one count, max(0, min(x, h)), moves by at most one when the count does. One step moves one count by
    one, so the sum of one part by at most one: scale and variance 1 will do.
    """

    height: int

    def __post_init__(self) -> None:
        if type(self.height) is not int or not 0 < self.height < 2**61:
            raise MechanismError("heights: the height must be a whole number above 0 and below 2^61")

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Cut every count, then sum each part in integers."""
        return Totals().answer(np.clip(counts, 0, self.height), layout)


@proven
@dataclass(frozen=True)
class Middles(_One):
    """Each part's median if it has an odd number of cells, else the *sum* of its two middle counts.

    Parts are disjoint, so a step moves one answer only. Raising one count by one raises exactly one entry of
    the part's sorted counts by one (the last copy of the value that was raised). A sum of distinct entries
    of the sorted counts thus moves by at most one: scale 1 and variance 1 keep the promises. Halving the sum of two
    middles afterwards halves its noise, where noising the median itself would not.
    """

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Sort each part and read its middle."""
        order, starts = layout.group()
        return part_middles(counts, order, starts)
