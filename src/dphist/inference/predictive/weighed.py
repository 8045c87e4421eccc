"""Intervals of single cells that gain where a trend or a profile was read out of the noisy ones.

The predictive law knows how totals divide and nothing of weeks, so its intervals stay as wide as the noise where what
is published is far nearer. But how near that is the noisy cells say themselves: a reading r of cells y with f degrees
of freedom is off by |r − y|² − nσ² + 2fσ², on average (Stein's identity; it weighed the readings already). Only
released values are read, so nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Interval
from dphist.inference.predictive.errors import asked_cells
from dphist.inference.predictive.hidden import HiddenErrors

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A value so many variances of its noise from what is published may be a day that the reading does not know of.
_FAR = 9.0
# Cells are looked at in so many groups, by place and by height.
_GROUPS = 4
# Numbers are rounded to this: the last bits of a sum must not show in a release.
_GRAIN = 1024.0


@dataclass(frozen=True, eq=False)
class WeighedErrors(HiddenErrors):
    """Errors of counts that were read as a trend as well, single cells by what Stein's identity says of all.

    With S the mean of (y − r)²/σ² − 1 + 2f/n over all cells and s its sampling error, the mean squared error is taken
    to be max(S, f/n) + s noise variances: f/n is what the readings say of themselves. A cell r is off by r/(r + σ²) of
    it at least, as people come one by one; what all are off by beyond that is spread evenly by one half, and as that
    is by the other. A quarter of the cells, by place or by height, that is off by more than so much and its own
    sampling error is raised to it. Values far from what is published are left to the law, and so are all sums.
    """

    freedom: Callable[[], float] = float
    """Tells the degrees of freedom of what is published; 0 if no trend was heard."""

    @cached_property
    def heard(self) -> float:
        """The degrees of freedom, as the file says or as they are worked out."""
        said = None if self.told is None else self.told.get("freedom")
        return float(said[0]) if said is not None and said.shape == (1,) else self.freedom()

    @cached_property
    def learned(self) -> dict[str, FloatArray]:
        """All that intervals were learned from, in few numbers."""
        return {**super().learned, "freedom": np.array([self.heard])}

    @cached_property
    def _alone(self) -> FloatArray | None:
        """The expected squared error of every cell, if that can be told."""
        if self.noisy is None or self.counts is None or self.heard <= 0.0:
            return None
        counts, size, freedom = np.maximum(self.counts, 0.0), self.counts.size, self.heard
        apart = (self.noisy - self.counts) ** 2 / self.noise
        stein = apart - 1.0 + 2.0 * freedom / size
        every = _rounded(max(float(stein.mean()), freedom / size) + _unsure(apart))
        least = counts / (counts + self.noise)
        mean = max(_rounded(float(least.mean())), 1.0 / _GRAIN)
        squares = 0.5 * (least + max(every - mean, 0.0) + least * max(every / mean, 1.0))
        place = np.arange(size)
        height = np.empty(size, dtype=np.int64)
        height[np.argsort(counts, kind="stable")] = place
        for order in (place, height):
            for group in range(_GROUPS):
                here = order * _GROUPS // size == group
                seen = float(stein[here].mean()) - _unsure(apart[here])
                squares[here] *= max(_rounded(seen / max(float(squares[here].mean()), 1e-9)), 1.0)
        return np.where(apart > _FAR, np.inf, squares * self.noise)

    def run_of_cells(self, begin: int, end: int, published: FloatArray, confidence: float) -> Interval | None:
        """As of any cells, but where they have errors of their own."""
        if self._alone is not None:
            return None
        return super().run_of_cells(begin, end, published, confidence)

    def squares(
        self, low: IntArray, high: IntArray, starts: IntArray | None, published: FloatArray
    ) -> FloatArray:
        """Expected squared errors of published answers."""
        found = super().squares(low, high, starts, published)
        single = asked_cells(low, high, None) == 1.0
        if starts is not None or not single.any() or self._alone is None:
            return found
        own = np.maximum(self._alone[low[single, 0]], self.least(low[single], high[single], None))
        found[single] = np.minimum(found[single], own)
        return found


def _unsure(values: FloatArray) -> float:
    """The sampling error of a mean."""
    return float(values.std()) / math.sqrt(values.size)


def _rounded(value: float) -> float:
    return round(value * _GRAIN) / _GRAIN
