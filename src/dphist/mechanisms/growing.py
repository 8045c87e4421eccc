"""Measure a tree top-down, where it matters: split what is full, stop where there is little, pool what is left.

Shared by the adaptive mechanisms on lines and hierarchies. What comes back is a measured tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree, twice
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
) -> MeasuredTree:
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
    nodes = _Nodes(blocks, data, root)
    start, values_above = (
        0,
        np.array([root[0]]),
    )  # where the level above starts in the list, and its measured totals
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
        totals, variance = noisy.values.astype(np.float64), float(noisy.variance)
        extent = np.bincount(here, minlength=count).astype(np.float64)
        family, witness = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        family[here], witness[here] = above, cells
        low, high = blocks.bounds(level, witness)
        if deepest:
            nodes.add(family + start, low, high, totals, variance)
            break
        view = Measured(
            *(level, totals, extent, float(noisy.scale), float(rest.unit_scale)),
            *(family, values_above[: family[-1] + 1]),
        )
        done, together = finish(view)
        finished, going = np.flatnonzero(done), np.flatnonzero(~done)
        unit, units = _pools(family[finished], together[finished])
        again, later = np.empty(0), math.inf
        if finished.size:
            member = np.zeros(count, dtype=np.int64)
            member[finished] = unit
            pooled, rest = rest.partition(here, count).select(done)
            second = pooled.partition(member[here[pooled.cells]], units).measure(Totals())
            again, later = second.values.astype(np.float64), float(second.variance)

        begin = nodes.count
        where, values_above = nodes.add_level(
            *(start + family, low, high, totals, variance), *(going, finished, unit, again, later)
        )
        start = begin
        if not going.size:
            break
        above = where[here]
        if finished.size:
            cells, above = cells[rest.cells], above[rest.cells]
        right = rest
    return nodes.tree()


class _Nodes:
    """Nodes as they are made, a few arrays a level."""

    def __init__(self, blocks: Blocks, data: PrivateCounts, root: tuple[float, float]) -> None:
        self.shape, self.count = data.shape, 0
        self._parts: list[tuple[NDArray[Any], ...]] = []
        low, high = blocks.bounds(0, np.array([0, data.size - 1], dtype=np.int64))
        variance = 1.0 / root[1] if root[1] > 0.0 else math.inf
        self.add(np.array([-1]), low[:1], high[1:], np.array([root[0]]), variance)

    def add(
        self,
        parent: IntArray,
        low: IntArray,
        high: IntArray,
        value: FloatArray,
        variance: float | FloatArray,
        pool: bool | BoolArray = False,
        seen: float | FloatArray = 0.0,
        seen_variance: float | FloatArray = math.inf,
    ) -> None:
        """Note blocks that were measured."""
        each = (np.broadcast_to(part, parent.size) for part in (variance, pool, seen, seen_variance))
        self._parts.append((parent, low, high, value, *each))
        self.count += parent.size

    def add_level(
        self,
        parent: IntArray,
        low: IntArray,
        high: IntArray,
        totals: FloatArray,
        variance: float,
        going: IntArray,
        finished: IntArray,
        unit: IntArray,
        again: FloatArray,
        later: float,
    ) -> tuple[IntArray, FloatArray]:
        """Note a level whose ``finished`` blocks were measured again, unit by unit; the others go on.

        Gives the place in the level of the node that each block became part of, and what was measured of every node.
        Siblings stand in the order of their first blocks; those of a pool follow after the whole level.
        """
        order = np.argsort(unit, kind="stable")
        opens = np.flatnonzero(np.diff(unit[order], prepend=-1))
        members = np.bincount(unit, minlength=again.size)
        witness = np.concatenate([going, finished[order[opens]]])
        place = np.empty(witness.size, dtype=np.int64)
        place[np.argsort(witness, kind="stable")] = np.arange(witness.size)
        mine, units = place[: going.size], place[going.size :]
        where = np.empty(totals.size, dtype=np.int64)
        where[going], where[finished] = mine, units[unit]

        lows, highs = np.empty((place.size, low.shape[1]), dtype=np.int64), np.empty_like(low[: place.size])
        lows[place], highs[place] = low[witness], high[witness]
        value, variances = np.empty(place.size), np.full(place.size, variance)
        value[mine] = totals[going]
        value[units], variances[units] = again, later
        pool, seen_variance = np.zeros(place.size, dtype=bool), np.full(place.size, math.inf)
        seen = np.zeros(place.size)
        if finished.size:
            lows[units] = np.minimum.reduceat(low[finished[order]], opens, axis=0)
            highs[units] = np.maximum.reduceat(high[finished[order]], opens, axis=0)
            pool[units] = members > 1
            alone = finished[members[unit] == 1]
            at = where[alone]
            seen[at], seen_variance[at] = totals[alone], variance
            value[at], variances[at] = twice(seen[at], seen_variance[at], value[at], variances[at])
        above = np.empty(place.size, dtype=np.int64)
        above[place] = parent[witness]
        begin = self.count
        self.add(above, lows, highs, value, variances, pool, seen, seen_variance)
        inside = finished[order[members[unit[order]] > 1]]
        self.add(begin + where[inside], low[inside], high[inside], totals[inside], variance)
        return where, value

    def tree(self) -> MeasuredTree:
        """All of them, as a tree."""
        parent, low, high, value, variance, pool, seen, seen_variance = (
            np.concatenate([part[k] for part in self._parts]) for k in range(8)
        )
        return MeasuredTree.of(
            *(self.shape, parent, low, high, value, variance),
            pool=pool,
            seen=seen,
            seen_variance=seen_variance,
        )


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


def _pools(family: IntArray, together: BoolArray) -> tuple[IntArray, int]:
    """Which pool each finished child joins, and how many pools there are; families come in order."""
    if not family.size:
        return np.empty(0, dtype=np.int64), 0
    # Within a family those who pool come first, and only the first of them opens a pool.
    order = np.lexsort((~together, family))
    mine, joint = family[order], together[order]
    opens = np.append(True, (np.diff(mine) != 0) | ~joint[1:])
    pool = np.empty(family.size, dtype=np.int64)
    pool[order] = np.cumsum(opens) - 1
    return pool, int(opens.sum())


def _renumber(labels: IntArray) -> tuple[IntArray, int]:
    """Number the blocks that are present 0, 1, … in their order."""
    present = np.zeros(int(labels.max()) + 1, dtype=bool)
    present[labels] = True
    number = np.cumsum(present) - 1
    return number[labels], int(number[-1]) + 1
