"""Which low frequencies are worth their noise."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.doubledouble import folded_energy, root_lattice, wide_running_sum, wide_sum
from dphist.private.questions import Candidates, IntArray, Layout, proven
from dphist.private.spectrum import (
    RECORD_LIMIT,
    Basis,
    bands,
    coordinates,
    coordinates_error,
    fold,
    root_above,
)

FloatArray = NDArray[np.float64]

# Scores are integers in units of 2^−10 records.
_POWER = 10
_CEILING = 2.0**61
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

    Computed tails are within η: the coordinates' own error in norm, and the rounding of sums of non-negative wide
    numbers and of the root, relative to at most 2⁶². So the difference of two computed changes is at most ρ + 4η.
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
        error += RECORD_LIMIT * Fraction(prod(self.shape) + 64, 2**98) + Fraction(1, 2**40)
        n = prod(self.shape)
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
        values = coordinates(counts, self.shape, basis)
        energy = folded_energy(values, fold(self.shape, basis), prod(grid)).reshape(2, *grid)
        tails = root_lattice(_outside(energy), 2.0**_POWER, _CEILING)
        return np.asarray(-tails - self._noise_errors(basis), dtype=np.int64)

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
        return np.minimum(errors, _CEILING).astype(np.int64)


def _outside(energy: FloatArray) -> FloatArray:
    """Energy outside each corner, as wide numbers: sums of non-negative terms only, so nothing cancels.

    What lies outside the box k₁ × k₂ × … is the disjoint union over axes i of "below k on the axes before
    i, at or beyond kᵢ on axis i, anything on the axes after".
    """
    grid = energy.shape[1:]
    outside = np.zeros((2, prod(grid)))
    for axis in reversed(range(len(grid))):
        inclusive = _running(energy, axis, backwards=True)
        beyond = np.zeros_like(inclusive)
        beyond[..., :-1] = inclusive[..., 1:]
        for before in range(axis):
            beyond = _running(beyond, before, backwards=False)
        full = beyond.reshape(beyond.shape + (1,) * (len(grid) - axis - 1))
        outside = wide_sum(outside, np.ascontiguousarray(np.broadcast_to(full, (2, *grid))).reshape(2, -1))
        energy = inclusive[..., 0]
    return outside


def _running(values: FloatArray, axis: int, *, backwards: bool) -> FloatArray:
    shape = values.shape[1:]
    folded = np.ascontiguousarray(values).reshape(2, -1, shape[axis], prod(shape[axis + 1 :]))
    return wide_running_sum(folded, backwards).reshape(values.shape)
