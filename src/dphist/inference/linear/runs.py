"""Noise of boxes that are read as runs of one long row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import NoiseErrors
from dphist.inference.intervals import Spread
from dphist.inference.measured import MeasuredTree
from dphist.inference.trees import TreeNoise
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
