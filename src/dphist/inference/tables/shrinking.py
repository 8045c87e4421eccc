"""Noisy tables moved towards models of them: a table at a time, or cell by cell.

A measured table is unbiased and noisy, a model's table smooth and a little wrong. Shrinking (James and Stein 1961)
goes from the model towards the measurement as far as their difference exceeds what noise alone would make of it. How
far models are from measurements many tables tell each other (`shrink_together`), or the cells of one (`posterior`), by
expectation–maximisation (empirical Bayes, Efron and Morris 1973): so tables of two values shrink as well, each of which
could not by itself.

**Cell by cell.** A factor for all cells keeps too much where the model expects nothing and too little where it expects
much. So a cell departs from the model's m by a normal law of variance κ·m, and at most by what the smaller tables that
it is part of allow; how often each κ is so is learned from all cells, and each cell is its posterior mean. If the model
is right κ is 1: counts are drawn from it, and it is counts that are published. What is lost in single cells adds up in
long ranges; so blocks of neighbours go first, the largest ones before their parts, and each part starts from what its
block was found to hold.

Cells of small tables are tied: of a table of 2 × 2 cells, its margins being settled, one number is left, and noise
moves each cell by half of its deviation. So what a table shows beyond smaller ones is scaled up, as if all of its cells
were free, before it is asked how well a departure explains it.

Most cells of a large cube are empty, and say nothing of how far full ones depart. So laws may be learned for cells by
what the model expects of them (*sized*), each starting from that of all.

Where the model is wrong by more than the noise the measurement speaks; where it is not, the model does. Published is
the nearest table without negative cells; `dphist.inference.tables.fitting.settle` makes tables agree. Arithmetic on
released numbers throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative
from dphist.inference.tables.fitting import bounds, settled_order
from dphist.inference.tables.residuals import Axes, TableResiduals, centred, subsets, sum_to
from dphist.kernels.halves import doubled, halved
from dphist.model.domain import Domain, Nominal

FloatArray = NDArray[np.float64]
Ordered = tuple[bool, ...] | None

# How far tables may depart from a model, as a part of their noise's variance.
_TAU = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e6])
# How much a cell may depart from the model beside what the model puts there: squares, in parts of the cell's mean, from
# what sampling makes to anything; the cells themselves say how often each is so.
_DEPARTURES = np.array([1.0, 3.0, 30.0, 300.0, 30_000.0])
# Steps of expectation–maximisation.
_LEARNING = 15
# How likely each of them is at first, and how many cells' worth that is beside what cells say.
_SURPRISE, _DOUBTS = 0.01, 1.0
_FIRST = np.where(_DEPARTURES > 1.0, _SURPRISE, 1.0 - _SURPRISE * (_DEPARTURES.size - 1))
# A cell that the model calls empty may yet hold this part of the mean cell.
_NEVER_EMPTY = 0.01
# Tables with at least 1.05 cells for each free one are scaled as if all were free; with fewer it makes no difference.
_TIED = 1.05
# An axis is halved while it has at least 4 values; at most 32,768 cells, evenly picked, tell how all depart.
_HALVED, _TELLING = 4, 1 << 15
# Cells are told apart by what the model expects of them, in deviations of the noise; how many cells' worth the law of
# all is in that of each size.
_SIZES, _OF_ALL = np.array([0.1, 0.3, 1.0, 3.0, 10.0]), 30.0


def shrink_together(
    measured: TableResiduals,
    tables: Sequence[Axes],
    model: Callable[[Axes], FloatArray],
    *,
    sampled: bool = False,
) -> dict[Axes, FloatArray]:
    """Move measured tables towards a model of them, all tables of as many attributes by what they show together.

    Each table is judged by its own residual alone (what it says beyond its margins, which have tables of their own):
    e = ‖residual of y − m‖² ÷ variance has k degrees of freedom. If tables depart from the model by normal laws of
    variance τ times the noise, e ÷ (1 + τ) is χ² of k, and a table keeps τ ÷ (1 + τ) of its difference. How often each
    τ is so, from none to anything, all tables of as many attributes say together (expectation–maximisation); each then
    keeps what its own e makes of that. Tables that all agree with the model are left there, one that does not among
    many that do is not.

    Args:
        measured: All that was measured, by residuals.
        tables: Tables that are covered.
        model: What a model says of a table, as counts.
        sampled: Whether the model is of a population, from which records were drawn: they depart from it at least by
            that. Of n records whose attributes go together by chance Σ residual² is about n Π (1 − Σ share²); in
            units of the noise that is the least τ of a table.
    """
    found: dict[Axes, FloatArray] = {}
    for ways in sorted({len(axes) for axes in tables}):
        here = [axes for axes in tables if len(axes) == ways]
        apart = {axes: measured.table(axes) - model(axes) for axes in here}
        energy = {axes: _energy(measured, axes, apart[axes]) for axes in here}
        freedom = {axes: math.prod(size - 1 for size in apart[axes].shape) for axes in here}
        least = [_drawn(measured, axes, model(axes)) if sampled else 0.0 for axes in here]
        kept = _kept(
            np.array([energy[axes] for axes in here]),
            np.array([freedom[axes] for axes in here], dtype=np.float64),
            np.array(least),
        )
        for axes, part in zip(here, kept, strict=True):
            said = model(axes)
            found[axes] = nonnegative(said + part * apart[axes], float(said.sum()))
    return found


def _kept(energy: FloatArray, freedom: FloatArray, least: FloatArray) -> FloatArray:
    """The part of its difference that every table keeps: a posterior mean, the prior learned from all tables."""
    tau = least + _TAU[:, None]
    grown = 1.0 + tau
    log = -0.5 * (freedom * np.log(grown) + energy / grown)
    fits = np.exp(log - log.max(axis=0))
    # As if one more table had been any of them.
    fits *= _fitted(fits, np.full(len(fits), 1.0 / len(fits)), 1.0, energy.size)[:, None]
    return np.asarray((fits * (tau / grown)).sum(axis=0) / fits.sum(axis=0), dtype=np.float64)


def _drawn(measured: TableResiduals, axes: Axes, model: FloatArray) -> float:
    """How far records drawn from a model are from it beyond their margins: a variance, in units of the noise's."""
    total = float(model.sum())
    freedom = math.prod(size - 1 for size in model.shape)
    if total <= 0.0 or not freedom or measured.kept(axes) != axes:
        return 0.0
    spread = total
    for place in range(model.ndim):
        others = tuple(other for other in range(model.ndim) if other != place)
        share = model.sum(axis=others) / total
        spread *= 1.0 - float((share * share).sum())
    return float(spread * measured.residuals[axes].precision / freedom)


