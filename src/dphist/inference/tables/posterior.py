"""Tables moved towards models of them cell by cell, as far as their evidence goes: posterior means and variances.

Shrinking every cell by the same factor, as `dphist.inference.tables.shrinking.shrink` does, keeps too much where the
model expects nothing and too little where it expects much. Here a cell departs from the model's m by a normal law of
variance κ·m, and at most by what the smaller tables that it is part of allow; how often each κ is so is learned from
all cells (expectation–maximisation), and each cell is its posterior mean. If the model is right κ is 1: counts are
drawn from it, and it is counts that are published. What is lost in single cells adds up in long ranges; so blocks of
neighbours go first, the largest ones before their parts, and each part starts from what its block was found to hold.

Cells of small tables are tied: of a table of 2 × 2 cells, its margins being settled, one number is left, and noise
moves each cell by half of its deviation. So what a table shows beyond smaller ones is scaled up, as if all of its cells
were free, before it is asked how well a departure explains it.

A table of two attributes has few large blocks, and what noise does to a few is easily taken for a departure. So tables
are weighed against their models: if the law that was learned gains g nats in evidence beside what sampling alone makes,
departures have the posterior probability p e^(g − a) ÷ (p e^(g − a) + 1 − p), with a the price of a law that is fitted.
How many tables depart, p, is learned from all of as many attributes together (two groups, Efron 2008). Variances are
not weighed.

Most cells of a large cube are empty, and say nothing of how far full ones depart; a law learned from all together
hardly leaves what it was at first. So laws may be learned for cells by what the model expects of them (*sized*), each
starting from that of all; blocks of few cells then keep the tails of the Laplace noise in them as well: a sum of k
draws is normal with a variance that has a gamma law of shape k.

Arithmetic on released numbers throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.fitting import bounds, settled_order
from dphist.inference.tables.residuals import centred, subsets, sum_to

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Ordered = tuple[bool, ...] | None

# How much a cell may depart from the model beside what the model puts there: squares, in parts of the cell's mean, from
# what sampling makes to anything; the cells themselves say how often each is so.
_DEPARTURES = np.array([1.0, 3.0, 30.0, 300.0, 30_000.0])
_LEARNING = 15
# How likely each of them is at first, and how many cells' worth that is beside what cells say.
_SURPRISE, _DOUBTS = 0.01, 1.0
_FIRST = np.where(_DEPARTURES > 1.0, _SURPRISE, 1.0 - _SURPRISE * (_DEPARTURES.size - 1))
_NORMAL = np.array([1.0]), np.array([1.0])
# A cell that the model calls empty may yet hold this part of the mean cell.
_NEVER_EMPTY = 0.01
# Tables with at least 1.05 cells for each free one are scaled as if all were free; with fewer it makes no difference.
_TIED = 1.05
# An axis is halved while it has at least 4 values; at most 32,768 cells, evenly picked, tell how all depart.
_HALVED, _TELLING = 4, 1 << 15
# What a fitted law of departures gains where there is nothing, in nats (with one, boxes of smooth products of three
# attributes were off by 1.2 times as much); how many tables depart at first, and how many tables' worth that is. More
# nats than the last are certainty.
_AGAINST, _SOME, _SAID, _CERTAIN = 2.0, 0.1, 1.0, 50.0
# Cells are told apart by what the model expects of them, in deviations of the noise; how many cells' worth the law of
# all is in that of each size (made-up cubes: with 1, 10, 30, 100 the worst of 40 has 1.22, 1.12, 1.07, 1.06 of the
# error before on cells, where nothing departs; groups of people gain 3 % less with 100 than with 30).
_SIZES, _OF_ALL = np.array([0.1, 0.3, 1.0, 3.0, 10.0]), 30.0
# Laplace noise in blocks of fewer than 64 cells is taken for a mixture of 4 normal laws, not for one.
_SUMS_TO_NORMAL, _TAILS = 64, 4


@dataclass(frozen=True, eq=False)
class Observed:
    """A measured table and a model of it.

    Args:
        measured: Noisy counts.
        variance: Of each.
        model: What the model says, as counts, none below zero.
        laplace: Whether a cell's noise is Laplace noise, whose tails would else be taken for departures.
        ordered: For every attribute whether its values have neighbours, so that blocks are made of several; all of
            them unless told.
        beyond: The variance of what the table says beyond smaller ones, for each cell that is free to; that of a cell
            unless told. It is larger where smaller tables were measured as well, which know the rest of a cell.
    """

    measured: FloatArray
    variance: float
    model: FloatArray
    laplace: bool = False
    ordered: Ordered = None
    beyond: float | None = None


@dataclass(eq=False)
class Posterior:
    """What is known of a table after all.

    Args:
        mean: Counts between measurement and model, without negative cells.
        variances: Of all blocks, level by level, coarse ones first; none unless they were asked for.
        covariance: Of what is found and what was measured, summed over the blocks of each level.
    """

    mean: FloatArray
    variances: list[FloatArray] = field(default_factory=list)
    covariance: float = 0.0


def posteriors(
    tables: Sequence[Observed], *, sized: bool = False, variances: bool = False
) -> list[Posterior]:
    """Move measured tables towards models of them, each by its own law of departures, level by level.

    Args:
        tables: Tables with their models, of as many attributes each.
        sized: Whether cells of each size have a law of departures of their own, and noise of few cells its tails.
        variances: Whether variances are asked for.

    Returns:
        A posterior for each.

    Example:
        >>> import numpy as np
        >>> noise = np.array([[70.0, -40.0], [-30.0, 55.0]])
        >>> found = posteriors([Observed(300.0 + noise, 2500.0, np.full((2, 2), 300.0))])
        >>> bool(np.ptp(found[0].mean) < 0.5 * np.ptp(noise))
        True
    """
    waiting = [_blocks(each.measured, each.ordered) for each in tables]
    found = [Posterior(np.maximum(each.model, 0.0)) for each in tables]
    while any(waiting):
        here = [place for place, blocks in enumerate(waiting) if blocks]
        levels = [
            _Level(tables[place], waiting[place].pop(), found[place].mean, sized=sized) for place in here
        ]
        laws = [level.learned() for level in levels]
        parts = _weights([gain for _, gain in laws])
        for place, level, (law, _), part in zip(here, levels, laws, parts, strict=True):
            mean, left = level.posterior(law, part, variances=variances)
            if left is not None:
                # Of what is left to doubt of a cell, this part is the table's alone.
                own = tables[place].variance / level.beyond
                found[place].variances.append(own * left[0])
                found[place].covariance += own * left[1]
            mean, expected = np.maximum(mean, 0.0), level.model
            factor = np.divide(mean, expected, out=np.ones(mean.shape), where=expected > 0.0)
            for shape in reversed(level.steps):
                factor = _double(factor, shape, tables[place].ordered)
            # What the model calls impossible can only be added, cell by cell.
            moved = found[place].mean * factor
            found[place].mean = moved if waiting[place] else np.where(expected > 0.0, moved, mean)
    return found


class _Level:
    """Blocks of one size of one table beside their model."""

    def __init__(self, table: Observed, measured: FloatArray, found: FloatArray, *, sized: bool) -> None:
        model, steps = found, list[tuple[int, ...]]()
        while model.shape != measured.shape:
            steps.append(model.shape)
            model = _halve(model, table.ordered)
        self.model, self.steps, self.sized = model, steps, sized
        self.beyond = table.variance if table.beyond is None else table.beyond
        cells = table.measured.size / measured.size
        tailed = table.laplace and cells < (_SUMS_TO_NORMAL if sized else 2)
        factors, self.often = _tails(cells) if tailed else _NORMAL
        self.noises = self.beyond * cells * factors
        self.apart = (measured - model).reshape(-1)
        self.mean = model.reshape(-1)
        self.floor = max(_NEVER_EMPTY * float(self.mean.mean()), 1e-9)
        # A number between 0 and M of mean m has a variance of at most m (M − m).
        self.most = np.maximum(bounds(model).reshape(-1) - self.mean, 0.0) + self.floor
        order = settled_order(model.ndim)
        settled = [axes for axes in subsets(tuple(range(model.ndim))) if len(axes) <= order]
        bound = sum(math.prod(model.shape[axis] - 1 for axis in axes) for axes in settled)
        # How many cells are free to depart, as those of the smaller tables that are settled already are not.
        self.free = float(max(model.size - bound, 1))
        self.shown = self.apart
        if model.ndim > 1 and model.size >= _TIED * self.free:
            # What a table departs by beyond smaller ones, as large as if all of its cells were free.
            places, left = tuple(range(model.ndim)), measured - model
            for axes in settled:
                sides = [size if axis in axes else 1 for axis, size in enumerate(model.shape)]
                own = centred(sum_to(measured - model, places, axes)).reshape(sides)
                left = left - own * (own.size / model.size)
            self.shown = (left * math.sqrt(model.size / self.free)).reshape(-1)

    def learned(self) -> tuple[FloatArray, float]:
        """How often cells depart by how much, as they say themselves, and what that gains in evidence, in nats.

        Sized, a law for every size, by columns, starting from that of all cells.
        """
        # 32,768 cells are enough to tell.
        step = 1 + self.mean.size // _TELLING
        fits = self._fit(slice(None, None, step), variances=False)[0]
        every = _fitted(fits, _FIRST, _DOUBTS, self.free)
        if not self.sized:
            return every, _gain(every, fits, self.free)
        size = self.size[::step]
        laws, gain = np.repeat(every[:, None], _SIZES.size + 1, axis=1), 0.0
        for one in np.unique(size):
            here = fits[:, size == one]
            cells = self.free * here.shape[1] / size.size
            laws[:, one] = _fitted(here, every, _OF_ALL, cells)
            gain += _gain(laws[:, one], here, cells)
        return laws, gain

    @cached_property
    def size(self) -> IntArray:
        """Which size a cell is expected to have."""
        return np.searchsorted(_SIZES, self.mean / math.sqrt(float(self.noises @ self.often)))

    def _fit(self, some: slice, *, variances: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How well each departure explains every cell, that times what it then keeps, and its square."""
        apart, mean, most, noises = self.apart[some], self.mean[some], self.most[some], self.noises[:, None]
        spread = np.minimum(_DEPARTURES[:, None, None], most) * (mean + self.floor) + noises
        log = np.log(self.often)[:, None] - 0.5 * (np.log(spread) + self.shown[some] ** 2 / spread)
        fits = np.exp(log - log.max(axis=(0, 1)))
        keeps = 1.0 - noises / spread
        kept = fits * keeps
        # Each has a variance of its own, and they differ in their means.
        square = kept * (noises + keeps * apart**2) if variances else kept
        return fits.sum(axis=1), kept.sum(axis=1), square.sum(axis=1)

    def posterior(
        self, law: FloatArray, part: float, *, variances: bool
    ) -> tuple[FloatArray, tuple[FloatArray, float] | None]:
        """The posterior mean of every cell, departures being so likely, and its variance where that is asked for.

        Then also how far the means vary with what was measured, summed: the slope of a posterior mean is its variance
        over the noise's, so their covariance is that variance.
        """
        found, left, covariance = self.mean.copy(), np.zeros(self.mean.size if variances else 0), 0.0
        for start in range(0, self.mean.size, _TELLING):
            here = slice(start, start + _TELLING)
            fits, keeps, squares = self._fit(here, variances=variances)
            often = law[:, None] if law.ndim == 1 else law[:, self.size[here]]
            whole = (often * fits).sum(axis=0)
            moved = (often * keeps).sum(axis=0) / whole * self.apart[here]
            # What cells keep if sampling alone moves them; those that this cannot explain at all are taken by the law.
            drawn = fits[0] > 0.0
            none = np.divide(keeps[0] * self.apart[here], fits[0], out=moved.copy(), where=drawn)
            found[here] += part * moved + (1.0 - part) * none
            if variances:
                spread = np.maximum((often * squares).sum(axis=0) / whole - moved**2, 0.0)
                alone = np.divide(squares[0], fits[0], out=spread + none**2, where=drawn) - none**2
                covariance += float((part * spread + (1.0 - part) * np.maximum(alone, 0.0)).sum())
                # What is not believed may yet be there.
                left[here] = spread + ((1.0 - part) * (moved - none)) ** 2
        shape = self.model.shape
        return found.reshape(shape), (left.reshape(shape), covariance) if variances else None


