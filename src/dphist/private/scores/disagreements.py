"""Where a public guess is furthest from the counts."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.summed_area import add_box_sums, running_sums
from dphist.private.questions import Candidates, IntArray, Layout, proven, seal

# Counts stay below 2⁶², so a difference from such a guess stays in 64 bits.
_LARGEST_GUESS = 2**61


@proven
@dataclass(frozen=True, eq=False)
class Disagreements:
    """Score boxes of cells by how far the true count in each is from a public guess.

    ``low`` and ``high`` bound the boxes (half-open, one row a box), ``guess`` holds whole numbers below 2⁶¹.

    Why the range is 2: one step moves each true count by one or not at all, so each |count − guess| by at
    most one either way. (No sum wraps: counts sum to at most 2⁶² behind the gate, and boxes lie inside the cells.)
    """

    low: IntArray
    high: IntArray
    guess: IntArray

    def __post_init__(self) -> None:
        seal(self, "low", "high", "guess")
        if self.low.ndim != 2 or self.low.shape != self.high.shape or self.guess.shape != self.low.shape[:1]:
            raise MechanismError("disagreements: give a row of bounds and a guess for each box")
        if self.guess.size and max(abs(int(self.guess.min())), abs(int(self.guess.max()))) >= _LARGEST_GUESS:
            raise MechanismError("disagreements: guesses must be below 2^61")

    def draws(self, layout: Layout) -> int:
        """One choice."""
        shape = np.array(layout.shape, dtype=np.int64)
        inside = self.low.shape[1] == shape.size and bool(
            ((self.low >= 0) & (self.low <= self.high) & (self.high <= shape)).all()
        )
        if layout.parts != 1 or not len(self.low) or not inside:
            raise MechanismError("disagreements: boxes must lie inside the cells, which must be one part")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every box."""
        table = running_sums(counts.reshape(layout.shape))
        strides = np.array(table.strides, dtype=np.int64) // table.itemsize
        answers = np.zeros(len(self.low), dtype=np.int64)
        add_box_sums(table.reshape(-1), strides, self.low, self.high, np.arange(len(self.low)), answers)
        scores = np.abs(answers - self.guess)
        yield Candidates(scores, np.array([0, scores.size], dtype=np.int64), 2)
