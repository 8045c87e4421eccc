"""Counts along one ordered attribute, and what follows from them: sums, means, quantiles, distributions.

The noise of neighbouring cells is correlated in most releases. Its covariances are read off the variances of ranges,
which a release knows.

A long line has too many pairs of cells. There covariances are those of blocks of cells: weights are the mean ones of
each block, and what they differ by inside of it adds standard deviations, which is never too narrow and, as
neighbours differ little in value, little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError
from dphist.inference.covariances import covariances
from dphist.inference.estimate import NoiseErrors
from dphist.inference.intervals import Spread, half_widths
from dphist.inference.predictive import PredictiveErrors
from dphist.inference.predictive.errors import asked_cells, by_question
from dphist.inference.predictive.hidden import HiddenErrors
from dphist.kernels.isotonic import isotonic
from dphist.model.domain import Nominal, Ordinal
from dphist.model.domain.scales import Bins, Integers
from dphist.model.workload import Workload
from dphist.release.answers import spoken
from dphist.release.cells import TableCells
from dphist.release.contents import Contents
from dphist.release.sums import possible_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Interval = tuple[float, float, float]

# Of a longer line all ranges of cells are too many to ask for, and so many blocks of cells take their place.
_LONGEST = 400
_BLOCKS = 256
# From so many deviations of noise on, what was inferred from cells is taken to be wrong.
_REFUTED = 4.0
# What inference may have missed of a sum, in variances of its noise, where nothing is seen of it. On 18 made-up shapes
# of 40 values by groups (30 records each, ε = 0.1, 32 draws) sums and means hold in 0.947 and 0.969, where noise alone
# would in 0.942 and 0.941; by 1 in 0.938 and 0.962, by 3 in 0.951 and 0.970 and are 1.02 times as wide.
_UNSEEN = 2.0
# The end of a mean's interval is looked for at so many places, and again between two of them, so many times.
_PLACES, _TIMES = 65, 6


@dataclass(frozen=True, eq=False)
class Line:
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
        scale = self._attribute.scale
        if isinstance(scale, Integers):
            return np.array(scale.values[self.start : self.stop], dtype=np.float64)
        if isinstance(scale, Bins):
            edges = np.array(list(scale.edges[self.start : self.stop + 1]), dtype=np.float64)
            middles: FloatArray = (edges[1:] + edges[:-1]) / 2.0
            return middles
        return None

    def said(self, confidence: float) -> tuple[str, str]:
        """How intervals are obtained: a plain sentence, and the details."""
        return spoken(self.release._estimate.errors.words, confidence)[0], self._details

    @property
    def _details(self) -> str:
        how = "covariances read off the variances of ranges"
        if not self._single:
            how = "standard deviations added"
        elif self._size > _LONGEST:
            how += " of blocks, standard deviations inside of them added"
        known = f"{how}; {self.release._estimate.errors.words.details}"
        if isinstance(self._attribute.scale, Bins):
            return f"{known}; not covered: where in its bin a record lies"
        return known

    # ---- the counts and their noise ----

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
        workload, estimate = self._ranges(first, last), self.release._estimate
        cells = self.release.cells
        if isinstance(cells, TableCells):
            # There are no counts of the whole product: the table of the attributes that are bounded answers.
            value = estimated = cells.sums(self.release, workload)
        else:
            value = np.asarray(workload.answer(self.release.counts), dtype=np.float64)
            estimated = np.asarray(workload.answer(estimate.counts), dtype=np.float64)
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
        spread = self._ask(self._edges[first], self._edges[last + 1])[3]
        variance[first, last + 1] = spread
        variance[last + 1, first] = spread
        return covariances(variance)

    def _reach(self, variance: FloatArray, confidence: float) -> FloatArray:
        """How far a number of this variance may be off; what was not measured may be anything."""
        known = np.isfinite(variance)
        variance = np.where(known, variance, 0.0)
        # Of noise, one draw may carry all: the widest that a variance allows. A predictive law was measured as normal.
        noise = isinstance(self.release._estimate.errors, NoiseErrors)
        widest = np.sqrt(variance / 2.0) if noise else np.zeros(variance.shape)
        return np.where(known, half_widths(Spread(variance, widest), confidence), np.inf)

    def _anywhere(self, variance: FloatArray) -> FloatArray:
        """Variances of counts up to each cell that allow for all of a block's records in any cell of it.

        Inside a block that was never divided a count up to a cell is the less uncertain the nearer the cell is to the
        block's ends, as if records were spread over the block. But a quantile lies where records are: if they are all
        in one cell, it is that one. So inside a block the largest variance is taken for all of it.
        """
        errors = self.release._estimate.errors
        if not isinstance(errors, PredictiveErrors) or errors.blocks is None:
            return variance
        starts = errors.blocks - self.start
        starts = np.concatenate([[0], starts[(starts > 0) & (starts < self._size)]])
        sizes = np.diff(starts, append=self._size)
        return np.repeat(np.maximum.reduceat(variance, starts), sizes)

    @cached_property
    def _noisy(self) -> tuple[FloatArray, FloatArray] | None:
        """Noisy cells with their variances, if cells were noised one by one and then inferred; else None."""
        errors = self.release._estimate.errors
        if not isinstance(errors, HiddenErrors) or errors.noisy is None:
            return None
        place = np.arange(self._size)
        asked = self._ranges(place, place + 1)
        cells = asked_cells(*by_question(asked))
        return np.asarray(
            asked.answer(errors.noisy.reshape(asked.domain.shape)), dtype=np.float64
        ), errors.noise * cells

    def _plain(self, weights: FloatArray) -> bool:
        """Whether a weighted sum stands on the noisy cells."""
        if self._noisy is None:
            return False
        noise = float(weights**2 @ self._noisy[1])
        apart = float(weights @ (self._noisy[0] - self._cells[1])) ** 2
        return apart > _REFUTED**2 * noise or float(self._variance(weights[None])[0]) >= noise

    def _possible(
        self, weights: FloatArray, confidence: float, *, plain: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Between what weighted sums of cells may lie, one for each row.

        Inferred cells are drawn towards what their neighbours say, and weighed by values that adds up to a bias of
        which a single sum hardly tells: noise hides what is smaller. So with V what inference promises of its squared
        error, N the variance of the noisy sum and d how far that lies from the inferred one, truths are taken to lie
        about the inferred sum with variance Q = V + max(2N, d² − N − V): as far as noise could hide, or as far as it is
        seen to be. Given the noisy sum they then lie Q/(Q + N) of the way to it, give or take √(QN/(Q + N)). What
        inference allows stays possible, too: either may be right. Where it promises no less error than noise has, or is
        refuted (`_REFUTED` deviations of noise), the noisy sum is taken alone.
        """
        at, variance = weights @ self._cells[1], self._variance(weights)
        if self._noisy is None:
            reach = self._reach(variance, confidence)
            return at - reach, at + reach
        noise, apart = weights**2 @ self._noisy[1], weights @ self._noisy[0] - at
        if plain:
            reach = self._reach(noise, confidence)
            return at + apart - reach, at + apart + reach
        prior = variance + np.maximum(_UNSEEN * noise, apart**2 - noise - variance)
        part = prior / np.maximum(prior + noise, np.finfo(np.float64).tiny)
        middle, reach = at + part * apart, self._reach(part * noise, confidence)
        inferred = self._reach(np.minimum(variance, noise), confidence)
        return np.minimum(at - inferred, middle - reach), np.maximum(at + inferred, middle + reach)

    @cached_property
    def measured(self) -> bool:
        """Whether the line's counts have intervals at all: then what follows from them has, too."""
        return not bool(np.isnan(self._cells[3]).any())

    def _variance(self, weights: FloatArray) -> FloatArray:
        """What the release expects of the squared errors of weighted sums of its cells, one for each row."""
        if self._single:
            size = np.diff(self._edges)
            mean = np.add.reduceat(weights, self._edges[:-1], axis=1) / size
            inside = np.abs(weights - np.repeat(mean, size, axis=1)) @ self._cells[3]
            square = np.maximum(((mean @ self._covariance) * mean).sum(axis=1), 0.0)
            variance = (np.sqrt(square) + inside) ** 2
        else:
            steps = np.abs(np.diff(weights, append=0.0, axis=1))
            variance = np.minimum(np.abs(weights) @ self._cells[3], steps @ np.sqrt(self._prefixes[2])) ** 2
        return np.asarray(variance + (weights @ self._cells[2]) ** 2, dtype=np.float64)

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

    # ---- what people ask ----

    def _numbers(self) -> FloatArray:
        if self.values is None:
            raise QueryError(
                f"{self._attribute.name}: its cells are not numbers; ask for counts or quantiles instead"
            )
        return self.values

    def sum(self, confidence: float) -> Interval:
        """Add the values up over the records."""
        numbers = self._numbers()
        plain = self._plain(numbers)
        released = float(numbers @ (self._noisy[0] if plain and self._noisy is not None else self._cells[0]))
        if not self.measured:
            return released, np.nan, np.nan
        (low,), (high,) = self._possible(numbers[None], confidence, plain=plain)
        ends = possible_sums(min(low, released), max(high, released), numbers.min(), numbers.max())
        return released, float(ends[0]), float(ends[1])

    @cached_property
    def _balanced(self) -> bool:
        """Whether a mean stands on the noisy cells: the sum of distances from the released one does."""
        return self._plain(self._numbers() - (_mean(self._numbers(), self._cells[0]) or 0.0))

    @cached_property
    def middle(self) -> float:
        """The mean as it was released, or halfway between the ends where nothing was."""
        noisy, (least, most) = self._noisy, self.ends
        middle = _mean(self._numbers(), noisy[0] if noisy is not None and self._balanced else self._cells[0])
        return (least + most) / 2.0 if middle is None else min(max(middle, least), most)

    def mean(self, confidence: float) -> Interval:
        """Average the values: every mean m for which Σ(value − m)·count may be zero."""
        numbers, middle, (least, most) = self._numbers(), self.middle, self.ends
        if not self.measured:
            return middle, np.nan, np.nan

        def possible(means: FloatArray) -> NDArray[np.bool_]:
            low, high = self._possible(numbers - means[:, None], confidence, plain=self._balanced)
            return (low <= 0.0) & (high >= 0.0)

        return middle, _furthest(possible, middle, least), _furthest(possible, middle, most)

    @property
    def ends(self) -> tuple[float, float]:
        """Between these every mean lies."""
        numbers = self._numbers()
        return float(numbers.min()), float(numbers.max())

    def cells(self, levels: FloatArray) -> IntArray:
        """The quantiles as they were released."""
        return np.array([_first(self.shares >= level) for level in levels], dtype=np.int64)

    def filled(self, confidence: float) -> bool:
        """Whether there are any records, as surely as this."""
        _, centre, inside, _, lean = self._prefixes
        z = self._reach(np.ones(1), confidence)[0]
        return bool(centre[-1] > 0 and centre[-1] ** 2 - z**2 * (inside[-1] + lean[-1] ** 2) > 0)

    def quantiles(self, levels: FloatArray, confidence: float) -> tuple[IntArray, IntArray, IntArray]:
        """Cells of the quantiles, and the first and last cells they could be; ask ``measured`` whether they mean it."""
        cells = self.cells(levels)
        if not self.measured:
            return cells, cells, cells
        _, centre, inside, beyond, lean = self._prefixes
        both = (inside[-1] - inside - beyond) / 2.0  # covariance of what lies below and beyond
        lows, highs = [], []
        for level, cell in zip(levels, cells, strict=True):
            variance = (1 - level) ** 2 * inside + level**2 * beyond - 2 * level * (1 - level) * both
            variance = np.maximum(variance, 0.0) + (lean - level * lean[-1]) ** 2
            width = self._reach(self._anywhere(variance), confidence)
            tilt = centre - level * centre[-1]
            # The cell with as much up to it, and less before it: either may be what noise hides, of this cell alone.
            lows.append(min(cell, _first(tilt + width >= 0)))
            less = np.flatnonzero(tilt[:-1] - width[:-1] < 0)
            highs.append(max(cell, int(less[-1]) + 1 if less.size else 0))
        order = np.argsort(levels, kind="stable")
        low, high = np.array(lows)[order], np.array(highs)[order]
        # A lower quantile cannot lie above a higher one: widen until no interval says otherwise.
        low, high = np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)
        back = np.argsort(order, kind="stable")
        return cells, low[back].astype(np.int64), high[back].astype(np.int64)

    def cdf(self, confidence: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Shares up to each cell, with intervals; none of the three ever falls."""
        if not self.measured:
            missing = np.full(self._size, np.nan)
            return self.shares, missing, missing
        _, centre, inside, beyond, lean = self._prefixes
        inside, beyond = inside + lean**2, beyond + (lean[-1] - lean) ** 2
        total, whole = centre[-1], inside[-1]
        with_total = inside + (whole - inside - beyond) / 2.0
        # Shares F with (A − F·total)² ≤ z²·Var(A − F·noise of the total): between the roots of a quadratic in F.
        z2 = self._reach(np.ones(1), confidence)[0] ** 2
        a = total**2 - z2 * whole
        b = centre * total - z2 * with_total
        c = centre**2 - z2 * inside
        low, high = np.zeros(centre.size), np.ones(centre.size)
        if self.filled(confidence):
            root = np.sqrt(np.maximum(b * b - a * c, 0.0))
            low, high = np.clip((b - root) / a, 0.0, 1.0), np.clip((b + root) / a, 0.0, 1.0)
        share = self.shares
        low, high = np.minimum(low, share), np.maximum(high, share)
        return share, np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)

    @cached_property
    def shares(self) -> FloatArray:
        """The released distribution, made monotone; even where nothing was released."""
        value = self._prefixes[0]
        if not value[-1] > 0:
            return np.arange(1, value.size + 1) / value.size
        rising = np.clip(isotonic(value) / value[-1], 0.0, 1.0)
        rising[-1] = 1.0
        return np.asarray(rising, dtype=np.float64)


def read_line(
    release: Contents, name: str, span: tuple[int, int] | None, low: IntArray, high: IntArray
) -> Line:
    """Check that an attribute is ordered, and take its cells (or those of the span) inside the boxes."""
    axis = release.domain.axis(name)
    attribute = release.domain.attributes[axis]
    if isinstance(attribute, Nominal):
        raise QueryError(f"{name} is not ordered: it has no sum, mean or quantiles")
    start, stop = (0, attribute.size) if span is None else span
    stop = min(stop, attribute.scale.size)  # the cell of everything else has no place in the order
    if start >= stop:
        raise QueryError(f"{name}: no cell is left to ask about")
    return Line(release, axis, start, stop, low, high)


def _first(mask: NDArray[np.bool_]) -> int:
    return int(np.argmax(mask)) if mask.any() else mask.size - 1


def _mean(values: FloatArray, counts: FloatArray) -> float | None:
    total = float(counts.sum())
    return float(values @ counts) / total if total > 0 else None


def _furthest(possible: Callable[[FloatArray], NDArray[np.bool_]], inside: float, outside: float) -> float:
    """How far from ``inside`` towards ``outside`` is still possible."""
    for _ in range(_TIMES):
        places = np.linspace(inside, outside, _PLACES)
        found = np.flatnonzero(possible(places))
        last = int(found[-1]) if found.size else 0
        inside, outside = places[last], places[min(last + 1, _PLACES - 1)]
    return float(outside)