def _fitted(fits: FloatArray, prior: FloatArray, worth: float, cells: float) -> FloatArray:
    """How often cells depart by how much (expectation–maximisation), the prior being worth some cells.

    Cells say slowly that they do not depart, where noise would hide it, and quickly that they do.
    """
    likely = prior
    for _ in range(_LEARNING):
        part = likely[:, None] * fits
        often = cells * (part / part.sum(axis=0)).mean(axis=1) + worth * prior
        likely = often / often.sum()
    return np.asarray(likely, dtype=np.float64)


def _gain(law: FloatArray, fits: FloatArray, cells: float) -> float:
    """What a law gains in evidence beside sampling alone, in nats."""
    return cells * float(np.log((law @ fits) / np.maximum(fits[0], 1e-300)).mean())


@lru_cache(maxsize=64)
def _tails(draws: float) -> tuple[FloatArray, FloatArray]:
    """Variances of the normal laws that a sum of Laplace draws is a mixture of, mean 1, and how often each is so.

    Gauss quadrature of a gamma law, by the eigenvalues of its Jacobi matrix (Golub and Welsch 1969).
    """
    step = np.arange(_TAILS, dtype=np.float64)
    beside = np.sqrt(step[1:] * (step[1:] + draws - 1.0))
    values, vectors = np.linalg.eigh(np.diag(2.0 * step + draws) + np.diag(beside, 1) + np.diag(beside, -1))
    return values / draws, vectors[0] ** 2


