"""Intervals of cells measured one by one that allow for what noise hides.

Cells whose counts lie below the noise are published as next to nothing, and where a stretch of them was taken for
nothing the predictive law leaves nothing to divide either: both err to one side, and no variance shows it. But noisy
cells are unbiased, however small their counts are. Over all cells that are published below a deviation of the noise
they add up to what those truly hold, but for the noise of the sum; what that leaves unsaid may be in any of them.

Only released values are read, so nothing is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Interval
from dphist.inference.intervals import joint_deviations, normal_quantile
from dphist.inference.predictive.errors import PLAIN, Boxes, PredictiveErrors, asked_cells, by_question
from dphist.kernels.summed_area import add_to_answers, running_sums
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Sums of more cells than this are hedged already (`Engine.hedged`).
_SHORT = 32.0
# A noisy sum may be further than the root of so many variances from what is published by chance, where sums of that
# size are many. On 21 made-up shapes of 100 cells with 3 records each (64 draws) prefixes of a log-normal tail at
# ε = 0.1 then hold in 0.955 instead of 0.894, those of a random walk at ρ = 1/200 in 0.927 instead of 0.899; sums are
# 1.02 times as wide, those of 2 to 16 cells 1.05. With 3 the walk holds in 0.930, short sums are 1.06 times as wide.
_CHANCE = 4.0
# Categories whose noisy count is further than so many deviations of noise from what is published reach that far, up to
# so many. On six made-up shapes of 100 and 365 categories with 3 records each at ε = 0.1 (16 and 8 draws) a comb of 7
# then holds in 0.936 and 0.928 instead of 0.907 and 0.891, and widths are 1.06 and 1.07 times as large; with 10 and 30
# records each 1.01.
_FAR, _MOST = 1.5, 2.0
# More categories tell by themselves what lies in lumps: of 2,000 none of these shapes held in less than 0.946. So do
# neighbours, where they are more. On 12 made-up shapes of 12, 33 and 64 cells, announced, with 0.4 noise scales each
# (12 draws), combs of 5 and islands hold in 0.90 to 0.94 instead of 0.86 to 0.93, and widths are 1.01 to 1.05 times as
# large; with 2 noise scales each 1.00 to 1.02.
_FEW, _FEW_IN_ORDER = 512, 64
# Of several attributes no interval that holds at once with others ends before so many deviations of noise beyond the
# noisy sum. On six made-up shapes of 24 × 24 and 20 × 60 cells with 3 records each at ε = 0.1 (10 draws) all cells then
# hold together in 0.98 of releases instead of 0.89 (islands in all instead of 0.70) at 1.04 times the width; with 1 in
# 0.97 at 1.01.
_BEYOND = 2.0


@dataclass(frozen=True, eq=False)
class HiddenErrors(PredictiveErrors):
    """Errors of counts that were inferred cell by cell from noisy ones of the same noise.

    With k cells published below a deviation s of the noise, what they hold beyond that is h = Σ(noisy − published) ÷ k
    a cell, give or take s/√k; which cells are meant hardly depends on the noise of any of them. A question about so
    many of them that they may hide H = Σ(max(h, 0) + s/√k) is off by H if they are alike, and by √H more if what they
    hide are records that came one by one. Its expected squared error is no less than H² + H, nor than what the law
    says; and never more than what plain noise around the noisy sum allows.

    Where records are few the law believes in levels, and sums over a tail or a slope are drawn towards them: the truth
    then lies where the noisy sum is. How far sums of c cells were wrong was checked on n/c of them: hardly, where c is
    a large part of all n. So with d from what is published to the noisy sum, d² − 4(1 − 2√(c/n)) noise variances, if
    positive, are added to squared errors on the noisy sum's side; and all of d² from a quarter of the cells on.

    Categories have no neighbours that could tell a lump below the noise from a level, and cells of a short line too few
    of them. There the interval of one reaches at least to its noisy count if that is 1.5 deviations of noise away, and
    up to 2 of them.

    Of several attributes the tables of one are what is asked most, and what repeats along an attribute adds up in them:
    how far all cells of such a table are from the noisy ones, beyond noise, is added to the squared error of each.
    Where many are to hold at once they reach two deviations of noise beyond the noisy sum.
    """

    noisy: NDArray[Any] | None = None
    """The noisy cells."""
    noise: float = 0.0
    """The variance of each."""
    total: tuple[float, float] | None = None
    """A noisy total with its variance, if one was measured."""
    unordered: bool = False
    """Whether cells are categories without neighbours."""

    @cached_property
    def hidden(self) -> float:
        """What a cell that is published below the noise may hold beyond it."""
        if self.noisy is None or self.counts is None:
            return 0.0
        apart = (self.noisy - self.counts)[self._low]
        if not apart.size:
            return 0.0
        # One after the other: the last bits of a sum must not differ from one platform to the next.
        beyond, variance = float(np.add.accumulate(apart)[-1]), self.noise * apart.size
        if self.total is not None and self.total[1] < variance:
            beyond = self.total[0] - float(np.add.accumulate(self.counts.reshape(-1))[-1])
            variance = self.total[1]
        return (max(beyond, 0.0) + math.sqrt(variance)) / apart.size

    @cached_property
    def _low(self) -> NDArray[np.bool_]:
        counts = np.zeros(0) if self.counts is None else self.counts
        return np.asarray(counts < math.sqrt(self.noise), dtype=np.bool_)

    @cached_property
    def _lower(self) -> IntArray:
        """How many such cells there are below each, along every axis."""
        return np.asarray(running_sums(self._low.astype(np.int64)))

    @cached_property
    def _across(self) -> FloatArray:
        """What the sums over all but one axis are biased by, for each axis: mean squares, in variances of their noise.

        Were they unbiased published sums would be as far from noisy ones as noise puts them, or nearer.
        """
        if self.noisy is None or self.counts is None or self.counts.ndim == 1 or self.noise <= 0.0:
            return np.zeros(1)
        apart, found = self.noisy - self.counts, []
        for axis in range(apart.ndim):
            others = tuple(other for other in range(apart.ndim) if other != axis)
            seen = float(np.square(apart.sum(axis=others)).sum()) / (self.noise * apart.size)
            found.append(max(round(seen, 6) - 1.0, 0.0))
        return np.array(found)

    def _biased_across(self, low: IntArray, high: IntArray, starts: IntArray | None) -> FloatArray:
        """That, for questions about some values of one attribute whatever the others are; 0 for others.

        Of several boxes the most biased one speaks for all.
        """
        if self.counts is None or not self._across.any() or not len(low):
            return np.zeros(1)
        whole = (low <= 0) & (high >= np.array(self.counts.shape))
        one = whole.sum(axis=1) == whole.shape[1] - 1
        found = np.where(one, np.where(whole, 0.0, self._across).sum(axis=1), 0.0)
        return found if starts is None else np.maximum.reduceat(found, starts[:-1])

    def deviations(
        self, low: IntArray, high: IntArray, starts: IntArray | None, published: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How far truths may lie below published sums, and above, where the noisy ones lie."""
        squares, cells = self.squares(low, high, starts, published), asked_cells(low, high, starts)
        if self.counts is None or not (self._lumps or (cells > 1.0).any()):
            deviation = np.sqrt(squares)
            return deviation, deviation
        plain, noise = self.engine.least_squares(low, high, None, starts)
        apart = plain - published
        across = np.where(cells > 1.0, self._biased_across(low, high, starts), 0.0) * noise
        squares = np.maximum(np.minimum(squares + across, PLAIN * noise + apart * apart), squares)
        deviation = np.sqrt(squares)
        chance = _CHANCE * np.maximum(1.0 - np.sqrt(4.0 * cells / self.counts.size), 0.0)
        beyond = np.where(cells > 1.0, np.maximum(apart * apart - chance * noise, 0.0), 0.0)
        wider = np.sqrt(np.maximum(np.minimum(squares + beyond, PLAIN * noise + apart * apart), squares))
        if self._lumps:
            reach = np.minimum(np.abs(apart), _MOST * np.sqrt(noise)) / normal_quantile(0.95)
            far = (cells == 1.0) & (np.abs(apart) > _FAR * np.sqrt(noise))
            wider = np.where(far, np.maximum(wider, reach), wider)
        return np.where(apart < 0.0, wider, deviation), np.where(apart > 0.0, wider, deviation)

    def _together(
        self,
        boxes: Boxes,
        published: FloatArray,
        deviation: tuple[FloatArray, FloatArray],
        confidence: float,
        share: float,
    ) -> Interval:
        """What the law says of each, and what noise may have hidden from it.

        The law is surest where it takes what it sees for noise, and the worst of many cells is one where it should not
        have. So of several attributes intervals reach beyond the noisy sums, which know of no law, on either side.
        """
        if self.counts is not None and self.counts.ndim > 1:
            plain, noise = self.engine.least_squares(boxes[0], boxes[1], None, boxes[2])
            apart, times = plain - published, joint_deviations(confidence, share)
            reach = _BEYOND * np.sqrt(noise)
            deviation = (
                np.maximum(deviation[0], (reach - apart) / times),
                np.maximum(deviation[1], (reach + apart) / times),
            )
        return super()._together(boxes, published, deviation, confidence, share)

    def noisy_sums(self, workload: Workload) -> tuple[FloatArray, FloatArray] | None:
        """Sums of the noisy cells with their variances; None where nobody kept them."""
        if self.noisy is None:
            return None
        sums = workload.answer(self.noisy.reshape(workload.domain.shape))
        return np.asarray(sums, dtype=np.float64), self.noise * asked_cells(*by_question(workload))

    @property
    def _lumps(self) -> bool:
        """Whether cells are too few to tell what lies in lumps."""
        if self.counts is None or self.counts.ndim > 1:
            return False
        return self.counts.size <= (_FEW if self.unordered else _FEW_IN_ORDER)

    def run_of_cells(self, begin: int, end: int, published: FloatArray, confidence: float) -> Interval | None:
        """As of any cells, but where one may reach to its noisy count."""
        return None if self._lumps else super().run_of_cells(begin, end, published, confidence)

    def least(self, low: IntArray, high: IntArray, starts: IntArray | None) -> FloatArray:
        """What squared errors are at least, for what low cells may hide."""
        boxes = (
            np.arange(len(low)) if starts is None else np.repeat(np.arange(starts.size - 1), np.diff(starts))
        )
        number = np.zeros(len(low) if starts is None else starts.size - 1, dtype=np.int64)
        strides = np.array(self._lower.strides, dtype=np.int64) // self._lower.itemsize
        add_to_answers(self._lower.reshape(-1), strides, low, high, boxes, number)
        hidden = self.hidden * number
        return np.where(asked_cells(low, high, starts) <= _SHORT, hidden * hidden + hidden, 0.0)

    def least_of_run(self, begin: int, end: int) -> FloatArray:
        """The same for single cells in C order."""
        hidden = self.hidden * self._low.reshape(-1)[begin:end]
        return np.asarray(hidden * hidden + hidden)