def disagreement(
    measured: TableResiduals, tables: Sequence[Axes], model: Callable[[Axes], FloatArray]
) -> tuple[float, float]:
    """Say how far tables are from a model beyond their margins, in units of their noise: Σe ÷ Σk, and its deviation.

    Noise alone makes it 1 for a model that knows nothing of the measurement. It is far below 1 for a model so rich that
    it follows the noise.
    """
    energy = sum(_energy(measured, axes, measured.table(axes) - model(axes)) for axes in tables)
    freedom = max(1, sum(math.prod(measured.shape[axis] - 1 for axis in axes) for axes in tables))
    return energy / freedom, math.sqrt(2.0 / freedom)


def _energy(measured: TableResiduals, axes: Axes, apart: FloatArray) -> float:
    """What a table differs by beyond its margins, squared, in units of its noise's variance."""
    kept = measured.kept(axes)
    if kept != axes:
        return 0.0
    left = centred(apart)
    return float((left * left).sum()) * measured.residuals[axes].precision


@dataclass(frozen=True, eq=False)
class Observed:
    """A measured table and a model of it.

    Args:
        measured: Noisy counts.
        variance: Of each.
        model: What the model says, as counts, none below zero.
        ordered: For every attribute whether its values have neighbours, so that blocks are made of several; all of
            them by default.
        beyond: The variance of what the table says beyond smaller ones, for each cell that is free to; that of a cell
            by default. It is larger where smaller tables were measured as well, which know the rest of a cell.
    """

    measured: FloatArray
    variance: float
    model: FloatArray
    ordered: Ordered = None
    beyond: float | None = None


def posterior(
    table: Observed, *, sized: bool = False, variances: bool = False
) -> tuple[FloatArray, list[FloatArray]]:
    """Move a measured table towards a model of it, level by level, each by its own law of departures."""
    waiting, found = _blocks(table.measured, table.ordered), np.maximum(table.model, 0.0)
    levels = list[FloatArray]()
    while waiting:
        level = _Level(table, waiting.pop(), found, sized=sized)
        mean, left = level.posterior(level.learned(), variances=variances)
        if left is not None:
            # Of what is left to doubt of a cell, this part is the table's alone.
            levels.append(left * (table.variance / level.beyond))
        mean, expected = np.maximum(mean, 0.0), level.model
        factor = np.divide(mean, expected, out=np.ones(mean.shape), where=expected > 0.0)
        for shape in reversed(level.steps):
            factor = doubled(factor, shape, _long(shape, table.ordered))
        # What the model calls impossible can only be added, cell by cell.
        found = found * factor if waiting else np.where(expected > 0.0, found * factor, mean)
    return found, levels