def _weights(gains: Sequence[float]) -> list[float]:
    """How likely each of some tables departs from its model at all: by what that gains, and by what others say."""
    odds = np.exp(np.clip(np.array(gains) - _AGAINST, -_CERTAIN, _CERTAIN))
    some = _SOME
    for _ in range(_LEARNING):
        each = some * odds / (some * odds + 1.0 - some)
        some = (float(each.sum()) + _SAID * _SOME) / (each.size + _SAID)
    return [float(one) for one in some * odds / (some * odds + 1.0 - some)]


def _blocks(array: FloatArray, ordered: Ordered) -> list[FloatArray]:
    """A table, and blocks of its neighbours, larger and larger."""
    blocks = [array]
    while _long(blocks[-1].shape, ordered):
        blocks.append(_halve(blocks[-1], ordered))
    return blocks


def _long(shape: tuple[int, ...], ordered: Ordered) -> list[int]:
    """Attributes whose values have neighbours, and enough of them to be halved."""
    return [axis for axis, n in enumerate(shape) if n >= _HALVED and (ordered is None or ordered[axis])]


def _halve(array: FloatArray, ordered: Ordered) -> FloatArray:
    """Add neighbours in pairs along every axis that is long enough."""
    for axis in _long(array.shape, ordered):
        array = np.add.reduceat(array, np.arange(0, array.shape[axis], 2), axis=axis)
    return array


def _double(array: FloatArray, shape: tuple[int, ...], ordered: Ordered) -> FloatArray:
    """Repeat every entry for the pair it stands for."""
    for axis in _long(shape, ordered):
        array = np.repeat(array, 2, axis=axis).take(np.arange(shape[axis]), axis=axis)
    return array
