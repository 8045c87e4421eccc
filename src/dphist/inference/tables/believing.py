"""Tables moved towards models of them cell by cell, as far as their evidence goes.

Shrinking every cell by the same factor, as `dphist.inference.tables.shrinking.shrink` does, keeps too much where the
model expects nothing and too little where it expects much. Here a cell departs from the model's m by a normal law of
variance κ·m, and at most by what the smaller tables that it is part of allow; how often each κ is so is learned from
all cells (expectation–maximisation), and each cell is its posterior mean. If the model is right κ is 1: counts are
drawn from it, and it is counts that are published. What is lost in single cells adds up in long ranges; so blocks of
neighbours go first, the largest ones before their parts, and each part starts from what its block was found to hold.

Cells of small tables are tied: of a table of 2 × 2 cells, its margins being settled, one number is left, and noise
moves each cell by half of its deviation. So what a table shows beyond smaller ones is scaled up, as if all of its cells
were free, before it is asked how well a departure explains it. Without, cells of 2 × 2 × 2 announced ones were off by
twice their noise.

A table of two attributes has few large blocks, and what noise does to a few is easily taken for a departure. So tables
are *weighed* against their models: if the law that was learned gains g nats in evidence beside what
sampling alone makes, it is believed by p e^(g − a) ÷ (p e^(g − a) + 1 − p), the posterior probability of departures,
with a the price of a law that is fitted. How many tables depart, p, is learned from all of as many attributes together
(two groups, Efron 2008). Where attributes go together by chance hardly any noise is then left in sums; where they do
not, g is large. What is left to doubt is not weighed: what is not believed may yet be there.

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
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How much a cell may depart from the model beside what the model puts there: squares, in parts of the cell's mean, from
# what sampling makes to anything; the cells themselves say how often each is so.
_DEPARTURES = np.array([1.0, 3.0, 30.0, 300.0, 30_000.0])
_LEARNING = 15
# How likely each of them is at first, and how many cells' worth that is beside what cells say.
_SURPRISE, _DOUBTS = 0.01, 1.0
# Tables of at most 6 attributes are bounded by their tables of two, larger ones by those of one.
_FEW_AXES = 6
# Normal noise, and Laplace noise as a mixture of normal ones whose variances have an exponential law (Gauss–Laguerre).
_NORMAL = np.array([1.0]), np.array([1.0])
_LAPLACE = np.array([0.3225, 1.7458, 4.5366, 9.3951]), np.array([0.6031, 0.3574, 0.0389, 0.0006])
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
# Laplace noise in blocks of fewer than 64 cells is taken for a mixture of 6 normal laws, not for one.
_SUMS_TO_NORMAL, _TAILS = 64, 6


@dataclass(frozen=True, eq=False)
class Beside:
    """A measured table beside a model of it.

    Args:
        measured: Noisy counts.
        variance: Of each.
        model: What the model says, as counts, none below zero.
        laplace: Whether a cell's noise is Laplace noise, whose tails would else be taken for departures.
        doubts: A list to which the posterior variances of all blocks are added, level by level, coarse ones first.
        follows: A list to which is added, where there are doubts, how far what is found varies with what was measured:
            covariances, summed over the blocks of each level.
        ordered: For every attribute whether its values have neighbours, so that blocks are made of several; all of
            them unless told.
        beyond: The variance of what the table says beyond smaller ones, for each cell that is free to; that of a cell
            unless told. It is larger where smaller tables were measured as well, which know the rest of a cell.
    """

    measured: FloatArray
    variance: float
    model: FloatArray
    laplace: bool = False
    doubts: list[FloatArray] | None = None
    follows: list[float] = field(default_factory=list)
    ordered: tuple[bool, ...] | None = None
    beyond: float | None = None


def believe(tables: Sequence[Beside], *, sized: bool = False) -> list[FloatArray]:
    """Move measured tables towards models of them, each by its own law of departures, level by level.

    Args:
        tables: Tables beside their models, of as many attributes each.
        sized: Whether cells of each size have a law of departures of their own, and noise of few cells its tails.

    Returns:
        For each a table between measurement and model, without negative cells.

    Example:
        >>> import numpy as np
        >>> noise = np.array([[70.0, -40.0], [-30.0, 55.0]])
        >>> beside = Beside(300.0 + noise, 2500.0, np.full((2, 2), 300.0))
        >>> bool(np.ptp(believe([beside])[0]) < 0.5 * np.ptp(noise))
        True
    """
    waiting = [_blocks(each.measured, each.ordered) for each in tables]
    found = [np.maximum(each.model, 0.0) for each in tables]
    while any(waiting):
        here = [place for place, blocks in enumerate(waiting) if blocks]
        levels = []
        for place in here:
            noisy, each = waiting[place].pop(), tables[place]
            expected, steps = found[place], []
            while expected.shape != noisy.shape:
                steps.append(expected.shape)
                expected = _halve(expected, each.ordered)
            cells = each.measured.size / noisy.size
            if sized:
                tails = _summed(cells) if each.laplace and cells < _SUMS_TO_NORMAL else _NORMAL
            else:
                tails = _LAPLACE if each.laplace and not waiting[place] else _NORMAL
            beyond = each.variance if each.beyond is None else each.beyond
            noises = beyond * each.measured.size / noisy.size * tails[0]
            levels.append(_Level(noisy, noises, tails[1], expected, steps, each.doubts is not None, sized))
        laws = [level.learned() for level in levels]
        parts = _weighed([gain for _, gain in laws])
        for place, level, (likely, _), part in zip(here, levels, laws, parts, strict=True):
            better, left, follows = level.believed(likely, part)
            each = tables[place]
            if each.doubts is not None:
                # Of what is left to doubt of a cell, this part is the table's alone.
                own = 1.0 if each.beyond is None else each.variance / each.beyond
                each.doubts.append(own * left)
                each.follows.append(own * follows)
            better = np.maximum(better, 0.0)
            expected = level.model
            factor = np.divide(better, expected, out=np.ones(better.shape), where=expected > 0.0)
            for shape in reversed(level.steps):
                factor = _double(factor, shape, tables[place].ordered)
            found[place] = found[place] * factor
            if not waiting[place]:
                # What the model calls impossible can only be added.
                found[place] = np.where(expected > 0.0, found[place], better)
    return found


@dataclass(frozen=True, eq=False)
class _Level:
    """Blocks of one size of one table beside their model; the noise has each of the variances so often."""

    measured: FloatArray
    noises: FloatArray
    often: FloatArray
    model: FloatArray
    steps: list[tuple[int, ...]]
    doubted: bool
    sized: bool = False
    apart: FloatArray = field(init=False)
    shown: FloatArray = field(init=False)
    mean: FloatArray = field(init=False)
    most: FloatArray = field(init=False)
    floor: float = field(init=False)

    def __post_init__(self) -> None:
        mean = self.model.reshape(-1)
        floor = max(_NEVER_EMPTY * float(mean.mean()), 1e-9)
        # A number between 0 and M of mean m has a variance of at most m (M − m).
        most = np.maximum(bounds(self.model).reshape(-1) - mean, 0.0) + floor
        for name, value in (
            ("apart", (self.measured - self.model).reshape(-1)),
            ("shown", self._beyond().reshape(-1)),
            ("mean", mean),
            ("most", most),
            ("floor", floor),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def _settled(self) -> list[tuple[int, ...]]:
        """The smaller tables that are settled already."""
        axes = range(self.model.ndim)
        kept = min(2, len(axes) - 1) if len(axes) <= _FEW_AXES else 1
        return [some for order in range(kept + 1) for some in combinations(axes, order)]

    @cached_property
    def free(self) -> float:
        """How many cells are free to depart, as those of the smaller tables that are settled already are not."""
        shape = self.model.shape
        bound = sum(math.prod(shape[axis] - 1 for axis in axes) for axes in self._settled)
        return float(max(math.prod(shape) - bound, 1))

    def _beyond(self) -> FloatArray:
        """What a table departs by beyond smaller ones, as large as if all of its cells were free."""
        left = apart = self.measured - self.model
        if apart.ndim < 2 or apart.size < _TIED * self.free:
            return apart
        for axes in self._settled:
            others = tuple(axis for axis in range(apart.ndim) if axis not in axes)
            own = apart.mean(axis=others, keepdims=True)
            for axis in axes:
                own = own - own.mean(axis=axis, keepdims=True)
            left = left - own
        return np.asarray(left * math.sqrt(apart.size / self.free))

    def learned(self) -> tuple[FloatArray, float]:
        """How often cells depart by how much, as they say themselves, and what that gains in evidence, in nats."""
        # Cells say slowly that they do not depart, where noise would hide it, and quickly that they do.
        first = np.where(_DEPARTURES > 1.0, _SURPRISE, 1.0 - _SURPRISE * (_DEPARTURES.size - 1))
        # 32,768 cells are enough to tell.
        fits = self._fit(slice(None, None, 1 + self.mean.size // _TELLING))[0]
        likely, free = first, self.free
        for _ in range(_LEARNING):
            part = likely[:, None] * fits
            often_so = free * (part / part.sum(axis=0)).mean(axis=1) + _DOUBTS * first
            likely = often_so / often_so.sum()
        if self.sized:
            return self._by_size(likely, fits)
        return likely, free * float(np.log((likely @ fits) / np.maximum(fits[0], 1e-300)).mean())

    @cached_property
    def size(self) -> IntArray:
        """Which size a cell is expected to have."""
        return np.searchsorted(_SIZES, self.mean / math.sqrt(float(self.noises @ self.often)))

    def _by_size(self, every: FloatArray, fits: FloatArray) -> tuple[FloatArray, float]:
        """The law of every size, by columns, starting from that of all cells; and what they gain in evidence."""
        size = self.size[:: 1 + self.mean.size // _TELLING]
        laws, gain = np.repeat(every[:, None], _SIZES.size + 1, axis=1), 0.0
        for one in np.unique(size):
            here = fits[:, size == one]
            many, likely = self.free * here.shape[1] / size.size, every
            for _ in range(_LEARNING):
                part = likely[:, None] * here
                often_so = many * (part / part.sum(axis=0)).mean(axis=1) + _OF_ALL * every
                likely = often_so / often_so.sum()
            laws[:, one] = likely
            gain += many * float(np.log((likely @ here) / np.maximum(here[0], 1e-300)).mean())
        return laws, gain

    def _fit(self, some: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """How well each departure explains every cell, that times what it then keeps, and its square."""
        apart, mean, most, noises = self.apart[some], self.mean[some], self.most[some], self.noises[:, None]
        shown = self.shown[some]
        spread = np.minimum(_DEPARTURES[:, None, None], most) * (mean + self.floor) + noises
        log = np.log(self.often)[:, None] - 0.5 * (np.log(spread) + shown**2 / spread)
        fits = np.exp(log - log.max(axis=(0, 1)))
        keeps = 1.0 - noises / spread
        kept = fits * keeps
        # Each has a variance of its own, and they differ in their means.
        square = kept * (noises + keeps * apart**2) if self.doubted else kept
        return fits.sum(axis=1), kept.sum(axis=1), square.sum(axis=1)

    def believed(self, likely: FloatArray, part: float) -> tuple[FloatArray, FloatArray, float]:
        """The posterior mean of every cell, departures being so likely, and its variance where that is asked for.

        Then also how far the means vary with what was measured, summed: the slope of a posterior mean is its variance
        over the noise's, so their covariance is that variance.
        """
        found, left, follows = self.mean.copy(), np.zeros(self.mean.size if self.doubted else 0), 0.0
        for start in range(0, self.mean.size, _TELLING):
            here = slice(start, start + _TELLING)
            fits, keeps, squares = self._fit(here)
            law = likely if likely.ndim == 1 else likely[:, self.size[here]]
            whole = _mean(law, fits)
            moved = _mean(law, keeps) / whole * self.apart[here]
            # What cells keep if sampling alone moves them; those that this cannot explain at all are taken by the law.
            drawn = fits[0] > 0.0
            none = np.divide(keeps[0] * self.apart[here], fits[0], out=moved.copy(), where=drawn)
            found[here] += part * moved + (1.0 - part) * none
            if self.doubted:
                spread = np.maximum(_mean(law, squares) / whole - moved**2, 0.0)
                alone = np.divide(squares[0], fits[0], out=spread + none**2, where=drawn) - none**2
                follows += float((part * spread + (1.0 - part) * np.maximum(alone, 0.0)).sum())
                # What is not believed may yet be there.
                left[here] = spread + ((1.0 - part) * (moved - none)) ** 2
        shape = self.model.shape
        return found.reshape(shape), left.reshape(shape) if self.doubted else left, follows


def _mean(law: FloatArray, values: FloatArray) -> FloatArray:
    """Over departures: by one law, or by that of every cell."""
    return np.asarray(law @ values if law.ndim == 1 else np.einsum("kc,kc->c", law, values))


@lru_cache(maxsize=64)
def _summed(draws: float) -> tuple[FloatArray, FloatArray]:
    """Variances of the normal laws that a sum of Laplace draws is a mixture of, mean 1, and how often each is so.

    Gauss quadrature of a gamma law, by the eigenvalues of its Jacobi matrix (Golub and Welsch 1969).
    """
    step = np.arange(_TAILS, dtype=np.float64)
    beside = np.sqrt(step[1:] * (step[1:] + draws - 1.0))
    values, vectors = np.linalg.eigh(np.diag(2.0 * step + draws) + np.diag(beside, 1) + np.diag(beside, -1))
    return values / draws, vectors[0] ** 2


def _weighed(gains: Sequence[float]) -> list[float]:
    """How likely each of some tables departs from its model at all: by what that gains, and by what others say."""
    odds = np.exp(np.clip(np.array(gains) - _AGAINST, -_CERTAIN, _CERTAIN))
    some = _SOME
    for _ in range(_LEARNING):
        each = some * odds / (some * odds + 1.0 - some)
        some = (float(each.sum()) + _SAID * _SOME) / (each.size + _SAID)
    return [float(one) for one in some * odds / (some * odds + 1.0 - some)]


def bounds(model: FloatArray) -> FloatArray:
    """What a cell holds at most: the least cell, among smaller tables that are settled already, that it is part of.

    Args:
        model: A table.

    Returns:
        The bound of every cell.

    Example:
        >>> import numpy as np
        >>> bounds(np.array([[1.0, 2.0], [3.0, 0.0]])).tolist()
        [[3.0, 2.0], [3.0, 2.0]]
    """
    kept = min(2, model.ndim - 1) if model.ndim <= _FEW_AXES else 1
    most = np.full(model.shape, float(model.sum()))
    for axes in combinations(range(model.ndim), kept):
        others = tuple(axis for axis in range(model.ndim) if axis not in axes)
        most = np.minimum(most, model.sum(axis=others, keepdims=True))
    return most


def _blocks(array: FloatArray, ordered: tuple[bool, ...] | None) -> list[FloatArray]:
    """A table, and blocks of its neighbours, larger and larger."""
    blocks = [array]
    while _long(blocks[-1].shape, ordered):
        blocks.append(_halve(blocks[-1], ordered))
    return blocks


def _long(shape: tuple[int, ...], ordered: tuple[bool, ...] | None) -> list[int]:
    """Attributes whose values have neighbours, and enough of them to be halved."""
    return [axis for axis, n in enumerate(shape) if n >= _HALVED and (ordered is None or ordered[axis])]


def _halve(array: FloatArray, ordered: tuple[bool, ...] | None) -> FloatArray:
    """Add neighbours in pairs along every axis that is long enough."""
    for axis in _long(array.shape, ordered):
        array = np.add.reduceat(array, np.arange(0, array.shape[axis], 2), axis=axis)
    return array


def _double(array: FloatArray, shape: tuple[int, ...], ordered: tuple[bool, ...] | None) -> FloatArray:
    """Repeat every entry for the pair it stands for."""
    for axis in _long(shape, ordered):
        array = np.repeat(array, 2, axis=axis).take(np.arange(shape[axis]), axis=axis)
    return array
