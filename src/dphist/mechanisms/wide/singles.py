"""Tables of one attribute with the least error: what each is asked by, and its share.

A column of n values has n numbers with noise, and its share of the error (total variation) is 0.4 √(n (n − 1))
deviations. Along a column of *two* values the difference of the two is asked instead: one record still moves one
answer by one, and the error is 0.4 deviations, not 0.57. What a difference does not say is how many records there are,
so that is asked with it: the total moves a column that is uneven, by a quarter of its error or so.

Σ error is least with shares ∝ error^(2/3) where precision grows with the share (ρ), ∝ error^(1/2) where it grows with
its square (ε).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.inference.tables.residuals import Axes, Measured
from dphist.model.law import NoiseLaw
from dphist.private.queries.tables import TableTotals
from dphist.private.records import PrivateRecords

HALF_MEAN = 0.4
"""The mean of |noise| over two deviations' worth of a cell: half of E|N(0, 1)|."""
# What the total's deviation adds to the error of a column asked by difference.
_TOTAL = 0.25


@dataclass(frozen=True)
class SinglePlan:
    """What to ask of single columns: no axes stand for the total, and which columns are asked by difference."""

    shape: tuple[int, ...]
    tables: tuple[Axes, ...]
    shares: tuple[Fraction, ...]
    differences: tuple[Axes, ...]

    def noise(self, law: NoiseLaw) -> list[float]:
        """The expected total variation of each column, times the number of records, if a right is used up."""
        each = {
            axes: float(law.deviation) * float(share) ** (-0.5 * law.exponent)
            for axes, share in zip(self.tables, self.shares, strict=True)
        }
        return [
            math.hypot(HALF_MEAN * each[(axis,)], _TOTAL * HALF_MEAN * each[()])
            if size == 2
            else HALF_MEAN * math.sqrt(size * (size - 1)) * each[(axis,)]
            for axis, size in enumerate(self.shape)
        ]

    def measure(self, data: PrivateRecords) -> list[Measured]:
        """Use a right up."""
        noisy = data.measure(TableTotals(self.tables, self.shares, self.differences))
        variance, scale = np.asarray(noisy.law.variance), np.asarray(noisy.law.scale, dtype=np.float64)
        found, begin = [], 0
        for axes, chosen in zip(self.tables, self.differences, strict=True):
            sides = [1 if axis in chosen else self.shape[axis] for axis in axes]
            values = noisy.values[begin : begin + math.prod(sides)].astype(np.float64).reshape(sides)
            heavy = 0.0 if noisy.law.gaussian else float(scale[begin])
            found.append(Measured(axes, values, float(variance[begin]), heavy, chosen))
            begin += values.size
        return found


def plan_singles(law: NoiseLaw, shape: Sequence[int]) -> SinglePlan:
    """What to ask of single columns for the least total variation; shares are together at most one."""
    twos = sum(size == 2 for size in shape)
    errors: dict[Axes, float] = {(): _TOTAL * twos} if twos else {}
    for axis, size in enumerate(shape):
        errors[(axis,)] = 1.0 if size == 2 else math.sqrt(size * max(1, size - 1))
    wanted = np.array(list(errors.values())) ** (2.0 / 3.0 if law.gaussian else 0.5)
    # Rounded down to a grid, so that what a platform rounds otherwise changes no share.
    grid = 4096 + len(errors) - 1
    shares = tuple(Fraction(max(1, int(4096 * part + 1e-9)), grid) for part in wanted / wanted.sum())
    differences: tuple[Axes, ...] = tuple(axes if axes and shape[axes[0]] == 2 else () for axes in errors)
    return SinglePlan(tuple(shape), tuple(errors), shares, differences)
