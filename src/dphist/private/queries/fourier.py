"""The low frequencies of the counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, prod

from dphist.errors import MechanismError
from dphist.kernels.doubledouble import to_lattice
from dphist.private.questions import IntArray, Layout, proven
from dphist.private.spectrum import Basis, bands, column_sum, coordinates, coordinates_error, corner, kept

# The lattice step is about 2^−14 of the smallest sensitivity, so rounding to it costs under 0.01 % more
# noise.
_FINENESS = 14
_CEILING = 2.0**61


@proven
@dataclass(frozen=True)
class Frequencies:
    """Coordinates of the waves with frequencies below ``keep`` on every axis, in an orthonormal real basis.

    Counts are read in C-order as cells of ``shape``: the shape of the cells, or (cells,) to string rows
    together.

    Why the scale keeps the promise. One step moves the exact coordinates by at most `column_sum` in all:
    z/√n for z waves of Fourier's basis. The computed coordinates of either data set are within η =
    `coordinates_error` of the exact ones in Euclidean norm, hence within √z·η in sum: two data sets add
    2√z·η. Rounding to a lattice of step γ moves two answers apart by at most γ more on each coordinate
    (1.001 γ with the rounding of the last addition), and cutting the rounded integers at ± 2⁶¹ never does.
    Sum: column_sum + 2√z·η + 1.001 zγ.
    """

    shape: tuple[int, ...]
    keep: tuple[int, ...]
    basis: Basis = "fourier"

    def __post_init__(self) -> None:
        if self.basis not in ("fourier", "cosine") or not self.shape or min(self.shape) < 1:
            raise MechanismError(
                "frequencies: basis must be 'fourier' or 'cosine', on axes of one cell or more"
            )
        most = bands(self.shape, self.basis)
        if len(self.keep) != len(most) or not all(1 <= k <= m for k, m in zip(self.keep, most, strict=True)):
            raise MechanismError(f"keep must lie between 1 and {most} on axes of {self.shape} cells")

    @property
    def unit(self) -> Fraction:
        """The lattice step: a power of two below 2^−14 ÷ √n, public because n is."""
        return Fraction(1, 2**self._power)

    @property
    def _power(self) -> int:
        return _FINENESS + (prod(self.shape).bit_length() + 1) // 2

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Transform, keep the corner of low frequencies, round to the lattice."""
        values = coordinates(counts, self.shape, self.basis)
        places = corner(self.shape, self.keep, self.basis)
        kept_values = to_lattice(values[:, places], 2.0**self._power, _CEILING)
        return kept_values.reshape(kept(self.shape, self.keep, self.basis))

    def scales(self, layout: Layout) -> Fraction:
        """Noise of the proven sensitivity at ε = 1, in lattice steps, rounded up to a short fraction."""
        if prod(self.shape) != layout.size:
            raise MechanismError("the frequencies asked for belong to another number of cells")
        waves = prod(kept(self.shape, self.keep, self.basis))
        exact = column_sum(self.shape, self.keep, self.basis)
        computed = 2 * (isqrt(waves) + 1) * coordinates_error(self.shape, self.basis)
        steps = (exact + computed) / self.unit + Fraction(1001, 1000) * waves
        return Fraction(ceil(steps * 2**16), 2**16)
