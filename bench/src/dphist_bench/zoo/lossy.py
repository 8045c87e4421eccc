"""Lossy compression as printed (Acs, Castelluccia and Chen, 2012): part of the spectrum goes out bare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dphist.audit.neighbours import Pair, pair
from dphist.inference.estimate import Estimate, IndependentNoise
from dphist.private.gate import PrivateCounts
from dphist.private.noise import Noise
from dphist_bench.competitors import printed_efpa
from dphist_bench.zoo.basic import peek

FloatArray = NDArray[np.float64]

# Three cells, so the constant and one frequency; one record in cell 1 turns the phase of that frequency.
_COUNTS = (50, 2, 1)
_CELL = 1


def turning_pair() -> Pair:
    """Neighbours whose one frequency has a different phase and a different imaginary part."""
    return pair("one record turns a phase", _COUNTS, _CELL)


@dataclass(frozen=True, kw_only=True)
class PrintedEFPA:
    """EFPA as printed: noise on the magnitude of each kept coefficient, and its phase as it is."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Keep k coefficients by the printed score, then noise their magnitudes only."""
        seed = Noise.system().keystream.integer(48)
        counts = printed_efpa(peek(data), float(1 / data.unit_scale), seed)
        return Estimate(counts, IndependentNoise(data.unit_scale))


@dataclass(frozen=True, kw_only=True)
class PrintedSPA:
    """SPA as printed: real Gaussian noise of a Gamma variance on complex coefficients."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Keep k coefficients by the printed score, then noise their real parts only."""
        epsilon, counts = float(1 / data.unit_scale), peek(data).astype(np.float64)
        n = counts.size
        spectrum = np.fft.fft(counts)
        tail = np.sqrt(np.append(np.cumsum((np.abs(spectrum) ** 2)[::-1])[::-1][1:], 0.0))
        k = _choose(-epsilon / np.sqrt(2) * (tail + np.arange(1, n + 1) * np.sqrt(n) / epsilon)) + 1
        # Gamma with rate ε²/2 and shape (k + 1)/2, by inverting its distribution function.
        variance = special.gammaincinv((k + 1) / 2, _uniforms(1)[0]) * 2 / epsilon**2
        noisy = np.zeros_like(spectrum)
        noisy[:k] = spectrum[:k] + np.sqrt(variance) * special.ndtri(_uniforms(k))
        return Estimate(np.fft.ifft(noisy).real, IndependentNoise(data.unit_scale))


def same_phase(estimate: Estimate) -> FloatArray:
    """Tell whether the frequency's phase, up to sign, is that of the first data set."""
    turned = np.fft.rfft(estimate.counts)[1] * np.conj(np.fft.rfft(np.array(_COUNTS))[1])
    return np.array([float(abs(turned.imag) < 1e-6 * max(1.0, abs(turned)))])


def same_imaginary_part(estimate: Estimate) -> FloatArray:
    """Tell whether the frequency's imaginary part is that of the first data set.

    With two of three coefficients kept, the real part of the inverse transform halves it; with three, the
    noise is the same on no pair, but the first event is by far the likeliest.
    """
    released = np.fft.rfft(estimate.counts)[1].imag
    truth = np.fft.rfft(np.array(_COUNTS))[1].imag
    return np.array([float(min(abs(2 * released - truth), abs(released - truth)) < 1e-6)])


def _choose(exponents: FloatArray) -> int:
    weights = np.exp(exponents - exponents.max())
    return int(np.searchsorted(np.cumsum(weights) / weights.sum(), _uniforms(1)[0]))


def _uniforms(count: int) -> FloatArray:
    keystream = Noise.system().keystream
    return np.array([(keystream.integer(52) + 0.5) * 2.0**-52 for _ in range(count)])
