"""One axis of a cube and its transform: plain, Haar or nominal, as arrays ready for the kernels.

An axis of ``size`` cells has ``slots`` coefficients. Slot k of the forward transform carries noise of scale
``sensitivity`` · its class; one step in a cell then moves Σ |Δₖ| ÷ scaleₖ ≤ 1 along the axis (each class says
why). The inverse gives cells times ``denominator``, a public whole number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.wavelets import haar, nominal

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Calibration = Literal["tight", "paper"]
Classes = tuple[tuple[Fraction, ...], IntArray]


class Axis:
    """What a transform of many dimensions needs to know of each of them: here, of an axis that is left as it is.

    ``size`` is how many cells it has.
    """

    size: int

    @property
    def slots(self) -> int:
        """How many coefficients."""
        return self.size

    @property
    def sensitivity(self) -> int:
        """P(A) of the paper: what one step moves, in units of the weights."""
        return 1

    @property
    def bound(self) -> float:
        """H(A) of the paper: how much of the noise's variance any range can gather, at most."""
        return float(self.size)

    @property
    def padded(self) -> int:
        """|A| of the paper, padding included."""
        return self.size

    @property
    def denominator(self) -> int:
        """What the inverse multiplies the cells by."""
        return 1

    @property
    def classes(self) -> Classes:
        """The noise scale of each slot over the sensitivity: distinct values, and which of them each slot has."""
        # One class of weight one, without an array to say so.
        return (Fraction(1),), np.broadcast_to(np.int64(0), (self.slots,))

    @property
    def depths(self) -> IntArray:
        """The level of each slot's coefficient in the tree: 0 for the base. Cells are the bases of sub-matrices."""
        return np.arange(self.size, dtype=np.int64)

    def forward(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Transform the middle axis of ``cells`` in place, in some columns."""

    def inverse(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Undo `forward`, times the denominator."""

    @property
    def deviations(self) -> FloatArray:
        """The noise of each coefficient after `centre`, as a standard deviation over that of the base."""
        return np.ones(self.slots)

    def centre(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Turn noisy numbers into the paper's coefficients, in floating point."""

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """For each range of cells: squared weights summed over the coefficients, and the largest weight.

        Weights are those of normalised coefficients, whose noise all has the same scale.
        """
        length = np.maximum(high - low, 0).astype(np.float64)
        return length, np.minimum(length, 1.0)


@dataclass(frozen=True)
class PlainAxis(Axis):
    """An axis left as it is (in S_A of Privelet+): one step moves one cell by one, so sensitivity and weight are 1."""

    size: int


@dataclass(frozen=True)
class HaarAxis(Axis):
    """An ordered axis: the total, and left sum − right sum of every node of a binary tree.

    A cell lies under one node of each of the l levels, so one step moves l differences and the total by one
    each: sensitivity 1 + l and weight 1 everywhere.
    """

    size: int

    @property
    def levels(self) -> int:
        """How many levels of differences."""
        return haar.haar_levels(self.size)

    @property
    def slots(self) -> int:
        """One for each node that covers a cell, and the total's: padding has none."""
        return haar.haar_slots(self.size)

    @property
    def padded(self) -> int:
        """The next power of two."""
        return 1 << self.levels

    @property
    def denominator(self) -> int:
        """The padded size."""
        return self.padded

    @property
    def sensitivity(self) -> int:
        """1 + log₂ of the padded size."""
        return 1 + self.levels

    @property
    def bound(self) -> float:
        """(2 + log₂ of the padded size) ÷ 2."""
        return (2 + self.levels) / 2

    @cached_property
    def depths(self) -> IntArray:
        """The total, then the root's difference, and so on down."""
        return haar.haar_depths(self.size)

    @cached_property
    def _beyond(self) -> IntArray:
        return haar.haar_beyond(self.size)

    @cached_property
    def _powers(self) -> FloatArray:
        return np.exp2(np.arange(self.levels - 1, -1, -1, dtype=np.float64))

    def forward(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Sum and difference, level by level."""
        haar.haar_forward(cells, self.size, self._beyond, first, last)

    def inverse(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Halves from their sum and difference, top down, as numerators."""
        haar.haar_inverse(cells, self.size, self._beyond, self._powers.astype(cells.dtype), first, last)

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """See `haar_spread`."""
        return haar.haar_spread(low, high, self.size)


@dataclass(frozen=True, eq=False)
class NominalAxis(Axis):
    """An axis with a hierarchy: every node's sum, of which the inverse keeps the differences among siblings.

    ``calibration="tight"``: one step moves one sum on each level by one, so every sum weighs 1 and the
    sensitivity is the number of levels.

    ``calibration="paper"`` gives a node with f siblings (itself counted) the printed noise, 2(1 − 1/f) ≥ 1
    times as much. The paper noises sum − mean, which one step moves by 1 − 1/f in the node and by 1/f in each
    sibling, and subtracts the means of the noise afterwards. But (sum + η) − mean of (sum + η) is that same
    number, and a function of the noisy sums alone: weight 1 is enough, with up to four times less variance.

    Nodes with one child say nothing that the child does not: they are left out, so the sensitivity is one
    more than the largest number of real choices above any cell (the number of levels, when every node has a
    choice).

    ``parent`` has an entry per node, root first, parents before children; ``leaves`` are in the order of the
    cells.
    """

    parent: IntArray
    leaves: IntArray
    calibration: Calibration = "tight"

    @property
    def size(self) -> int:  # type: ignore[override]  # read only
        """How many leaves."""
        return int(self.leaves.size)

    @cached_property
    def _tree(self) -> tuple[IntArray, IntArray, IntArray]:
        """Slots of the inner nodes, where their children start, and the children's slots; one-child nodes left out."""
        parent = self.parent.tolist()
        fanout, first = [0] * len(parent), [self.size] * len(parent)
        for cell, node in enumerate(self.leaves.tolist()):
            first[node] = cell
        for node in range(len(parent) - 1, 0, -1):
            fanout[parent[node]] += 1
            first[parent[node]] = min(first[parent[node]], first[node])
        slot = [-1] * len(parent)
        for cell, node in enumerate(self.leaves.tolist()):
            slot[node] = cell
        inner = [node for node, children in enumerate(fanout) if children > 1]
        # The root comes last: the noise it needs is its own, and the others' slots stay side by side.
        for place, node in enumerate([*inner[1:], *inner[:1]]):
            slot[node] = self.size + place
        family: dict[int, list[tuple[int, int]]] = {node: [] for node in inner}
        near = [-1] * len(parent)  # the nearest kept node above each node
        for node in range(1, len(parent)):
            above = parent[node]
            near[node] = above if slot[above] >= 0 else near[above]
            if slot[node] >= 0 and near[node] >= 0:
                family[near[node]].append((first[node], slot[node]))
        # Leaving nodes out can shuffle a family; its members go by what they cover.
        ordered = [sorted(family[node]) for node in inner]
        start = np.cumsum([0] + [len(members) for members in ordered], dtype=np.int64)
        child = np.array([slot for members in ordered for _, slot in members], dtype=np.int64)
        return np.array([slot[node] for node in inner], dtype=np.int64), start, child

    def families(self) -> list[tuple[int, IntArray]]:
        """Every node with a choice below it, parents first: its slot and its children's."""
        node, start, child = self._tree
        return [(int(slot), child[start[g] : start[g + 1]]) for g, slot in enumerate(node)]

    @property
    def slots(self) -> int:
        """Leaves and every node with a choice below it."""
        return self.size + int(self._tree[0].size)

    @cached_property
    def _links(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """For every slot: its parent's slot, its place among siblings, its fan-out and its depth."""
        above, rank = np.full(self.slots, -1, dtype=np.int64), np.zeros(self.slots, dtype=np.int64)
        fanout, depth = np.zeros(self.slots, dtype=np.int64), np.zeros(self.slots, dtype=np.int64)
        for slot, children in self.families():
            above[children], rank[children] = slot, np.arange(children.size)
            fanout[slot], depth[children] = children.size, depth[slot] + 1
        return above, rank, fanout, depth

    @property
    def depths(self) -> IntArray:
        """The level of every slot, the root 0."""
        return self._links[3]

    @property
    def sensitivity(self) -> int:
        """One for the total and one for each real choice above the deepest cell."""
        return int(self.depths.max()) + 1

    @property
    def bound(self) -> float:
        """Four, by Lemma 5 (the tight calibration stays below one, but the paper's rule for S_A speaks of four)."""
        return 4.0

    @cached_property
    def classes(self) -> Classes:
        """One for the root; one, or 2(1 − 1/f), for a member of a family of f."""
        if self.calibration == "tight":
            return super().classes
        above, _, fanout, _ = self._links
        # The root stands for a family of two, whose weight is one too.
        sizes, index = np.unique(np.where(above < 0, 2, fanout[above]), return_inverse=True)
        return tuple(Fraction(2 * (f - 1), f) for f in sizes.tolist()), index.astype(np.int64)

    @cached_property
    def _fractions(self) -> tuple[list[list[int]], list[int], int]:
        """Whole-number weights of the inverse per group, the leaves' lifts, and the common denominator.

        child = Y − ΣY ÷ f + parent ÷ f. Over p for the parent that is f·p for the child.
        """
        over = [1] * self.slots
        rows: list[list[int]] = []
        for slot, children in self.families():
            rows.append([children.size * over[slot], over[slot], 1])
            for child in children.tolist():
                over[child] = children.size * over[slot]
        common = lcm(*over[: self.size])
        lift = [common // d for d in over[: self.size]] + [1] * (self.slots - self.size)
        return rows, lift, common

    @property
    def denominator(self) -> int:
        """A multiple of every cell's denominator."""
        return self._fractions[2]

    def forward(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Sums upward."""
        nominal.nominal_forward(cells, *self._tree, first, last)

    def inverse(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Subtract each family's mean and add the parent's share, top down, as numerators."""
        node, start, child = self._tree
        own, mean, above, lift = self._inverse_weights(cells.dtype)
        nominal.nominal_inverse(cells, node, start, child, own, mean, above, lift, first, last)

    def _inverse_weights(self, dtype: np.dtype[Any]) -> list[NDArray[Any]]:
        rows, lift, _ = self._fractions
        columns = [[row[i] for row in rows] for i in range(3)]
        return [np.array(column, dtype=dtype) for column in (*columns, lift)]

    @cached_property
    def deviations(self) -> FloatArray:
        """Subtracting the mean of f equal noises leaves 1 − 1/f of the variance."""
        above, _, fanout, _ = self._links
        values, index = self.classes
        scale = np.array([float(value) for value in values])[index]
        return np.where(above < 0, 1.0, scale * np.sqrt(1 - 1 / np.maximum(fanout[above], 2)))

    def centre(self, cells: NDArray[Any], first: int, last: int) -> None:
        """Subtract each family's mean."""
        nominal.nominal_centre(cells, *self._tree, first, last)

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """See `nominal_spread`."""
        above, rank, fanout, depth = self._links
        children = np.maximum(fanout, 1)
        scale = 2.0 * (children - 1) / children if self.calibration == "paper" else np.ones(self.slots)
        total, largest = np.empty(low.size), np.empty(low.size)
        low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        nominal.nominal_spread(low, high, above, rank, fanout, depth, scale, total, largest)
        return total, largest
