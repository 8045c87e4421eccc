"""Keep the low frequencies of the counts and drop the rest (Acs, Castelluccia and Chen, 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError, NotPrivate
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.inference.linear import WaveNoise
from dphist.mechanisms.options import Count, Share, checked
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity
from dphist.private.spectrum import Basis, Frequencies, LowFrequencies, bands, corner, kept

Shape = tuple[int, ...]


@checked
@dataclass(frozen=True, kw_only=True)
class FPA:
    """Keep a fixed number of low frequencies: for counts that are known to be smooth.

    ``keep`` counts the frequencies kept on every axis (or says it for each), the constant one included;
    ``joint`` uses the frequencies of all axes of a table, where the paper strings its rows together
    (``joint=False``).

    Private because `Frequencies` proves how far one step moves the kept coordinates: z/√n for z of them.
    The paper noises un-normalised complex coefficients by √k/ε, which is not private; in an orthonormal
    real basis the right amount is z/(√n·ε) on every real coordinate.

    Args:
        keep: How many frequencies on every axis, or on each.
        basis: Fourier or cosine.
        joint: Whether the frequencies of all axes of a table are used; otherwise its rows are strung together.

    Example:
        >>> from dphist.mechanisms import FPA
        >>> from dphist.testing import run
        >>> run(FPA(keep=3), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    keep: Count | tuple[Count, ...] = 8
    basis: Literal["fourier", "cosine"] = "fourier"
    joint: bool = True

    def __post_init__(self) -> None:
        if self.keep == ():
            raise MechanismError("keep must be a whole number from 1, or one for each axis")

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for the low frequencies once."""
        shape = _shape(data, self.joint)
        keep = self.keep if isinstance(self.keep, tuple) else (self.keep,) * len(shape)
        if len(keep) != len(shape):
            raise MechanismError(f"keep gives {len(keep)} numbers for {len(shape)} axes")
        most = bands(shape, self.basis)
        return _reconstruct(
            data, shape, tuple(min(k, m) for k, m in zip(keep, most, strict=True)), self.basis
        )


@checked
@dataclass(frozen=True, kw_only=True)
class EFPA:
    """Keep as many low frequencies as are worth their noise.

    Leaving frequencies out costs the energy they held; keeping them costs noise. The exponential mechanism
    picks the trade-off with ``share`` of the budget and the rest measures what was kept. Fourier's waves
    treat the first and the last cell as neighbours, so counts that end elsewhere than they began need many;
    ``basis="cosine"`` has waves that do not (at up to √2 times the noise each), and ``"either"`` lets the
    same choice decide. ``joint`` keeps a corner of low frequencies on the axes of a table; ``joint=False``
    strings its rows together in C-order, as the paper does.

    Private by composition of the choice (one step moves each √(tail energy) by at most one, and no two of one
    basis apart by more than √2) and of the measurement. As printed it is not private at any ε: noise on
    magnitudes only publishes true phases. Here every real coordinate is noised, by z/(√n·ε), and the score's
    noise term is what that really adds, √(2z)·z/(√n·ε). Keeping every frequency is taken to mean every cell,
    which needs √n times less noise.

    Args:
        share: The part of ε that picks frequencies.
        basis: Fourier, cosine, or whichever is picked.
        joint: Whether the frequencies of all axes of a table are used; otherwise its rows are strung together.

    Example:
        >>> from dphist.mechanisms import EFPA
        >>> from dphist.testing import run
        >>> run(EFPA(share="1/2"), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    share: Share = Fraction(1, 2)
    basis: Literal["fourier", "cosine", "either"] = "fourier"
    joint: bool = True

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Choose a corner of frequencies, then measure it."""
        shape = _shape(data, self.joint)
        if data.size == 1:
            return _reconstruct(data, shape, bands(shape, "fourier"), "fourier")
        choosing, measuring = data.split(self.share, 1 - self.share)
        bases: tuple[Basis, ...] = ("fourier", "cosine") if self.basis == "either" else (self.basis,)
        score = LowFrequencies(shape, measuring.unit_scale, bases)
        basis, keep = score.place(int(choosing.choose(score)[0, 0]))
        return _reconstruct(measuring, shape, keep, basis)


@checked
@dataclass(frozen=True, kw_only=True)
class SPA:
    """Rastogi and Nath's sampling perturbation, for comparison in benchmarks only.

    Its noise has a uniform direction and a Gamma length; no practical exact sampler for that is known, and
    as printed it is not private either. A release therefore refuses it: `EFPA` does the same job and does
    it better. `dphist_bench.competitors.spa` simulates the corrected algorithm with floating-point noise.

    Example:
        >>> from dphist.testing import run
        >>> run(SPA(), [5, 0, 9], epsilon=1)
        Traceback (most recent call last):
            ...
        dphist.errors.NotPrivate: SPA has no exact sampler, so a release refuses it; use efpa
    """

    refused = "SPA has no exact sampler, so a release refuses it; use efpa"

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Refuse, before anything is asked of the data."""
        raise NotPrivate(self.refused)


def _shape(data: PrivateCounts, joint: bool) -> Shape:
    return data.shape if joint else (data.size,)


def _reconstruct(data: PrivateCounts, shape: Shape, keep: Shape, basis: Basis) -> Estimate:
    if keep == bands(shape, basis):
        # All waves span all counts, and so do the cells, which one step moves √n times less.
        noisy = data.measure(Identity())
        errors = IndependentNoise(noisy.law, exact=True)
        return Estimate(noisy.values.astype(np.float64), errors, f"kept all of {data.size} cells")
    noisy = data.measure(Frequencies(shape, keep, basis))
    waves = np.zeros(prod(shape))
    waves[corner(shape, keep, basis)] = noisy.values.reshape(-1) * float(noisy.unit)
    if basis == "cosine":
        counts = _added_cosines(waves.reshape(shape))
    else:
        # Hartley's basis is its own inverse.
        turned = np.fft.fftn(waves.reshape(shape))
        counts = (turned.real - turned.imag) / np.sqrt(prod(shape))
    held = " × ".join(map(str, kept(shape, keep, basis)))
    note = f"kept {held} of {' × '.join(map(str, shape))} {basis} coordinates"
    noise = WaveNoise(shape, keep, basis, float(cast(Fraction, noisy.scale) * noisy.unit))
    return Estimate(counts.reshape(data.shape), noise, note)


def _added_cosines(waves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn coordinates in the orthonormal cosine basis (DCT-II) back into counts, axis by axis.

    √(2/n) Σ yₖ cos(πk(2j + 1)/2n) is the real part of a Fourier series of 2n terms.
    """
    for axis, size in enumerate(waves.shape):
        k = np.arange(size)
        scale = np.sqrt(np.where(k == 0, 1.0, 2.0) / size) * np.exp(0.5j * np.pi * k / size)
        series = np.fft.ifft(np.moveaxis(waves, axis, -1) * scale, 2 * size) * (2 * size)
        waves = np.moveaxis(series.real[..., :size], -1, axis)
    return waves
