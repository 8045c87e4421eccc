"""Private counts in an orthonormal basis of waves: what may be asked of them, and the error of computing them.

Two bases, each the same along every axis of a table:

* ``fourier``, in Hartley's form: wave f is cas(2π Σᵢ fᵢjᵢ/nᵢ)/√n with cas θ = cos θ + sin θ. The pair f, −f
is the
  cosine and the sine of that frequency turned by 45°, so frequency by frequency it spans what Fourier's
  basis spans, and odd and even lengths need no special cases: a frequency that is its own negative is
  simply alone.
* ``cosine``: wave f is the product over axes of cos(π fᵢ(jᵢ + ½)/nᵢ) times √(2/nᵢ), or √(1/nᵢ) for
frequency 0. Its waves
  do not close into a circle, so the first and the last cell need not be alike.

The record limit. The gate cuts counts at a public ceiling so that they sum to at most 2⁶² whatever the
data; so the Euclidean norm of any cells behind it is at most 2⁶². The transforms (`dphist.kernels.doubledouble`)
err relative to that norm, so their error has a public bound: `coordinates_error`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, isqrt, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.doubledouble import (
    added,
    fourier_error,
    in_units,
    multiplied,
    roots,
    to_lattice,
    wide_fourier,
    widen,
    widened,
)
from dphist.private.questions import LARGEST_SUM, Candidates, IntArray, Layout, proven

FloatArray = NDArray[np.float64]
Basis = Literal["fourier", "cosine"]
Shape = tuple[int, ...]
# Python's integers.
Wholes = NDArray[Any]

# Scores are integers in units of 2^−10 records.
_POWER = 10
_CEILING = 2**61
# Coordinates are integers in units of 2^−60 before they are squared and added up, which is exact.
_BITS = 60


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
        # About 2^−14 of the smallest sensitivity: rounding to it costs under 0.01 % more noise.
        return 14 + (prod(self.shape).bit_length() + 1) // 2

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Transform, keep the corner of low frequencies, round to the lattice."""
        values = coordinates(counts, self.shape, self.basis)
        places = corner(self.shape, self.keep, self.basis)
        kept_values = to_lattice(values[:, places], 2.0**self._power, 2.0**61)
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


