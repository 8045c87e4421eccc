"""What bounds of counts say of sums, means and quantiles over a group that was not measured.

Write F(j) for the records of a group in its cells up to j, G(j) for those beyond, T for all of them. Where attributes
were not measured together these have bounds (`dphist.inference.tables.frechet`) and no law of errors. If all bounds
hold at once, then for any cell p with value v(p)

    Σ v·c = v(p)·T + Σ over steps above p of step · G − Σ over steps below p of step · F,

so ends in place of counts give ends of the sum, for every p; the tightest count. The mean is the m for which the same
sum of distances Σ (v − m)·c vanishes: both of its ends fall as m grows, so the mean lies between where one and where
the other is zero. A level q is reached in the first cell with (1 − q)·F ≥ q·G, and a share is F ÷ (F + G): both rise
with F and fall with G. So all of these hold at once, with the probability with which the bounds do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Ends = tuple[float, float]

_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class BoundedLine:
    """Bounds, all of which hold at once, of the counts along an ordered attribute.

    Args:
        inside: Of the records up to each cell; the last is all of them.
        beyond: Of those in later cells; none are beyond the last.
    """

    inside: Interval
    beyond: Interval

    def sum(self, values: FloatArray) -> Ends:
        """Between what the values add up to."""
        all_low, all_high = self.inside.low[-1], self.inside.high[-1]
        low = np.minimum(values * all_low, values * all_high) + self._distances(
            values, self.beyond.low, self.inside.high
        )
        high = np.maximum(values * all_low, values * all_high) + self._distances(
            values, self.beyond.high, self.inside.low
        )
        return float(low.max()), float(high.min())

    def mean(self, values: FloatArray) -> Ends:
        """Between what the mean lies; everything where there may be no records."""
        least = self._distances(values, self.beyond.low, self.inside.high)
        most = self._distances(values, self.beyond.high, self.inside.low)
        # Turned round, the highest possible mean is the lowest.
        return _root(values, least), -_root(-values[::-1], -most[::-1])

    def cells(self, levels: FloatArray) -> tuple[IntArray, IntArray]:
        """The first and the last cell in which each share of the records may be reached."""
        share, rest = levels[:, None], 1.0 - levels[:, None]
        # Where a share is reached to the record, floats may say either: both are allowed.
        low = rest * self.inside.high * (1 + _TIE) >= share * self.beyond.low
        high = rest * self.inside.low >= share * self.beyond.high * (1 + _TIE)
        return low.argmax(axis=1), high.argmax(axis=1)

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Between what the shares up to each cell lie."""
        return (
            _share(self.inside.low, self.beyond.high, 0.0),
            _share(self.inside.high, self.beyond.low, 1.0),
        )

    @property
    def filled(self) -> bool:
        """Whether there are any records."""
        return bool(self.inside.low[-1] > 0)

    def _distances(self, values: FloatArray, beyond: FloatArray, inside: FloatArray) -> FloatArray:
        """Σ (v − v(p))·c for every p, with these in place of counts."""
        steps = np.diff(values)
        above = np.concatenate([np.cumsum((steps * beyond[:-1])[::-1])[::-1], [0.0]])
        below = np.concatenate([[0.0], np.cumsum(steps * inside[:-1])])
        return np.asarray(above - below)


def _root(places: FloatArray, falling: FloatArray) -> float:
    """The first place where what falls in straight lines is no more than zero."""
    last = int(np.argmax(falling <= 0)) if falling[-1] <= 0 else falling.size - 1
    if last == 0 or falling[last] > 0:
        return float(places[last])
    part = falling[last - 1] / (falling[last - 1] - falling[last])
    return float(places[last - 1] + part * (places[last] - places[last - 1]))


def _share(inside: FloatArray, beyond: FloatArray, unknown: float) -> FloatArray:
    whole, share = inside + beyond, np.full(inside.shape, unknown)
    np.divide(inside, whole, out=share, where=whole > 0)
    return share
