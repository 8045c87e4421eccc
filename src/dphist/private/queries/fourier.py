"""The low frequencies of the counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt

from dphist.errors import MechanismError
from dphist.kernels.wide import hartley_lattice
from dphist.private.questions import IntArray, Layout
from dphist.private.spectrum import (
    bands,
    corner,
    kept,
    over_root,
    root_below,
    size,
    spectrum,
    spectrum_error,
)

# The lattice step is about 2^−14 of the smallest sensitivity, so rounding to it costs under 0.01 % more
# noise.
_FINENESS = 14
_CEILING = float(2**61)


@dataclass(frozen=True)
class Frequencies:
    """Coordinates of the frequencies below ``keep`` on every axis, in an orthonormal real basis.

    Counts are read in C-order as cells of ``shape``: the shape of the cells, or (cells,) to string rows
    together.

    Why the scale keeps the promise. Let z coordinates be kept. They come in pairs f, −f, on which one step
    moves the exact coordinates by (|cos θ + sin θ| + |cos θ − sin θ|)/√n = 2 max(|cos θ|, |sin θ|)/√n ≤
    2/√n, and single frequencies, on which it moves them by 1/√n; so by z/√n in all. The computed
    coordinates of either data set are within η = `spectrum_error` of the exact ones in Euclidean norm,
    hence within √z·η in sum: two data sets add 2√z·η. Rounding to a lattice of step γ moves two answers
    apart by at most γ more on each coordinate (1.001 γ with the rounding of the last addition), and cutting
    at ± 2⁶¹ never does. Sum: z/√n + 2√z·η + 1.001 zγ.
    """

    shape: tuple[int, ...]
    keep: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.keep) != len(self.shape) or not all(
            1 <= k <= most for k, most in zip(self.keep, bands(self.shape), strict=True)
        ):
            raise MechanismError(
                f"keep must lie between 1 and {bands(self.shape)} on axes of {self.shape} cells"
            )

    @property
    def unit(self) -> Fraction:
        """The lattice step: a power of two below 2^−14 ÷ √n, public because n is."""
        return Fraction(1, 2**self._power)

    @property
    def _power(self) -> int:
        return _FINENESS + (size(self.shape).bit_length() + 1) // 2

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Transform, keep the corner of low frequencies, round to the lattice."""
        if size(self.shape) != layout.size:
            raise MechanismError("the frequencies asked for belong to another number of cells")
        high, low = over_root(layout.size, self._power)
        values = hartley_lattice(
            spectrum(counts, self.shape), corner(self.shape, self.keep), high, low, _CEILING
        )
        return values.reshape(kept(self.shape, self.keep))

    def scales(self, layout: Layout) -> Fraction:
        """Noise of the proven sensitivity at ε = 1, in lattice steps, rounded up."""
        coordinates = size(kept(self.shape, self.keep))
        exact = coordinates / root_below(size(self.shape))
        computed = 2 * (isqrt(coordinates) + 1) * spectrum_error(self.shape)
        return ceil_to((exact + computed) / self.unit + Fraction(1001, 1000) * coordinates)


def ceil_to(value: Fraction, grid: int = 2**16) -> Fraction:
    """Round up to a short fraction: scales with long denominators only slow the exact sampler down."""
    return Fraction(ceil(value * grid), grid)
