"""Mean and variance of single cells, of which a file asks for every one: only nodes that hold the cell are visited.

Above a cell only one side of every split has a slope, so Σ (β_l − β_r)²·rest is a sum along its path. Per unit of slope
it is V(child) = rest(parent) + γ²·V(parent), the same for all cells below, and worked out once from the root down. A
cell then needs its leaf alone, and NumPy looks at all of them sooner than machine code at one after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin
from dphist.kernels.paint import paint_boxes
from dphist.kernels.predictive import twins
from dphist.kernels.predictive.inside_twins import shared_alone

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]


@kernel_with_twin(twins.path_variances)
def path_variances(left: IntArray, slope: FloatArray, rest: FloatArray, top: float) -> FloatArray:
    """What a slope of one in each node adds to the variance, along the path from the root."""
    along = np.zeros(left.size)
    along[0] = top
    # From the root down, not in the order of the nodes: halved families have children that stand before them.
    waiting = np.empty(left.size, dtype=np.int64)
    waiting[0] = 0
    count = 1
    while count > 0:
        count -= 1
        i = waiting[count]
        c = left[i]
        if c >= 0:
            along[c] = rest[i] + slope[i] * slope[i] * along[i]
            along[c + 1] = rest[i] + (1.0 - slope[i]) * (1.0 - slope[i]) * along[i]
            waiting[count] = c
            waiting[count + 1] = c + 1
            count += 2
    return along


def painted_leaves(left: IntArray, low: ShortArray, high: ShortArray) -> ShortArray:
    """The leaf of every cell, flat and in C order; −1 where none is. Leaves are boxes."""
    shape = tuple(high[0].tolist())
    strides = np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))])
    grid = np.full(math.prod(shape), -1, dtype=np.int32)
    paint_boxes(np.flatnonzero(left < 0), low, high, np.arange(left.size, dtype=np.int32), strides, grid)
    return grid


def found_leaves(left: IntArray, low: ShortArray, high: ShortArray, cells: IntArray) -> IntArray:
    """The leaves of a few cells, from the root down."""
    at = np.zeros(len(cells), dtype=np.int64)
    going, node = np.arange(len(cells)), at
    while going.size:
        leaf = left[node] < 0
        at[going[leaf]] = node[leaf]
        going, first = np.repeat(going[~leaf], 2), left[node[~leaf]]
        node = np.stack([first, first + 1], axis=1).reshape(-1)
        # A hull that holds a cell may reach around it: both sides of a split are followed where both may hold it.
        holds = ((cells[going] >= low[node]) & (cells[going] < high[node])).all(axis=1)
        going, node = going[holds], node[holds]
    return at


@dataclass(frozen=True, eq=False)
class Cells:
    """Some cells, the leaf of each, and which part of its leaf a cell is: the same for every law of a tree."""

    low: ShortArray
    high: ShortArray
    cells: IntArray
    at: IntArray

    @cached_property
    def share(self) -> FloatArray:
        """What part of its leaf a cell is."""
        share = np.ones(len(self.cells))
        for axis in range(self.low.shape[1]):
            share /= (self.high[:, axis] - self.low[:, axis])[self.at]
        return share

    def ask(
        self, mean: FloatArray, along: FloatArray, variance: FloatArray, unevenness: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean and variance of the cells, as `ask_boxes` gives them for boxes of one cell."""
        share, at, cells, inner = self.share, self.at, self.cells, np.zeros(len(self.cells))
        cut = np.flatnonzero(share < 1.0) if unevenness.size else np.zeros(0, dtype=np.int64)
        if cut.size:
            boxes = cells[cut], cells[cut] + 1
            shared = shared_alone(at[cut], self.low, self.high, *boxes, mean, variance, unevenness)
            inner[cut] = np.maximum(shared, 0.0)
        return share * mean[at], share * share * along[at], inner
