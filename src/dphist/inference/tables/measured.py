"""Tables of a cube that were measured whole, the cube itself among them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.residuals import (
    Axes,
    Measured,
    TableResiduals,
    bounded_kinds,
    centred,
    speaks,
    subsets,
    sum_to,
)
from dphist.kernels.hashing import Normals
from dphist.model.law import Kind

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class MeasuredTables(TableResiduals):
    """Tables that were measured whole, each cell by itself; one of them may be the cube of all attributes.

    The cube speaks of every residual, and those that nothing else speaks of are never written out one by one: of these
    a table has what the cube's own cells say. So a table is the cube's, shifted by how far residuals that others speak
    of as well lie from the cube's; and a box has the cube's variance, less what others know of these residuals.

    Args:
        shape: How many values each attribute has.
        axes: The attributes of every table, ascending.
        values: Their noisy cells.
        scales: Of the noise in each cell of every table: Laplace noise of this scale, or Gaussian noise as large.
        kind: Which of the two.
    """

    def __init__(
        self,
        shape: Sequence[int],
        axes: Sequence[Axes],
        values: Sequence[FloatArray],
        scales: Sequence[float],
        kind: Kind = "laplace",
    ) -> None:
        self.axes, self.values, self.scales, self.kind = tuple(axes), tuple(values), tuple(scales), kind
        everything = tuple(range(len(shape)))
        about = frozenset(subset for table in axes if table != everything for subset in subsets(table))
        measured = [
            Measured(
                *(table, cells, 2.0 * scale**2, scale if kind == "laplace" else 0.0),
                about=about if table == everything else None,
            )
            for table, cells, scale in zip(axes, values, scales, strict=True)
        ]
        super().__init__(shape, measured)
        self._cube = next((each for each in measured if each.axes == everything), None)
        self._shift = {}
        if self._cube is not None:
            self._shift = {
                subset: residual.values - centred(sum_to(self._cube.values, everything, subset))
                for subset, residual in self.residuals.items()
            }

    def again(self, normals: Normals) -> MeasuredTables:
        """The same measured again, at what was measured: with new normal noise of the same variance."""
        noisy = [
            values + math.sqrt(2.0) * scale * normals.like(values)
            for values, scale in zip(self.values, self.scales, strict=True)
        ]
        return MeasuredTables(self.shape, self.axes, noisy, self.scales, self.kind)

    def weight(self, table: Measured, subset: Axes) -> float:
        """The precision that one table has for a residual inside it."""
        return speaks(self.shape, table.axes, (), subset) / table.variance

    def covers(self, axes: Sequence[int]) -> bool:
        """Whether every residual of a table of these attributes was measured."""
        return self._cube is not None or super().covers(axes)

    def precision(self, axes: Axes) -> float:
        """Of a residual that was measured: one over the variance of a cell."""
        if self._cube is None or axes in self.residuals:
            return super().precision(axes)
        return self.weight(self._cube, axes)

    def table(self, axes: Sequence[int]) -> FloatArray:
        """Give a table by least squares, its axes ascending; residuals that were not measured count as zero."""
        kept = tuple(sorted(axes))
        if self._cube is None:
            return super().table(kept)
        return sum_to(self._cube.values, self.everything, kept) + self._added(kept, self._shift)

    def projected(self, cells: FloatArray) -> FloatArray:
        """What a cube has of the residuals that were measured."""
        return cells if self._cube is not None else super().projected(cells)

    def cell_variance(self, axes: Sequence[int]) -> float:
        """The variance of one cell of a covered table."""
        high = np.array([[1 if axis in axes else n for axis, n in enumerate(self.shape)]], dtype=np.int64)
        return float(self.spread(np.zeros_like(high), high)[0][0])

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """As for residuals; what one draw weighs is added up table by table, which is nearer to the truth."""
        lengths = np.maximum(high - low, 0).astype(np.float64)
        share = lengths / np.array(self.shape, dtype=np.float64)
        left = np.maximum(lengths - lengths * share, 0.0)
        sides = np.maximum(share, 1.0 - share) * (left > 0.0)
        variance, heaviest = np.zeros(len(low)), np.zeros((len(self.measured), len(low)))
        if self._cube is not None:
            variance += self._cube.variance * np.prod(lengths, axis=1)
            heaviest[self.measured.index(self._cube)] += 1.0
        for subset, residual in self.residuals.items():
            inside = list(subset)
            outer = np.prod(share[:, [axis for axis in self.everything if axis not in subset]], axis=1)
            known = 1.0 / residual.precision
            known -= 0.0 if self._cube is None else 1.0 / self.weight(self._cube, subset)
            variance += np.prod(left[:, inside], axis=1) * outer**2 * known
            reach = np.prod(sides[:, inside], axis=1) * outer
            for number, table in enumerate(self.measured):
                if set(subset) <= set(table.axes):
                    portion = self.weight(table, subset) / residual.precision
                    heaviest[number] += reach * (1.0 - portion if table is self._cube else portion)
        for axes, here in bounded_kinds(self.shape, low, high):
            if not self.covers(axes):
                variance[here] = np.nan
        variance = np.maximum(variance, 0.0)
        largest = (heaviest * np.array([table.scale for table in self.measured])[:, None]).max(axis=0)
        # One draw cannot carry more than the whole variance, whatever the bound says.
        return variance, np.minimum(largest, np.sqrt(variance / 2.0))
