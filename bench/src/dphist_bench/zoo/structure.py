"""Mean-StructureFirst as the paper prints it: not private as soon as a count exceeds F."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.audit.neighbours import pair
from dphist.inference.estimate import Estimate, PieceNoise
from dphist.kernels.buckets.segmentation import Rows
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals
from dphist.private.questions import Candidates, IntArray, Layout


@dataclass(frozen=True)
class UnclippedBoundaries:
    """Boundaries by exp(−ε₁E/((k−1)·2·(2F+1))), with E from counts that nothing keeps below F."""

    bins: int
    ceiling: int

    def draws(self, layout: Layout) -> int:
        """One draw for each boundary."""
        return self.bins - 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score the boundaries by counts of any size."""
        walk = Rows(counts, loss="squared", lattice=True).descend(self.bins - 1)
        right = layout.size
        j, costs = next(walk)
        while True:
            scores = -costs[j:right].astype(np.int64)
            pick = yield Candidates(scores, np.array([0, right - j]), 2 * (2 * self.ceiling + 1))
            if j == 1:
                return
            right = j + int(pick[0])
            j, costs = walk.send(right)


@dataclass(frozen=True, kw_only=True)
class UnclippedStructureFirst:
    """Half of ε for a structure whose sensitivity is misstated, half for the bins."""

    bins: int = 2
    ceiling: int = 10

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Choose bins by a score that moves further than it says, then count them."""
        n, shape = data.size, data.shape
        structure, counting = data.split(Fraction(1, 2), Fraction(1, 2))
        picks = structure.choose(UnclippedBoundaries(self.bins, self.ceiling)).ravel()
        places: list[int] = []
        right = n
        for j, pick in zip(range(self.bins - 1, 0, -1), picks, strict=True):
            right = j + int(pick)
            places.append(right)
        starts = np.array([0, *places[::-1]])
        sizes = np.diff(np.append(starts, n))
        labels = np.repeat(np.arange(starts.size), sizes)
        noisy = counting.partition(labels, starts.size).measure(Totals())
        errors = PieceNoise(shape, labels, np.full(starts.size, float(noisy.scale)))
        return Estimate(np.repeat(noisy.values / sizes, sizes).reshape(shape), errors)


# Two boundaries are equally good; one more record in a cell of a thousand decides between them.
LEAKING_PAIR = pair("a count far above F", [1000, 0, 0, 0, 1000], 0)
