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

from dphist.estimate import Estimate, PieceNoise
from dphist.private.gate import PrivateCounts
from dphist.private.questions import Layout, PricedNoise

GRID = 4


@dataclass(frozen=True)
class LeakyDeviation:
    """All buckets, absolute deviations about the mean on a grid of quarters, noised by a rule that may be wrong."""

    rule: Literal["right", "printed", "two", "singletons", "clamped"]
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

    def runs(self, counts: np.ndarray, noise: PricedNoise, runs: int) -> np.ndarray:
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
        return cut.T

    def segment(self, counts: np.ndarray, layout: Layout, noise: PricedNoise) -> np.ndarray:
        """Choose one partition."""
        cut = self.runs(counts, noise, 1)[0]
        starts = [counts.size]
        while starts[-1] > 0:
            starts.append(int(cut[starts[-1]]))
        return np.array(starts[:0:-1], dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class LeakySmoothing:
    """Spend everything on the partition and publish where its buckets start, so that any leak is the partition's.

    Where the faults show, at ε = 1: ``printed`` with price 7 on 0 0 0 0 2 2 2 2 against the same with 1 at the
    end, within a few thousand runs; the others need 10⁵ runs or more, which `LeakyDeviation.runs` makes at
    once: ``singletons`` and ``clamped`` with price 0 on six empty cells against one record in the fourth (cuts
    2, 3, 4, 5 and 3, 4, 5), ``two`` with price 90 on the plateaus of ``tests/private/test_segments.py``.
    """

    rule: str = "printed"
    price: Fraction = Fraction(0)

    def estimate(self, data: PrivateCounts) -> Estimate:
        shape, n = data.shape, data.size
        starts = data.segment(LeakyDeviation(self.rule, self.price))  # type: ignore[arg-type]
        counts = np.zeros(n)
        counts[starts] = 1.0
        return Estimate(counts.reshape(shape), PieceNoise(shape, np.zeros(n, dtype=np.int64), np.zeros(1)))
