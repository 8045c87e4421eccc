"""Totals of a tree of blocks, measured where it matters: for prefixes, long ranges, boxes and hierarchies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.inference.estimate import Estimate
from dphist.inference.predictive import MeasuredBlocks, PredictiveErrors
from dphist.mechanisms.options import checked
from dphist.mechanisms.trees.growing import Front, Rule, grow
from dphist.mechanisms.trees.planning import PlannedBoxes, Planner
from dphist.model.domain import Nominal
from dphist.model.domain.hierarchy import Hierarchy
from dphist.private.gate import PrivateCounts

if TYPE_CHECKING:
    from dphist.inference.predictive.learning import Learned

# Groups of a hierarchy are not divided below 2 noise scales.
_EMPTY = 2.0
# The part of averaged counts that handed-down totals have where there is much to tell; the law has the rest. At a total
# of 100 deviations they have half of that, and at next to nothing none: on 80 lines drawn by number
# (`dphist_bench.data.drawn`, 4 draws) the law's mean alone has 0.86 to 0.90 of their error on prefixes below 300 noise
# scales of records, 0.98 above 3,000, where it was up to 1.5 times as far off on single lines; half of each has 0.92 to
# 0.98, and 1.14 at worst.
_TOTALS, _LITTLE = 0.4, 100.0
# What of the law's part is left in several dimensions, times (1 − r)² where a part r of the splits has all on one side:
# there lone peaks are, and totals know best.
_BOXES = 0.7


@checked
@dataclass(frozen=True, kw_only=True)
class AdaptiveTree:
    """Spend on the paths that matter, stop early, measure once more what is left.

    A tree of boxes is planned while it is measured, for the ranges that will be asked: halvings of a line, of a plane
    or a space along all axes, of which most levels are skipped. A box that holds little is not divided; what its cells
    still hold of the budget measures it once more (`dphist.mechanisms.trees.planning`). An attribute with a hierarchy
    is measured group by group, level by level. Best linear unbiased totals follow in two passes; then every parent's
    total is handed down to its children, none below zero.

    Private because boxes of one level are disjoint, every cell pays for one measurement a level and for one last
    measurement with all it still holds, which add up to the budget exactly, and every decision reads noisy totals that
    were already paid for (see `dphist.mechanisms.trees.growing`).

    Intervals believe what lies inside blocks to be even only as far as measured splits can tell. What repeats below
    all that is measured stays hidden: no measured total shows it.

    With ``estimator="averaged"`` counts are a mean of the totals handed down and of what the predictive law of
    intervals expects of every cell (`dphist.inference.predictive`): how totals divide is learned from all splits, so
    what does not stand out of the noise is believed less. The less there is to tell, the more it is the law's. The same
    measurements are made.

    Args:
        estimator: Whether counts are the "totals" handed down or "averaged" with the law's.

    Example:
        >>> from dphist.mechanisms import AdaptiveTree
        >>> from dphist.testing import run
        >>> run(AdaptiveTree(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    estimator: Literal["totals", "averaged"] = "totals"

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Grow the tree, then infer every cell from it."""
        attribute = None if data.domain is None or len(data.shape) > 1 else data.domain.attributes[0]
        if isinstance(attribute, Nominal) and attribute.hierarchy.levels > 2:
            rule = by_group(attribute.hierarchy)
            why = "groups that hold next to nothing were not divided"
        else:
            rule = PlannedBoxes(Planner.for_ranges(data.shape, data.workload, data.domain, data.law()))
            why = "each next step was planned for such ranges, from totals already paid for"
        tree = grow(data, rule)
        alone = float(((tree.first < 0) & (tree.size == 1)).sum()) / data.size
        note = f"{len(tree):,} totals were measured, {alone:.0%} of the cells by themselves: {why}"
        errors = PredictiveErrors(MeasuredBlocks(tree))
        counts = tree.cells(tree.nonnegative())
        if self.estimator == "averaged":
            counts = averaged(counts, errors.measured.learned)
        return Estimate(counts, errors, note)


def by_group(hierarchy: Hierarchy) -> Rule:
    """Measure the groups of a hierarchy level by level, each with the same share, and divide what is not empty."""
    last = hierarchy.levels - 2

    def rule(front: Front) -> list[Front]:
        level = front.level + 1
        key = group_labels(hierarchy, level)
        front = front.runs(key[front.cells], level).measure(Fraction(1, last + 1))
        return [] if level == last else [front.finish(front.records < _EMPTY * front.scale)]

    return rule


def group_labels(hierarchy: Hierarchy, level: int) -> IntArray:
    """Give every category the number of its ancestor at this depth, or of itself if it hangs higher up."""
    node = hierarchy.leaves.copy()
    for _ in range(hierarchy.levels):
        deep = hierarchy.depth[node] > level + 1
        node[deep] = hierarchy.parent[node[deep]]
    # Leaves are numbered left to right, so a group is a run of categories with the same first one.
    return np.asarray(hierarchy.start[node], dtype=np.int64)


def averaged(counts: FloatArray, learned: Learned) -> FloatArray:
    """A mean of some counts and of what the law expects of every cell, the more the law's the less there is to tell."""
    seen = learned.law.binary.deviations
    part = 1.0 - _TOTALS * (seen / (seen + _LITTLE) if math.isfinite(seen) else 1.0)
    if counts.ndim > 1:
        part *= _BOXES * (1.0 - learned.one_sided) ** 2
    return np.asarray(counts + part * (learned.law.counts - counts), dtype=np.float64)
