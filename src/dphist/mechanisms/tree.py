"""A tree of totals: every level measured, all of them reconciled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike

from dphist.arrays import FloatArray, IntArray
from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.measured import MeasuredTree
from dphist.inference.trees import TreeNoise
from dphist.mechanisms.options import Bounds, checked
from dphist.mechanisms.trees.growing import Front, box_labels, grow
from dphist.mechanisms.trees.shares import (
    Kind,
    Sides,
    exact_shares,
    fan_sides,
    hb_fanout,
    level_shares,
    searched,
)
from dphist.model.law import Kind as Noise
from dphist.model.workload import Workload
from dphist.private.gate import Noisy, PrivateCounts
from dphist.private.queries import Identity, Totals

# What the total gets when only cells are worth measuring.
_ANCHOR = Fraction(1, 20)


# Wider, a tree is one level of more cells than are ever counted one by one.
_WIDEST = 1 << 20


@checked
@dataclass(frozen=True, kw_only=True)
class Tree:
    """Measure totals of nested blocks, so that a long range is a few totals and not the sum of many noisy cells.

    The levels share the budget; least squares with their variances then makes every block the sum of its children
    and uses all of them for every answer. Private because the blocks of a level are disjoint (one step moves one
    total by one) and the levels' shares add up to the budget; the rest is arithmetic on answers.

    Differences from the papers: shares are the best for the workload (a closed form in public sizes) instead of
    equal or geometric ones, though ``budgets="uniform"`` gives those of Hay et al.; least squares knows unequal
    noise; negative totals are projected away from the root down, each family onto its parent's total. On several
    axes a block is a box and the fan-out is shared between the axes.

    Example:
        >>> from dphist.mechanisms import Tree
        >>> from dphist.testing import run
        >>> run(Tree(fanout=4), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    fanout: Annotated[int, Bounds(2, _WIDEST)] | Literal["hb", "auto"] = 16
    """Children of a block; "hb" chooses by the number of cells, "auto" searches the best block lengths."""
    budgets: Literal["optimal", "uniform"] = "optimal"
    """Shares of the levels: best for the workload, or the same for all."""
    root: bool = True
    """Whether the total of everything may be a level."""
    nonnegative: bool = True
    """Whether to project negative totals away; intervals are computed before."""
    workload: Kind | None = None
    """What the shares are best for; None takes the hint that came with the data, or all ranges."""

    def plan(
        self, shape: tuple[int, ...], hint: Workload | None = None, power: int = 2
    ) -> tuple[Sides, tuple[Fraction, ...]]:
        """Sides of the blocks of every level, coarse to fine, and what each spends: public facts alone.

        ``power`` is that of the noise law: precision grows with the share's square under ε, with the share under ρ.
        """
        sides, shares = self._best(shape, hint, power)
        if len(sides) == 1 and self.nonnegative and self.root and int(np.prod(shape)) > 1:
            # Cells alone would each be cut at zero and together drift upward. A total, cheap to know, anchors them:
            # noise on empty cells is then taken away instead of half of it kept.
            return (tuple(shape), *sides), (_ANCHOR, 1 - _ANCHOR)
        return sides, shares

    def _best(
        self, shape: tuple[int, ...], hint: Workload | None, power: int
    ) -> tuple[Sides, tuple[Fraction, ...]]:
        goal: Kind | Workload = self.workload or usable(hint, shape) or "all_ranges"
        size = int(np.prod(shape))
        if self.fanout == "auto":
            kind = goal if isinstance(goal, str) else goal.kind
            if len(shape) == 1 and self.budgets == "optimal" and kind in ("cells", "prefixes", "all_ranges"):
                return searched(_rounded(size), kind, power)
            sides = fan_sides(shape, 16)
        elif self.fanout == "hb":
            sides = fan_sides(shape, hb_fanout(size))
        else:
            sides = fan_sides(shape, int(self.fanout))
        if not self.root and len(sides) > 1:
            sides = sides[1:]
        if self.budgets == "uniform":
            return sides, (Fraction(1, len(sides)),) * len(sides)
        shares = exact_shares(level_shares(shape, sides, goal, power)[1])
        # Cells are always a level: without one a block's inside could not be told.
        if not shares[-1]:
            shares = (*(share * Fraction(63, 64) for share in shares[:-1]), Fraction(1, 64))
        kept = [(side, share) for side, share in zip(sides, shares, strict=True) if share]
        return tuple(side for side, _ in kept), tuple(share for _, share in kept)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Measure every level and reconcile them."""
        sides, shares = self.plan(data.shape, data.workload, data.law().exponent)
        rights = data.split(*shares) if len(shares) > 1 else (data,)
        shape = data.shape
        answers = [_measure_blocks(right, shape, side) for right, side in zip(rights, sides, strict=True)]
        fixed = all(side == 1 for side in sides[-1])
        tree = complete_tree(shape, sides, *_flat(answers), kind=answers[0].law.kind)
        return _reconcile(tree, self.nonnegative, fixed)

    def estimate_grouped(self, data: PrivateCounts, starts: IntArray) -> Estimate:
        """The same, but never look inside the buckets that begin at ``starts``, each a block of the tree.

        A bucket's cells then never pay for the levels below it, so its total is measured once with all the budget
        that is left to them: one draw of scale 1/(1 − shares above), which is better than averaging a draw per level.
        Every cell still pays exactly the budget: the shares of the levels above its bucket, then the rest.
        """
        n = data.size
        sides, shares = self.plan((n,), None, data.law().exponent)
        ends = np.append(starts[1:], n)
        depth = np.repeat(bucket_levels(starts, ends, tuple(side[0] for side in sides), n), ends - starts)

        def rule(front: Front) -> list[Front]:
            level = front.level + 1
            front = front.runs(front.cells // sides[level][0], level)
            front = front.finish(depth[front.low[:, 0]] == level)
            return [front.measure(shares[level])] if len(front) else []

        return _reconcile(grow(data, rule, (n,)), self.nonnegative)


def complete_tree(
    shape: Sequence[int],
    sides: Sequence[Sequence[int]],
    value: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    kind: Noise = "laplace",
) -> MeasuredTree:
    """Lay out blocks of given sides, coarse to fine: every side a multiple of the next; the last blocks are cut.

    ``value`` is what was measured, level by level, the blocks of a level in C order; None if nothing was yet. The tree
    has a root of its own over everything if the first level has several blocks.
    """
    sizes, axes = np.array(shape, dtype=np.int64), len(shape)
    coarse, low = sizes, np.zeros((1, axes), dtype=np.int64)
    parents, lows, highs, places = [], [], [], []
    offset = begin = 0  # of this level and the one above, in the tree as in the answers
    for level, side in enumerate(sides):
        step = np.array(side, dtype=np.int64)
        fan = -(-coarse // step)
        inside = np.indices(tuple(fan)).reshape(axes, -1).T * step
        above = np.repeat(np.arange(len(low), dtype=np.int64), len(inside))
        low = (low[:, None, :] + inside).reshape(-1, axes)
        there = (low < sizes).all(axis=1)
        if not there.all():
            low, above = low[there], above[there]
        grid = -(-sizes // step)
        place = np.zeros(len(low), dtype=np.int64)
        for axis in range(axes):
            place = place * grid[axis] + low[:, axis] // step[axis]
        parents.append(above + begin if level else np.full(len(low), -1, dtype=np.int64))
        lows.append(low)
        highs.append(np.minimum(low + step, sizes))
        places.append(offset + place)
        begin, offset = offset, offset + len(low)
        coarse = step
    order = np.concatenate(places)
    y = np.zeros(offset) if value is None else np.asarray(value)[order]
    v = np.full(offset, np.inf) if variance is None else np.asarray(variance)[order]
    boxes = (np.concatenate(parents), np.concatenate(lows), np.concatenate(highs))
    return MeasuredTree.of(shape, *boxes, y, v, kind=kind)


def _rounded(n: int) -> int:
    """Round up to four leading bits: plans hardly differ, and groups come in every number."""
    step = 1 << max(0, n.bit_length() - 4)
    return -(-n // step) * step


def usable(hint: Workload | None, shape: tuple[int, ...]) -> Kind | Workload | None:
    """What a hint says of these cells, which may have been merged since it was given.

    Prefixes, ranges and cells of a line are prefixes, ranges and cells of its groups too.
    """
    if hint is None or not len(hint):
        return None
    if hint.domain.shape == shape:
        return hint
    if len(shape) == len(hint.domain.shape) == 1 and hint.kind in ("cells", "prefixes", "all_ranges"):
        return hint.kind
    return None


def bucket_levels(starts: IntArray, ends: IntArray, lengths: tuple[int, ...], n: int) -> IntArray:
    """The coarsest level that has each bucket as a block; every bucket must be a block of some level."""
    level = np.full(starts.size, -1, dtype=np.int64)
    for k, length in enumerate(lengths):
        fits = (starts % length == 0) & (np.minimum(starts + length, n) == ends) & (level < 0)
        level[fits] = k
    if bool((level < 0).any()):
        raise MechanismError("tree: every group must be one block of the tree")
    return level


def _measure_blocks(right: PrivateCounts, shape: tuple[int, ...], side: tuple[int, ...]) -> Noisy:
    if all(m == 1 for m in side):
        return right.measure(Identity())
    labels = box_labels([np.arange(size) // m for size, m in zip(shape, side, strict=True)])
    return right.partition(labels.reshape(-1), int(labels.flat[-1]) + 1).measure(Totals())


def _flat(answers: list[Noisy]) -> tuple[FloatArray, FloatArray]:
    values = np.concatenate([noisy.values.reshape(-1) for noisy in answers]).astype(np.float64)
    return values, np.repeat(
        [float(noisy.variance) for noisy in answers], [noisy.values.size for noisy in answers]
    )


def _reconcile(tree: MeasuredTree, nonnegative: bool, fixed: bool = False) -> Estimate:
    totals = tree.nonnegative() if nonnegative else tree.least_squares()
    # Of a tree that is the same for all data nothing is off but noise.
    method = "exact variance of the tree's least squares" if fixed else TreeNoise.method
    return Estimate(tree.cells(totals), TreeNoise(tree, method, fixed, nonnegative))
