"""Where to put the boundaries of a histogram with a given number of bins (StructureFirst)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.buckets.segmentation import LARGEST_EXACT_SQUARES, LARGEST_SUM, Rows
from dphist.kernels.special import log_factorial
from dphist.private.questions import Candidates, IntArray, Layout, proven


@proven
@dataclass(frozen=True)
class Boundaries:
    """Place bins − 1 boundaries from right to left, each by the cost of the best histogram it still allows.

    With the boundary to the right at r and j bins to place on its left, candidate i of a draw is the boundary
    q = j + i (j ≤ q < r), and its score is minus the least total loss of j bins on x₁…x_q and one on
    x_{q+1}…x_r. The walk starts at r = n, j = bins − 1; `places` reads it back from the drawn numbers.

    Why the ranges keep the promise. Counts are first cut at a public ceiling F (an integer, at least 1),
    under which one step stays at most one step; say x becomes x + 1, both in 0 … F. A candidate's cost is
    the minimum, over partitions and levels μ in [0, F], of sums of losses in which the changed cell appears
    once, so each sum changes by what the loss of that cell about one level changes.

    * Squared: (x + 1 − μ)² − (x − μ)² = 2x + 1 − 2μ, which lies in an interval of length 2F that is the same
    for all
      sums. A minimum of sums, and so every candidate's cost, changes by a number in it: range 2F. (A step
      that crosses the ceiling changes nothing.) Without the cut the interval grows with the largest count,
      and the choice is not private.
    * Absolute: |x + 1 − μ| − |x − μ| lies in [−1, 1]: range 2, whatever the counts.

    Levels are restricted to a public lattice, multiples of 2⁻ʰ of a record, so costs are integers in units
    of 4⁻ʰ (1 for absolute loss, where some integer is always a best level) and are minimised without any
    rounding: the score is exactly what the proof speaks of. h and the largest ceiling that 64 bits allow are
    functions of the number of cells and the ceiling asked for, never of a count.

    ``even`` is 1 ÷ the budget of a draw. If given, each score is raised by a public number, the same on all
    data, so changes and ranges are untouched: range · even · ln C(q − 1, j − 1), the logarithm of how many
    ways are left to place the other boundaries. Where the data say nothing, every structure is then equally
    likely.
    """

    bins: int
    loss: Literal["squared", "absolute"]
    ceiling: int | None = None
    even: Fraction | None = None

    def draws(self, layout: Layout) -> int:
        """One draw for each boundary."""
        if layout.parts != 1:
            raise MechanismError("boundaries need cells in one part")
        if not 1 < self.bins < layout.size:
            raise MechanismError(
                "bins must lie strictly between 1 and the number of cells: else nothing is to choose"
            )
        if self.loss == "squared" and (self.ceiling is None or self.ceiling < 1):
            raise MechanismError("ceiling must be an integer of at least 1 under squared loss")
        if self.even is not None and not 0 <= self.even <= 2**60:
            # A bonus above zero would not be cut where 64 bits end, and scores that wrap move any distance.
            raise MechanismError("even must lie from 0 to 2^60: it is one over the budget of a draw")
        return self.bins - 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score every place of one boundary after another."""
        ceiling, refine = self.lattice(layout.size)
        values = np.minimum(counts, ceiling) << refine
        walk = Rows(values, loss=self.loss, lattice=True).descend(self.draws(layout))
        tilt = 2 * ceiling * 4**refine if self.loss == "squared" else 2
        factorials = log_factorial(np.arange(layout.size, dtype=np.float64))
        right = layout.size
        j, costs = next(walk)
        while True:
            scores = -costs[j:right].astype(np.int64) + self._bonus(j, right, tilt, factorials)
            pick = yield Candidates(scores, np.array([0, right - j], dtype=np.int64), tilt)
            if j == 1:
                return
            right = j + int(pick[0])
            j, costs = walk.send(right)

    def lattice(self, cells: int) -> tuple[int, int]:
        """Give the ceiling that is applied and how many times the level lattice halves a record."""
        if self.loss == "absolute":
            most = LARGEST_SUM // (2 * cells)
            return most if self.ceiling is None else min(max(self.ceiling, 1), most), 0
        most = max(1, isqrt(LARGEST_EXACT_SQUARES // cells))
        ceiling = min(self.ceiling or 1, most)
        refine = 0
        # Multiples of 2⁻³ where 53 bits leave room: beyond that a bin's cost gains less than 0.004 a cell.
        while refine < 3 and (ceiling << (refine + 1)) <= most:
            refine += 1
        return ceiling, refine

    def _bonus(self, j: int, right: int, tilt: int, factorials: NDArray[np.float64]) -> IntArray:
        if self.even is None:
            return np.zeros(right - j, dtype=np.int64)
        # ln C(q − 1, j − 1) for q = j … right − 1.
        ways = factorials[j - 1 : right - 1] - factorials[j - 1] - factorials[: right - j]
        # Relative to the largest, and cut where 64 bits end: such a place is never drawn anyway.
        bonus = (ways - ways.max()) * float(self.even * tilt)
        rounded: IntArray = np.rint(np.maximum(bonus, -float(2**60))).astype(np.int64)
        return rounded

    def places(self, picks: IntArray, cells: int) -> IntArray:
        """Read drawn numbers back as the starts of the bins, the first of which is 0."""
        right, starts = cells, []
        for j, pick in zip(range(self.bins - 1, 0, -1), picks.ravel(), strict=True):
            right = j + int(pick)
            starts.append(right)
        return np.array([0, *starts[::-1]], dtype=np.int64)
