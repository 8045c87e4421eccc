"""Least squares over trees of noisy totals: pure arithmetic on released numbers.

Any mechanism that measured the totals of nested blocks can use it: blocks of any shape, any fan-out, any depth, some
nodes measured and some not. Nothing private is read, so nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import MechanismError
from dphist.inference.intervals import Spread
from dphist.kernels.paint import paint_boxes
from dphist.kernels.trees.passes import (
    box_spread,
    families,
    gather_up,
    nonnegative_top_down,
    weighted_least_squares,
)
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def infer(
    parent: ArrayLike, values: ArrayLike, variances: ArrayLike, *, nonnegative: bool = False
) -> FloatArray:
    """Give every node's total so that children sum to their parent, as close to the measurements as their noise asks.

    ``parent[i] < i`` (−1 for a root); ``variances[i]`` is infinite where node i was not measured. Without
    ``nonnegative`` this is the best linear unbiased estimate. With it, totals are settled from the root down: each
    family is projected onto {≥ 0, sum = parent's total} in the norm weighted by its variances.
    """
    up = np.ascontiguousarray(parent, dtype=np.int64)
    y = np.ascontiguousarray(values, dtype=np.float64)
    v = np.ascontiguousarray(variances, dtype=np.float64)
    if not up.ndim == y.ndim == v.ndim == 1 or not up.size == y.size == v.size:
        raise MechanismError("a tree needs one parent, one value and one variance for each node")
    if bool((up >= np.arange(up.size)).any()) or bool((up < -1).any()):
        raise MechanismError("a tree's nodes must come after their parents, and roots must have parent −1")
    y = np.where(np.isinf(v), 0.0, y)
    kernel = nonnegative_top_down if nonnegative else weighted_least_squares
    totals: FloatArray = kernel(up, y, v)
    return totals


def pool(
    first: FloatArray, first_variance: FloatArray, second: FloatArray, second_variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Combine two independent measurements of the same totals by inverse variance."""
    share = first_variance / (first_variance + second_variance)
    return first + share * (second - first), share * second_variance


@dataclass(frozen=True, eq=False)
class NodeTree:
    """Nested boxes of cells: node i covers ``low[i] ≤ cell < high[i]`` on every axis and hangs under ``parent[i]``.

    Roots come first, parents before their children, and the children of a node tile it. A leaf of several cells
    spreads its total evenly over them.
    """

    parent: IntArray
    low: IntArray
    high: IntArray

    @classmethod
    def of_blocks(cls, shape: Sequence[int], sides: Sequence[Sequence[int]]) -> NodeTree:
        """Blocks of given sides, coarse to fine: every side must be a multiple of the next; the last blocks are cut.

        Level l is a grid of boxes of ``sides[l]`` in C order, so node numbers follow from the grid.
        """
        sizes = np.array(shape, dtype=np.int64)
        parents, lows, highs = [], [], []
        offset, above_offset = 0, 0
        above: tuple[IntArray, tuple[int, ...]] | None = None
        for side in sides:
            step = np.array(side, dtype=np.int64)
            grid = tuple(int(g) for g in -(-sizes // step))
            place = np.stack(np.unravel_index(np.arange(int(np.prod(grid))), grid), axis=1).astype(np.int64)
            lows.append(place * step)
            highs.append(np.minimum(lows[-1] + step, sizes))
            if above is None:
                parents.append(np.full(len(place), -1, dtype=np.int64))
            else:
                over = np.ravel_multi_index(tuple((lows[-1] // above[0]).T), above[1])
                parents.append(above_offset + over.astype(np.int64))
            above, above_offset = (step, grid), offset
            offset += len(place)
        return cls(np.concatenate(parents), np.concatenate(lows), np.concatenate(highs))

    def __len__(self) -> int:
        return int(self.parent.size)

    @cached_property
    def family(self) -> tuple[IntArray, IntArray]:
        """Children of node i: ``members[starts[i]:starts[i + 1]]``."""
        starts, members = families(self.parent)
        return starts, members

    @cached_property
    def leaves(self) -> IntArray:
        """Nodes without children, in order."""
        return np.flatnonzero(np.diff(self.family[0]) == 0)

    def infer(self, values: ArrayLike, variances: ArrayLike, *, nonnegative: bool = False) -> FloatArray:
        """Consistent totals of all nodes; see `infer`."""
        return infer(self.parent, values, variances, nonnegative=nonnegative)

    def cells(self, totals: FloatArray, shape: Sequence[int]) -> FloatArray:
        """Counts of the cells: every leaf's total spread evenly over its box."""
        leaves = self.leaves
        volume = np.prod(self.high[leaves] - self.low[leaves], axis=1)
        out = np.zeros(int(np.prod(shape)))
        strides = np.array([int(np.prod(shape[a + 1 :])) for a in range(len(shape))], dtype=np.int64)
        paint_boxes(self.low[leaves], self.high[leaves], totals[leaves] / volume, strides, out)
        return out.reshape(tuple(shape))


@dataclass(frozen=True, eq=False)
class TreeNoise:
    """The noise of any range under tree least squares, exactly: (HᵀΣ⁻¹H)⁻¹ read off along the range's edges.

    ``variances`` are those of the measurements (infinite where there was none) and ``scales`` the largest Laplace
    scale in each. Visits only nodes that the range cuts: fan-out × depth steps on a line.
    """

    tree: NodeTree
    variances: FloatArray
    scales: FloatArray
    method: str = (
        "exact variance of the tree's least squares; "
        "not covered: the bias inside blocks that the range only cuts, and that of cutting at zero"
    )

    @cached_property
    def _rooted(
        self,
    ) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, IntArray, IntArray, IntArray]:
        """What the kernel reads: one root over everything (unmeasured, so it adds nothing), families in order."""
        tree, none = self.tree, np.full(1, np.inf)
        parent = np.concatenate([[-1], tree.parent + 1])
        low = np.concatenate([tree.low.min(axis=0, keepdims=True), tree.low])
        high = np.concatenate([tree.high.max(axis=0, keepdims=True), tree.high])
        variances = np.concatenate([none, self.variances])
        _, V, _, below_variance, _ = gather_up(parent, np.zeros(parent.size), variances)
        measured = np.isfinite(variances) & (variances > 0)
        scales = np.concatenate([none, self.scales])
        heft = np.divide(scales, variances, out=np.zeros(parent.size), where=measured)
        starts, members = families(parent)
        if low.shape[1] == 1:
            members = members[np.lexsort((low[members, 0], parent[members]))]
        return V, below_variance, heft, starts, members, low, high

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        return self.spread_boxes(workload.low, workload.high)

    def spread_boxes(self, low: IntArray, high: IntArray) -> Spread:
        """The same for bare bounds."""
        variance, largest = box_spread(*self._rooted, np.ascontiguousarray(low), np.ascontiguousarray(high))
        # One draw cannot carry more than the whole variance, whatever the bound says.
        return Spread(variance, np.minimum(largest, np.sqrt(variance / 2)))
