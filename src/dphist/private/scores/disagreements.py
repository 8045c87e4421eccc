"""Where a public guess is furthest from the counts."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from dphist.kernels.summed_area import add_box_sums, running_sums
from dphist.private.questions import Candidates, IntArray, Layout


@dataclass(frozen=True, eq=False)
class Disagreements:
    """Score boxes of cells by how far the true count in each is from a public guess.

    ``low`` and ``high`` bound the boxes (half-open, one row a box), ``guess`` holds whole numbers below 2⁶¹.

    Why the range is 2: one step moves each true count by one or not at all, so each |count − guess| by at
    most one either way.
    """

    low: IntArray
    high: IntArray
    guess: IntArray

    def draws(self, layout: Layout) -> int:
        """One choice."""
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every box."""
        table = running_sums(counts.reshape(layout.shape))
        strides = np.array(table.strides, dtype=np.int64) // table.itemsize
        answers = np.zeros(len(self.low), dtype=np.int64)
        add_box_sums(table.reshape(-1), strides, self.low, self.high, np.arange(len(self.low)), answers)
        scores = np.abs(answers - self.guess)
        yield Candidates(scores, np.array([0, scores.size], dtype=np.int64), 2)
