"""Counts along one ordered attribute, and their noise.

The noise of neighbouring cells is correlated in most releases. Its covariances are read off the variances of ranges,
which a release knows.

A long line has too many pairs of cells. There covariances are those of blocks of cells: weights are the mean ones of
each block, and what they differ by inside of it adds standard deviations, which is never too narrow and, as
neighbours differ little in value, little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, NoiseErrors, Words
from dphist.inference.intervals import Spread, covariances, half_widths
from dphist.inference.pieces import PartErrors
from dphist.inference.predictive import PredictiveErrors
from dphist.model.domain import Ordinal
from dphist.model.domain.scales import Bins, Integers
from dphist.model.workload import Workload
from dphist.release.answers import spoken
from dphist.release.contents import Contents

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A line of more than 400 cells has too many ranges to ask for all; 256 blocks of cells take the cells' place.
_LONGEST = 400
_BLOCKS = 256


@dataclass(frozen=True, eq=False)
class NoisyLine:
    """The cells ``start`` up to ``stop`` of an ordered attribute, inside boxes ``low … high`` of the others."""

    release: Contents
    axis: int
    start: int
    stop: int
    low: IntArray
    high: IntArray

    @property
    def _attribute(self) -> Ordinal:
        attribute = self.release.domain.attributes[self.axis]
        assert isinstance(attribute, Ordinal)  # noqa: S101 -- `read_line` makes sure
        return attribute

    @property
    def labels(self) -> Sequence[str]:
        """A text for every cell."""
        return self._attribute.labels[self.start : self.stop]

    @property
    def values(self) -> FloatArray | None:
        """A number for every cell: the integer, or the middle of the bin; None where cells are not numbers."""
        return None if self.edges is None else (self.edges[0] + self.edges[1]) / 2.0

    @cached_property
    def edges(self) -> tuple[FloatArray, FloatArray] | None:
        """Between which numbers the records of every cell lie: the edges of a bin, and an integer is both by itself."""
        scale = self._attribute.scale
        if isinstance(scale, Integers):
            whole = np.array(scale.values[self.start : self.stop], dtype=np.float64)
            return whole, whole
        if isinstance(scale, Bins):
            edges = np.array(list(scale.edges[self.start : self.stop + 1]), dtype=np.float64)
            return edges[:-1], edges[1:]
        return None

    def said(self, confidence: float) -> tuple[str, str]:
        """How intervals are obtained: a plain sentence, and the details."""
        return spoken(self._words, confidence)

    @property
    def _words(self) -> Words:
        words = self.release._estimate.errors.words
        how = "covariances read off the variances of ranges"
        if not self._single:
            how = "standard deviations added"
        elif self._size > _LONGEST:
            how += " of blocks, standard deviations inside of them added"
        return Words(words.short, f"{how}; {words.details}{self._inside_bins}")

    @property
    def _inside_bins(self) -> str:
        """What intervals say of where in its bin a record lies."""
        bins = isinstance(self._attribute.scale, Bins)
        return (
            "; holds wherever in their bins records lie, and the number takes their middles" if bins else ""
        )

    def _ranges(self, first: IntArray, last: IntArray) -> Workload:
        """Ranges of this line as questions."""
        boxes, ranges = len(self.low), len(first)
        low = np.repeat(self.low, ranges, axis=0)
        high = np.repeat(self.high, ranges, axis=0)
        low[:, self.axis] = np.tile(self.start + first, boxes)
        high[:, self.axis] = np.tile(self.start + last, boxes)
        owner = np.tile(np.arange(ranges, dtype=np.int64), boxes) if boxes > 1 else None
        return Workload(self.release.domain, low, high, owner)

    def _ask(self, first: IntArray, last: IntArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Released answers, what intervals stand on, how far that leans, and variances, for ranges of this line."""
        estimate, cells = self.release._estimate, self.release.cells
        workload = self._ranges(first, last)
        value = cells.sums(self.release, workload)
        estimated = self.release._unpolished.sums(self.release, workload) if self.release.polish else value
        stand, lean = estimate.errors.stand(workload, estimated)
        return value, stand, lean, estimate.errors.variance(workload)

    @property
    def _size(self) -> int:
        return self.stop - self.start

    @property
    def _single(self) -> bool:
        """Whether ranges of this line are single boxes: variances of lists of boxes are no quadratic form."""
        return len(self.low) == 1

    @cached_property
    def _piece(self) -> tuple[Errors, Workload]:
        """The errors of these cells and where they lie: those of a piece of the release, if all lie in one."""
        errors, whole = self.release._estimate.errors, self._ranges(np.zeros(1, int), np.full(1, self._size))
        return errors.only(whole) if isinstance(errors, PartErrors) else (errors, whole)

    @cached_property
    def _cells(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Counts of the single cells: released, to stand on, how far they lean, standard deviations."""
        place = np.arange(self._size)
        value, centre, lean, variance = self._ask(place, place + 1)
        return value, centre, lean, np.sqrt(variance)

    @cached_property
    def _edges(self) -> IntArray:
        """Where blocks begin and end: single cells, unless there are too many."""
        blocks = self._size if self._size <= _LONGEST else _BLOCKS
        return np.arange(blocks + 1) * self._size // blocks

    @cached_property
    def _covariance(self) -> FloatArray:
        """Covariances of the blocks' noise."""
        n = self._edges.size - 1
        first, last = np.triu_indices(n)
        variance = np.zeros((n + 1, n + 1))
        # Of these n (n + 1) / 2 ranges only variances are asked for: what an answer costs is most of what a mean does.
        ranges = self._ranges(self._edges[first], self._edges[last + 1])
        spread = self.release._estimate.errors.variance(ranges)
        variance[first, last + 1] = spread
        variance[last + 1, first] = spread
        return covariances(variance)

    def _reach(self, variance: FloatArray, confidence: float) -> FloatArray:
        """How far a number of this variance may be off; what was not measured may be anything."""
        known = np.isfinite(variance)
        variance = np.where(known, variance, 0.0)
        # Of noise, one draw may carry all: the widest that a variance allows. A predictive law was measured as normal.
        noise = isinstance(self._piece[0], NoiseErrors)
        widest = np.sqrt(variance / 2.0) if noise else np.zeros(variance.shape)
        return np.where(known, half_widths(Spread(variance, widest), confidence), np.inf)

    @cached_property
    def _noisy(self) -> tuple[FloatArray, FloatArray] | None:
        """Noisy cells with their variances, if cells were noised one by one and then inferred; else None."""
        errors, place = self.release._estimate.errors, np.arange(self._size)
        if not isinstance(errors, PredictiveErrors | PartErrors):
            return None
        return errors.noisy_sums(self._ranges(place, place + 1))

    @cached_property
    def published(self) -> bool:
        """Whether there are numbers at all: tables that nobody announced may have none, not even guesses."""
        return not bool(np.isnan(self._cells[0]).any())

    @cached_property
    def measured(self) -> bool:
        """Whether the line's counts have intervals at all: then what follows from them has, too."""
        return not bool(np.isnan(self._cells[3]).any())

    def _variance(self, numbers: FloatArray, means: FloatArray) -> FloatArray:
        """What the release expects of the squared error of Σ (number − mean)·count, for each of several means."""
        deviation = self._cells[3]
        if self._single:
            size = np.diff(self._edges)
            middle = np.add.reduceat(numbers, self._edges[:-1]) / size
            inside = float(np.abs(numbers - np.repeat(middle, size)) @ deviation)
            apart = middle - means[:, None]
            square = np.maximum(((apart @ self._covariance) * apart).sum(axis=1), 0.0)
            variance = (np.sqrt(square) + inside) ** 2
        else:
            apart = np.abs(numbers - means[:, None])
            reach = np.sqrt(self._prefixes[2])
            steps = np.abs(np.diff(numbers)) @ reach[:-1] + apart[:, -1] * reach[-1]
            variance = np.minimum(apart @ deviation, steps) ** 2
        return np.asarray(variance + moment(numbers, means, self._cells[2]) ** 2, dtype=np.float64)

    @cached_property
    def _prefixes(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Counts up to each cell: released, to stand on, variances; variances of what lies beyond; leanings."""
        place = np.arange(1, self._size + 1)
        value, centre, lean, variance = self._ask(np.zeros_like(place), place)
        beyond = self._ask(place, np.full_like(place, self._size))[3]
        if self._noisy is not None:
            # How far they are from the noisy ones beyond noise is taken for a bias, as it is of weighted sums.
            apart = np.cumsum(self._noisy[0]) - centre
            bias = np.sign(apart) * np.sqrt(np.maximum(apart**2 - np.cumsum(self._noisy[1]), 0.0))
            lean = np.where(np.abs(bias) > np.abs(lean), bias, lean)
        return value, centre, variance, beyond, lean


def moment(numbers: FloatArray, means: FloatArray, counts: FloatArray) -> FloatArray:
    """Σ (number − mean)·count for each of several means: one for each row would be a large table of a long line."""
    return np.asarray(numbers @ counts - means * counts.sum(), dtype=np.float64)
