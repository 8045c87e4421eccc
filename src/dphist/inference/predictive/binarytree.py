"""A binary tree of totals: what was measured, as the predictive law and least squares read it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.kernels.predictive.halving import halve_cells, halve_families
from dphist.kernels.predictive.passes import best_totals, least_squares_splits

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class BinaryTree:
    """Node i's children are ``left[i]`` and the next (−1 for a leaf); ``low`` to ``high`` is the hull of its cells.

    Args:
        shape: Of the cells.
        left: The left child of every node.
        low: Where its hull begins.
        high: One past where it ends.
        size: How many cells it has.
        value: What was measured of it.
        variance: With what variance; infinite where nothing was.
    """

    shape: tuple[int, ...]
    left: IntArray
    low: ShortArray
    high: ShortArray
    size: FloatArray
    value: FloatArray
    variance: FloatArray

    @classmethod
    def of_tree(cls, tree: MeasuredTree) -> BinaryTree:
        """Halve the families of a measured tree."""
        nodes = halve_families(
            *(tree.first, tree.last, np.ascontiguousarray(tree.low), np.ascontiguousarray(tree.high)),
            *(tree.size, tree.value, tree.variance),
        )
        return cls(tuple(tree.shape), *nodes)

    @classmethod
    def of_cells(cls, noisy: NDArray[Any], variance: float) -> BinaryTree:
        """Halve a grid of noisy cells that all carry noise of the same variance."""
        left, low, high, cell = halve_cells(np.array(noisy.shape, dtype=np.int64))
        leaves = cell >= 0
        value = np.zeros(cell.size)
        value[leaves] = noisy.reshape(-1)[cell[leaves]]
        known = np.where(leaves, variance, np.inf)
        size = np.prod((high - low).astype(np.float64), axis=1)
        return cls(tuple(noisy.shape), left, low, high, size, value, known)

    @cached_property
    def splits(self) -> IntArray:
        """The nodes that have children, in order."""
        return np.flatnonzero(self.left >= 0)

    @cached_property
    def totals(self) -> tuple[FloatArray, FloatArray]:
        """Best linear total of every node from what was measured at it and below, and its variance."""
        return best_totals(self.left, self.value, self.variance)

    @cached_property
    def plain(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Plain least squares: every node's mean; of every split its left part's slope in the total, and the rest."""
        return least_squares_splits(self.left, *self.totals)

    @property
    def deviations(self) -> float:
        """How many deviations of its noise the whole is, one at least: how much there is to learn from."""
        best, spread = self.totals
        known = bool(best.size) and float(spread[0]) > 0.0
        return max(1.0, float(best[0]) / math.sqrt(float(spread[0]))) if known else math.inf
