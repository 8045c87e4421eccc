"""Which low frequencies are worth their noise."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.kernels.wide import folded_energy, root_lattice, wide_running_sum, wide_sum
from dphist.private.questions import Candidates, IntArray, Layout
from dphist.private.spectrum import RECORD_LIMIT, bands, over_root, size, spectrum, spectrum_error

FloatArray = NDArray[np.float64]

# Scores are integers in units of 2^−10 records.
_POWER = 10
_CEILING = 2.0**61


@dataclass(frozen=True)
class LowFrequencies:
    """Score every corner of low frequencies by the error that keeping exactly it would leave.

    Keeping the corner k leaves out a tail of the spectrum, an error of √(tail energy), and adds noise to z
    coordinates, an error of √(2z)·z·``noise``/√n in Euclidean norm, where ``noise`` is the scale that a
    question of sensitivity one would get (public). The score is minus their sum. Candidate (k₁, k₂, …) is
    at its C-order place among the corners with 1 ≤ kᵢ ≤ ⌊nᵢ/2⌋ + 1.

    Why the range keeps the promise. √(tail energy) is the norm of the tail of orthonormal coordinates, so
    one step, a vector of norm one, moves it by at most one (reverse triangle inequality). It is computed
    within η: the spectrum's own error in norm, and the rounding of sums of non-negative wide numbers and of
    the root, relative to at most 2⁶². Flooring to a lattice then gives changes of at most D = ⌈(1 +
    2η)·2¹⁰⌉ either way; the noise term is public. So changes lie in [−D, D] and the range is 2D.
    """

    shape: tuple[int, ...]
    noise: Fraction

    def draws(self, layout: Layout) -> int:
        """One choice."""
        return 1

    def stages(self, counts: IntArray, layout: Layout) -> Generator[Candidates, IntArray, None]:
        """Score all corners at once."""
        if size(self.shape) != layout.size or layout.parts != 1:
            raise MechanismError("low frequencies are chosen for all cells at once")
        high, low = over_root(layout.size, _POWER)
        tails = root_lattice(_tail_energy(spectrum(counts, self.shape), self.shape), high, low, _CEILING)
        scores = -tails - self._noise_errors()
        yield Candidates(scores, np.array([0, scores.size], dtype=np.int64), self.range())

    def range(self) -> int:
        """Bound how far one step can tilt the choice, in lattice units."""
        n = size(self.shape)
        error = spectrum_error(self.shape) + RECORD_LIMIT * Fraction(n + 64, 2**98) + Fraction(1, 2**40)
        steps: int = ceil((1 + 2 * error) * 2**_POWER)
        return 2 * steps

    def _noise_errors(self) -> IntArray:
        coordinates = np.ones(1)
        for n, most in zip(self.shape, bands(self.shape), strict=True):
            axis = np.minimum(2.0 * np.arange(1, most + 1) - 1.0, n)
            coordinates = (coordinates[:, None] * axis[None, :]).reshape(-1)
        scale = float(self.noise) * 2.0**_POWER / np.sqrt(float(size(self.shape)))
        errors = np.minimum(np.sqrt(2.0 * coordinates) * coordinates * scale, _CEILING)
        return np.asarray(errors, dtype=np.int64)


def _tail_energy(values: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    """Energy outside each corner, as wide numbers: sums of non-negative terms only, so nothing cancels.

    What lies outside the box k₁ × k₂ × … is the disjoint union over axes i of "below k on the axes before
    i, at or beyond kᵢ on axis i, anything on the axes after".
    """
    grid = bands(shape)
    fold = np.zeros(1, dtype=np.int64)
    for n, most in zip(shape, grid, strict=True):
        frequency = np.arange(n, dtype=np.int64)
        fold = (fold[:, None] * most + np.minimum(frequency, n - frequency)[None, :]).reshape(-1)
    energy = folded_energy(values, fold, size(grid)).reshape(2, *grid)
    outside = np.zeros((2, size(grid)))
    for axis in reversed(range(len(grid))):
        beyond = _running(energy, axis, backwards=True)
        beyond = np.concatenate(
            [np.delete(beyond, 0, axis=axis + 1), np.zeros_like(np.take(beyond, [0], axis=axis + 1))],
            axis=axis + 1,
        )
        for before in range(axis):
            beyond = _running(beyond, before, backwards=False)
        full = beyond.reshape(beyond.shape + (1,) * (len(grid) - axis - 1))
        outside = wide_sum(outside, np.broadcast_to(full, (2, *grid)).reshape(2, -1))
        energy = _running(energy, axis, backwards=True)[(..., 0)]
    return outside


def _running(values: FloatArray, axis: int, *, backwards: bool) -> FloatArray:
    shape = values.shape[1:]
    inner = size(shape[axis + 1 :])
    folded = np.ascontiguousarray(values).reshape(2, -1, shape[axis], inner)
    return wide_running_sum(folded, backwards).reshape(values.shape)
