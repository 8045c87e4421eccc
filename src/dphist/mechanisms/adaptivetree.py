"""Totals of a tree of blocks, measured where it matters: for prefixes, long ranges and hierarchies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Estimate
from dphist.inference.measured import MeasuredTree
from dphist.inference.trees import TreeNoise
from dphist.mechanisms.growing import (
    Blocks,
    GridBlocks,
    HierarchyBlocks,
    Measured,
    faint,
    grow,
    slight,
    uneven,
)
from dphist.mechanisms.options import checked
from dphist.mechanisms.planned import grow_boxes
from dphist.model.domain import Nominal
from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


_METHOD = (
    "variance of least squares on the tree, given the tree; not covered: that the tree was chosen with the same noise, "
    "the bias inside blocks that the range only cuts, and that of cutting at zero"
)


def line_blocks(size: int) -> GridBlocks:
    """Lay out blocks of 2^k cells for prefixes and ranges: about a quarter, then steps of 8 to 16, then cells.

    The closed form for the mean squared error of prefix sums over a tree of blocks is within 1 % of its best
    near these sizes, from 16 cells to 65,536.
    """
    bits = math.ceil(math.log2(size)) if size > 1 else 0
    top = bits - 2
    if bits <= 3:
        sides = [0]
    elif top <= 4:
        sides = [top, 0]
    else:
        steps = max(1, round((top - 4) / 3.4))
        sides = [round(top - (top - 4) * step / steps) for step in range(steps)] + [4, 0]
    return GridBlocks((size,), tuple((1 << k,) for k in sides))


# A family above this many noise scales is split even if its totals look even.
_COULD_HIDE = 120.0


@checked
@dataclass(frozen=True, kw_only=True)
class AdaptiveTree:
    """Spend on the paths that matter, stop early, pool what is left.

    A tree of blocks is measured level by level. A block that holds little is not split, and neither is a family
    that looks even: what their cells still hold of the budget measures them once more, together where that
    makes sense. Best linear unbiased totals follow in two passes; then every parent's total is handed down to its
    children, none below zero. Blocks that were measured together share their total by what each showed before, as
    far as the evidence goes. An ordered attribute gets blocks of 2^k cells; a nominal one its own hierarchy.

    Private because blocks of one level are disjoint, every cell pays for one measurement a level and one last one
    with all it still holds, which add up to ε exactly, and every decision reads noisy totals that were already
    paid for (see `dphist.mechanisms.growing.grow`). In several dimensions boxes are planned one by one for the ranges
    that will be asked, and private for the same reasons (see `dphist.mechanisms.planned.grow_boxes`).

    On a line ``stop`` scales the total below which a block is not split, in noise scales times the root of the number
    of such blocks; ``slack`` how far above its mean a family's χ² must lie to be split, in deviations (four times as
    far for the first family, where a split that was not needed costs most).
    """

    stop: float = 0.5
    slack: float = 0.75

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Grow the tree, then infer every cell from it."""
        if len(data.shape) > 1:
            boxes = grow_boxes(data)
            return Estimate(boxes.counts(), TreeNoise(boxes.tree, _METHOD), boxes.note())
        tree = self.grow(data)
        # A pool and a leaf are one total each, however many blocks the pool has.
        totals = len(tree) - 1 - int((tree.last - tree.first)[tree.pool].sum())
        note = f"a tree of blocks was measured where it was full: {totals} totals for {data.size} cells"
        return Estimate(counts_of(tree), TreeNoise(tree, _METHOD), note)

    def grow(self, data: PrivateCounts) -> MeasuredTree:
        """Measure the tree; all of the budget is spent here."""
        blocks = blocks_of(data)
        # The first level carries every long range, so it gets a little more; what stops early flows down.
        weights = [Fraction(7 if level == 0 else 6) for level in range(blocks.levels)]
        total = sum(weights, Fraction(0))

        def finish(view: Measured) -> tuple[BoolArray, BoolArray]:
            split = uneven(view, None, self.slack * (4.0 if view.level == 0 else 1.0))
            # Even totals may hide a pattern that repeats in each block; what that can hide grows with the total.
            split |= np.bincount(view.family, view.totals) > _COULD_HIDE * view.scale
            split &= ~faint(view)
            if view.level > 0:
                split &= ~slight(view, 2.5)
            blocks_like_these = data.size / float(view.sizes.max())
            little = view.totals < self.stop * math.sqrt(blocks_like_these) * view.scale
            done: BoolArray = ~split[view.family] | little
            whole = np.bincount(view.family, ~done, minlength=view.families) == 0
            together = whole | ~uneven(view, done, 1.0)
            return done, together[view.family]

        return grow(data, blocks, tuple(w / total for w in weights), finish=finish)


def blocks_of(data: PrivateCounts) -> Blocks:
    """Choose the tree from public facts: the hierarchy of a nominal attribute that has one, else blocks of 2^k."""
    attribute = None if data.domain is None else data.domain.attributes[0]
    if isinstance(attribute, Nominal) and attribute.hierarchy.levels > 2:
        return HierarchyBlocks(attribute.hierarchy)
    return line_blocks(data.size)


def counts_of(tree: MeasuredTree) -> FloatArray:
    """Best linear unbiased totals, shrunk a little towards an even spread, handed down without going below zero."""
    return tree.cells(tree.nonnegative(shrink=3.0))
