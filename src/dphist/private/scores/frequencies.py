"""Which low frequencies are worth their noise."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.doubledouble import in_units
from dphist.private.questions import Candidates, IntArray, Layout, proven
from dphist.private.spectrum import (
    Basis,
    bands,
    coordinates,
    coordinates_error,
    fold,
    root_above,
)

# Python's integers.
Wholes = NDArray[Any]

# Scores are integers in units of 2^−10 records.
_POWER = 10
_CEILING = 2**61
# Coordinates are integers in units of 2^−60 before they are squared and added up, which is exact.
_BITS = 60
_LARGEST_NOISE = 2**53


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
        if not 0 <= self.noise <= _LARGEST_NOISE:
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
