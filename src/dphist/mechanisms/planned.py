"""A tree of boxes that is planned while it is measured: for ranges in two dimensions and more.

Only `grow_boxes` asks anything; the rest is arithmetic on released values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.intervals import Spread
from dphist.inference.trees import NodeTree, TreeNoise
from dphist.kernels.trees.dyadic import combine, distribute, level_cuts, merged_leaves, prune
from dphist.mechanisms.planning import FIRST_GUESS, Planner, Step, roughness_of
from dphist.model.workload import Workload
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
_CERTAIN = 1e30


@dataclass(frozen=True, eq=False)
class BoxTree:
    """Measured boxes as a node list, parents first and siblings side by side, and the leaf that holds every cell.

    The children of node i are ``first[i]`` up to ``last[i]`` (−1 for a leaf); ``witness`` is one cell of each.
    """

    shape: tuple[int, ...]
    sides: tuple[tuple[int, ...], ...]
    parent: IntArray
    first: IntArray
    last: IntArray
    size: FloatArray
    value: FloatArray
    weight: FloatArray
    level: IntArray
    witness: IntArray
    leaf: IntArray

    def story(self) -> str:
        """Say in words what was measured."""
        leaves = self.first < 0
        alone = float((leaves & (self.size == 1)).sum()) / math.prod(self.shape)
        return (
            f"a noisy total and {self.first.size - 1:,} boxes were measured, {alone:.0%} of the cells by themselves: "
            "each next step was planned for such ranges, from totals already paid for"
        )

    def counts(self) -> FloatArray:
        """Infer every cell: least squares, without splits and boxes that do not stand out of noise, none below zero.

        Totals are handed from the top down, which keeps large sums unbiased; leaves are spread evenly.
        """
        best, variance = combine(self.first, self.last, self.value, self.weight)
        first = prune(self.first, self.last, self.size, best, variance, _CONTRAST_PRICE)
        cuts = level_cuts(self.parent, first, self.level, best, variance)
        empty = self._empty(best / np.sqrt(variance), cuts)
        if empty.any():
            first = np.where(empty, -1, first)
            best, variance = combine(
                np.where(empty, -1, self.first),
                self.last,
                np.where(empty, 0.0, self.value),
                np.where(empty, _CERTAIN, self.weight),
            )
        cuts = np.maximum(cuts, _LEAST_CUT)
        totals = distribute(first, self.last, self.size, best, variance, cuts, -1.0)
        density: FloatArray = totals / self.size
        return density[merged_leaves(self.first, self.last, first)[self.leaf]]

    def _empty(self, scores: FloatArray, cuts: FloatArray) -> BoolArray:
        """Which boxes are taken to hold nothing, so that their noise is no part of any total.

        Where thresholds are high, nearly all boxes of a level are empty: those within the threshold, above or below,
        are called so. Both sides alike: what stands out on either side then cancels, and sums stay unbiased.
        """
        cut = cuts[self.parent]
        cut[0] = 0.0
        empty = (np.abs(scores) <= cut) & (cut >= _MOSTLY_EMPTY)
        kept = np.zeros(scores.size, dtype=bool)
        kept[self.parent[1:][scores[1:] > cut[1:]]] = True
        answer: BoolArray = empty & kept[self.parent]
        return answer

    def noise(self, method: str) -> TreeNoise:
        """What is known of the noise of any range, given the tree."""
        side = np.array(self.sides, dtype=np.int64)[self.level]
        place = np.stack(np.unravel_index(self.witness, self.shape), axis=1).astype(np.int64)
        low = place // side * side
        tree = NodeTree(self.parent, low, np.minimum(low + side, np.array(self.shape, dtype=np.int64)))
        variance = 1.0 / self.weight
        return TreeNoise(tree, variance, np.sqrt(variance / 2.0), method)


@dataclass(frozen=True, eq=False)
class BoxNoise:
    """Errors of a planned tree: least-squares variances on the tree that was grown, worked out when first asked for."""

    tree: BoxTree
    method: str = (
        "variance of least squares on the tree, given the tree; not covered: that the tree was chosen with the same "
        "noise, the bias inside boxes that the range only cuts, and that of cutting at zero"
    )

    @cached_property
    def _noise(self) -> TreeNoise:
        return self.tree.noise(self.method)

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        return self._noise.spread(workload)


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
        self.size_of_all = math.prod(shape)
        self.parents: list[IntArray] = []
        self.sizes: list[FloatArray] = []
        self.levels: list[IntArray] = []
        self.witnesses: list[IntArray] = []
        self.value: FloatArray = np.empty(0)
        self.weight: FloatArray = np.empty(0)
        self.leaf: IntArray = np.zeros(self.size_of_all, dtype=np.int64)

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
        size = np.bincount(box, minlength=count).astype(np.float64)
        witness = np.empty(count, dtype=np.int64)
        witness[box] = cells
        self.parents.append(parent)
        self.sizes.append(size)
        self.levels.append(np.full(count, level, dtype=np.int64))
        self.witnesses.append(witness)
        self.value = np.concatenate([self.value, values])
        self.weight = np.concatenate([self.weight, np.full(count, 1.0 / variance)])
        self.leaf[cells] = node[box]
        return node, size

    def again(self, node: IntArray, values: IntArray, variance: float) -> None:
        """Combine a second measurement of boxes with the first, by inverse variance."""
        before, more = self.weight[node], 1.0 / variance
        self.value[node] = (before * self.value[node] + more * values) / (before + more)
        self.weight[node] = before + more

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

    def tree(self) -> BoxTree:
        parent = np.concatenate(self.parents)
        nodes = parent.size
        first = np.full(nodes, -1, dtype=np.int64)
        last = np.zeros(nodes, dtype=np.int64)
        child = np.arange(1, nodes)
        opens = np.diff(parent[1:], prepend=-1) != 0
        closes = np.append(opens[1:], True) if nodes > 1 else opens
        first[parent[1:][opens]] = child[opens]
        last[parent[1:][closes]] = child[closes] + 1
        return BoxTree(
            *(self.shape, self.planner.sides, parent, first, last, np.concatenate(self.sizes)),
            *(
                self.value,
                self.weight,
                np.concatenate(self.levels),
                np.concatenate(self.witnesses),
                self.leaf,
            ),
        )


def grow_boxes(data: PrivateCounts) -> BoxTree:
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
