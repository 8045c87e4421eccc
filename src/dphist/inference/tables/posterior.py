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

Most cells of a large cube are empty, and say nothing of how far full ones depart. So laws may be learned for cells by
what the model expects of them (*sized*), each starting from that of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.fitting import bounds, settled_order
from dphist.inference.tables.residuals import centred, subsets, sum_to
from dphist.kernels.halves import doubled, halved

FloatArray = NDArray[np.float64]
Ordered = tuple[bool, ...] | None

# How much a cell may depart from the model beside what the model puts there: squares, in parts of the cell's mean, from
# what sampling makes to anything; the cells themselves say how often each is so.
_DEPARTURES = np.array([1.0, 3.0, 30.0, 300.0, 30_000.0])
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
