"""Trees of boxes measured level by level: cut at noisy medians, in halves, or first one and then the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from dphist.arrays import IntArray
from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.measured import MeasuredTree
from dphist.inference.trees import TreeNoise
from dphist.mechanisms.options import Bounds, Share, checked
from dphist.mechanisms.trees.growing import Front, grow
from dphist.mechanisms.trees.shares import geometric_shares
from dphist.private.gate import PrivateCounts
from dphist.private.scores.counting import Medians

# 64 levels reach the cells of every domain: more would tell nothing apart, and each takes a share of the budget.
Height = Annotated[int, Bounds(0, 64)]

_METHOD = (
    "variance of the tree's least squares, given the tree; not covered: that blocks stopped on the same noise, "
    "the bias inside blocks that the range only cuts, and that of cutting at zero"
)


def _levels_to_cells(shape: tuple[int, ...]) -> int:
    return max((n - 1).bit_length() for n in shape)


@checked
@dataclass(frozen=True, kw_only=True)
class QuadTree:
    """Halve every axis again and again and count every box on the way, so that a large range is a few counts.

    A box becomes 2 boxes on a line, 4 in a plane, 8 in space. Deeper levels get more of the budget, by the factor
    2^((d−1)/3) a level that minimises the noise of a range, whose edge meets 2^(d−1) times as many boxes a level
    down (Cormode et al. for d = 2). A box whose noisy count is below ``stop`` noise scales is not split; what its cells
    have not spent counts it once more. Least squares reconciles all counts, then negative ones are projected away
    from the root down.

    Private because boxes of a level are disjoint, every path pays at most the whole budget, and where to stop is read
    off counts that were paid for. Axes are halved in listed order, nominal ones too.

    Example:
        >>> from dphist.mechanisms import QuadTree
        >>> from dphist.testing import run
        >>> run(QuadTree(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    height: Height | Literal["auto"] = "auto"
    """How often to halve; "auto" goes down to the cells."""
    stop: float = 2.0
    """A box with a noisy count below this many noise scales is not split; 0 or less stops nothing that counts."""
    nonnegative: bool = True
    """Whether to project negative totals away; intervals are computed before."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Count every level and reconcile them."""
        shape = data.shape
        height = _levels_to_cells(shape) if self.height == "auto" else int(self.height)
        shares = geometric_shares(height + 1, sum(n > 1 for n in shape), data.law().exponent)

        def rule(front: Front) -> list[Front]:
            level = front.level + 1
            front = count(front, level, shares[level], stop=self.stop, last=level == height)
            for axis in range(len(shape)):
                front = halve(front, axis)
            return [front]

        return reconciled(grow(data, rule), _METHOD, nonnegative=self.nonnegative)


@checked
@dataclass(frozen=True, kw_only=True)
class KDHybrid:
    """Cut boxes at noisy medians for some levels, then in halves, counting all the way (Cormode et al., "kd-hybrid").

    Medians send the cuts where the records are; once boxes are small, medians are mostly noise and halves are as good
    and free. ``median_share`` of the budget chooses the cuts of the first ``switch`` levels, equally over levels and
    axes; counts get the rest, deeper levels more of it, as in `QuadTree`. Boxes with little in them are not split, and
    least squares reconciles everything.

    Private because boxes of a level are disjoint: each level's medians (exponential mechanism, see
    `dphist.private.scores.counting.Medians`) and counts are paid for by its shares, which sum to at most one along
    every path; where to cut and stop is read off answers. The paper that compares with it leaves budget and
    proof open; these are ours.

    Example:
        >>> from dphist.mechanisms import KDHybrid
        >>> from dphist.testing import run
        >>> run(KDHybrid(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    height: Height | Literal["auto"] = "auto"
    """How many levels of boxes below the root; "auto" is enough to reach the cells."""
    switch: Height | Literal["auto"] = "auto"
    """How many of them cut at medians; "auto" is half of the levels that halving would need, at most 2."""
    median_share: Share = Fraction(1, 10)
    """What choosing the medians spends (the authors take 3/10, which measures worse here)."""
    stop: float = 1.0
    """A box with a noisy count below this many noise scales is not split."""
    nonnegative: bool = True
    """Whether to project negative totals away; intervals are computed before."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Grow the tree, counting as it grows."""
        shape = data.shape
        deepest = _levels_to_cells(shape)
        switch = min(2, deepest // 2) if self.switch == "auto" else int(self.switch)
        # A median may leave almost all of a box on one side, so halving may still need every level afterwards.
        height = switch + deepest if self.height == "auto" else int(self.height)
        switch = min(switch, height)
        axes = [axis for axis, n in enumerate(shape) if n > 1]
        if not axes:
            switch, height = 0, 0
        spent, power = self.median_share if switch else Fraction(0), data.law().exponent
        counting = [share * (1 - spent) for share in geometric_shares(height + 1, len(axes), power)]

        def rule(front: Front) -> list[Front]:
            level = front.level + 1
            front = count(front, level, counting[level], stop=self.stop, last=level == height)
            for axis in axes if len(front) else []:
                if level < switch:
                    front = _cut_at_medians(front, axis, spent / switch / len(axes))
                else:
                    front = halve(front, axis)
            return [front]

        return reconciled(grow(data, rule), _METHOD, nonnegative=self.nonnegative)


@checked
@dataclass(frozen=True, kw_only=True)
class HierarchicalKD:
    """Cut boxes in two at noisy medians, one axis after the other, and count every box (Inan et al.).

    The plain kd-tree that DPCube was compared with: a fixed number of levels share the budget equally, and each
    spends ``median_share`` of its part on where to cut and the rest on counting. Counts are reconciled by least
    squares; a leaf's total is spread evenly over its cells, which no budget mends: it does not converge.

    Private because boxes of a level are disjoint, medians come from the exponential mechanism and counts from Laplace
    noise, and the levels' shares sum to one. The paper does not say how the budget is shared; this is ours.

    Example:
        >>> from dphist.mechanisms import HierarchicalKD
        >>> from dphist.testing import run
        >>> run(HierarchicalKD(), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    height: Height | Literal["auto"] = "auto"
    """How many cuts from the root to a leaf; "auto" is the logarithm of the number of cells, at most 10."""
    median_share: Share = Fraction(1, 2)
    """What a level spends on its medians."""
    nonnegative: bool = True
    """Whether to project negative totals away; intervals are computed before."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Cut and count, level by level."""
        axes = [axis for axis, n in enumerate(data.shape) if n > 1]
        height = min(10, (data.size - 1).bit_length()) if self.height == "auto" else int(self.height)
        height = height if axes else 0
        level_share = Fraction(1, height + 1)

        def rule(front: Front) -> list[Front]:
            level = front.level + 1
            front = count(front, level, level_share * (1 - self.median_share), last=level == height)
            if not len(front):
                return []
            return [_cut_at_medians(front, _next_axis(front, axes, level), level_share * self.median_share)]

        return reconciled(grow(data, rule), _METHOD, nonnegative=self.nonnegative)


def _next_axis(front: Front, axes: list[int], level: int) -> int:
    """The axis whose turn it is, or the next one along which a box still has two places."""
    for turn in range(len(axes)):
        axis = axes[(level + turn) % len(axes)]
        if bool((extent(front, axis) > 1).any()):
            return axis
    raise MechanismError("no box has two cells left")  # such boxes are finished before


def _cut_at_medians(front: Front, axis: int, share: Fraction) -> Front:
    """Cut each box one past the slot that the exponential mechanism chose."""
    lengths = extent(front, axis)
    if not bool((lengths > 1).any()):
        return front
    asked, front = front.pay(share)
    chosen = asked.choose(Medians(coordinate(front, axis) - front.low[front.box, axis], lengths))[0]
    return cut(front, axis, np.asarray(front.low[:, axis] + chosen + 1, dtype=np.int64))


# ---- what trees and grids of boxes share ----


def extent(front: Front, axis: int) -> IntArray:
    """How many cells each box has along an axis."""
    return front.high[:, axis] - front.low[:, axis]


def coordinate(front: Front, axis: int) -> IntArray:
    """The place of each cell along an axis."""
    shape = front.nodes.shape
    if len(shape) == 1:
        return front.cells
    return front.cells // math.prod(shape[axis + 1 :]) % shape[axis]


def cut(front: Front, axis: int, place: IntArray) -> Front:
    """Cut every box at its place along an axis; a place outside a box leaves it whole."""
    here = (place > front.low[:, axis]) & (place < front.high[:, axis])
    offset = np.cumsum(1 + here) - 1 - here
    beyond = here[front.box] & (coordinate(front, axis) >= place[front.box])
    owner = np.repeat(np.arange(len(here)), 1 + here)
    low, high = front.low[owner].copy(), front.high[owner].copy()
    low[offset[here] + 1, axis] = place[here]
    high[offset[here], axis] = place[here]
    return front.into(offset[front.box] + beyond, low, high, owner, front.level)


def halve(front: Front, axis: int) -> Front:
    """Cut every box in the middle."""
    return cut(front, axis, (front.low[:, axis] + front.high[:, axis] + 1) // 2)


def count(
    front: Front, level: int, share: Fraction, *, stop: float | None = None, last: bool = False
) -> Front:
    """Count every box; finish those of one cell, those with little in them, and on the last level all.

    A box that is known to be finished is counted once with all it has left; one that is finished because its count
    came out below ``stop`` noise scales is counted a second time with the rest. Gives the boxes that go on.
    """
    front = replace(front, level=level)
    sure = np.ones(len(front), dtype=bool) if last else front.sizes == 1
    front = front.finish(sure)
    if not len(front):
        return front
    front = front.measure(share, gradual=stop is not None)
    if stop is None or front.totals is None:
        return front
    return front.finish(front.totals < stop * front.scale)


def reconciled(tree: MeasuredTree, method: str, *, nonnegative: bool) -> Estimate:
    """Reconcile all counts by least squares; spread the leaves over their cells."""
    totals = tree.nonnegative() if nonnegative else tree.least_squares()
    return Estimate(tree.cells(totals), TreeNoise(tree, method, projected=True))