@dataclass(frozen=True, eq=False)
class Shrinking:
    """Moves measured tables, one after the other, towards what smaller ones suggest (`posterior`).

    Of attributes that are not ``ordered`` values have no neighbours: blocks of tables of two attributes have one
    category each. Blocks of a cube beyond these have several: by single categories intervals were up to 1.3 times as
    wide, and errors the same.

    Args:
        measured: All that was measured.
        ordered: For every attribute whether its values have neighbours; None where all have.
        variances: Whether to keep what that leaves to doubt.
        levels: What it leaves to doubt of each table, level by level.
    """

    measured: TableResiduals
    ordered: Ordered = None
    variances: bool = False
    levels: dict[Axes, list[FloatArray]] = field(default_factory=dict)

    def __call__(self, axes: Axes, values: FloatArray, model: FloatArray) -> FloatArray:
        """Move a table towards a model of it."""
        measured = self.measured
        observed = Observed(
            *(values, measured.cell_variance(axes), model),
            ordered=self._blocked(axes),
            beyond=1.0 / measured.precision(axes),
        )
        found, self.levels[axes] = posterior(
            observed, sized=axes == measured.everything, variances=self.variances
        )
        return found

    def _blocked(self, axes: Axes) -> Ordered:
        """Along which attributes of a table blocks are made; None for all of them.

        In a larger cube a table of categories alone keeps its blocks: without any sums over several categories were off
        by 1.2 and 1.3 times as much on two drawn cubes, and what a category does along an order is not in such a table.
        """
        if self.ordered is None or len(axes) != 2:
            return None
        have = tuple(self.ordered[axis] for axis in axes)
        return have if len(self.measured.shape) == 2 or any(have) else None


def neighbours(domain: Domain | None) -> tuple[bool, ...] | None:
    """For every attribute whether its values have neighbours, an order or a group; None where all have."""
    if domain is None:
        return None
    have = tuple(not isinstance(each, Nominal) or each.hierarchy.levels > 2 for each in domain.attributes)
    return None if all(have) else have


class _Level:
    """Blocks of one size of one table beside their model."""

    def __init__(self, table: Observed, measured: FloatArray, found: FloatArray, *, sized: bool) -> None:
        model, steps = found, list[tuple[int, ...]]()
        while model.shape != measured.shape:
            steps.append(model.shape)
            model = _halve(model, table.ordered)
        self.model, self.steps, self.sized = model, steps, sized
        self.beyond = table.variance if table.beyond is None else table.beyond
        self.noise = self.beyond * table.measured.size / measured.size
        self.apart = (measured - model).reshape(-1)
        self.mean = model.reshape(-1)
        self.size = np.searchsorted(_SIZES, self.mean / math.sqrt(self.noise))
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

    def learned(self) -> FloatArray:
        """How often cells depart by how much, as they say themselves: a column for each size of cell.

        Laws of sizes start from that of all cells, if these are told apart.
        """
        # 32,768 cells are enough to tell.
        step = 1 + self.mean.size // _TELLING
        fits = self._fit(slice(None, None, step))[0]
        every = _fitted(fits, _FIRST, _DOUBTS, self.free)
        laws, size = np.repeat(every[:, None], _SIZES.size + 1, axis=1), self.size[::step]
        for one in np.unique(size) if self.sized else ():
            here = fits[:, size == one]
            laws[:, one] = _fitted(here, every, _OF_ALL, self.free * here.shape[1] / size.size)
        return laws

    def _fit(self, some: slice) -> tuple[FloatArray, FloatArray]:
        """How well each departure explains every cell, and what of a departure it then keeps."""
        spread = np.minimum(_DEPARTURES[:, None], self.most[some]) * (self.mean[some] + self.floor)
        spread += self.noise
        log = -0.5 * (np.log(spread) + self.shown[some] ** 2 / spread)
        return np.exp(log - log.max(axis=0)), 1.0 - self.noise / spread

    def posterior(self, laws: FloatArray, *, variances: bool) -> tuple[FloatArray, FloatArray | None]:
        """The posterior mean of every cell, departures being so likely, and its variance where that is asked for."""
        found, left = self.mean.copy(), np.zeros(self.mean.size if variances else 0)
        for start in range(0, self.mean.size, _TELLING):
            here = slice(start, start + _TELLING)
            fits, keeps = self._fit(here)
            fits *= laws[:, self.size[here]]
            whole = fits.sum(axis=0)
            moved = (fits * keeps).sum(axis=0) / whole * self.apart[here]
            found[here] += moved
            if variances:
                # Each has a variance of its own, and they differ in their means.
                square = (fits * keeps * (self.noise + keeps * self.apart[here] ** 2)).sum(axis=0) / whole
                left[here] = np.maximum(square - moved**2, 0.0)
        shape = self.model.shape
        return found.reshape(shape), left.reshape(shape) if variances else None


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
    return halved(array, _long(array.shape, ordered))
