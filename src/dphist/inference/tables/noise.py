"""Errors of tables that were measured whole, and of a cube that was fitted to them and moved towards smaller ones.

Inside what was measured the noise of least squares is known exactly. Cells of a cube that were shrunk are off by less,
but sums of them may be biased; so both are set beside each other, and the better one answers, with its own interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.inference.estimate import CALIBRATED, Interval, Words
from dphist.inference.intervals import Spread, normal_quantile
from dphist.inference.predictive.errors import whole_counts
from dphist.inference.tables.departures import Shrunk, boxes_of_all_sizes
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.published import sums_of_tables
from dphist.inference.tables.residuals import Axes
from dphist.kernels.summed_area import running_sums
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Shrunk cells merely follow the measured ones if they depart by less than this part of their variance; and a sum of
# them departs too far from 36 variances on. Of eight made-up cubes whose cells depart by 0.5 to 0.9 of it least squares
# has 0.98 to 1.47 of their error on two-way tables and boxes (0.89 on boxes of one of 269 records), of six whose cells
# depart by less 0.87 to 1.06.
_FOLLOWING, _FAR = 0.5, 36.0
# Published sums depart from unbiased ones by those ones' noise and their own errors: if that is r times the noise, in
# squares, their own are r − 1 of it, and worse than the noise from 2 on. A few boxes tell r; so a little more.
_BIASED = 2.5
# One draw of noise may be most of what a few cells of one category are off by: it counts for three deviations at most.
_ONE_DRAW = 9.0
# 500 boxes tell that: their sizes, in powers of two, are told apart if at least 8 are alike. Large ones overlap: as
# many squares as there is room for are apart, and their mean must lie 3.5 deviations above what noise makes of it. By
# eight boxes and a mean of 2.5 alone three of 45 made-up cubes had least squares' noise in one of four releases, for
# nothing: sums that were off by 2.6 to 57 were answered with 31 to 460.
_BOXES, _ALIKE, _SURE = 500, 8, 3.5
# A deviation that is less by no more than this hardly shows in bounds that are whole counts.
_WHOLE = 0.25
_SHRUNK = Words(
    CALIBRATED.short,
    "exact variance of least squares over the measured tables for what they hold, and posterior variance of what the "
    "cube's cells keep beyond them, scaled by how far published sums lie from unbiased ones; least squares' own noise "
    "where that is less",
)


@dataclass(frozen=True, eq=False)
class TableNoise(ResidualNoise):
    """Errors of tables that were measured whole."""

    residuals: MeasuredTables
    """The tables."""
    counts: FloatArray | None = None
    """The published cube, where its cells were shrunk and long sums of them may be biased."""
    shrunk: Shrunk | None = None
    """What is left to doubt of it."""
    near: Mapping[Axes, FloatArray] | None = None
    """The published tables, where no cube was measured, and they were moved towards smaller ones."""
    biased: BoolArray | None = None
    """Whether sums of about 1, 2, 4 … published cells are biased; told when first asked for if not given."""
    follows: bool | None = None
    """Whether published cells merely follow the measured ones; likewise."""

    @property
    def settled(self) -> TableNoise:
        """The same with all that is learned at hand: what a file holds."""
        shrunk = None if self.shrunk is None else self.shrunk.settled
        return replace(self, shrunk=shrunk, biased=self._biased, follows=self._follows)

    @property
    def words(self) -> Words:
        """Say how intervals are obtained and what they do not cover."""
        return super().words if self.shrunk is None else _SHRUNK

    @property
    def tables(self) -> MeasuredTables:
        """What was measured, as files name it."""
        return self.residuals

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """Add up the published cells, or answer by least squares where sums of shrunk cells are not to be trusted.

        That is where a sum departs by more than six deviations from the unbiased one, where sums of about as many
        cells do so by more than noise explains, and wherever the published cells merely follow the measured ones, as
        little was won by shrinking there. But nowhere where least squares has more noise than the sum can be off by.
        """
        if self.counts is None and self.near is None:
            return summed
        plain = self.stand(workload, summed)[0]
        plainly = self._plainly(workload, summed, plain, self.variance(workload))
        return np.where(plainly, np.maximum(plain, 0.0), summed)

    def _plainly(
        self, workload: Workload, summed: FloatArray, plain: FloatArray, noise: FloatArray
    ) -> BoolArray:
        """Which questions least squares answers."""
        departs = (plain - summed) ** 2 > _FAR * noise
        departs |= self._biased[_magnitude(workload.cells_in_each, self._biased.size)]
        known = ~(np.isnan(plain) | np.isnan(noise))
        # A cube of which little was measured may have far more noise than there are records.
        known &= noise < np.maximum(summed, self._most(workload) - summed) ** 2
        return np.asarray(known & (workload.cells_in_each > 1) & (self._follows | departs), dtype=np.bool_)

    def _most(self, workload: Workload) -> FloatArray:
        """What a question holds at most by the published tables of one attribute."""
        most = np.full(len(workload.low), np.inf)
        for axis in self.residuals.everything:
            if self.counts is not None:
                others = tuple(other for other in self.residuals.everything if other != axis)
                table = self.counts.reshape(self.residuals.shape).sum(axis=others)
            elif self.near is not None and (axis,) in self.near:
                table = self.near[(axis,)]
            else:
                continue
            below = np.append(0.0, np.cumsum(table))
            most = np.minimum(most, below[workload.high[:, axis]] - below[workload.low[:, axis]])
        if workload.query is not None:
            most = np.asarray(np.bincount(workload.query, most, len(workload)), dtype=np.float64)
        return most

    def interval(
        self,
        workload: Workload,
        published: FloatArray,
        confidence: float,
        *,
        estimated: FloatArray | None = None,
        guaranteed: bool = False,
        simultaneous: bool = False,
    ) -> Interval:
        """Around what is published where shrinking left less to doubt than least squares; around that one elsewhere."""
        exact = super().interval(
            workload,
            published,
            confidence,
            estimated=estimated,
            guaranteed=guaranteed,
            simultaneous=simultaneous,
        )
        if self.shrunk is None or self.counts is None or guaranteed or simultaneous:
            return exact
        each = self.shrunk.squares(workload.low, workload.high)
        if workload.query is not None:
            # As with noise, deviations of a question's boxes are added.
            each = (
                np.asarray(np.bincount(workload.query, np.sqrt(each), len(workload)), dtype=np.float64) ** 2
            )
        summed = self._summed(workload)
        noise = self.variance(workload)
        squares = each + (summed - published) ** 2
        # By what is known beforehand, not by which of the two came out narrower.
        shrunk = (np.sqrt(squares) + _WHOLE < np.sqrt(noise)) & ~self._plainly(
            workload, summed, self.stand(workload, summed)[0], noise
        )
        low, high = whole_counts(published, normal_quantile(confidence) * np.sqrt(squares))
        return Interval(np.where(shrunk, low, exact.low), np.where(shrunk, high, exact.high))

    def _summed(self, workload: Workload) -> FloatArray:
        """Sums of the published cells; not a number where no table holds them."""
        if self._sums is not None:
            return np.asarray(workload.answer_from(self._sums), dtype=np.float64)
        return sums_of_tables(self.near or {}, self.residuals.shape, workload.low, workload.high)

    @cached_property
    def _sums(self) -> FloatArray | None:
        """Running sums of the published cells, where cells are published."""
        if self.counts is None:
            return None
        return np.asarray(running_sums(self.counts.reshape(self.residuals.shape)), dtype=np.float64)

    @cached_property
    def _follows(self) -> bool:
        """Whether the cube was measured, and its published cells lie within the measured ones' noise."""
        if self.follows is not None:
            return self.follows
        every = self.residuals.everything
        if self.counts is None or every not in self.residuals.axes:
            return False
        apart = self.residuals.table(every) - self.counts.reshape(self.residuals.shape)
        return float((apart * apart).mean()) < _FOLLOWING * self.residuals.cell_variance(every)

    @cached_property
    def _biased(self) -> BoolArray:
        """Whether sums of about 1, 2, 4 … published cells are biased: told by boxes of all sizes, the same every time.

        Where shrinking found the truth, published and unbiased sums differ by the noise of the latter: squares over
        variances are 1. Where it kept what was measured they are less; more is bias.
        """
        if self.biased is not None:
            return self.biased
        sizes = np.array(self.residuals.shape)
        classes = math.ceil(math.log2(max(float(np.prod(sizes.astype(float))), 1.0))) + 1
        if self.counts is None and self.near is None:
            return np.zeros(classes, dtype=bool)
        ordered = None if self.shrunk is None else self.shrunk.ordered
        boxes = boxes_of_all_sizes(self.residuals.shape, _BOXES, ordered)
        summed, noise = self._summed(boxes), self.variance(boxes)
        known = ~np.isnan(noise) & (noise > 0.0)
        ratio = (self.residuals.answers(boxes.low, boxes.high) - summed)[known] ** 2 / noise[known]
        if ordered is not None:
            ratio = np.minimum(ratio, _ONE_DRAW)
        kind = _magnitude(boxes.cells_in_each[known], classes)
        many, sums = np.bincount(kind, minlength=classes), np.bincount(kind, ratio, minlength=classes)
        room = np.prod(sizes.astype(float)) / 2.0 ** np.arange(classes)
        by_noise = _mean_of_squares(np.maximum(np.minimum(many, room), 1.0))
        return np.asarray((sums > np.maximum(_BIASED, by_noise) * many) & (many >= _ALIKE), dtype=np.bool_)

    def box_spread(self, low: IntArray, high: IntArray) -> Spread:
        """Give the noise in every box: not a number where it was not measured."""
        return Spread(*self.residuals.spread(low, high))


def _mean_of_squares(apart: FloatArray) -> FloatArray:
    """What the mean of ``apart`` squared normal draws hardly ever exceeds (Wilson and Hilferty 1931)."""
    each = 2.0 / (9.0 * apart)
    return np.asarray((1.0 - each + _SURE * np.sqrt(each)) ** 3, dtype=np.float64)


def _magnitude(cells: ArrayLike, classes: int) -> IntArray:
    """Sizes by their powers of two."""
    power = np.rint(np.log2(np.maximum(np.asarray(cells, dtype=np.float64), 1.0)))
    return np.minimum(power, classes - 1).astype(np.int64)
