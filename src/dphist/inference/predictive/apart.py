"""How far published tables of one attribute are from the true ones, which was paid for, and what it says of blocks.

No total of a block tells a comb from a level line, and no law of how blocks divide can know what lies below the last
of them. But the truth can be asked how far it is from what is published: Σ|x − p| over all values of an attribute, the
cells of a line, the rows of a plane. One record moves that by one, and it is as large as all records that are in the
wrong place, twice: patterns that a sum of squares with signs loses in its noise stand far out of it. Diagonals of a
plane are in no row and in no column; so the cells of a plane are asked about as well.

Only released values are read here, so nothing is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.engine import Engine

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Which part of what lies inside blocks may be in the wrong place.
_PARTS = np.linspace(0.05, 0.95, 19)
# By what part of itself the expected distance may be wrong, if nothing is in the wrong place.
_MODEL = 0.12
# The mean distance of a normal law from its middle, in deviations, squared; and what is left of its variance.
_MEAN, _REST = 2.0 / math.pi, 1.0 - 2.0 / math.pi
# Cells of a line that hold less on average have Poisson's own distance: a normal law of its variance is off by as much
# as bursts of few records are. For all cells, combs of 4,096 cells that hold anyway are up to 1.19 times as wide.
_FEW = 1.0
# Terms of a sum over Poisson's law: with all of 20 cells in one it has a mean of 20, and no more than 1e-30 beyond.
_TERMS = 100
# So many cells of a plane are looked at, and where: multiples of the golden ratio are spread evenly.
_MOST_CELLS = 8192
_GOLDEN = 0.6180339887498949


def strengths_of_parts() -> FloatArray:
    """What variance values have about their mean, in units of its square, if such parts are in the wrong place.

    Where one value in k has all, 1 − 1/k is in the wrong place and the variance k − 1; where values differ by little,
    the variance goes with the square.
    """
    strengths = _PARTS / (1.0 - _PARTS)
    return np.where(_PARTS < 0.5, np.minimum(strengths, 6.0 * _PARTS**2), strengths)


def asked_tables(axes: int) -> list[tuple[int, ...]]:
    """The attributes of each table that is set beside the true one: one each, and all where there are several.

    Example:
        >>> asked_tables(1), asked_tables(2)
        ([(0,)], [(0,), (1,), (0, 1)])
    """
    return [*((axis,) for axis in range(axes)), *([tuple(range(axes))] if axes > 1 else [])]


def rounded_tables(counts: FloatArray) -> list[IntArray]:
    """The tables of `asked_tables` as they are published, in whole numbers.

    Those of one attribute have prefix sums within a half of theirs; cells of several are rounded one by one, so that
    what is below a half says no place where anything should be.

    Example:
        >>> rounded_tables(np.array([0.4, 0.4, 0.4, 0.8]))[0].tolist()
        [0, 1, 0, 1]
        >>> rounded_tables(np.array([[0.4, 0.4], [0.4, 0.8]]))[-1].tolist()
        [0, 0, 0, 1]
    """
    tables = []
    for axis in range(counts.ndim):
        table = counts.sum(axis=tuple(each for each in range(counts.ndim) if each != axis))
        tables.append(np.diff(np.rint(np.cumsum(table)), prepend=0.0).astype(np.int64))
    return tables if counts.ndim == 1 else [*tables, np.rint(counts).reshape(-1).astype(np.int64)]


@dataclass(frozen=True, eq=False)
class Distances:
    """What was measured: how far each of `asked_tables` as published is from the true one, added up."""

    sums: FloatArray
    variance: FloatArray
    """Of the noise in each."""
    gaussian: bool = False
    """Whether that is Gaussian; Laplace noise if not."""

    def logs(self, engine: Engine, counts: FloatArray, mass: FloatArray) -> FloatArray:
        """Logarithms of how likely the sums are, a row for each: with nothing in the wrong place, and parts.

        Args:
            engine: The law of what was measured.
            counts: What is published.
            mass: What every leaf is published to hold.

        Returns:
            A column for nothing, then one for each of `strengths_of_parts`.
        """
        logs = [self._of_axis(axis, engine, counts, mass) for axis in range(counts.ndim)]
        return np.array(logs if counts.ndim == 1 else [*logs, self._of_cells(engine, counts)])

    def _of_axis(self, axis: int, engine: Engine, counts: FloatArray, mass: FloatArray) -> FloatArray:
        n = counts.shape[axis]
        low = np.zeros((n, counts.ndim), dtype=np.int64)
        high = np.tile(np.array(counts.shape, dtype=np.int64), (n, 1))
        low[:, axis], high[:, axis] = np.arange(n), np.arange(n) + 1
        table = counts.sum(axis=tuple(each for each in range(counts.ndim) if each != axis))
        mean, known, _, _, noise = engine.ask_both(low, high)
        known = engine.hedged(known, noise, np.prod(high - low, axis=1).astype(np.float64))
        known = known + (mean - table) ** 2
        # Of every value what lies in leaves that do not know it from its neighbours.
        leaf = np.flatnonzero(engine.left < 0)
        begin, end = engine.low[leaf, axis].astype(np.int64), engine.high[leaf, axis].astype(np.int64)
        share = np.where(end - begin > 1, np.maximum(mass[leaf], 0.0) / (end - begin), 0.0)
        steps = np.bincount(begin, share, minlength=n + 1) - np.bincount(end, share, minlength=n + 1)
        inside = np.maximum(np.cumsum(steps)[:n], 0.0)
        scatter = np.minimum(np.sqrt(_MEAN * inside), 2.0 * inside)
        even = _MEAN * known + scatter**2
        far = np.sqrt(even[:, None] + (2.0 * inside[:, None] * np.append(0.0, _PARTS)) ** 2)
        unsure = np.ones(n)
        if counts.ndim == 1:
            few = np.flatnonzero((inside > 0.0) & (inside < _FEW))
            chance = _far_by_chance(inside[few], rounded_tables(counts)[0][few])
            far[few] = np.sqrt(_MEAN * known[few, None] + chance**2)
            # People who come one by one are as far as that whatever their means, if these are small: two halves of a
            # block with 0.1 and 0.4 differ by 1 % from 0.25 in both. What noise adds is known no better than elsewhere.
            unsure[few] -= (chance[:, 0] / far[few, 0]) ** 2 * (1.0 - inside[few] / _FEW)
        allowed = _MODEL * float(unsure @ far[:, 0])
        return self._likely(axis, far.sum(axis=0), allowed, float((_REST * known + inside).sum()))

    def _of_cells(self, engine: Engine, counts: FloatArray) -> FloatArray:
        """Of all cells of several attributes.

        If a part is in the wrong place, that part of the cells of a leaf has nothing and the others have all, give or
        take the root of it, as people come one by one. A cell that is published below a half is set beside nothing, and
        is as far from it as it holds, whatever is in the wrong place.
        """
        held = np.maximum(counts.reshape(-1), 0.0)
        cell = np.flatnonzero(held >= 0.5)
        low = float(held.sum() - held[cell].sum())
        times = 1.0
        if cell.size > _MOST_CELLS:
            # A sample of places that follow no pattern (Weyl's sequence): it is off by less than the model is.
            some = (np.arange(_MOST_CELLS) * _GOLDEN % 1.0 * cell.size).astype(np.int64)
            times, cell = cell.size / _MOST_CELLS, cell[some]
        held, node = held[cell], engine.painted.reshape(-1)[cell]
        model, size = np.rint(held), engine.size[node]
        shared = size > 1.0
        known, inside = engine.node_variances[node] / size**2, np.where(shared, held, 0.0)
        expected = np.empty(_PARTS.size + 1)
        for place, part in enumerate(np.append(0.0, _PARTS)):
            full, left = inside / (1.0 - part), np.where(shared, part, 0.0)
            far = _folded(np.where(shared, full, held) - model, known + full)
            expected[place] = low + times * float(((1.0 - left) * far + left * model).sum())
        scatter = times * float((_REST * known + inside).sum())
        return self._likely(counts.ndim, expected, _MODEL * float(expected[0]), scatter)

    def _likely(self, question: int, expected: FloatArray, allowed: float, scatter: float) -> FloatArray:
        """Logarithms of how likely a sum is: expected to be so much, give or take what is allowed, and its scatter."""
        unsure = allowed**2 + scatter
        nodes, weights = (np.ones(1), np.ones(1)) if self.gaussian else np.polynomial.laguerre.laggauss(16)
        whole = unsure + self.variance[question] * nodes
        density = (
            weights * np.exp(-0.5 * (self.sums[question] - expected)[:, None] ** 2 / whole) / np.sqrt(whole)
        )
        return np.asarray(np.log(density.sum(axis=1) + 1e-300), dtype=np.float64)


def _far_by_chance(mean: FloatArray, published: IntArray) -> FloatArray:
    """How far cells are from what is published if people come one by one, a column for nothing and for each part.

    If a part is in the wrong place, that part of the cells has nothing and the others have all.

    Example:
        >>> _far_by_chance(np.array([0.25, 0.25]), np.array([0, 1]))[:, [0, -1]].round(3).tolist()
        [[0.25, 0.25], [0.808, 1.151]]
    """
    # Cells of a block mostly are alike: each kind once.
    kinds, kind = np.unique(mean + 1j * published, return_inverse=True)
    far = np.empty((kinds.size, _PARTS.size + 1))
    for place, part in enumerate(np.append(0.0, _PARTS)):
        full = _from_poisson(kinds.real / (1.0 - part), kinds.imag)
        far[:, place] = (1.0 - part) * full + part * np.abs(kinds.imag)
    return np.asarray(far[kind], dtype=np.float64)


def _from_poisson(mean: FloatArray, place: FloatArray) -> FloatArray:
    """The mean distance of Poisson's law from whole numbers: E|X − p| = m − p + 2·Σ (p − k)·P(X = k) over k < p.

    Example:
        >>> _from_poisson(np.array([0.25, 1.0, 2.0]), np.array([0.0, 1.0, -1.0])).round(4).tolist()
        [0.25, 0.7358, 3.0]
    """
    below, term = np.zeros(mean.size), np.exp(-mean)
    for k in range(int(min(place.max(initial=0.0), _TERMS))):
        below += np.maximum(place - k, 0.0) * term
        term = term * mean / (k + 1)
    return np.asarray(mean - place + 2.0 * below, dtype=np.float64)


def _folded(middle: FloatArray, variance: FloatArray) -> FloatArray:
    """The mean distance from zero of normal laws.

    Example:
        >>> _folded(np.array([0.0, 3.0]), np.array([1.0, 0.0])).round(3).tolist()
        [0.798, 3.0]
    """
    deviation, apart = np.sqrt(np.maximum(variance, 1e-12)), np.abs(middle)
    far = apart / deviation
    bell = np.exp(-0.5 * far**2)
    # What lies beyond: Abramowitz and Stegun, 7.1.26, within 1.5e-7.
    near = 1.0 / (1.0 + 0.3275911 * far / math.sqrt(2.0))
    powers = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    beyond = bell * sum(weight * near ** (power + 1) for power, weight in enumerate(powers))
    return np.asarray(deviation * math.sqrt(_MEAN) * bell + apart * (1.0 - beyond), dtype=np.float64)
