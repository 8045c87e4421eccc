"""Noise of coefficients of wavelets and of waves: products over the axes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

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


@dataclass(frozen=True, eq=False)
class WaveNoise(NoiseErrors):
    """Noise of ``scale`` on the coordinate of each kept wave; a range gathers what each wave sums to over it.

    Waves are products over axes, and so is the variance. Both bases have closed forms for sums over ranges,
    and one transform turns those into a table for all ranges of an axis.
    """

    shape: tuple[int, ...]
    keep: tuple[int, ...]
    basis: Literal["fourier", "cosine"]
    scale: float
    method: str = (
        "noise of the kept frequencies, given which were kept; not covered: the dropped frequencies, a bias"
    )

    def spread(self, workload: Workload) -> Spread:
        """Gather the kept waves over every box."""
        low, high = workload.low, np.maximum(workload.low, workload.high)
        runs = np.ones(len(low))
        if len(self.shape) != low.shape[1]:
            low, high, runs = _strung_together(low, high, workload.domain.shape)
        variance = np.full(len(low), 2.0 * self.scale**2)
        largest = np.full(len(low), self.scale)
        for axis, (n, k) in enumerate(zip(self.shape, self.keep, strict=True)):
            length = high[:, axis] - low[:, axis]
            if self.basis == "fourier":
                variance *= _fourier_gathers(n, k, length)
            else:
                variance *= _cosine_gathers(n, k, low[:, axis], high[:, axis], runs > 1)
            # A wave is at most √2/√n high anywhere, the constant one 1/√n.
            largest *= length * np.sqrt((2.0 if k > 1 else 1.0) / n)
        # Runs of one box share their draws: adding deviations is never too narrow.
        return Spread(variance * runs**2, np.minimum(largest, np.sqrt(variance / 2.0)) * runs)


def _fourier_gathers(n: int, keep: int, length: IntArray) -> FloatArray:
    """Sum over kept waves of (sum of the wave over ``length`` neighbouring cells)².

    Over L cells the waves of frequency ±m gather |sin(πmL/n) ÷ sin(πm/n)|²/n each, wherever the cells lie;
    that is (1 − cos(2πmL/n)) ÷ (1 − cos(2πm/n)), for all L at once by one transform.
    """
    frequency = np.arange(1, n)
    frequency = frequency[np.minimum(frequency, n - frequency) < keep]
    weights = np.zeros(n)
    weights[frequency] = 0.5 / np.sin(np.pi * frequency / n) ** 2
    turned = np.fft.fft(weights).real
    return np.asarray((length**2.0 + np.maximum(turned[0] - turned[length % n], 0.0)) / n)


def _cosine_gathers(
    n: int, keep: int, low: IntArray, high: IntArray, anywhere: NDArray[np.bool_]
) -> FloatArray:
    """Sum over kept waves of (sum of the wave over low … high − 1)², or the most it is ``anywhere``.

    Wave m sums to (sin(πmh/n) − sin(πml/n)) ÷ √(2n)·sin(πm/2n) over l … h − 1. Squared and written in
    cosines of differences and sums, one transform of length 2n tabulates Σₘ. Wherever the cells lie, the
    difference of sines is at most 2 sin(πm(h − l)/2n).
    """
    frequency = np.arange(1, keep)
    weights = np.zeros(2 * n)
    weights[frequency] = 0.5 / (n * np.sin(np.pi * frequency / (2 * n)) ** 2)
    turned = np.fft.fft(weights).real
    squares = turned[0] - 0.5 * (turned[(2 * high) % (2 * n)] + turned[(2 * low) % (2 * n)])
    crossed = turned[high - low] - turned[(high + low) % (2 * n)]
    most = 2.0 * (turned[0] - turned[high - low])
    return np.asarray((high - low) ** 2.0 / n + np.maximum(np.where(anywhere, most, squares - crossed), 0.0))


def _strung_together(
    low: IntArray, high: IntArray, shape: tuple[int, ...]
) -> tuple[IntArray, IntArray, FloatArray]:
    """Boxes of a table as runs of its rows strung together: bounds of the first, and how many there are."""
    run, runs = high[:, -1] - low[:, -1], np.ones(len(low))
    start, stride = low[:, -1].copy(), shape[-1]
    whole = run == shape[-1]
    for axis in reversed(range(len(shape) - 1)):
        length = high[:, axis] - low[:, axis]
        run = np.where(whole, run * length, run)
        runs = np.where(whole, runs, runs * length)
        whole = whole & (length == shape[axis])
        start = start + low[:, axis] * stride
        stride *= shape[axis]
    return start[:, None], (start + run)[:, None], runs
