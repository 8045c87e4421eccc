"""Errors of tables that were measured whole, and of a cube that was fitted to them and shrunk towards smaller ones.

Inside what was measured the noise of least squares (`dphist.inference.tables.residuals`) is known exactly, and where
only the cube itself says anything it is large. What is published is better: `dphist.inference.tables.shrinking` keeps
of a departure only what noise does not explain. But sums of shrunk cells may be biased; so both are set beside each
other, and the better one answers, with its own interval. The error of a published sum over a box has two parts.

**Smaller tables.** Residuals of few attributes are published about as least squares has them: their variances add up
box by box in closed form, and are exact.

**Departures beyond them.** Every block of cells, on every level from coarse to fine, has a posterior variance under the
mixture of departures that the cells themselves chose. A box takes of each block at most the part w that its sides
allow, so it has w² of its variance; and of what it takes only the part that smaller tables do not hold, which for a
product of intervals with shares f is 1 − Σ over small S of Π over S of (1 − f) · Π over the others of f.

Both hold if the mixture is right; published sums are taken to be off by a constant times that. Nothing here reads a
count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.inference.estimate import CALIBRATED, How, Interval, Words
from dphist.inference.intervals import Spread, normal_quantile
from dphist.inference.predictive.errors import whole_counts
from dphist.inference.predictive.law import size_classes_of
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.published import sums_of_tables
from dphist.inference.tables.residuals import Axes
from dphist.kernels.summed_area import running_sums, sums_between
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# How many times the variance that the mixture says a published sum is taken to be off by.
_TIMES = 2.16
# The exact part is taken to be larger by this, and a table that shrinking left more than a quarter of its noise's
# deviation is taken to be off by that noise.
_LEAST, _WORTH = 1.21, 16.0
# A sum of shrunk cells departs too far from 36 variances on.
_FAR = 36.0
# Published sums depart from unbiased ones by r times their noise, in squares: their own errors are r − 1 of it, worse
# than the noise from 2 on. 500 boxes, each halved at most five times, tell r, so a little more: by sizes of which at
# least 8 are alike, and 3.5 deviations above what noise makes of it.
_BIASED, _BOXES, _HALVINGS, _ALIKE, _SURE = 2.5, 500, 6, 8, 3.5
# A deviation that is less by no more than this hardly shows in bounds that are whole counts.
_WHOLE = 0.25
_SHRUNK = Words(
    CALIBRATED.short,
    "exact variance of least squares over the measured tables for what they hold, and posterior variance of what the "
    "cube's cells keep beyond them, scaled by how far published sums lie from unbiased ones; least squares' own noise "
    "where that is less",
)


@dataclass(frozen=True, eq=False)
class Departures:
    """Posterior variances of the blocks of one shrunk table, level by level, the finest first.

    Args:
        shape: The shape of the table.
        sums: Running sums of the variances on each level.
        lengths: How many cells a block of each level has along every axis.
    """

    shape: tuple[int, ...]
    sums: tuple[FloatArray, ...]
    lengths: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, levels: list[FloatArray]) -> Departures:
        """Keep the levels that shrinking went through, coarse ones first."""
        finest = levels[::-1]
        lengths = [(1,) * finest[0].ndim]
        for below, above in pairwise(finest):
            halved = (a < b for a, b in zip(above.shape, below.shape, strict=True))
            lengths.append(tuple(2 * n if half else n for n, half in zip(lengths[-1], halved, strict=True)))
        return cls(finest[0].shape, tuple(running_sums(each) for each in finest), tuple(lengths))

    def blocks(self) -> list[tuple[FloatArray, tuple[int, ...]]]:
        """On each level the variance of every block, and how many cells a block has along every axis."""
        found = []
        for sums, length in zip(self.sums, self.lengths, strict=True):
            each = sums
            for axis in range(each.ndim):
                each = np.diff(each, axis=axis)
            found.append((np.maximum(each, 0.0), length))
        return found

    def variances(self, low: IntArray, high: IntArray, order: int) -> FloatArray:
        """What boxes have of it beyond the tables of at most ``order`` attributes."""
        sides = _once((high - low).astype(np.float64))
        found = np.zeros(len(low))
        for sums, length in zip(self.sums, self.lengths, strict=True):
            step = np.array(length, dtype=np.int64)
            part = np.prod(np.minimum(sides / step, 1.0), axis=1)
            found += part**2 * np.maximum(sums_between(sums, low // step, -(-high // step)), 0.0)
        share, smaller = sides / np.array(self.shape), np.zeros(len(sides))
        for inside, others in _subsets(len(self.shape), order):
            smaller += np.prod(1.0 - share[:, inside], axis=1) * np.prod(share[:, others], axis=1)
        return np.asarray(found * np.maximum(1.0 - smaller, 0.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Shrunk:
    """What is left to doubt of a shrunk cube.

    Args:
        measured: The tables that were measured, the cube among them.
        counts: The published cube.
        order: Tables of at most ``order`` attributes were settled before the cube.
        tables: What shrinking left to doubt of each table and of the cube, by their attributes.
        times: How many times those variances published sums are taken to be off by, for tables of which only the cube
            speaks; the same for all by default.
    """

    measured: MeasuredTables
    counts: FloatArray
    order: int
    tables: Mapping[Axes, Departures]
    times: Mapping[Axes, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.times:
            object.__setattr__(self, "times", dict.fromkeys(self._alone, _TIMES))

    def squares(self, low: IntArray, high: IntArray) -> FloatArray:
        """The squared error that every box's published sum seems to have."""
        exact, shrunk, plain = self._parts(low, high)
        found = _LEAST * exact
        for axes, each in shrunk.items():
            found += self.times[axes] * each if self._worth(axes) else _LEAST * plain[axes]
        return found

    def _worth(self, axes: Axes) -> bool:
        """Whether shrinking left a table a quarter of its noise's deviation; else the gain is not worth the doubt."""
        if axes == self.measured.everything:
            return True
        mean = self.tables[axes].sums[0].flat[-1] / self.measured.cells_in(axes)
        return bool(_WORTH * self.times[axes] * mean < self.measured.cell_variance(axes))

    def doubted(self) -> tuple[dict[Axes, float], dict[Axes, tuple[Departures, float]]]:
        """What `squares` adds up: variances of residuals of small tables; of others what is left, and how often."""
        plain: dict[Axes, float] = {}
        for inside, _ in _subsets(len(self.measured.shape), self.order):
            axes = tuple(inside)
            if axes not in self._alone or not self._worth(axes):
                plain[axes] = _LEAST / self.measured.precision(axes)
        beyond = {axes: (each, self.times[axes]) for axes, each in self.tables.items() if axes not in plain}
        return plain, {axes: each for axes, each in beyond.items() if axes in self._alone}

    @cached_property
    def _alone(self) -> list[Axes]:
        """Tables that were shrunk and of which only the cube speaks, and the cube."""
        return [axes for axes in self.tables if axes not in self.measured.residuals]

    def _parts(
        self, low: IntArray, high: IntArray
    ) -> tuple[FloatArray, dict[Axes, FloatArray], dict[Axes, FloatArray]]:
        """Variances of what least squares says; of every table that was shrunk, by its mixture; and its plain noise."""
        sizes = np.array(self.measured.shape, dtype=np.float64)
        sides = _once(np.maximum(high - low, 0).astype(np.float64))
        share = sides / sizes
        left = np.maximum(sides - sides * share, 0.0)
        exact, shrunk, plain = np.zeros(len(sides)), {}, {}
        for inside, others in _subsets(sizes.size, self.order):
            axes = tuple(inside)
            outer = np.prod(share[:, others], axis=1) ** 2
            noise = np.prod(left[:, inside], axis=1) * outer / self.measured.precision(axes)
            if axes in self._alone:
                each = self.tables[axes].variances(low[:, inside], high[:, inside], len(axes) - 1)
                shrunk[axes], plain[axes] = outer * each, np.broadcast_to(noise, len(low))
            else:
                exact += noise
        every = self.measured.everything
        shrunk[every] = self.tables[every].variances(low, high, self.order)
        plain[every] = np.full(len(low), np.inf)
        return np.broadcast_to(exact, len(low)), shrunk, plain


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
    biased: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Whether sums of about 1, 2, 4 … published cells are biased; told by boxes unless a file says so."""
    follows: bool = False
    """Whether published cells merely follow the measured ones, as a file may say."""

    def __post_init__(self) -> None:
        if not self.biased.size:
            object.__setattr__(self, "biased", self._learned())

    def _learned(self) -> BoolArray:
        """Whether sums of about 1, 2, 4 … published cells are biased: told by boxes of all sizes, the same every time.

        Where shrinking found the truth, published and unbiased sums differ by the noise of the latter: squares over
        variances are 1. Where it kept what was measured they are less; more is bias.
        """
        shape = self.residuals.shape
        classes = size_classes_of(shape)
        if self.counts is None and self.near is None:
            return np.zeros(classes, dtype=np.bool_)
        drawn = Workload.random(
            Domain([Ordinal(f"axis {axis}", range(n)) for axis, n in enumerate(shape)]), _BOXES
        )
        halved = np.ceil((drawn.high - drawn.low) / 2.0 ** (np.arange(_BOXES) % _HALVINGS)[:, None])
        boxes = Workload(drawn.domain, drawn.low, drawn.low + halved.astype(np.int64))
        noise = self.variance(boxes)
        known = noise > 0.0
        apart = self.residuals.answers(boxes.low, boxes.high) - self._summed(boxes)
        ratio = apart[known] ** 2 / noise[known]
        kind = _magnitude(boxes.cells_in_each[known], classes)
        many, sums = np.bincount(kind, minlength=classes), np.bincount(kind, ratio, minlength=classes)
        # Large boxes overlap: as many are apart as there is room for. What the mean of as many squared normal draws
        # hardly ever exceeds (Wilson and Hilferty 1931).
        room = math.prod(map(float, shape)) / 2.0 ** np.arange(classes)
        each = 2.0 / (9.0 * np.maximum(np.minimum(many, room), 1.0))
        by_noise = (1.0 - each + _SURE * np.sqrt(each)) ** 3
        return np.asarray((sums > np.maximum(_BIASED, by_noise) * many) & (many >= _ALIKE), dtype=np.bool_)

    @property
    def words(self) -> Words:
        """Say how intervals are obtained and what they do not cover."""
        return super().words if self.shrunk is None else _SHRUNK

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """Add up the published cells, or answer by least squares where sums of shrunk cells are not to be trusted.

        That is where a sum departs by more than six deviations from the unbiased one, where sums of about as many
        cells do so by more than noise explains, and where a file says that cells merely follow the measured ones. But
        nowhere where least squares has more noise than the sum can be off by.
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
        departs |= self.biased[_magnitude(workload.cells_in_each, self.biased.size)]
        known = ~(np.isnan(plain) | np.isnan(noise))
        # A cube of which little was measured may have far more noise than there are records.
        known &= noise < np.maximum(summed, self._most(workload) - summed) ** 2
        return np.asarray(known & (workload.cells_in_each > 1) & (self.follows | departs), dtype=np.bool_)

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
        self, workload: Workload, published: FloatArray, confidence: float, **how: Unpack[How]
    ) -> Interval:
        """Around what is published where shrinking left less to doubt than least squares; around that one elsewhere."""
        exact = super().interval(workload, published, confidence, **how)
        if self.shrunk is None or self.counts is None or how.get("guaranteed") or how.get("simultaneous"):
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

    def box_spread(self, low: IntArray, high: IntArray) -> Spread:
        """Give the noise in every box: not a number where it was not measured."""
        return Spread(*self.residuals.spread(low, high))


def _magnitude(cells: ArrayLike, classes: int) -> IntArray:
    """Sizes by their powers of two."""
    power = np.rint(np.log2(np.maximum(np.asarray(cells, dtype=np.float64), 1.0)))
    return np.minimum(power, classes - 1).astype(np.int64)


def _once(sides: FloatArray) -> FloatArray:
    """The sides of boxes, once where all are alike: every cell of a cube is asked for when its file is written."""
    return sides[:1] if len(sides) and bool((sides == sides[0]).all()) else sides


def _subsets(axes: int, order: int) -> list[tuple[list[int], list[int]]]:
    """Every subset of at most ``order`` attributes, and the others."""
    return [
        (list(inside), [axis for axis in range(axes) if axis not in inside])
        for size in range(order + 1)
        for inside in combinations(range(axes), size)
    ]
