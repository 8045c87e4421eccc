"""The nominal wavelet along one axis: how far each node's sum is from its siblings' mean.

The paper's coefficient of a node is its sum less the mean over its siblings. Noise goes on the sums and the
means are taken out on the way back, which gives the same noisy coefficients as the paper's mean subtraction
does, in integers.

The axis is the middle one of ``cells[outer, slots, inner]``. Cells are the leaves and come first; inner nodes
follow, the root last. A tree is given as three arrays, inner nodes before their children: ``node[g]`` is the
slot of inner node g, and its children's slots are ``child[start[g]]`` up to ``child[start[g + 1]]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm
from typing import Literal

import numpy as np

from dphist.kernels.compile import kernel
from dphist.kernels.wavelets.axes import Array, Axis, Classes, FloatArray, IntArray

Calibration = Literal["tight", "paper"]


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

    def forward(self, cells: Array) -> None:
        """Fill the slots of the inner nodes with the sums of what lies below them."""
        for slot, children in reversed(self.families()):
            cells[:, slot] = cells[:, children].sum(axis=1)

    def inverse(self, cells: Array) -> None:
        """Replace noisy sums by cells times the denominator.

        Each family keeps only how it differs from its mean: a child is its noisy sum − the mean over its family +
        the parent's reconstructed sum ÷ f. As numerators that is own·Y − mean·ΣY + above·parent, all whole numbers;
        ``lift`` brings leaves of unequal depth to one denominator.
        """
        weights, lifts, _ = self._fractions
        lift = np.array(lifts, dtype=cells.dtype)
        for (slot, children), row in zip(self.families(), weights, strict=True):
            own, mean, above = np.array(row, dtype=cells.dtype)
            sums = cells[:, children]
            shared = above * cells[:, slot] - mean * _added(sums)
            sums *= own
            sums += shared[:, None]
            sums *= lift[children][:, None]
            cells[:, children] = sums

    @cached_property
    def deviations(self) -> FloatArray:
        """Subtracting the mean of f equal noises leaves 1 − 1/f of the variance."""
        above, _, fanout, _ = self._links
        values, index = self.classes
        scale = np.array([float(value) for value in values])[index]
        return np.where(above < 0, 1.0, scale * np.sqrt(1 - 1 / np.maximum(fanout[above], 2)))

    def centre(self, cells: Array) -> None:
        """Replace each noisy sum by the paper's coefficient: less the mean over its family; the root keeps its sum."""
        for _, children in self.families():
            sums = cells[:, children]
            cells[:, children] = sums - (_added(sums) / children.size)[:, None]

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """See `_nominal_spread`."""
        above, rank, fanout, depth = self._links
        children = np.maximum(fanout, 1)
        scale = 2.0 * (children - 1) / children if self.calibration == "paper" else np.ones(self.slots)
        total, largest = np.empty(low.size), np.empty(low.size)
        low, high = np.ascontiguousarray(low), np.ascontiguousarray(high)
        _nominal_spread(low, high, above, rank, fanout, depth, scale, total, largest)
        return total, largest


def _added(sums: Array) -> Array:
    """Sums along the middle axis, one number after the other."""
    return np.asarray(np.cumsum(sums, axis=1)[:, -1])


@kernel
def _nominal_spread(
    low: IntArray,
    high: IntArray,
    parent: IntArray,
    rank: IntArray,
    fanout: IntArray,
    depth: IntArray,
    weight: FloatArray,
    total: FloatArray,
    largest: FloatArray,
) -> None:
    """How noise of variance one in every coefficient adds up in the sums of leaves ``low`` up to ``high``.

    Nodes are numbered with the leaves first; ``parent`` is −1 at the root, ``rank`` the place among siblings,
    and ``weight`` of an inner node the noise scale of its children over that of the root. Let G be a node's
    covered fraction: 1 or 0 for a leaf, else the mean over its children. The sum weighs the root by its G and
    every other node by G − G(parent), so only groups cut by an end of the range count: two paths to the root.
    """
    for query in range(low.size):
        variance, extreme = 0.0, 0.0
        if high[query] > low[query]:
            one, other = low[query], high[query] - 1
            part_one, part_other = 1.0, 1.0
            while parent[one] >= 0:
                if one == other:
                    above, full = parent[one], 0
                    sums, squares = part_one, part_one * part_one
                elif depth[one] == depth[other] and parent[one] == parent[other]:
                    above, full = parent[one], rank[other] - rank[one] - 1
                    sums = part_one + part_other + full
                    squares = part_one * part_one + part_other * part_other + full
                elif depth[one] >= depth[other]:
                    above = parent[one]
                    full = fanout[above] - rank[one] - 1
                    sums, squares = part_one + full, part_one * part_one + full
                else:
                    above, full = parent[other], rank[other]
                    sums, squares = part_other + full, part_other * part_other + full
                share = sums / fanout[above]
                scale = weight[above]
                variance += scale * scale * (squares - sums * share)
                # The farthest child from the mean is a wholly covered one, a wholly uncovered one, or the cut ones.
                joined = one != other and parent[one] == parent[other] and depth[one] == depth[other]
                covered = full + (2 if joined else 1)
                if full > 0:
                    extreme = max(extreme, scale * (1.0 - share))
                if covered < fanout[above]:
                    extreme = max(extreme, scale * share)
                if one == other or joined:
                    extreme = max(extreme, scale * abs(part_one - share))
                    if joined:
                        extreme = max(extreme, scale * abs(part_other - share))
                    one, other, part_one, part_other = above, above, share, share
                elif depth[one] >= depth[other]:
                    extreme = max(extreme, scale * abs(part_one - share))
                    one, part_one = above, share
                else:
                    extreme = max(extreme, scale * abs(part_other - share))
                    other, part_other = above, share
            variance += part_one * part_one
            extreme = max(extreme, part_one)
        total[query] = variance
        largest[query] = extreme
