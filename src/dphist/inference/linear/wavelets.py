"""Noise of wavelet coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import NoiseErrors, laplace_if_bare
from dphist.inference.intervals import Spread, half_widths
from dphist.kernels.wavelets.axes import Axis
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


# Combinations of kinds of cells that are worth a table.
_KINDS = 1 << 14


METHODS = {
    False: "exact variance of the noise in the range: the product of the factors of its axes",
    True: (
        "variance of the noise in the range before thresholding; "
        "not covered: the bias of shrinking coefficients, which usually costs less than the noise it removes"
    ),
}


@dataclass(frozen=True, eq=False)
class WaveletNoise(NoiseErrors):
    """The noise in any range answer: a product over the axes.

    A range weighs the coefficient k₁ × k₂ × … by the product of its weights along the axes, so squared
    weights summed over all coefficients are the product of the axes' own sums; with noise of one ``law`` on every
    normalised coefficient the variance is that of the law times it.
    """

    axes: tuple[Axis, ...]
    law: NoiseLaw | float
    method: str = METHODS[False]

    @property
    def theorem(self) -> bool:
        """Whether intervals hold for any data."""
        return self.method == METHODS[False]

    @cached_property
    def _alike(self) -> tuple[list[IntArray], Spread] | None:
        """Which kind of cell each axis has where, and the noise in a cell of each combination, if these are few."""
        law = laplace_if_bare(self.law)
        kinds, variance = [], np.array([float(law.variance)])
        largest = np.array([0.0 if law.gaussian else float(law.scale)])
        for axis in self.axes:
            places = np.arange(axis.size, dtype=np.int64)
            pairs = np.stack(axis.spread(places, places + 1), axis=1)
            each, kind = np.unique(pairs, axis=0, return_inverse=True)
            if each.shape[0] * variance.size > _KINDS:
                return None
            kinds.append(kind.reshape(-1))
            variance = np.multiply.outer(variance, each[:, 0]).reshape(-1)
            largest = np.multiply.outer(largest, each[:, 1]).reshape(-1)
        return kinds, Spread(variance, largest)

    def cell_widths(self, begin: int, end: int, confidence: float) -> float | FloatArray | None:
        """Cells differ by their families only: Haar's are all alike."""
        if self._alike is None:
            return None
        kinds, spread = self._alike
        widths = half_widths(spread, confidence)
        if widths.size == 1:
            return float(widths[0])
        place, which, below = np.arange(begin, end), np.zeros(end - begin, dtype=np.int64), 1
        for axis, kind in zip(reversed(self.axes), reversed(kinds), strict=True):
            which += kind[place % axis.size] * below
            place //= axis.size
            below *= int(kind.max()) + 1
        return np.asarray(widths[which], dtype=np.float64)

    def spread(self, workload: Workload) -> Spread:
        """Give variance and largest draw for every box, many at a time."""
        law = laplace_if_bare(self.law)
        variance = np.full(len(workload.low), float(law.variance))
        largest = np.full(len(workload.low), 0.0 if law.gaussian else float(law.scale))
        for place, axis in enumerate(self.axes):
            squares, most = axis.spread(workload.low[:, place], workload.high[:, place])
            variance *= squares
            largest *= most
        return Spread(variance, largest)
