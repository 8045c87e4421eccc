"""Algorithms that dphist does not release with, simulated for comparison only.

They draw floating-point noise, and two of them are not private at all. Nothing here is reachable from a
release.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.kernels.buckets.cheapest import power_grouping
from dphist.kernels.buckets.deviations import power_deviations, rank
from dphist.private.spectrum import bands, kept

FloatArray = NDArray[np.float64]


def spa(counts: ArrayLike, epsilon: float, seed: int | None = None) -> FloatArray:
    """Rastogi and Nath's sampling perturbation, corrected so that it would be private with exact noise.

    The number of coordinates k by the exponential mechanism with ε/2 and the printed utility (sensitivity
    1, so the exponent is ε/4 of it); then noise of a uniform direction whose length is Gamma distributed,
    with ε/2. Rows are strung together.
    """
    draw = _generator(seed)
    values, order, waves = _waves(counts)
    n = values.size
    energy = waves[order] ** 2
    tail = np.sqrt(np.append(np.cumsum(energy[::-1])[::-1][1:], 0.0))
    most = bands((n,), "fourier")[0]
    z = np.array([kept((n,), (k,), "fourier")[0] for k in range(1, most + 1)])
    utility = tail[z - 1] + z * np.sqrt(n) / epsilon
    size = int(z[_choose(-epsilon / 4 * utility, draw)])
    direction = draw.standard_normal(size)
    length = draw.gamma(size, np.sqrt(size / n) / (epsilon / 2))
    noisy = np.zeros(n)
    noisy[order[:size]] = waves[order[:size]] + length * direction / np.linalg.norm(direction)
    return _back(noisy).reshape(np.shape(counts))


def printed_efpa(
    counts: ArrayLike, epsilon: float, seed: int | None = None, *, orthonormal: bool = True
) -> FloatArray:
    """EFPA exactly as printed: **not private**, its phases are the true ones.

    The paper defines the transform without a factor and calls it an isometry, which needs one;
    ``orthonormal`` says which of the two readings is meant. Without the factor the noise is √n times smaller
    still.
    """
    draw = _generator(seed)
    values = np.asarray(counts, dtype=np.float64).reshape(-1)
    n = values.size
    factor = np.sqrt(n) if orthonormal else 1.0
    spectrum = np.fft.rfft(values) / factor
    tail = np.sqrt(np.append(np.cumsum((2 * np.abs(spectrum) ** 2)[::-1])[::-1][1:], 0.0))
    z = 2 * np.arange(1, spectrum.size + 1) + 1
    k = _choose(-epsilon / 4 * (tail + np.sqrt(2) * z / epsilon), draw) + 1
    noise = draw.laplace(0.0, 2 * np.sqrt(2 * k + 1) / epsilon, k)
    noisy = np.zeros_like(spectrum)
    noisy[:k] = (np.abs(spectrum[:k]) + noise) * np.exp(1j * np.angle(spectrum[:k]))
    return np.asarray(np.fft.irfft(noisy * factor, n).reshape(np.shape(counts)))


def printed_s_approx(counts: ArrayLike, epsilon: float, seed: int | None = None) -> FloatArray:
    """S̃ with the noise that is printed: **not private**, costs that a record moves by nearly 2 get 1/(ε₁·cells).

    Power-of-two groups of least noisy Σ|x − mean| + 1/ε₂ with a quarter of ε, then one noisy total a group. Single
    cells are noised like the rest.
    """
    draw = _generator(seed)
    values = np.asarray(counts, dtype=np.int64).reshape(-1)
    n, grid, first, second = values.size, 16, epsilon / 4, 3 * epsilon / 4
    costs = power_deviations(values, *rank(values), grid, False)
    for k, row in enumerate(costs):
        fitting = row[: n - (1 << k) + 1]
        fitting += np.rint(draw.laplace(0.0, grid / (first * (1 << k)), fitting.size)).astype(np.int64)
    starts = power_grouping(costs, round(grid / second))
    sizes = np.diff(np.append(starts, n))
    totals = np.add.reduceat(values, starts) + draw.laplace(0.0, 1 / second, starts.size)
    return np.repeat(totals / sizes, sizes).reshape(np.shape(counts))


def _generator(seed: int | None) -> np.random.Generator:  # noqa: TID251 -- comparison only, never released
    return np.random.default_rng(seed)  # noqa: TID251 -- comparison only, never released


def _choose(exponents: FloatArray, draw: np.random.Generator) -> int:  # noqa: TID251 -- comparison only
    return int(np.argmax(exponents + draw.gumbel(size=exponents.size)))


def _waves(counts: ArrayLike) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
    """Values, places of the coordinates from low to high frequency, and the coordinates (Hartley's form)."""
    values = np.asarray(counts, dtype=np.float64).reshape(-1)
    place = np.arange(values.size)
    order = np.argsort(np.minimum(place, values.size - place), kind="stable")
    return values, order, _back(values)


def _back(waves: FloatArray) -> FloatArray:
    turned = np.fft.fft(waves)
    return np.asarray((turned.real - turned.imag) / np.sqrt(waves.size))
