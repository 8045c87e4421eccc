"""Smoothing as it must not be done: each of these was printed, published or tempting, and each leaks.

`LeakyDeviation(rule=…)` is a segmentation cost like `AbsoluteDeviation`, with one thing wrong:

* ``printed``     noise 1/(ε·length), as the paper has it;
* ``two``         noise 2/ε everywhere: enough for one cost, not for two that pull apart;
* ``singletons``  the right noise, but none on buckets of one cell;
* ``clamped``     as public code has it: (2 − 1/length − 1/n)/ε, bare singletons, and costs cut from below at the price.

`LeakySmoothing` makes a mechanism of it. They are written to be caught: no release may use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Estimate, PieceNoise
from dphist.private.gate import PrivateCounts
from dphist.private.questions import IntArray, Layout, PricedNoise

GRID = 4
Rule = Literal["right", "printed", "two", "singletons", "clamped"]


@dataclass(frozen=True)
class LeakyDeviation:
    """All buckets, absolute deviations about the mean on a grid of quarters, noised by a rule that may be wrong."""

    rule: Rule
    price: Fraction = Fraction(1)

    def scale(self, length: int, n: int) -> Fraction:
        """Noise of a bucket at ε = 1, in grid steps; 0 is none."""
        right = Fraction(2 * GRID - 2 * GRID // length + 2 * GRID - 2 * GRID // n)
        if self.rule == "printed":
            return Fraction(GRID, length)
        if self.rule == "two":
            return Fraction(2 * GRID)
        if self.rule == "singletons":
            return right if length > 1 else Fraction(0)
        if self.rule == "clamped":
            return GRID * (2 - Fraction(1, length) - Fraction(1, n)) if length > 1 else Fraction(0)
        return right

    def runs(self, counts: IntArray, noise: PricedNoise, runs: int) -> IntArray:
        """Last cut before every end, for many independent runs at once: int64[runs, n + 1]."""
        n = counts.size
        x = counts.astype(np.float64)
        price = round(self.price * GRID)
        best = np.full((n + 1, runs), np.iinfo(np.int64).max // 2)
        cut = np.zeros((n + 1, runs), dtype=np.int64)
        best[0] = 0
        for start in range(n):
            for end in range(start + 1, n + 1):
                cells = x[start:end]
                cost = np.full(runs, int(np.floor(GRID * np.abs(cells - cells.mean()).sum() + 0.5)) + price)
                scale = self.scale(end - start, n)
                if scale:
                    cost += noise.laplace(scale, runs)
                if self.rule == "clamped":
                    cost = np.maximum(cost, price)
                total = best[start] + cost
                better = total < best[end]
                best[end][better] = total[better]
                cut[end][better] = start
        return np.ascontiguousarray(cut.T)

    def check(self, layout: Layout) -> Fraction:
        """Give the largest noise scale of the right rule."""
        return Fraction(4 * GRID)

    def segment(self, counts: IntArray, layout: Layout, noise: PricedNoise) -> IntArray:
        """Choose one partition, as `runs` does."""
        (cut,) = self.runs(counts, noise, 1)
        starts = [counts.size]
        while starts[-1] > 0:
            starts.append(int(cut[starts[-1]]))
        return np.array(starts[:0:-1], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class LeakySmoothing:
    """Spend everything on the partition and publish where its buckets start, so that any leak is the partition's.

    ``two`` needs the plateaus in the tests of the segmentation, price 90 and about a million runs
    (`LeakyDeviation.runs` makes them at once); the other faults show on a few empty or equal cells.
    """

    rule: Rule = "printed"
    price: Fraction = Fraction(0)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for a partition whose noise breaks its promise, and publish it."""
        shape, n = data.shape, data.size
        starts = data.segment(LeakyDeviation(self.rule, self.price))
        counts = np.zeros(n)
        counts[starts] = 1.0
        return Estimate(counts.reshape(shape), PieceNoise(shape, np.zeros(n, dtype=np.int64), np.zeros(1)))


def which_partition(estimate: Estimate) -> NDArray[np.float64]:
    """Number the partition: the leak is in the whole of it, not in any one cut."""
    flat = estimate.counts.reshape(-1)
    return np.array([float(flat @ 2.0 ** np.arange(flat.size))])
