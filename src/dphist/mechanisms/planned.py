"""A tree of boxes that is planned while it is measured: for ranges in two dimensions and more.

Only `grow_boxes` asks anything; the rest is arithmetic on released values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree, twice
from dphist.kernels.trees.pruning import level_cuts, prune
from dphist.mechanisms.planning import FIRST_GUESS, Planner, Step, roughness_of
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# What the total of everything costs; it decides how the rest is spent.
_TOTAL = Fraction(1, 30)
# Plan for at least so many deviations of its noise.
_HOPE = 1.0
# Totals within a factor of four of each other share a plan.
_ALIKE = 2.0
# A box that holds less than so many noise scales of what it has left is not split; the first box may well be.
_NOTHING = 4.0
_NOTHING_AT_ALL = 0.25
# Nor is one that does not stand out of its own noise by so many deviations: those that are split were picked for being
# high, and the total of many empty ones would come out too high.
_OUT_OF_NOISE = 3.5
# What a contrast must explain to be kept, in variances.
_CONTRAST_PRICE = 0.5
# What lies within so many deviations of nothing is nothing, if it has siblings that do not.
_LEAST_CUT = 0.7
# From this threshold on, in deviations, what lies within it is called empty.
_MOSTLY_EMPTY = 3.0
# The variance of what is certain.
_CERTAIN = 1e-30


@dataclass(frozen=True, eq=False)
class PlannedTree:
    """A tree of boxes that was planned while it was measured, and the level of the plan each box belongs to."""

    tree: MeasuredTree
    level: IntArray

    def note(self) -> str:
        """Say in words what was measured."""
        tree = self.tree
        alone = float(((tree.first < 0) & (tree.size == 1)).sum()) / math.prod(tree.shape)
        return (
            f"a noisy total and {len(tree) - 1:,} boxes were measured, {alone:.0%} of the cells by themselves: "
            "each next step was planned for such ranges, from totals already paid for"
        )

    def counts(self) -> FloatArray:
        """Infer every cell: least squares, without splits and boxes that do not stand out of noise, none below zero.

        Totals are handed from the top down, which keeps large sums unbiased; leaves are spread evenly.
        """
        tree = self.tree
        best, variance = tree.gathered
        whole = prune(tree.first, tree.last, tree.size, best, variance, _CONTRAST_PRICE)
        cuts = level_cuts(tree.parent, whole, self.level, best, variance)
        empty = self._empty(best / np.sqrt(variance), cuts)
        if empty.any():
            # As good as known to hold nothing, whatever was measured below.
            tree = replace(
                tree,
                value=np.where(empty, 0.0, tree.value),
                variance=np.where(empty, _CERTAIN, tree.variance),
            )
        return tree.cells(tree.nonnegative(cut=np.maximum(cuts, _LEAST_CUT), whole=whole | empty))

    def _empty(self, scores: FloatArray, cuts: FloatArray) -> BoolArray:
        """Which boxes are taken to hold nothing, so that their noise is no part of any total.

        Where thresholds are high, nearly all boxes of a level are empty: those within the threshold, above or below,
        are called so. Both sides alike: what stands out on either side then cancels, and sums stay unbiased.
        """
        parent = self.tree.parent
        cut = cuts[parent]
        cut[0] = 0.0
        empty = (np.abs(scores) <= cut) & (cut >= _MOSTLY_EMPTY)
        kept = np.zeros(scores.size, dtype=bool)
        kept[parent[1:][scores[1:] > cut[1:]]] = True
        answer: BoolArray = empty & kept[parent]
        return answer


@dataclass(frozen=True, eq=False)
class _Front:
    """Boxes of one level that have all spent the same, and what was decided to do with them next."""

    right: PrivateCounts
    cells: IntArray
    box: IntArray  # of every cell, 0 … among those here
    node: IntArray  # of every box
    level: int
    left: Fraction
    known: FloatArray
    step: Step | None = None


class _Growth:
    """Nodes as they are made."""

    def __init__(self, shape: tuple[int, ...], planner: Planner) -> None:
        self.shape, self.planner = shape, planner
        self.parents: list[IntArray] = []
        self.levels: list[IntArray] = []
        self.witnesses: list[IntArray] = []
        self.value: FloatArray = np.empty(0)
        self.variance: FloatArray = np.empty(0)
        self.second: list[tuple[IntArray, FloatArray, float]] = []

    def add(
        self,
        parent: IntArray,
        cells: IntArray,
        box: IntArray,
        values: FloatArray,
        variance: float,
        level: int,
    ) -> tuple[IntArray, FloatArray]:
        """Note boxes that were measured: their nodes and their sizes."""
        count = values.size
        node = self.value.size + np.arange(count, dtype=np.int64)
        witness = np.empty(count, dtype=np.int64)
        witness[box] = cells
        self.parents.append(parent)
        self.levels.append(np.full(count, level, dtype=np.int64))
        self.witnesses.append(witness)
        self.value = np.concatenate([self.value, values])
        self.variance = np.concatenate([self.variance, np.full(count, variance)])
        return node, np.bincount(box, minlength=count).astype(np.float64)

    def again(self, node: IntArray, values: IntArray, variance: float) -> None:
        """Note a second measurement of boxes."""
        self.second.append((node, values.astype(np.float64), variance))

    def places(self, above: int, level: int, cells: IntArray) -> tuple[IntArray, int]:
        """Which of the boxes of a level, within its box of the level above, holds each cell; and how many there are."""
        coarse, fine = self.planner.sides[above], self.planner.sides[level]
        total = np.zeros((1,) * len(self.shape), dtype=np.int64)
        fan = 1
        for axis in reversed(range(len(self.shape))):
            across = coarse[axis] // fine[axis]
            place = np.arange(self.shape[axis], dtype=np.int64) // fine[axis] % across * fan
            total = total + place.reshape([-1 if a == axis else 1 for a in range(len(self.shape))])
            fan *= across
        each = np.broadcast_to(total, self.shape).reshape(-1)
        return (each if cells.size == each.size else each[cells]), fan

    def tree(self) -> PlannedTree:
        """All of them, as a tree."""
        level = np.concatenate(self.levels)
        side = np.array(self.planner.sides, dtype=np.int64)[level]
        place = np.stack(np.unravel_index(np.concatenate(self.witnesses), self.shape), axis=1).astype(
            np.int64
        )
        low = place // side * side
        high = np.minimum(low + side, np.array(self.shape, dtype=np.int64))
        value, variance = self.value.copy(), self.variance.copy()
        seen_variance = np.full(value.size, np.inf)
        for node, values, later in self.second:
            seen_variance[node] = variance[node]
            value[node], variance[node] = twice(value[node], variance[node], values, np.full(1, later))
        tree = MeasuredTree.of(
            *(self.shape, np.concatenate(self.parents), low, high, value, variance),
            seen=self.value,
            seen_variance=seen_variance,
        )
        return PlannedTree(tree, level)


def grow_boxes(data: PrivateCounts) -> PlannedTree:
    """Measure a tree of boxes, deciding for each box from its own noisy total where to look next and for how much.

    A noisy total of everything costs a thirtieth. Then boxes with similar totals are planned together (see
    `Planner`): they are either measured again with all they have left, or boxes of some finer level inside them are
    measured with a share of it, and each of those is planned anew.

    Why it is private. Boxes that are measured together are disjoint, so one step touches one of them and pays that
    share; boxes that are planned apart are disjoint too, each with the whole of what its cells have left. A cell leaves
    when it has paid all, so every cell pays the budget exactly once, and every decision is a function of public
    facts and of answers already paid for: adaptive sequential composition along a path, parallel composition across.
    """
    planner = Planner.for_ranges(data.shape, data.workload, data.domain, float(data.unit_scale))
    growth = _Growth(data.shape, planner)
    asked, rest = data.split(_TOTAL, 1 - _TOTAL)
    noisy = asked.measure(Totals())
    cells, box = np.arange(data.size, dtype=np.int64), np.zeros(data.size, dtype=np.int64)
    values = noisy.values.astype(np.float64)
    node, _ = growth.add(np.array([-1]), cells, box, values, float(noisy.variance), 0)
    known = np.zeros(len(planner.sides))
    known[0] = 1.0 / float(noisy.variance)
    # A total lost in its noise may be as large as the noise.
    hoped = np.maximum(values, _HOPE * math.sqrt(float(noisy.variance)))
    fronts = _plan(_Front(rest, cells, box, node, 0, 1 - _TOTAL, known), hoped, FIRST_GUESS, planner)
    while fronts:
        fronts.extend(_advance(fronts.pop(0), growth))
    return growth.tree()


def _advance(front: _Front, growth: _Growth) -> list[_Front]:
    """Do what was decided for some boxes, and decide for the boxes that come of it."""
    step = front.step
    if step is None:
        noisy = front.right.partition(front.box, front.node.size).measure(Totals())
        growth.again(front.node, noisy.values, float(noisy.variance))
        return []
    now, rest = (front.right, None) if step.share == 1 else front.right.split(step.share, 1 - step.share)
    place, fan = growth.places(front.level, step.level, front.cells)
    label = front.box * fan + place
    present = np.zeros(front.node.size * fan, dtype=bool)
    present[label] = True
    box = (np.cumsum(present) - 1)[label]
    family = np.flatnonzero(present) // fan
    noisy = now.partition(box, family.size).measure(Totals())
    values, variance = noisy.values.astype(np.float64), float(noisy.variance)
    node, size = growth.add(front.node[family], front.cells, box, values, variance, step.level)
    if rest is None:
        return []
    known = front.known.copy()
    known[step.level] += 1.0 / variance
    after = _Front(rest, front.cells, box, node, step.level, front.left * (1 - step.share), known)
    roughness = roughness_of(values, size, family, front.node.size, variance)
    return _plan(after, values, roughness, growth.planner)


def _plan(front: _Front, totals: FloatArray, roughness: float, planner: Planner) -> list[_Front]:
    """Part boxes by what is best done with them next; each part keeps the whole of what is left."""
    scale = planner.scale / float(front.left)
    least = _NOTHING_AT_ALL
    if front.level:
        least = max(_NOTHING, _OUT_OF_NOISE / math.sqrt(front.known[front.level]) / scale)
    bits = np.log2(np.maximum(totals / scale, least))
    kind = np.where(totals / scale <= least, -100, np.round(bits / _ALIKE)).astype(np.int64)
    plans: list[Step | None] = []
    choice = np.zeros(totals.size, dtype=np.int64)
    for some in np.unique(kind):
        mine = kind == some
        typical = 0.0 if some == -100 else scale * 2.0 ** float(bits[mine].mean())
        step = planner.step(front.level, front.left, front.known, typical, roughness)
        if step not in plans:
            plans.append(step)
        choice[mine] = plans.index(step)
    fronts = []
    right, cells, box, node = front.right, front.cells, front.box, front.node
    for number, step in enumerate(plans):
        here = choice == number
        if here.all():
            fronts.append(_Front(right, cells, box, node, front.level, front.left, front.known, step))
            break
        chosen, right = right.partition(box, node.size).select(here)
        inside, outside = chosen.cells, right.cells
        if inside is None or outside is None:  # a selection always knows its cells
            raise AssertionError
        fronts.append(
            _Front(
                *(chosen, cells[inside], (np.cumsum(here) - 1)[box[inside]], node[here]),
                *(front.level, front.left, front.known, step),
            )
        )
        cells, box = cells[outside], (np.cumsum(~here) - 1)[box[outside]]
        node, choice = node[~here], choice[~here]
    return fronts
