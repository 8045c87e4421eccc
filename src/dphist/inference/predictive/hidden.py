"""Intervals of cells measured one by one that allow for what noise hides.

Cells whose counts lie below the noise are published as next to nothing, and where a stretch of them was taken for
nothing the predictive law leaves nothing to divide either: both err to one side, and no variance shows it. But noisy
cells are unbiased, however small their counts are. Over all cells that are published below a deviation of the noise
they add up to what those truly hold, but for the noise of the sum; what that leaves unsaid may be in any of them.

Only released values are read, so nothing is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.errors import PredictiveErrors, asked_cells

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Sums of more cells than this are hedged already (`Engine.hedged`), and here by so much more of what the law claims to
# know beyond the noise.
_SHORT = 32.0
_LONG = 0.4
# Where a noisy sum is further than the root of so many variances from what is published, so much of the rest is taken
# for an error of the law. On 21 made-up shapes of 100 cells with 3 records each (ε = 0.1, 16 draws) ranges of 2 to 16
# cells then hold in 0.920 at least instead of 0.909, widths 1.01; from two variances on in 0.930, but smooth lines are
# 1.03 times as wide.
_CHANCE, _BELIEVED = 4.0, 0.5


@dataclass(frozen=True, eq=False)
class HiddenErrors(PredictiveErrors):
    """Errors of counts that were inferred cell by cell from noisy ones of the same noise, on a line.

    With k cells published below a deviation s of the noise, what they hold beyond that is h = Σ(noisy − published) ÷ k
    a cell, give or take s/√k; which cells are meant hardly depends on the noise of any of them. A question about so
    many of them that they may hide H = Σ(max(h, 0) + s/√k) is off by H if they are alike, and by √H more if what they
    hide are records that came one by one. Its expected squared error is no less than H² + H, nor than what the law
    says; and never more than what plain noise around the noisy sum allows. Where the noisy sum is further from what is
    published than chance explains, the law may be wrong just there, and squared errors are larger by a part of that.
    """

    noisy: NDArray[Any] | None = None
    """The noisy cells."""
    noise: float = 0.0
    """The variance of each."""
    total: tuple[float, float] | None = None
    """A noisy total with its variance, if one was measured."""

    @cached_property
    def hidden(self) -> float:
        """What a cell that is published below the noise may hold beyond it."""
        if self.noisy is None or self.counts is None:
            return 0.0
        apart = (self.noisy - self.counts)[self._low]
        if not apart.size:
            return 0.0
        # One after the other: the last bits of a sum must not differ from one platform to the next.
        beyond, variance = float(np.add.accumulate(apart)[-1]), self.noise * apart.size
        if self.total is not None and self.total[1] < variance:
            beyond = self.total[0] - float(np.add.accumulate(self.counts)[-1])
            variance = self.total[1]
        return (max(beyond, 0.0) + math.sqrt(variance)) / apart.size

    @cached_property
    def _low(self) -> NDArray[np.bool_]:
        counts = np.zeros(0) if self.counts is None else self.counts
        return np.asarray(counts < math.sqrt(self.noise), dtype=np.bool_)

    @cached_property
    def _lower(self) -> IntArray:
        """How many such cells there are before each."""
        return np.concatenate([[0], np.cumsum(self._low)])

    def beyond(
        self, said: tuple[FloatArray, ...], cells: FloatArray, published: FloatArray
    ) -> FloatArray | float:
        """What the noisy sum says against the law, and for long sums what the law claims to know beyond noise."""
        if not (cells > 1.0).any():
            return 0.0
        _, known, _, plain, noise = said
        apart = np.maximum((plain - published) ** 2 - _CHANCE * noise, 0.0)
        added = np.where(cells > 1.0, _BELIEVED * apart, 0.0)
        return np.asarray(
            added + np.where(cells > _SHORT, _LONG * np.maximum(noise - known, 0.0), 0.0), dtype=np.float64
        )

    def least(self, low: IntArray, high: IntArray, starts: IntArray | None) -> FloatArray:
        """What squared errors are at least, for what low cells may hide."""
        number = (self._lower[high[:, 0]] - self._lower[low[:, 0]]).astype(np.float64)
        if starts is not None:
            number = np.add.reduceat(number, starts[:-1]) if number.size else np.zeros(0)
        hidden = self.hidden * number
        return np.where(asked_cells(low, high, starts) <= _SHORT, hidden * hidden + hidden, 0.0)
