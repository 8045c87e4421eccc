"""What follows from counts along one ordered attribute: sums, means, quantiles, distributions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.errors import QueryError
from dphist.inference.estimate import Interval as Bounds
from dphist.inference.estimate import Words
from dphist.inference.predictive import PredictiveErrors
from dphist.inference.tables.frechet import BOUNDS
from dphist.kernels.isotonic import isotonic
from dphist.model.domain import Nominal
from dphist.release.contents import Contents, possible_sums
from dphist.release.cube.bounded import BoundedLine
from dphist.release.cube.line import NoisyLine, moment

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Interval = tuple[float, float, float]

# What was inferred from cells is taken to be wrong from 4 deviations of noise on.
_REFUTED = 4.0
# What inference may have missed of a sum, in variances of its noise, where nothing is seen of it. On 18 made-up shapes
# of 40 values by groups (30 records each, ε = 0.1, 32 draws) sums and means hold in 0.947 and 0.969, where noise alone
# would in 0.942 and 0.941; by 1 in 0.938 and 0.962, by 3 in 0.951 and 0.970 and are 1.02 times as wide.
_UNSEEN = 2.0
# The end of a mean's interval is looked for at 65 places, then at 65 between two of these, and so on: 6 times in all.
_PLACES, _TIMES = 65, 6


class Line(NoisyLine):
    """A line and what people ask of it."""

    def bounded(self, confidence: float) -> BoundedLine | None:
        """What bounds of counts that hold all at once say of a line that was not measured; None if there are none."""
        if confidence not in self._bounds:
            self._bounds[confidence] = self._bounded(confidence)
        return self._bounds[confidence]

    @cached_property
    def _bounds(self) -> dict[float, BoundedLine | None]:
        return {}

    def _bounded(self, confidence: float) -> BoundedLine | None:
        size, place = self._size, np.arange(1, self._size)
        first = np.concatenate([np.zeros(size, dtype=np.int64), place])
        last = np.concatenate([place, np.full(size, size)])
        ranges = self._ranges(first, last)
        found = self.release.cells.answers(self.release, ranges, confidence, simultaneous=True)
        if bool(np.isnan(found.low).any()):
            return None
        beyond = (np.append(end[size:], 0.0) for end in (found.low, found.high))
        return BoundedLine(Bounds(found.low[:size], found.high[:size]), Bounds(*beyond))

    @cached_property
    def guessed(self) -> bool:
        """Whether the line was not measured, and has bounds."""
        return not self.measured and self.bounded(0.95) is not None

    @property
    def known(self) -> bool:
        """Whether anything is said of the line: measured or bounded."""
        return self.measured or self.guessed

    @property
    def _words(self) -> Words:
        if not self.guessed:
            return super()._words
        return Words(BOUNDS.short, f"{BOUNDS.details}{self._inside_bins}")

    def _noise(self, numbers: FloatArray, means: FloatArray, variance: FloatArray) -> FloatArray:
        """The variance of Σ (number − mean)·noise of cells, for each of several means."""
        whole = float(variance.sum())
        middle = float(numbers @ variance) / max(whole, np.finfo(np.float64).tiny)
        return np.asarray((numbers - middle) ** 2 @ variance + (means - middle) ** 2 * whole)

    def _plain(self, numbers: FloatArray, mean: float) -> bool:
        """Whether Σ (number − mean)·count stands on the noisy cells."""
        if self._noisy is None:
            return False
        means = np.array([mean])
        (noise,) = self._noise(numbers, means, self._noisy[1])
        (apart,) = moment(numbers, means, self._noisy[0] - self._cells[1]) ** 2
        return bool(apart > _REFUTED**2 * noise or self._variance(numbers, means)[0] >= noise)

    def _possible(
        self, numbers: FloatArray, means: FloatArray, confidence: float, *, plain: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Between what Σ (number − mean)·count may lie, for each of several means.

        Inferred cells are drawn towards what their neighbours say, and weighed by values that adds up to a bias of
        which a single sum hardly tells: noise hides what is smaller. So with V what inference promises of its squared
        error, N the variance of the noisy sum and d how far that lies from the inferred one, truths are taken to lie
        about the inferred sum with variance Q = V + max(2N, d² − N − V): as far as noise could hide, or as far as it is
        seen to be. Given the noisy sum they then lie Q/(Q + N) of the way to it, give or take √(QN/(Q + N)). What
        inference allows stays possible, too: either may be right. Where it promises no less error than noise has, or is
        refuted (`_REFUTED` deviations of noise), the noisy sum is taken alone.
        """
        at, variance = moment(numbers, means, self._cells[1]), self._variance(numbers, means)
        if self._noisy is None:
            reach = self._reach(variance, confidence)
            return at - reach, at + reach
        noise = self._noise(numbers, means, self._noisy[1])
        apart = moment(numbers, means, self._noisy[0]) - at
        if plain:
            reach = self._reach(noise, confidence)
            return at + apart - reach, at + apart + reach
        prior = variance + np.maximum(_UNSEEN * noise, apart**2 - noise - variance)
        part = prior / np.maximum(prior + noise, np.finfo(np.float64).tiny)
        middle, reach = at + part * apart, self._reach(part * noise, confidence)
        inferred = self._reach(np.minimum(variance, noise), confidence)
        return np.minimum(at - inferred, middle - reach), np.maximum(at + inferred, middle + reach)

    def _numbers(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The middle of every cell, and between which numbers its records lie."""
        if self.edges is None or self.values is None:
            raise QueryError(
                f"{self._attribute.name}: its values are not numbers; ask for counts or quantiles instead"
            )
        return self.values, *self.edges

    def sum(self, confidence: float) -> Interval:
        """Add the values up over the records."""
        numbers, least, most = self._numbers()
        plain = self._plain(numbers, 0.0)
        released = float(numbers @ (self._noisy[0] if plain and self._noisy is not None else self._cells[0]))
        if not self.measured:
            told = self.bounded(confidence)
            low, high = (np.nan, np.nan) if told is None else (told.sum(least)[0], told.sum(most)[1])
            return released, float(np.minimum(low, released)), float(np.maximum(high, released))
        (low,), (high,) = (
            self._possible(each, np.zeros(1), confidence, plain=self._plain(each, 0.0))[side]
            for side, each in enumerate((least, most))
        )
        ends = possible_sums(min(low, released), max(high, released), least.min(), most.max())
        return released, float(ends[0]), float(ends[1])

    def _mean(self, numbers: FloatArray) -> tuple[float, bool]:
        """The mean of these as it was released, or halfway where no records were, and whether noisy cells give it."""
        plain = self._plain(numbers, _mean(numbers, self._cells[0]) or 0.0)
        mean = _mean(numbers, self._noisy[0] if plain and self._noisy is not None else self._cells[0])
        least, most = float(numbers.min()), float(numbers.max())
        return (least + most) / 2.0 if mean is None else min(max(mean, least), most), plain

    @cached_property
    def middle(self) -> float:
        """The mean as it was released, or halfway between the ends where no records were."""
        return self._mean(self._numbers()[0])[0] if self.published else np.nan

    def mean(self, confidence: float) -> Interval:
        """Average the values: every mean m for which Σ(value − m)·count may be zero, wherever records lie in bins."""
        _, least, most = self._numbers()
        if not self.measured:
            told = self.bounded(confidence)
            low, high = (np.nan, np.nan) if told is None else (told.mean(least)[0], told.mean(most)[1])
        else:
            low = self._furthest(least, self.ends[0], confidence)
            high = self._furthest(most, self.ends[1], confidence)
        return self.middle, float(np.minimum(low, self.middle)), float(np.maximum(high, self.middle))

    def _furthest(self, numbers: FloatArray, outside: float, confidence: float) -> float:
        inside, plain = self._mean(numbers)

        def possible(means: FloatArray) -> NDArray[np.bool_]:
            low, high = self._possible(numbers, means, confidence, plain=plain)
            return (low <= 0.0) & (high >= 0.0)

        return _furthest(possible, inside, outside)

    @property
    def ends(self) -> tuple[float, float]:
        """Between these every mean lies."""
        _, least, most = self._numbers()
        return float(least.min()), float(most.max())

    def _anywhere(self, variance: FloatArray) -> FloatArray:
        """Variances of counts up to each cell that allow for all of a block's records in any cell of it.

        Inside a block that was never divided a count up to a cell is the less uncertain the nearer the cell is to the
        block's ends, as if records were spread over the block. But a quantile lies where records are: if they are all
        in one cell, it is that one. So inside a block the largest variance is taken for all of it.
        """
        errors, inside = self._piece
        if not isinstance(errors, PredictiveErrors) or errors.blocks is None:
            return variance
        starts = errors.blocks - inside.low[0, 0]
        starts = np.concatenate([[0], starts[(starts > 0) & (starts < self._size)]])
        sizes = np.diff(starts, append=self._size)
        return np.repeat(np.maximum.reduceat(variance, starts), sizes)

    def cells(self, levels: FloatArray) -> IntArray:
        """The quantiles as they were released."""
        return np.array([_first(self.shares >= level) for level in levels], dtype=np.int64)

    def filled(self, confidence: float) -> bool:
        """Whether there are any records, as surely as this."""
        if not self.measured:
            told = self.bounded(confidence)
            return told is not None and told.filled
        _, centre, inside, _, lean = self._prefixes
        z = self._reach(np.ones(1), confidence)[0]
        return bool(centre[-1] > 0 and centre[-1] ** 2 - z**2 * (inside[-1] + lean[-1] ** 2) > 0)

    def quantiles(self, levels: FloatArray, confidence: float) -> tuple[IntArray, IntArray, IntArray]:
        """Cells of the quantiles, and the first and last cells they could be; ask ``known`` whether they mean it."""
        cells = self.cells(levels)
        if not self.measured:
            told = self.bounded(confidence)
            first, last = (cells, cells) if told is None else told.cells(levels)
            return cells, np.minimum(first, cells), np.maximum(last, cells)
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
            told, missing = self.bounded(confidence), np.full(self._size, np.nan)
            least, most = (missing, missing) if told is None else told.shares()
            return self.shares, np.minimum(least, self.shares), np.maximum(most, self.shares)
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
        """The released distribution, made monotone; even where no records were released."""
        value = self._prefixes[0]
        if not self.published:
            return np.full(value.size, np.nan)
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
        raise QueryError(f"{name}: no value is left to ask about")
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
