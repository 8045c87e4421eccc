"""Totals of a tree of blocks, measured where it matters: for prefixes, long ranges and hierarchies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.domain import Nominal
from dphist.errors import MechanismError
from dphist.estimate import Estimate
from dphist.intervals import Spread
from dphist.kernels.dyadic import combine, distribute
from dphist.mechanisms.growing import Blocks, GridBlocks, GrownTree, HierarchyBlocks, faint, grow, uneven
from dphist.private.gate import PrivateCounts
from dphist.trees import TreeNoise
from dphist.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class GrownNoise:
    """Errors of a grown tree: least-squares variances on the tree that was grown, worked out when first asked for."""

    tree: GrownTree
    method: str = (
        "variance of least squares on the tree, given the tree; not covered: that the tree was chosen with the same "
        "noise, the bias inside blocks that the range only cuts, and that of cutting at zero"
    )

    @cached_property
    def _noise(self) -> TreeNoise:
        return self.tree.noise(self.method)

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        return self._noise.spread(workload)


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
_COULD_HIDE = 400.0


@dataclass(frozen=True, kw_only=True)
class AdaptiveTree:
    """Spend on the paths that matter, stop early, pool what is left.

    A tree of blocks is measured level by level. A block that holds little is not split, and neither is a family
    that looks even: what their cells still hold of the budget measures them once more, together where that
    makes sense. Best linear unbiased totals follow in two passes; then every parent's total is handed down to its
    children, none below zero. An ordered attribute gets blocks of 2^k cells; a nominal one its own hierarchy.

    Private because blocks of one level are disjoint, every cell pays for one measurement a level and one last one
    with all it still holds, which add up to ε exactly, and every decision reads noisy totals that were already
    paid for (see `dphist.mechanisms.growing.grow`).

    ``stop`` scales the total below which a block is not split, in noise scales times the root of the number of such
    blocks; ``slack`` how far above its mean a family's χ² must lie to be split, in deviations (doubled for the
    first family, where a split that was not needed costs most).
    """

    stop: float = 0.4
    slack: float = 0.75

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Grow the tree, then infer every cell from it."""
        if len(data.shape) != 1:
            raise MechanismError("adaptivetree works on one attribute; use spatial for several")
        tree = self.grow(data)
        return Estimate(counts_of(tree).reshape(data.shape), GrownNoise(tree))

    def grow(self, data: PrivateCounts) -> GrownTree:
        """Measure the tree; all of the budget is spent here."""
        blocks = blocks_of(data)
        # The first level carries every long range, so it gets a little more; what stops early flows down.
        weights = [Fraction(7 if level == 0 else 6) for level in range(blocks.levels)]
        total = sum(weights, Fraction(0))

        def finish(
            level: int, totals: FloatArray, sizes: FloatArray, scale: float, family: IntArray
        ) -> BoolArray:
            precision = 0.5 / scale**2
            families = int(family.max()) + 1
            slack = self.slack * (2.0 if level == 0 else 1.0)
            split = uneven(totals, sizes, precision, family, families, slack)
            # Even totals may hide a pattern that repeats in each block. What that could hide grows with the total.
            split |= np.bincount(family, totals, minlength=families) > _COULD_HIDE * scale
            split &= ~faint(totals, precision, family, families)
            little: BoolArray = totals < self.stop * math.sqrt(data.size / float(sizes.max())) * scale
            return ~split[family] | little

        return grow(data, blocks, tuple(w / total for w in weights), finish=finish)


def blocks_of(data: PrivateCounts) -> Blocks:
    """Choose the tree from public facts: the hierarchy of a nominal attribute that has one, else blocks of 2^k."""
    attribute = None if data.domain is None else data.domain.attributes[0]
    if isinstance(attribute, Nominal) and attribute.hierarchy.levels > 2:
        return HierarchyBlocks(attribute.hierarchy)
    return line_blocks(data.size)


def counts_of(tree: GrownTree) -> FloatArray:
    """Best linear unbiased totals, shrunk a little towards an even spread, handed down without going below zero."""
    best, variance = combine(tree.first, tree.last, tree.value, tree.weight)
    totals = distribute(tree.first, tree.last, tree.size, best, variance, np.zeros(best.size), 3.0)
    density: FloatArray = totals / tree.size
    return density[tree.leaf]
