"""What a mechanism hands over: estimated counts, and what their errors are known to be.

Also the post-processing anyone may apply to released numbers. It reads nothing private, so it costs no budget; it
biases the estimate, so intervals are always computed before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dphist.inference.intervals import Spread
from dphist.kernels.pieces import box_part_squares, interval_part_squares
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Errors(Protocol):
    """What is known of the error of any range answer.

    Errors of an estimate whose structure was picked on its own noise may also have a method ``centre(workload)``: the
    unbiased answers that the intervals stand on instead of the estimate.
    """

    @property
    def method(self) -> str:
        """Say in one plain sentence how intervals are obtained and what they do not cover."""
        ...

    def spread(self, workload: Workload) -> Spread:
        """Give the noise in every box of the workload."""
        ...


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated counts in the shape of the cells, with their errors and a word on how they came about."""

    counts: FloatArray
    errors: Errors
    note: str = ""


@dataclass(frozen=True, eq=False)
class IndependentNoise:
    """Every cell carries its own draw of the same scale, so a range of L cells carries a sum of L draws."""

    scale: Fraction
    method: str = "exact: the distribution of the sum of the noise in the range"

    def spread(self, workload: Workload) -> Spread:
        """Count the cells of every box."""
        terms = np.prod(np.maximum(workload.high - workload.low, 0), axis=1)
        scale = float(self.scale)
        return Spread(2.0 * terms * scale**2, np.full(terms.shape, scale), terms.astype(np.int64), self.scale)


@dataclass(frozen=True, eq=False)
class PieceNoise:
    """Cells share their part's draw evenly: the total of part p carries noise of ``scales[p]``.

    A range that takes L of a part's s cells carries (L ÷ s)² of its variance. Ranges that cut a part also carry the
    bias of spreading evenly, which no interval from the noise alone can cover.
    """

    shape: tuple[int, ...]
    labels: IntArray
    scales: FloatArray
    method: str = (
        "noise of the parts' totals, given the released parts; "
        "not covered: the bias inside parts that the range only cuts"
    )

    @cached_property
    def _sizes(self) -> IntArray:
        return np.bincount(self.labels, minlength=self.scales.size)

    def spread(self, workload: Workload) -> Spread:
        """Add the parts' variances, each by the share of it that the box takes."""
        weight = 2.0 * (self.scales / np.maximum(self._sizes, 1)) ** 2
        if len(self.shape) == 1 and bool(np.all(np.diff(self.labels) >= 0)):
            starts = np.concatenate([[0], np.cumsum(self._sizes)]).astype(np.int64)
            low, high = np.ascontiguousarray(workload.low[:, 0]), np.ascontiguousarray(workload.high[:, 0])
            variance = interval_part_squares(low, high, starts, weight)
        else:
            strides = np.array(
                [int(np.prod(self.shape[a + 1 :])) for a in range(len(self.shape))], dtype=np.int64
            )
            variance = box_part_squares(workload.low, workload.high, strides, self.labels, weight)
        return Spread(variance, np.full(variance.shape, self.scales.max(initial=0.0)))


def nonnegative(counts: FloatArray, total: float | None = None) -> FloatArray:
    """Move counts to the nearest that are nowhere negative and keep the total (or a public one that is given)."""
    wanted = max(0.0, float(counts.sum()) if total is None else float(total))
    flat = counts.reshape(-1)
    if wanted == 0 or not flat.size:
        return np.zeros_like(counts)
    # Euclidean projection onto {x ≥ 0, Σx = total}: subtract one number from all and cut at zero.
    descending = np.sort(flat)[::-1]
    excess = (np.cumsum(descending) - wanted) / np.arange(1, flat.size + 1)
    keep = int(np.flatnonzero(descending > excess)[-1])
    return np.asarray(np.maximum(counts - excess[keep], 0.0), dtype=np.float64)


def integers(counts: FloatArray) -> FloatArray:
    """Round to whole numbers that keep the rounded total: the largest remainders are rounded up."""
    flat = counts.reshape(-1)
    floor = np.floor(flat)
    missing = round(float(flat.sum())) - int(floor.sum())
    rounded = floor.copy()
    if missing > 0:
        # Stable order: ties go to the first cell, so the same release always rounds the same way.
        rounded[np.argsort(floor - flat, kind="stable")[:missing]] += 1
    return rounded.reshape(counts.shape)
