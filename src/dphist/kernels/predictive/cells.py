"""Mean and variance of single cells, of which a file asks for every one: only nodes that hold the cell are visited.

Above a cell only one side of every split has a slope, so Σ (β_l − β_r)²·rest is a sum along its path. Per unit of slope
it is V(child) = rest(parent) + γ²·V(parent), the same for all cells below, and worked out once from the root down
(`path_variances`). A cell then needs its leaf alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.predictive.inside import shared_inside
from dphist.kernels.summed_area import paint_boxes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# Cells that are looked at together.
_BLOCK = 1 << 18


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
    at: NDArray[np.integer]

    @cached_property
    def share(self) -> FloatArray:
        """What part of its leaf a cell is."""
        share = np.ones(len(self.cells))
        for axis in range(self.low.shape[1]):
            share /= (self.high[:, axis] - self.low[:, axis])[self.at]
        return share

    def ask(self, mean: FloatArray, along: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the cells by one law, as `ask_boxes` gives them for boxes of one cell."""
        return self.share * mean[self.at], self.share * self.share * along[self.at]

    def inside(self, mean: FloatArray, variance: FloatArray, unevenness: FloatArray) -> FloatArray:
        """What stays unknown of cells whose leaf has several."""
        inner = np.zeros(len(self.cells))
        cut = np.flatnonzero(self.share < 1.0)
        for start in range(0, cut.size, _BLOCK):
            some = cut[start : start + _BLOCK]
            leaf, boxes = self.at[some].astype(np.int64), [(self.cells[some], self.cells[some] + 1)]
            shared = shared_inside(leaf, self.low, self.high, boxes, mean, variance, unevenness)
            inner[some] = np.maximum(shared, 0.0)
        return inner
