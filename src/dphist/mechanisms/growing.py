"""Measure a tree top-down, where it matters: split what is full, stop where there is little, pool what is left.

Shared by the adaptive mechanisms on lines, hierarchies and boxes. What comes back is a flat list of nodes
that `dphist.kernels.trees.dyadic` turns into counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.inference.trees import NodeTree, TreeNoise
from dphist.model.domain.hierarchy import Hierarchy
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Blocks(Protocol):
    """Nested blocks of cells, coarse to fine; the last level is the cells. Public."""

    @property
    def levels(self) -> int:
        """How many levels there are."""
        ...

    def labels(self, level: int) -> IntArray:
        """Give every cell its block; siblings are numbered side by side, in the order of their parents."""
        ...

    def bounds(self, level: int, cells: IntArray) -> tuple[IntArray, IntArray]:
        """Give the box of the block that holds each of the cells."""
        ...


@dataclass(frozen=True)
class GridBlocks:
    """Boxes of given sides over a grid of cells, in any number of dimensions; every side a multiple of the next."""

    shape: tuple[int, ...]
    sides: tuple[tuple[int, ...], ...]

    @property
    def levels(self) -> int:
        """How many levels there are."""
        return len(self.sides)

    def labels(self, level: int) -> IntArray:
        """Number a block by its parent's number and its place within it: a sum of one term for each axis."""
        terms = [np.zeros(n, dtype=np.int64) for n in self.shape]
        coordinates = [np.arange(n, dtype=np.int64) for n in self.shape]
        for depth in range(level + 1):
            if depth == 0:
                fans = [-(-n // s) for n, s in zip(self.shape, self.sides[0], strict=True)]
            else:
                fans = [a // b for a, b in zip(self.sides[depth - 1], self.sides[depth], strict=True)]
            stride = math.prod(fans)
            for axis, fan in enumerate(fans):
                place = coordinates[axis] // self.sides[depth][axis] % fan
                terms[axis] = terms[axis] * math.prod(fans) + place * (stride := stride // fan)
        total = np.zeros((1,) * len(self.shape), dtype=np.int64)
        for axis, term in enumerate(terms):
            total = total + term.reshape([-1 if a == axis else 1 for a in range(len(self.shape))])
        return total.reshape(-1)

    def bounds(self, level: int, cells: IntArray) -> tuple[IntArray, IntArray]:
        """Round the cells' coordinates down to the sides of the level."""
        side = np.array(self.sides[level], dtype=np.int64)
        place = np.stack(np.unravel_index(cells, self.shape), axis=1).astype(np.int64)
        low = place // side * side
        return low, np.minimum(low + side, np.array(self.shape, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class HierarchyBlocks:
    """The groups of a nominal attribute's own hierarchy: the tree people think in is the tree that is measured."""

    hierarchy: Hierarchy

    @property
    def levels(self) -> int:
        """How many levels there are below the root."""
        return self.hierarchy.levels - 1

    def labels(self, level: int) -> IntArray:
        """Give every category its ancestor at this depth, or itself if it hangs higher up."""
        tree = self.hierarchy
        node = tree.leaves.copy()
        for _ in range(tree.levels):
            deep = tree.depth[node] > level + 1
            node[deep] = tree.parent[node[deep]]
        # Leaves are numbered left to right, so a node's first cell orders siblings by their parents.
        return np.unique(tree.start[node], return_inverse=True)[1].astype(np.int64)

    def bounds(self, level: int, cells: IntArray) -> tuple[IntArray, IntArray]:
        """Give the range of categories under each ancestor."""
        labels = self.labels(level)
        starts = np.flatnonzero(np.diff(labels, prepend=-1))
        stops = np.append(starts[1:], labels.size)
        return starts[labels[cells]][:, None], stops[labels[cells]][:, None]


@dataclass(frozen=True, eq=False)
class GrownTree:
    """A measured tree as a node list, and the leaf that holds every cell.

    The children of node i are ``first[i]`` up to ``last[i]``; ``starts`` bounds the levels. ``boxes`` remembers, level
    by level, one cell of every block that was measured and the node it became part of; ``seen`` what was measured
    of each of them before any were put together, and with what variance.
    """

    blocks: Blocks
    first: IntArray
    last: IntArray
    size: FloatArray
    value: FloatArray
    weight: FloatArray
    starts: IntArray
    leaf: IntArray
    boxes: list[tuple[IntArray, IntArray, FloatArray]] = field(repr=False)
    seen: list[tuple[FloatArray, float]] = field(repr=False)

    def noise(self, method: str) -> TreeNoise:
        """What is known of the noise of any box, given the tree.

        A pool is written as its blocks, each with its share of the pool's variance: all of them together carry
        the pool's noise exactly, and a part of them carries less than is said.
        """
        above = np.zeros(self.first.size, dtype=np.int64)  # the parent of each of our nodes
        inner = self.first >= 0
        above[1:] = np.repeat(np.flatnonzero(inner), (self.last - self.first)[inner])
        at = np.zeros(self.first.size, dtype=np.int64)  # where each of our nodes stands in the tree of boxes
        parents = [np.array([-1])]
        variances = [1.0 / self.weight[:1] if self.weight[0] > 0.0 else np.array([np.inf])]
        lows: list[IntArray] = []
        highs: list[IntArray] = []
        count = 1
        for level, (cells, node, extent) in enumerate(self.boxes):
            low, high = self.blocks.bounds(level, cells)
            if level == 0:
                lows.append(low.min(axis=0, keepdims=True))
                highs.append(high.max(axis=0, keepdims=True))
            lows.append(low)
            highs.append(high)
            parents.append(at[above[node]])
            variances.append(extent / self.size[node] / self.weight[node])
            at[node] = count + np.arange(node.size)
            count += node.size
        tree = NodeTree(np.concatenate(parents), np.concatenate(lows), np.concatenate(highs))
        variance = np.concatenate(variances)
        scales = np.sqrt(np.where(np.isfinite(variance), variance, 0.0) / 2.0)
        return TreeNoise(tree, variance, scales, method)


@dataclass(frozen=True, eq=False)
class Measured:
    """One level of a growing tree, as the rule that decides how to go on sees it: released values only."""

    level: int
    totals: FloatArray
    sizes: FloatArray
    scale: float
    later: float  # the noise scale of what is left
    family: IntArray
    above: FloatArray  # the measured totals of the families' parents

    @property
    def families(self) -> int:
        """How many families there are."""
        return self.above.size

    @property
    def precision(self) -> float:
        """One over the variance of each total."""
        return 0.5 / self.scale**2


def grow(
    data: PrivateCounts,
    blocks: Blocks,
    shares: tuple[Fraction, ...],
    *,
    finish: Callable[[Measured], tuple[BoolArray, BoolArray]],
    root: tuple[float, float] = (0.0, 0.0),
) -> GrownTree:
    """Measure nested blocks top-down, going on only below the children that ``finish`` does not stop.

    Level l costs ``shares[l]`` of the budget (they sum to 1). After each level ``finish`` says which children are not
    split further, and which of those are measured together with their siblings. All the budget their cells still
    hold goes into that one more measurement, and both are combined by inverse variance. ``root`` is a noisy total of
    everything and its precision, if it was already paid for.

    Why it is private. At every level the blocks are disjoint, so one step touches one of them and pays that
    level's share; a cell whose block is finished pays what it still holds and leaves. Every cell so pays the
    budget exactly once, and every decision reads only answers that were already paid for: adaptive sequential
    composition over levels, parallel composition within one.
    """
    # One array a level, the root's first.
    parent, size = [np.array([-1])], [np.array([float(data.size)])]
    value, weight = [np.array([root[0]])], [np.array([root[1]])]
    boxes: list[tuple[IntArray, IntArray, FloatArray]] = []
    seen: list[tuple[FloatArray, float]] = []
    start, nodes = 0, 1  # where the level above starts in the list, and how many nodes the list has
    leaf = np.zeros(data.size, dtype=np.int64)
    right, cells = data, np.arange(data.size, dtype=np.int64)
    above = np.zeros(data.size, dtype=np.int64)  # each cell's parent, by its place in the level above
    left = Fraction(1)

    for level in range(blocks.levels):
        labels = blocks.labels(level)
        here, count = _renumber(labels if cells.size == data.size else labels[cells])
        share = shares[level] / left
        left -= shares[level]
        deepest = level == blocks.levels - 1
        now, rest = (right, right) if deepest else right.split(share, 1 - share)
        noisy = now.partition(here, count).measure(Totals())
        totals = noisy.values.astype(np.float64)
        precision = 1.0 / float(noisy.variance)
        extent = np.bincount(here, minlength=count).astype(np.float64)
        family, witness = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        family[here], witness[here] = above, cells
        if deepest:
            done = together = np.zeros(count, dtype=bool)
        else:
            view = Measured(
                level,
                totals,
                extent,
                float(noisy.scale),
                float(rest.unit_scale),
                family,
                value[-1][: family[-1] + 1],
            )
            done, together = finish(view)
        finished = np.flatnonzero(done)
        pool, owner = _pools(family[finished], together[finished])
        if owner.size:
            member = np.zeros(count, dtype=np.int64)
            member[finished] = pool
            pooled, rest = rest.partition(here, count).select(done)
            again = pooled.partition(member[here[pooled.cells]], owner.size).measure(Totals())
            earlier = precision / np.bincount(pool, minlength=owner.size)
            later = 1.0 / float(again.variance)
            before = np.bincount(pool, totals[finished], minlength=owner.size)
            pool_total = (earlier * before + later * again.values) / (earlier + later)
            pool_weight = earlier + later
            pool_size = np.bincount(pool, extent[finished], minlength=owner.size).astype(np.float64)
        else:
            pool_total, pool_weight, pool_size = np.empty(0), np.empty(0), np.empty(0)

        # Within a family the children that go on stand first, then its pools.
        going = np.flatnonzero(~done)
        families = np.concatenate([family[going], owner])
        order = np.argsort(families, kind="stable")
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        parent.append(families[order] + start)
        size.append(np.concatenate([extent[going], pool_size])[order])
        value.append(np.concatenate([totals[going], pool_total])[order])
        weight.append(np.concatenate([np.full(going.size, precision), pool_weight])[order])
        where = np.empty(count, dtype=np.int64)
        where[going] = place[: going.size]
        where[finished] = place[going.size :][pool]
        boxes.append((witness, nodes + where, extent))
        seen.append((totals, 1.0 / precision))
        above = where[here]
        leaf[cells] = nodes + above
        start, nodes = nodes, nodes + order.size
        if deepest or not going.size:
            break
        if finished.size:
            cells, above = cells[rest.cells], above[rest.cells]
        right = rest
    return _assemble(blocks, parent, size, value, weight, leaf, boxes, seen)


def uneven(view: Measured, among: BoolArray | None, slack: float) -> BoolArray:
    """Which families can be told from a uniform spread: χ² above its mean by ``slack`` deviations.

    Only children in ``among`` are looked at, if it is given.
    """
    totals, sizes, family = view.totals, view.sizes, view.family
    if among is not None:
        totals, sizes, family = totals[among], sizes[among], family[among]
    members = np.bincount(family, minlength=view.families)
    weighted = np.bincount(family, totals * sizes, minlength=view.families)
    density = weighted / np.maximum(np.bincount(family, sizes * sizes, minlength=view.families), 1.0)
    gaps = (totals - sizes * density[family]) ** 2
    chi = np.bincount(family, gaps, minlength=view.families) * view.precision
    free = np.maximum(members - 1.0, 0.0)
    # Laplace noise Z of unit variance has Var Z² = 5.
    answer: BoolArray = chi >= free + slack * np.sqrt(5.0 * free)
    return answer | (members < 2)


def faint(view: Measured) -> BoolArray:
    """Which families hold less than 1.5 deviations of the noise in their sum: nothing there to divide."""
    members = np.bincount(view.family, minlength=view.families)
    sums = np.bincount(view.family, view.totals, minlength=view.families)
    answer: BoolArray = sums * math.sqrt(view.precision) < 1.5 * np.sqrt(members)
    return answer & (members > 1)


def slight(view: Measured, deviations: float) -> BoolArray:
    """Which families have a parent that holds little beside what is left unknown of its children's totals.

    That is so many deviations of their sum, once every child is measured again with all the budget that is left.
    """
    members = np.bincount(view.family, minlength=view.families)
    final = 1.0 / math.sqrt(view.precision + 0.5 / view.later**2)
    answer: BoolArray = view.above < deviations * np.sqrt(members) * final
    return answer


def _pools(family: IntArray, together: BoolArray) -> tuple[IntArray, IntArray]:
    """Which pool each finished child joins, and the family of each pool; families come in order."""
    if not family.size:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    # Within a family those who pool come first, and only the first of them opens a pool.
    order = np.lexsort((~together, family))
    mine, joint = family[order], together[order]
    opens = np.append(True, (np.diff(mine) != 0) | ~joint[1:])
    pool = np.empty(family.size, dtype=np.int64)
    pool[order] = np.cumsum(opens) - 1
    return pool, mine[opens]


def _renumber(labels: IntArray) -> tuple[IntArray, int]:
    """Number the blocks that are present 0, 1, … in their order."""
    present = np.zeros(int(labels.max()) + 1, dtype=bool)
    present[labels] = True
    number = np.cumsum(present) - 1
    return number[labels], int(number[-1]) + 1


def _assemble(
    blocks: Blocks,
    parent: list[IntArray],
    size: list[FloatArray],
    value: list[FloatArray],
    weight: list[FloatArray],
    leaf: IntArray,
    boxes: list[tuple[IntArray, IntArray, FloatArray]],
    seen: list[tuple[FloatArray, float]],
) -> GrownTree:
    parents = np.concatenate(parent)
    nodes = parents.size
    first = np.full(nodes, -1, dtype=np.int64)
    last = np.zeros(nodes, dtype=np.int64)
    # Siblings stand side by side: a family starts where the parent changes.
    child = np.arange(1, nodes)
    opens = np.diff(parents[1:], prepend=-1) != 0
    closes = np.append(opens[1:], True) if nodes > 1 else opens
    first[parents[1:][opens]] = child[opens]
    last[parents[1:][closes]] = child[closes] + 1
    starts = np.concatenate([[0], np.cumsum([level.size for level in parent])]).astype(np.int64)
    return GrownTree(
        blocks,
        first,
        last,
        np.concatenate(size),
        np.concatenate(value),
        np.concatenate(weight),
        starts,
        leaf,
        boxes,
        seen,
    )