@proven
@dataclass(frozen=True)
class LowFrequencies:
    """Score every corner of low frequencies by the error that keeping exactly it would leave.

    Keeping the corner k leaves out a tail of the spectrum, an error of √(tail energy), and adds noise to z
    coordinates, an error of √(2z)·s·``noise`` in Euclidean norm, where s is their sensitivity
    (`column_sum`; 1 for the last corner, which keeps everything and is best measured cell by cell) and
    ``noise`` the scale that a question of sensitivity one would get (public). The score is minus their sum.
    Candidate (k₁, k₂, …) is at its C-order place among the corners of a basis with 1 ≤ kᵢ ≤ `bands`; those of
    several ``bases`` follow one another.

    Why the range keeps the promise. Let A and B be the waves that two candidates leave out, and f = ‖x_A‖ − ‖x_B‖
    the difference of their tails, x_A being the coordinates of x in A. A step adds the unit vector e of one cell.
    Every candidate keeps the constant wave, of height 1/√n in both bases; so only the part of e beside it counts, of
    norm a = √(1 − 1/n), and each tail moves by at most a (reverse triangle inequality). Where neither tail is zero, f
    has the gradient g = x_A/‖x_A‖ − x_B/‖x_B‖, two unit vectors whose scalar product is

    * within one basis ‖x_{A∩B}‖² ÷ (‖x_A‖·‖x_B‖) ≥ 0, because both are made of coordinates of the same x: so
      ‖g‖ ≤ √2;
    * between two bases anything, and ‖g‖ ≤ 2.

    Where one tail is zero its gradient is left out, and ‖g‖ ≤ 1. Along the step from x to x + e this holds everywhere
    but at most at two points (where a tail touches zero), and f is continuous; integrated, f changes by at most
    ρ = √2·a, or 2a between bases. (√2 is reached: B half of A, x nearly all in the rest of A, and e against x_B there
    and along x_A beyond it.) The public noise term moves nothing.

    Computed tails are within η: the coordinates' own error in norm, and that of writing each as an integer, at most two
    units of 2⁻⁶⁰; from there on all is exact. So the difference of two computed changes is at most ρ + 4η.
    Flooring to a lattice adds less than one unit to one change and takes less than one from the other: as integers
    they differ by at most ⌈(ρ + 4η)·2¹⁰⌉ + 1. Cutting at 2⁶¹ shrinks a change towards zero and keeps its sign: changes
    of opposite signs come closer, and of equal signs differ by at most the larger, ⌈(a + 2η)·2¹⁰⌉, which is no more.
    """

    shape: tuple[int, ...]
    noise: Fraction
    bases: tuple[Basis, ...] = ("fourier",)

    def __post_init__(self) -> None:
        if not self.bases or any(basis not in ("fourier", "cosine") for basis in self.bases):
            raise MechanismError("low frequencies: bases must be 'fourier' or 'cosine'")
        if not 0 <= self.noise <= 2**53:
            # Below zero its errors would not be cut where 64 bits end, and scores that wrap move any distance.
            raise MechanismError("low frequencies: noise must lie from 0 to 2^53")

    def draws(self, layout: Layout) -> int:
        """One choice."""
        if prod(self.shape) != layout.size or layout.parts != 1:
            raise MechanismError("low frequencies are chosen for all cells at once")
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score all corners at once."""
        scores = np.concatenate([self._scores(counts, basis) for basis in self.bases])
        yield Candidates(scores, np.array([0, scores.size], dtype=np.int64), self.range())

    def range(self) -> int:
        """Bound how far one step can tilt the choice, in lattice units."""
        error = max(coordinates_error(self.shape, basis) for basis in self.bases)
        n = prod(self.shape)
        error += 2 * root_above(n) / 2**_BITS
        # √2·a = √(2n(n − 1)) ÷ n within one basis, 2a = √(4n(n − 1)) ÷ n between two.
        tilt = root_above((2 if len(set(self.bases)) == 1 else 4) * n * (n - 1)) / n
        steps: int = ceil((tilt + 4 * error) * 2**_POWER)
        return steps + 1

    def place(self, pick: int) -> tuple[Basis, tuple[int, ...]]:
        """Say which basis and corner a candidate stands for."""
        for basis in self.bases:
            grid = bands(self.shape, basis)
            if pick < prod(grid):
                return basis, tuple(int(k) + 1 for k in np.unravel_index(pick, grid))
            pick -= prod(grid)
        raise MechanismError("there is no such candidate")

    def _scores(self, counts: IntArray, basis: Basis) -> IntArray:
        grid = bands(self.shape, basis)
        values = in_units(coordinates(counts, self.shape, basis), _BITS)
        energy = np.zeros(prod(grid), dtype=object)
        np.add.at(energy, fold(self.shape, basis), values * values)
        outside = _outside(energy.reshape(grid)).reshape(-1).tolist()
        tails = [min(isqrt(tail << 2 * _POWER) >> _BITS, _CEILING) for tail in outside]
        return -np.array(tails, dtype=np.int64) - self._noise_errors(basis)

    def _noise_errors(self, basis: Basis) -> IntArray:
        """√(2z) · column sum · noise on the lattice; floating point will do, for it is public."""
        waves, column = np.ones(1), np.ones(1)
        for n, most in zip(self.shape, bands(self.shape, basis), strict=True):
            keep = np.arange(1.0, most + 1)
            if basis == "fourier":
                count = np.minimum(2 * keep - 1, n)
                sums = count / np.sqrt(n)
            else:
                count = keep
                sums = np.minimum(
                    (1 + np.sqrt(2) * (keep - 1)) / np.sqrt(n),
                    np.sqrt(keep * np.minimum(1, (2 * keep - 1) / n)),
                )
            waves = (waves[:, None] * count[None, :]).reshape(-1)
            column = (column[:, None] * sums[None, :]).reshape(-1)
        # Keeping every wave is not transforming at all: the cells themselves, of sensitivity one.
        column[-1] = 1.0
        errors = np.sqrt(2.0 * waves) * column * float(self.noise) * 2.0**_POWER
        return np.minimum(errors, float(_CEILING)).astype(np.int64)


def coordinates(counts: IntArray, shape: Shape, basis: Basis) -> FloatArray:
    """All coordinates of the counts as wide numbers ``[2, cells]``, flat in C-order of their frequencies."""
    values = widen(counts.reshape(shape))
    turn = wide_fourier if basis == "fourier" else _cosines
    for axis in range(2, len(shape) + 2):
        values = np.moveaxis(turn(np.ascontiguousarray(np.moveaxis(values, axis, -1))), -1, axis)
    values = values.reshape(2, 2, -1)
    if basis == "cosine":
        return values[:, 0]
    return multiplied(added(values[:, 0], -values[:, 1]), _over_root(prod(shape), 1))


def coordinates_error(shape: Shape, basis: Basis) -> Fraction:
    """Bound ‖computed − exact coordinates‖₂ over all counts the gate lets through.

    Axes are transformed one after the other; each orthonormal transform keeps norms, so relative errors add.
    Taking a difference of real and imaginary part (Fourier), or a real part times √2 (cosine, on each axis),
    errs by √2 times the complex error. The factor 2 at the front covers one √2, products of errors and the
    last multiplication.
    """
    relative = (fourier_error(n) if basis == "fourier" else 2 * fourier_error(n) for n in shape)
    return 2 * LARGEST_SUM * sum(relative, Fraction(0))


def column_sum(shape: Shape, keep: Shape, basis: Basis) -> Fraction:
    """Bound Σ |wave(j)| over the kept waves, at any cell j: how far one step can move the kept coordinates.

    Fourier: waves f and −f give (|cos θ + sin θ| + |cos θ − sin θ|)/√n = 2 max(|cos θ|, |sin θ|)/√n ≤ 2/√n,
    a wave alone gives 1/√n; so z/√n for z waves. Cosine: an axis gives at most (1 + √2(k − 1))/√n for k
    waves, and by Cauchy-Schwarz at most √k times the column's norm, which is at most √((2k − 1)/n) and at
    most 1; axes multiply.
    """
    if basis == "fourier":
        return prod(kept(shape, keep, basis)) / root_below(prod(shape))
    total = Fraction(1)
    for n, k in zip(shape, keep, strict=True):
        plain = (1 + Fraction(isqrt(2 << 64) + 1, 1 << 32) * (k - 1)) / root_below(n)
        norm = Fraction(1) if 2 * k - 1 >= n else root_above(2 * k - 1) / root_below(n)
        total *= min(plain, root_above(k) * norm)
    return total


def bands(shape: Shape, basis: Basis) -> Shape:
    """How many different absolute frequencies each axis has: the largest useful ``keep``."""
    return tuple(n // 2 + 1 if basis == "fourier" else n for n in shape)


def kept(shape: Shape, keep: Shape, basis: Basis) -> Shape:
    """How many waves of each axis have an absolute frequency below ``keep``."""
    return tuple(min(2 * k - 1, n) if basis == "fourier" else k for n, k in zip(shape, keep, strict=True))


def corner(shape: Shape, keep: Shape, basis: Basis) -> IntArray:
    """Flat places of the kept waves: frequencies 0, 1, …, and for Fourier then …, −2, −1, of every axis."""
    places = np.zeros(1, dtype=np.int64)
    for n, count in zip(shape, kept(shape, keep, basis), strict=True):
        axis = np.arange(count, dtype=np.int64)
        if basis == "fourier":
            axis[(count + 1) // 2 :] += n - count
        places = (places[:, None] * n + axis[None, :]).reshape(-1)
    return places


def fold(shape: Shape, basis: Basis) -> IntArray:
    """The place of every wave among the absolute frequencies ``bands``, in C-order."""
    places = np.zeros(1, dtype=np.int64)
    for n, most in zip(shape, bands(shape, basis), strict=True):
        frequency = np.arange(n, dtype=np.int64)
        if basis == "fourier":
            frequency = np.minimum(frequency, n - frequency)
        places = (places[:, None] * most + frequency[None, :]).reshape(-1)
    return places


def root_below(n: int) -> Fraction:
    """A fraction just below √n."""
    return Fraction(isqrt(n << 128), 1 << 64)


def root_above(n: int) -> Fraction:
    """A fraction just above √n."""
    return Fraction(isqrt(n << 128) + 1, 1 << 64)


def _cosines(values: FloatArray) -> FloatArray:
    """The orthonormal cosine transform along the last axis of a wide complex array without imaginary part.

    Take the cells at even places and then those at odd places backwards: the Fourier coefficient m of that
    sequence, turned by exp(−πim/2n), has the real part Σⱼ xⱼ cos(πm(j + ½)/n) (Makhoul, 1980).
    """
    n = values.shape[-1]
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    turned = wide_fourier(values[..., order])
    factors = _cosine_factors(n).reshape(2, 2, *(1,) * (values.ndim - 3), n)
    turned[:, 0] = added(multiplied(turned[:, 0], factors[:, 0]), -multiplied(turned[:, 1], factors[:, 1]))
    turned[:, 1] = 0.0
    return turned


@lru_cache(maxsize=4)
def _cosine_factors(n: int) -> FloatArray:
    heights = np.repeat(_over_root(n, 2), n, axis=1)
    heights[:, :1] = _over_root(n, 1)
    return multiplied(roots(4 * n, n), heights[:, None])


def _over_root(n: int, numerator: int) -> FloatArray:
    """√numerator ÷ √n as a wide number."""
    return widened([isqrt((numerator << 512) // n)])


def _outside(energy: Wholes) -> Wholes:
    """Energy outside each corner.

    What lies outside the box k₁ × k₂ × … is the disjoint union over axes i of "below k on the axes before
    i, at or beyond kᵢ on axis i, anything on the axes after".
    """
    grid = energy.shape
    outside = np.zeros(grid, dtype=object)
    for axis in reversed(range(len(grid))):
        inclusive = np.flip(np.cumsum(np.flip(energy, axis), axis), axis)
        beyond = np.zeros_like(inclusive)
        beyond[..., :-1] = inclusive[..., 1:]
        for before in range(axis):
            beyond = np.cumsum(beyond, before)
        outside += beyond.reshape(beyond.shape + (1,) * (len(grid) - axis - 1))
        energy = inclusive[..., 0]
    return outside
