"""Grids of boxes whose fineness follows from how much there is to see: one grid, or a grid in every box of a grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np

from dphist.arrays import FloatArray
from dphist.inference.estimate import Estimate
from dphist.mechanisms.options import Bounds, Count, Share, checked
from dphist.mechanisms.spatialtrees import coordinate, count, extent, reconciled
from dphist.mechanisms.trees.growing import Front, grow
from dphist.private.gate import PrivateCounts

_METHOD = (
    "variance of least squares over the grids, given the grids; not covered: that their fineness was chosen on some of "
    "the same noise, the bias inside boxes that the range only cuts, and that of cutting at zero"
)


def fineness(records: FloatArray, epsilon: float, axes: int, constant: float) -> FloatArray:
    """How many boxes an axis should have for this many records.

    Noise of a range grows with the root of the number of boxes in it, m^(d/2)·√2/ε; what is lost inside the boxes on
    its edge shrinks as records/m. Their sum is least at m = (2·records·ε ÷ (d·constant))^(2/(d+2)), which for a
    plane is Qardaji et al.'s √(N ε ÷ constant).
    """
    dense = 2.0 * np.maximum(records, 0.0) * epsilon / (max(axes, 1) * constant)
    return np.maximum(1.0, np.ceil(dense ** (2.0 / (max(axes, 1) + 2.0))))


@checked
@dataclass(frozen=True, kw_only=True)
class UniformGrid:
    """One grid, as fine as the records and the budget bear (Qardaji et al.).

    A small share of the budget counts all records; the grid's fineness follows from that count by a public formula,
    and the rest of the budget counts its boxes, each spread evenly over its cells. Both counts are reconciled.

    Private because the shares sum to one, boxes are disjoint, and the formula reads the noisy count only. On a line
    or in space the formula is re-derived (see `fineness`). Nominal axes are cut in listed order.

    Example:
        >>> from dphist.mechanisms import UniformGrid
        >>> from dphist.testing import run
        >>> run(UniformGrid(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    total_share: Share = Fraction(1, 50)
    """What counting all records spends."""
    constant: Annotated[float, Bounds(0, between=True)] = 10.0
    """How much evenness inside boxes to expect: larger means coarser."""
    nonnegative: bool = True
    """Whether to project negative totals away; intervals are computed before."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Count everything, then the boxes."""
        epsilon = 1.0 / float(data.law(1 - self.total_share).scale)
        axes = sum(n > 1 for n in data.shape)

        def rule(front: Front) -> list[Front]:
            front = count(front, front.level + 1, self.total_share, last=front.level >= 0)
            return [lay_grid(front, fineness(front.records, epsilon, axes, self.constant))]

        return reconciled(grow(data, rule), _METHOD, nonnegative=self.nonnegative)


@checked
@dataclass(frozen=True, kw_only=True)
class AdaptiveGrid:
    """A coarse grid, and in each of its boxes a grid of its own, finer where there are more records (Qardaji et al.).

    A small share counts all records; the coarse grid is a quarter as fine as `UniformGrid`'s, at least ``least``
    boxes an axis. ``first_share`` of the rest counts its boxes, and each is then cut as finely as its own noisy count
    and the remaining budget bear. Least squares reconciles the three levels.

    Private because the levels' shares sum to one along every path, boxes of a level are disjoint, and every fineness
    is a public function of noisy counts that were paid for.

    Example:
        >>> from dphist.mechanisms import AdaptiveGrid
        >>> from dphist.testing import run
        >>> run(AdaptiveGrid(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    total_share: Share = Fraction(1, 50)
    """What counting all records spends."""
    first_share: Share = Fraction(1, 2)
    """What of the rest counts the coarse grid."""
    constant: Annotated[float, Bounds(0, between=True)] = 10.0
    """How much evenness inside boxes to expect: larger means coarser. The second level takes half of it."""
    least: Count = 10
    """The coarse grid has at least this many boxes an axis."""
    nonnegative: bool = True
    """Whether to project negative totals away; intervals are computed before."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Count everything, then coarse boxes, then fine ones."""
        left = 1 - self.total_share
        epsilon = 1.0 / float(data.law(left).scale)
        axes = sum(n > 1 for n in data.shape)
        second = 1.0 / float(data.law(left * (1 - self.first_share)).scale)
        shares = (self.total_share, left * self.first_share, left * (1 - self.first_share))

        def rule(front: Front) -> list[Front]:
            level = front.level + 1
            front = count(front, level, shares[level], last=level == 2)
            if level == 0:
                coarse = np.ceil(fineness(front.records, epsilon, axes, self.constant) / 4.0)
                return [lay_grid(front, np.maximum(coarse, float(self.least)))]
            return [lay_grid(front, fineness(front.records, second, axes, self.constant / 2.0))]

        return reconciled(grow(data, rule), _METHOD, nonnegative=self.nonnegative)


def lay_grid(front: Front, fine: FloatArray) -> Front:
    """Cut each box into a grid of ``fine[box]`` boxes an axis, or of its cells where it has fewer."""
    axes = front.low.shape[1]
    pieces = np.minimum(front.high - front.low, fine.astype(np.int64)[:, None])
    each = np.prod(pieces, axis=1)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(each)])
    label = np.zeros(front.box.size, dtype=np.int64)
    for axis in range(axes):
        m, length = pieces[front.box, axis], extent(front, axis)[front.box]
        # Piece i starts at ⌊i·extent/m⌋, so a place lies in the last piece that starts at or before it.
        place = coordinate(front, axis) - front.low[front.box, axis]
        label = label * m + ((place + 1) * m - 1) // length
    label += first[front.box]
    owner = np.repeat(np.arange(len(each)), each)
    rest = np.arange(int(first[-1]), dtype=np.int64) - first[owner]
    low, high = np.empty((owner.size, axes), dtype=np.int64), np.empty((owner.size, axes), dtype=np.int64)
    for axis in reversed(range(axes)):
        m, length = pieces[owner, axis], extent(front, axis)[owner]
        rest, place = np.divmod(rest, m)
        low[:, axis] = front.low[owner, axis] + place * length // m
        high[:, axis] = front.low[owner, axis] + (place + 1) * length // m
    return front.into(label, low, high, owner, front.level)
