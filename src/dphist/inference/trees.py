"""What is known of the errors of trees: exact variances of least squares, given the tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, IndependentNoise, NoiseErrors, laplace_if_bare
from dphist.inference.intervals import Spread
from dphist.inference.measured import MeasuredTree
from dphist.kernels.compile import only_read
from dphist.kernels.trees.spread import box_spread
from dphist.model.law import Kind, NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


_GIVEN_THE_TREE = "exact, given the tree: noise of its least squares; what it spread evenly is not covered"


@dataclass(frozen=True, eq=False)
class TreeNoise(NoiseErrors):
    """The noise of any range under tree least squares, exactly: (HᵀΣ⁻¹H)⁻¹ read off along the range's edges.

    Visits only nodes that the range cuts: fan-out × depth steps on a line.
    """

    tree: MeasuredTree
    method: str = (
        "exact variance of the tree's least squares; "
        "not covered: the bias inside blocks that the range only cuts, and that of cutting at zero"
    )
    fixed: bool = False
    """Whether the tree is the same for all data, down to the cells: then its least squares is a theorem."""
    projected: bool = False
    """Whether the tree was grown on its own noise, or its counts projected: intervals stand on plain least squares."""

    @property
    def short(self) -> str:  # type: ignore[override]  # depends on what was done
        """What is said of intervals."""
        return _GIVEN_THE_TREE if self.projected else NoiseErrors.short

    @cached_property
    def centre(self) -> FloatArray | None:  # type: ignore[override]  # worked out when first asked for
        """Counts of plain least squares, before anything was projected."""
        return self.tree.cells(self.tree.least_squares()) if self.projected else None

    def leaves(self) -> tuple[IntArray, IntArray]:
        """Bounds of the boxes that were not cut."""
        ends = self.tree.leaves
        return self.tree.low[ends], self.tree.high[ends]

    @property
    def theorem(self) -> bool:
        """Whether intervals hold for any data."""
        return self.fixed

    @cached_property
    def _heft(self) -> FloatArray:
        """Scale over variance of every measurement: what one draw weighs; 0 where nothing was measured."""
        variance = self.tree.variance
        scale = np.sqrt(np.where(np.isfinite(variance), variance, 0.0) / 2.0)
        return np.divide(scale, variance, out=np.zeros(variance.size), where=variance > 0.0)

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        return self.spread_boxes(workload.low, workload.high)

    def spread_boxes(self, low: IntArray, high: IntArray) -> Spread:
        """The same for bare bounds."""
        tree = self.tree
        variance, largest = box_spread(
            *(tree.first, tree.last, tree.gathered[1], self._heft, tree.low, tree.high),
            *(only_read(low), only_read(high)),
        )
        if tree.kind == "gaussian":
            return Spread(variance, np.zeros(variance.shape))
        # One draw cannot carry more than the whole variance, whatever the bound says.
        return Spread(variance, np.minimum(largest, np.sqrt(variance / 2)))


@dataclass(frozen=True, eq=False)
class RunNoise(NoiseErrors):
    """The noise of a box whose cells were treated as one row: of each of its runs, added up.

    On one axis a box is one run and its variance is exact. On several it is a run for every row of the last
    axis; runs may share a bin's noise, so their deviations are added, which is never too little.
    """

    shape: tuple[int, ...]
    runs: TreeNoise
    counts: FloatArray
    cell_variance: FloatArray
    averaged: bool = False

    @property
    def tree(self) -> MeasuredTree:
        """What was measured, the cells in one row."""
        return self.runs.tree

    @property
    def method(self) -> str:  # type: ignore[override]  # depends on what was done
        """Say what the interval stands on."""
        what = "variance of least squares inside the bins, given the released bins, which used other noise"
        known = f"exact {what}" if len(self.shape) == 1 else f"{what}; an upper bound, rows added up"
        return (
            f"{known}; around those counts, widened to hold the averaged answer" if self.averaged else known
        )

    @property
    def centre(self) -> FloatArray:  # type: ignore[override]  # read only
        """The counts before any were averaged, which reads their own noise: what the interval is drawn around."""
        return self.counts

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        low, high = workload.low, workload.high
        if len(self.shape) == 1:
            return self.runs.spread_boxes(low, high)
        rows = np.prod(high[:, :-1] - low[:, :-1], axis=1)
        box = np.repeat(np.arange(len(low)), rows)
        rank = np.arange(box.size) - np.repeat(np.cumsum(rows) - rows, rows)
        begin = np.zeros(box.size, dtype=np.int64)
        stride = self.shape[-1]
        for axis in range(len(self.shape) - 2, -1, -1):
            extent = (high[:, axis] - low[:, axis])[box]
            begin += (low[box, axis] + rank % extent) * stride
            rank //= extent
            stride *= self.shape[axis]
        run_low, run_high = begin + low[box, -1], begin + high[box, -1]
        return self.runs.spread_boxes(run_low[:, None], run_high[:, None]).combine(box, len(low))


def drawn_variance(errors: Errors, asked: Workload) -> FloatArray:
    """Give the variance of every answer that is the truth plus noise, by the law of the whole numbers that are drawn.

    Intervals and least squares go by the continuous law, whose variance is never too small. For a forecast that is too
    much where noise is small: at ε = 1 Laplace noise has a variance of 1.84 and not 2. Sums of wavelets are left so.

    Of a tree it is that of least squares for what is drawn, whose weights are the continuous law's but for little:
    where variances are least, they hardly change with the weights.
    """
    if isinstance(errors, IndependentNoise):
        return np.asarray(asked.cells_in_each * laplace_if_bare(errors.law).drawn_variance, dtype=np.float64)
    if isinstance(errors, TreeNoise):
        tree = errors.tree
        known, place = np.unique(tree.variance, return_inverse=True)
        drawn = np.array([_drawn(v, tree.kind) if 0.0 < v < math.inf else v for v in known.tolist()])
        return replace(errors, tree=replace(tree, variance=drawn[place])).variance(asked)
    return errors.variance(asked)


def _drawn(variance: float, kind: Kind) -> float:
    return NoiseLaw(kind, variance if kind == "gaussian" else math.sqrt(variance / 2.0)).drawn_variance
