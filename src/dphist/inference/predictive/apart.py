"""How far published tables of one attribute are from the true ones, which was paid for, and what it says of blocks.

No total of a block tells a comb from a level line, and no law of how blocks divide can know what lies below the last
of them. But the truth can be asked how far it is from what is published: Σ|x − p| over all values of an attribute, the
cells of a line, the rows of a plane. One record moves that by one, and it is as large as all records that are in the
wrong place, twice: patterns that a sum of squares with signs loses in its noise stand far out of it.

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


def strengths_of_parts() -> FloatArray:
    """What variance values have about their mean, in units of its square, if such parts are in the wrong place.

    Where one value in k has all, 1 − 1/k is in the wrong place and the variance k − 1; where values differ by little,
    the variance goes with the square.
    """
    strengths = _PARTS / (1.0 - _PARTS)
    return np.where(_PARTS < 0.5, np.minimum(strengths, 6.0 * _PARTS**2), strengths)


def rounded_tables(counts: FloatArray) -> list[IntArray]:
    """Published tables of one attribute each in whole numbers, whose prefix sums are within a half of theirs.

    Example:
        >>> rounded_tables(np.array([0.4, 0.4, 0.4, 0.8]))[0].tolist()
        [0, 1, 0, 1]
    """
    tables = []
    for axis in range(counts.ndim):
        table = counts.sum(axis=tuple(each for each in range(counts.ndim) if each != axis))
        tables.append(np.diff(np.rint(np.cumsum(table)), prepend=0.0).astype(np.int64))
    return tables


@dataclass(frozen=True, eq=False)
class Distances:
    """What was measured: for every attribute how far its published table is from the true one, added up."""

    sums: FloatArray
    variance: float
    """Of the noise in each."""
    gaussian: bool = False
    """Whether that is Gaussian; Laplace noise if not."""

    def logs(self, engine: Engine, counts: FloatArray, mass: FloatArray) -> FloatArray:
        """Logarithms of how likely the sums are, a row for each attribute: with nothing in the wrong place, and parts.

        Args:
            engine: The law of what was measured.
            counts: What is published.
            mass: What every leaf is published to hold.

        Returns:
            A column for nothing, then one for each of `strengths_of_parts`.
        """
        return np.array([self._of_axis(axis, engine, counts, mass) for axis in range(counts.ndim)])

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
        expected = np.sqrt(even[:, None] + (2.0 * inside[:, None] * np.append(0.0, _PARTS)) ** 2).sum(axis=0)
        unsure = (_MODEL * expected[0]) ** 2 + float((_REST * known + inside).sum())
        nodes, weights = (np.ones(1), np.ones(1)) if self.gaussian else np.polynomial.laguerre.laggauss(16)
        whole = unsure + self.variance * nodes
        density = weights * np.exp(-0.5 * (self.sums[axis] - expected)[:, None] ** 2 / whole) / np.sqrt(whole)
        return np.asarray(np.log(density.sum(axis=1) + 1e-300), dtype=np.float64)
