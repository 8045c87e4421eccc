"""Totals of a tree of blocks, measured where it matters: for prefixes, long ranges and hierarchies."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from dphist.arrays import BoolArray, FloatArray
from dphist.inference.estimate import Estimate
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive import MeasuredBlocks, PredictiveErrors
from dphist.mechanisms.options import checked
from dphist.mechanisms.trees.growing import Front, grow, pool_units
from dphist.mechanisms.trees.layout import Layout, lay_out, ordered_line
from dphist.private.gate import PrivateCounts

if TYPE_CHECKING:
    from dphist.inference.predictive.learning import Learned


# Chosen on ten count vectors of 4,096 cells and on made-up ones, all for prefixes (bench/results/auto.md).
# What the first level of a line that is not full weighs, which carries every long range (less costs prefixes of vectors
# with 1,000 noise scales of records and more 4 to 11 %), and every other one.
_FIRST_LEVEL, _OTHER_LEVELS = 7, 6
# The total below which a block is not split: in noise scales times the root of the number of such blocks.
_STOP = 0.5
# How far above its mean a family's χ² must lie to be split, in deviations; for the first family, where a split that was
# not needed costs most, four times that.
_SLACK, _FIRST_SLACK = 0.75, 4.0
# A family above 120 noise scales is split even if its totals look even.
_COULD_HIDE = 120.0
# Finished siblings are pooled if their χ² is at most 1 deviation above its mean.
_POOL_SLACK = 1.0
# James and Stein take p − 2 for p normal means; b children given their sum are b − 1.
_SHRINK = 3.0
# Of a full line under ρ blocks below 2 noise scales are not split, and no others: two halves that look even say nothing
# of what they hold. On drawn lines 900 to 939 with 6 to 1,000 deviations a cell ranges so have 0.78 of the error of
# quarters, sixteenths and cells, 0.82 if all are split.
_EMPTY = 2.0
# The part of averaged counts that handed-down totals have where there is much to tell; the law has the rest. At a total
# of 100 deviations they have half of that, and at next to nothing none: on 80 lines drawn by number
# (`dphist_bench.data.drawn`, 4 draws) the law's mean alone has 0.86 to 0.90 of their error on prefixes below 300 noise
# scales of records, 0.98 above 3,000, where it was up to 1.5 times as far off on single lines; half of each has 0.92 to
# 0.98, and 1.14 at worst.
_TOTALS, _LITTLE = 0.4, 100.0
# What of the law's part is left in several dimensions, times (1 − r)² where a part r of the splits has all on one side:
# there lone peaks are, and pruned counts know best.
_BOXES = 0.7
# Planes and spaces up to this are read by the predictive law as well; beyond, that takes longer than all the rest.
_LARGEST_AVERAGED = 1 << 18
# Trees of more nodes are not averaged: asking a release would wait for the law of every split.
_MOST_AVERAGED = 1 << 16


@checked
@dataclass(frozen=True, kw_only=True)
class AdaptiveTree:
    """Spend on the paths that matter, stop early, pool what is left.

    A tree of blocks is measured level by level. A block that holds little is not split, and neither is a family
    that looks even: what their cells still hold of the budget measures them once more, together where that
    makes sense. Best linear unbiased totals follow in two passes; then every parent's total is handed down to its
    children, none below zero. Blocks that were measured together share their total evenly: what each showed before
    was no news. An ordered attribute gets blocks of 2^k cells; a nominal one its own hierarchy. Where most
    cells of an ordered one are full, its blocks are those of least noise (`dphist.mechanisms.trees.layout`).

    Private because blocks of one level are disjoint, every cell pays for one measurement a level and for one last
    measurement with all it still holds, which add up to ε exactly, and every decision reads noisy totals that were
    already paid for (see `dphist.mechanisms.trees.growing`). In several dimensions boxes are planned one by one for the
    ranges that will be asked, and private for the same reasons (see `dphist.mechanisms.trees.planning`).

    Intervals believe what lies inside blocks to be even only as far as measured splits can tell. What repeats below
    all that is measured stays hidden: no measured total shows it.

    With ``estimator="averaged"`` the counts of an ordered attribute are a mean of the totals handed down and of what
    the predictive law of intervals expects of every cell (`dphist.inference.predictive`): how totals divide is learned
    from all splits, so what does not stand out of the noise is believed less. The less there is to tell, the more it is
    the law's. The same measurements are made.

    Args:
        estimator: On an ordered line or in several dimensions, whether counts are the "totals" handed down or
            "averaged" with the law's.

    Example:
        >>> from dphist.mechanisms import AdaptiveTree
        >>> from dphist.testing import run
        >>> run(AdaptiveTree(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    estimator: Literal["totals", "averaged"] = "totals"

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Grow the tree, then infer every cell from it."""
        if len(data.shape) > 1:
            # Loaded here, and below: who only asks a line needs none of it.
            from dphist.mechanisms.trees.planning import PlannedBoxes, Planner, counts_of_boxes

            planner = Planner.for_ranges(data.shape, data.workload, data.domain, data.law())
            tree, level = grow(data, PlannedBoxes(planner))
            alone = float(((tree.first < 0) & (tree.size == 1)).sum()) / data.size
            note = (
                f"a noisy total and {len(tree) - 1:,} boxes were measured, {alone:.0%} of the cells by themselves: "
                "each next step was planned for such ranges, from totals already paid for"
            )
            errors = PredictiveErrors(MeasuredBlocks(tree, 0))
            counts = counts_of_boxes(tree, level)
            if self.estimator == "averaged" and data.size <= _LARGEST_AVERAGED:
                counts = averaged(counts, errors.measured.learned)
            return Estimate(counts, replace(errors, counts=counts, pruned=True), note)
        tree, layout = self.grow(data)
        # All levels of blocks but the last may have been divided further.
        errors = PredictiveErrors(MeasuredBlocks(tree, len(layout.blocks) - 1))
        counts = tree.cells(tree.nonnegative(shrink=_SHRINK))
        if self.estimator == "averaged" and ordered_line(data) and 1 < len(tree) <= _MOST_AVERAGED:
            counts = averaged(counts, errors.measured.learned)
        # A pool is one total, however many blocks it has; the whole line is none, unless all of it is a pool.
        totals = len(tree) - int((tree.last - tree.first)[tree.pool].sum()) - int(not tree.pool[0])
        note = f"a tree of blocks was measured where it was full: {totals} totals for {data.size} cells"
        return Estimate(counts, errors, note)

    def grow(self, data: PrivateCounts) -> tuple[MeasuredTree, Layout]:
        """Measure the tree of a line or a hierarchy; all of the budget is spent here.

        Gives what was measured, and the blocks that could have been.
        """
        data, layout = lay_out(data, _FIRST_LEVEL, _OTHER_LEVELS)
        keys, shares = layout.blocks, list(layout.shares)

        def rule(front: Front) -> list[Front]:
            level = front.level + 1
            front = front.runs(keys[level][front.cells], level).measure(shares[level])
            if level == len(keys) - 1:
                return []
            if layout.halved:
                return [front.finish(front.records < _EMPTY * front.scale)]
            done, together = self.finished(front, data.size)
            return [front.finish(done, pool_units(front.family[done], together[done]))]

        return grow(data, rule)[0], layout

    def finished(self, front: Front, cells: int) -> tuple[BoolArray, BoolArray]:
        """Which blocks are not split, and which of those are measured together with their siblings."""
        totals, family = front.records, front.family
        split = uneven(front, None, _SLACK * (1.0 if front.level else _FIRST_SLACK))
        # Even totals may hide a pattern that repeats in each block; what that can hide grows with the total.
        split |= np.bincount(family, totals, minlength=front.above.size) > _COULD_HIDE * front.scale
        blocks_like_these = cells / float(front.sizes.max())
        little = totals < _STOP * math.sqrt(blocks_like_these) * front.scale
        done: BoolArray = ~split[family] | little
        whole = np.bincount(family, ~done, minlength=front.above.size) == 0
        together = whole | ~uneven(front, done, _POOL_SLACK)
        return done, together[family]


def uneven(front: Front, among: BoolArray | None, slack: float) -> BoolArray:
    """Which families can be told from a uniform spread: χ² above its mean by ``slack`` deviations.

    Only children in ``among`` are looked at, if it is given.
    """
    totals, sizes, family, families = front.records, front.sizes, front.family, front.above.size
    if among is not None:
        totals, sizes, family = totals[among], sizes[among], family[among]
    members = np.bincount(family, minlength=families)
    weighted = np.bincount(family, totals * sizes, minlength=families)
    density = weighted / np.maximum(np.bincount(family, sizes * sizes, minlength=families), 1.0)
    gaps = (totals - sizes * density[family]) ** 2
    chi = np.bincount(family, gaps, minlength=families) * (0.5 / front.scale**2)
    free = np.maximum(members - 1.0, 0.0)
    # Noise Z of unit variance has Var Z² = 2 + its excess kurtosis: 5 for Laplace noise.
    wide = 2.0 + front.right.law().kurtosis
    answer: BoolArray = chi >= free + slack * np.sqrt(wide * free)
    return answer | (members < 2)


def averaged(counts: FloatArray, learned: Learned) -> FloatArray:
    """A mean of some counts and of what the law expects of every cell, the more the law's the less there is to tell."""
    seen = learned.law.binary.deviations
    part = 1.0 - _TOTALS * (seen / (seen + _LITTLE) if math.isfinite(seen) else 1.0)
    if counts.ndim > 1:
        part *= _BOXES * (1.0 - learned.one_sided) ** 2
    return np.asarray(counts + part * (learned.law.counts - counts), dtype=np.float64)
