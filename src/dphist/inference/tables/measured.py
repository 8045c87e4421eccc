"""Least squares over tables of few attributes: residual by residual, in closed form.

A table sums a cube over all attributes but a few. Tables that were measured with independent noise overlap: each of
them says something about every smaller table inside it. Taking the means out attribute by attribute splits any table
into *residuals* (the literature's name; main effects and interactions in the analysis of variance), one for each
subset S of its attributes. The true residual of S is the same whichever table it is read from, and noise of one
variance a cell falls on different residuals independently, since they are orthogonal. So weighted least squares over
all tables is an average for each residual by itself:

    precision of S = Σ over measured tables B ⊇ S of N(S) ÷ (N(B) · variance of B),

with N the number of cells. A table, a range or a cell whose attributes lie inside one measured table is a sum of
residuals that were all measured: its answer is unbiased and its variance is known exactly. What lies inside none was
not measured. Nothing here reads a count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.model.law import Kind

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Residual:
    """One residual as least squares has it, every mean taken out, and one over its variance a cell.

    ``shift`` is how far it lies from what the table of all attributes says alone, if that was measured; ``alone`` is
    what that table's precision for it is (0 if there is no such table).
    """

    values: FloatArray
    precision: float
    shift: FloatArray
    alone: float


@dataclass(frozen=True, eq=False)
class MeasuredTables:
    """Tables of a cube, each measured with independent noise of one variance a cell.

    ``axes[t]`` are the attributes of table t in ascending order, ``values[t]`` its noisy cells and ``scales[t]`` the
    scale of Laplace noise of its variance, 2·scale²; ``kind`` says what noise it is. One of them may be the whole cube:
    its residuals of many attributes, which nothing else speaks of, are then never written out one by one.
    """

    shape: tuple[int, ...]
    axes: tuple[Axes, ...]
    values: tuple[FloatArray, ...]
    scales: tuple[float, ...]
    kind: Kind = "laplace"

    def cells_in(self, axes: Sequence[int]) -> int:
        """How many cells a table of these attributes has."""
        return math.prod(self.shape[axis] for axis in axes)

    def covers(self, axes: Sequence[int]) -> bool:
        """Whether every residual of a table of these attributes was measured."""
        return any(set(axes) <= set(table) for table in self.axes)

    def inside(self, axes: Sequence[int]) -> list[Axes]:
        """The covered tables of some of these attributes, the largest."""
        return [tuple(axis for axis in table if axis in axes) for table in self.axes]

    @property
    def everything(self) -> Axes:
        """All attributes."""
        return tuple(range(len(self.shape)))

    @cached_property
    def _whole(self) -> int | None:
        """Which table is the cube itself, if one is."""
        return self.axes.index(self.everything) if self.everything in self.axes else None

    def weight(self, table: int, subset: Axes) -> float:
        """The precision that one table has for a residual inside it."""
        return self.cells_in(subset) / (self.cells_in(self.axes[table]) * 2.0 * self.scales[table] ** 2)

    @cached_property
    def residuals(self) -> dict[Axes, Residual]:
        """Every residual that a table other than the cube itself holds, by its attributes, small ones first."""
        smaller = [axes for axes in self.axes if axes != self.everything]
        wanted = {subset for axes in smaller for subset in subsets(axes)}
        found: dict[Axes, Residual] = {}
        for subset in sorted(wanted, key=lambda s: (len(s), s)):
            # Averaged before it is centred, which is linear: one centring a residual is enough.
            summed = np.zeros(tuple(self.shape[axis] for axis in subset))
            alone, precision, own = 0.0, 0.0, summed
            for table, axes in enumerate(self.axes):
                if set(subset) <= set(axes):
                    weight = self.weight(table, subset)
                    others = tuple(place for place, axis in enumerate(axes) if axis not in subset)
                    part = np.asarray(self.values[table].sum(axis=others), dtype=np.float64)
                    summed = summed + weight * part
                    precision += weight
                    if table == self._whole:
                        alone, own = weight, part
            values = centred(summed / precision)
            found[subset] = Residual(values, precision, values - centred(own), alone)
        return found

    def table(self, axes: Sequence[int]) -> FloatArray:
        """Give a table by least squares; residuals that were not measured count as zero."""
        kept = tuple(sorted(axes))
        shape = tuple(self.shape[axis] for axis in kept)
        if self._whole is None:
            whole = np.zeros(shape)
        else:
            others = tuple(axis for axis in self.everything if axis not in kept)
            whole = np.array(self.values[self._whole].sum(axis=others), dtype=np.float64).reshape(shape)
        for subset, residual in self.residuals.items():
            if set(subset) <= set(kept):
                part = residual.values if self._whole is None else residual.shift
                each = [self.shape[axis] if axis in subset else 1 for axis in kept]
                whole += part.reshape(each) * (self.cells_in(subset) / self.cells_in(kept))
        return whole

    def cell_variance(self, axes: Sequence[int]) -> float:
        """The variance of one cell of a table that is covered."""
        high = np.array([[1 if axis in axes else n for axis, n in enumerate(self.shape)]], dtype=np.int64)
        return float(self.variances(np.zeros_like(high), high)[0][0])

    def residual_variance(self, axes: Sequence[int]) -> float:
        """The variance of what a covered table says beyond smaller ones, for each of its cells that is free to.

        Where smaller tables were measured as well a cell has less: they know the rest of it better.
        """
        inside = tuple(sorted(axes))
        weights = [self.weight(k, inside) for k, table in enumerate(self.axes) if set(inside) <= set(table)]
        return 1.0 / sum(weights)

    def measured(self, low: IntArray, high: IntArray) -> BoolArray:
        """Which boxes were measured: those bounded on attributes that lie together inside one table."""
        bounded = self._bounded(low, high)
        inside = np.zeros(len(low), dtype=bool)
        for axes in self.axes:
            others = [axis for axis in self.everything if axis not in axes]
            inside |= ~bounded[:, others].any(axis=1)
        return inside

    def answers(self, low: IntArray, high: IntArray) -> FloatArray:
        """Sum every box by least squares; not a number where a box was not measured."""
        from dphist.kernels.summed_area import sums_between

        out = np.full(len(low), np.nan)
        bounded = self._bounded(low, high)
        if len(low) and bool((bounded == bounded[0]).all()):
            kinds, kind = bounded[:1], np.zeros(len(low), dtype=np.int64)
        else:
            kinds, kind = np.unique(bounded, axis=0, return_inverse=True)
        for number, row in enumerate(kinds):
            axes = tuple(int(axis) for axis in np.flatnonzero(row))
            if self.covers(axes):
                here = np.flatnonzero(kind.reshape(-1) == number)
                out[here] = sums_between(self._kept(axes), low[here][:, axes], high[here][:, axes])
        return out

    def variances(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """The variance of every box's answer, and the largest |weight · scale| of one Laplace draw in it, at most.

        A box is a product of intervals. On an axis of n cells an interval of k has mean k/n, and k − k²/n is what is
        left of its squares once the mean is out. So a residual of the attributes S adds
        Π over S of (k − k²/n) · Π over the others of (k/n)², over its precision. The cube by itself would give twice
        its squared scale for every cell of the box; what others know of a residual is taken off that.
        """
        sizes = np.array(self.shape, dtype=np.float64)
        lengths = np.maximum(high - low, 0).astype(np.float64)
        share = lengths / sizes
        left = np.maximum(lengths - lengths * share, 0.0)
        sides = np.maximum(share, 1.0 - share) * (left > 0.0)
        variance, heaviest = np.zeros(len(low)), np.zeros((len(self.axes), len(low)))
        if self._whole is not None:
            variance += 2.0 * self.scales[self._whole] ** 2 * np.prod(lengths, axis=1)
            heaviest[self._whole] += 1.0
        for subset, residual in self.residuals.items():
            inside = list(subset)
            others = [axis for axis in self.everything if axis not in subset]
            outer = np.prod(share[:, others], axis=1)
            known = 1.0 / residual.precision - (1.0 / residual.alone if residual.alone else 0.0)
            variance += np.prod(left[:, inside], axis=1) * outer**2 * known
            reach = np.prod(sides[:, inside], axis=1) * outer
            for table, axes in enumerate(self.axes):
                if set(subset) <= set(axes):
                    portion = self.weight(table, subset) / residual.precision
                    heaviest[table] += reach * (1.0 - portion if table == self._whole else portion)
        largest = (heaviest * np.array(self.scales)[:, None]).max(axis=0)
        variance = np.maximum(variance, 0.0)
        if self.kind == "gaussian":
            return variance, np.zeros(variance.shape)
        # One draw cannot carry more than the whole variance, whatever the bound says.
        return variance, np.minimum(largest, np.sqrt(variance / 2.0))

    def _bounded(self, low: IntArray, high: IntArray) -> BoolArray:
        return np.asarray(~((low == 0) & (high == np.array(self.shape))), dtype=bool)

    def _kept(self, axes: Axes) -> FloatArray:
        """Running sums of a table that are kept: a release is asked again and again."""
        if axes not in self._sums:
            from dphist.kernels.summed_area import running_sums

            self._sums[axes] = running_sums(self.table(axes))
        return self._sums[axes]

    @cached_property
    def _sums(self) -> dict[Axes, FloatArray]:
        return {}


def subsets(axes: Axes) -> Iterator[Axes]:
    """Every subset of some attributes, the empty one first."""
    for order in range(len(axes) + 1):
        yield from combinations(axes, order)


def centred(values: FloatArray) -> FloatArray:
    """Take the mean out along every axis."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values
