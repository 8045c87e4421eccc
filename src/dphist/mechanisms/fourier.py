"""Keep the low frequencies of the counts and drop the rest (Acs, Castelluccia and Chen, 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError, NotPrivate
from dphist.estimate import Estimate
from dphist.intervals import Spread
from dphist.private.gate import PrivateCounts
from dphist.private.queries.fourier import Frequencies
from dphist.private.scores.frequencies import LowFrequencies
from dphist.private.spectrum import bands, corner, kept, size
from dphist.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class FPA:
    """Keep a fixed number of low frequencies: for counts that are known to be smooth.

    ``keep`` counts the frequencies kept on every axis (or says it for each), the constant one included;
    ``joint`` uses the frequencies of all axes of a table, where the paper strings its rows together
    (``joint=False``).

    Private because `Frequencies` proves how far one step moves the kept coordinates: z/√n for z of them.
    The paper noises un-normalised complex coefficients by √k/ε, which is not private; in an orthonormal
    real basis the right amount is z/(√n·ε) on every real coordinate.
    """

    keep: int | tuple[int, ...] = 8
    joint: bool = True

    def __post_init__(self) -> None:
        each = self.keep if isinstance(self.keep, tuple) else (self.keep,)
        if not each or any(isinstance(k, bool) or not isinstance(k, int) or k < 1 for k in each):
            raise MechanismError("keep must be a whole number from 1, or one for each axis")

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for the low frequencies once."""
        shape = _shape(data, self.joint)
        keep = self.keep if isinstance(self.keep, tuple) else (self.keep,) * len(shape)
        if len(keep) != len(shape):
            raise MechanismError(f"keep gives {len(keep)} numbers for {len(shape)} axes")
        most = bands(shape)
        return _reconstruct(data, shape, tuple(min(k, m) for k, m in zip(keep, most, strict=True)))


@dataclass(frozen=True, kw_only=True)
class EFPA:
    """Keep as many low frequencies as are worth their noise.

    Leaving frequencies out costs the energy they held; keeping them costs noise. The exponential mechanism
    picks the trade-off with ``share`` of the budget and the rest measures what was kept. ``joint`` picks a
    corner of low frequencies on the axes of a table; ``joint=False`` strings its rows together in C-order,
    as the paper does.

    Private by composition of the choice (range 2 of √(tail energy)) and of the measurement. As printed it
    is not private at any ε: noise on magnitudes only publishes true phases. Noise here is on real and
    imaginary parts, z/(√n·ε) each, and the score's noise term is what that noise really adds,
    √(2z)·z/(√n·ε).
    """

    share: Fraction = Fraction(1, 2)
    joint: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise MechanismError(
                "share must lie strictly between 0 and 1: the part of ε that picks frequencies"
            )

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Choose a corner of frequencies, then measure it."""
        shape = _shape(data, self.joint)
        if size(bands(shape)) == 1:
            return _reconstruct(data, shape, bands(shape))
        choosing, measuring = data.split(self.share, 1 - self.share)
        pick = choosing.choose(LowFrequencies(shape, measuring.unit_scale))
        place = np.unravel_index(int(pick[0, 0]), bands(shape))
        return _reconstruct(measuring, shape, tuple(int(k) + 1 for k in place))


@dataclass(frozen=True, kw_only=True)
class SPA:
    """Rastogi and Nath's sampling perturbation, for comparison in benchmarks only.

    Its noise has a uniform direction and a Gamma length; no practical exact sampler for that is known, and
    as printed it is not private either. A release therefore refuses it: `EFPA` does the same job and does
    it better. `dphist.bench.competitors.spa` simulates the corrected algorithm with floating-point noise.
    """

    refused = "SPA has no exact sampler, so a release refuses it; use efpa"

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Refuse, before anything is asked of the data."""
        raise NotPrivate(self.refused)


