"""Noise of boxes that were counted, spread over their cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import NoiseErrors
from dphist.inference.intervals import Spread
from dphist.kernels.trees import kdtree
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cuts:
    """Boxes that tile the cells, as leaves of a tree of cuts that are yet to be counted.

    Node i is cut into ``left[i]`` and the next.
    """

    left: IntArray
    parent: IntArray
    low: IntArray
    high: IntArray
    labels: IntArray
    """The leaf of every cell, numbered in the order of `leaves`."""

    @property
    def leaves(self) -> IntArray:
        """Nodes that are not split, in order."""
        return np.flatnonzero(self.left < 0)

    @property
    def sizes(self) -> IntArray:
        """How many cells each leaf has."""
        leaves = self.leaves
        return np.asarray(np.prod(self.high[leaves] - self.low[leaves], axis=1), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LeafNoise(NoiseErrors):
    """The noise of any box when each leaf's cells are yᵢ + pull · (its total − Σ y), given the tree."""

    cuts: Cuts
    pull: FloatArray
    cell_scale: float
    """The scale of what was measured of every cell; 0 if none of it is used."""
    leaf_scale: float
    """The scale of every leaf's total."""
    gaussian: bool
    method: str
    centre: FloatArray | None = None
    """Unbiased numbers before the estimate was made non-negative: what intervals stand on."""

    def leaves(self) -> tuple[IntArray, IntArray]:
        """Bounds of the boxes that were counted."""
        ends = self.cuts.leaves
        return self.cuts.low[ends], self.cuts.high[ends]

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        cuts, pull = self.cuts, np.zeros(self.cuts.left.size)
        pull[cuts.leaves] = self.pull
        variance, largest = kdtree.leaf_spread(
            *(cuts.left, cuts.parent, cuts.low, cuts.high, pull),
            *(self.cell_scale, self.leaf_scale),
            *(np.ascontiguousarray(workload.low), np.ascontiguousarray(workload.high)),
        )
        return Spread(variance, np.zeros(largest.shape) if self.gaussian else largest)