@dataclass(frozen=True, eq=False)
class FourierNoise:
    """Noise of ``scale`` on each kept coordinate; a range gathers what each kept wave sums to over it.

    Over a range of L of n cells the wave of frequency m sums to a complex number of size |sin(πmL/n) ÷
    sin(πm/n)|, wherever the range lies, so the variance is a product over axes of functions of the length.
    """

    shape: Shape
    keep: Shape
    scale: float
    method: str = (
        "noise of the kept frequencies, given which were kept; not covered: the dropped frequencies, a bias"
    )

    def spread(self, workload: Workload) -> Spread:
        """Gather the kept waves over every box."""
        lengths = np.maximum(workload.high - workload.low, 0)
        runs = np.ones(len(lengths))
        if len(self.shape) != lengths.shape[1]:
            lengths, runs = _strung_together(lengths, workload.domain.shape)
        variance = np.full(len(lengths), 2.0 * self.scale**2)
        for axis, (n, k) in enumerate(zip(self.shape, self.keep, strict=True)):
            variance *= _gathered(n, k)[lengths[:, axis]]
        whole = np.prod(lengths, axis=1, dtype=np.float64)
        largest = whole.copy()
        for axis, (n, k) in enumerate(zip(self.shape, self.keep, strict=True)):
            if k > 1:
                # A wave sums to the same size over a range and over what the range leaves out.
                length = lengths[:, axis]
                part = np.minimum(length, n - length) / np.maximum(length, 1)
                largest = np.maximum(largest, np.sqrt(2.0) * whole * part)
        largest *= self.scale / np.sqrt(size(self.shape))
        # Runs of one box share their draws: adding deviations is never too narrow.
        return Spread(variance * runs**2, largest * runs)


def _shape(data: PrivateCounts, joint: bool) -> Shape:
    return data.shape if joint else (data.size,)


def _reconstruct(data: PrivateCounts, shape: Shape, keep: Shape) -> Estimate:
    noisy = data.measure(Frequencies(shape, keep))
    waves = np.zeros(size(shape))
    waves[corner(shape, keep)] = noisy.values.reshape(-1) * float(noisy.unit)
    turned = np.fft.fftn(waves.reshape(shape))
    # Hartley's basis is its own inverse.
    counts = (turned.real - turned.imag) / np.sqrt(size(shape))
    note = f"kept {' × '.join(map(str, kept(shape, keep)))} of {' × '.join(map(str, shape))} coordinates"
    errors = FourierNoise(shape, keep, float(cast(Fraction, noisy.scale) * noisy.unit))
    return Estimate(counts.reshape(data.shape), errors, note)


def _gathered(n: int, keep: int) -> FloatArray:
    """For every length L ≤ n: Σ over kept frequencies of |sum of the wave over L cells|² ÷ n."""
    frequency = np.arange(1, n)
    frequency = frequency[np.minimum(frequency, n - frequency) < keep]
    weights = np.zeros(n)
    # |sin(πmL/n) ÷ sin(πm/n)|² = (1 − cos(2πmL/n)) ÷ (1 − cos(2πm/n)): for all L at once by one transform.
    weights[frequency] = 0.5 / np.sin(np.pi * frequency / n) ** 2
    turned = np.fft.fft(weights).real
    length = np.arange(n + 1)
    return np.asarray((length**2.0 + np.maximum(turned[0] - turned[length % n], 0.0)) / n)


def _strung_together(lengths: IntArray, shape: Shape) -> tuple[IntArray, FloatArray]:
    """Boxes of a table as runs of its rows strung together: length of a run, and how many runs."""
    run, runs = lengths[:, -1].copy(), np.ones(len(lengths))
    whole = run == shape[-1]
    for axis in reversed(range(len(shape) - 1)):
        run = np.where(whole, run * lengths[:, axis], run)
        runs = np.where(whole, runs, runs * lengths[:, axis])
        whole = whole & (lengths[:, axis] == shape[axis])
    return run[:, None], runs
