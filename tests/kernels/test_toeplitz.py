"""Products of integer series by Fourier transforms: exact, whatever the numbers are."""

from __future__ import annotations

import numpy as np
import pytest

import dphist
from dphist.kernels import toeplitz
from dphist.mechanisms.prefixsums import prefix_noise
from dphist.model.law import NoiseLaw
from dphist.private.queries.prefixes import LONGEST, PrefixRoots, inverse_weights, root_weights
from dphist.private.questions import Layout

_CEILING = 2**62 // 2**16


def _plainly(weights: np.ndarray, values: np.ndarray) -> list[int]:
    """In Python's integers, which have no end."""
    one, other = weights.tolist(), values.tolist()
    return [sum(one[i - j] * other[j] for j in range(i + 1)) for i in range(len(other))]


@pytest.mark.parametrize("n", [1, 2, 3, 17, 250])
def test_the_product_is_exact(n: int) -> None:
    rng, weights, most = np.random.default_rng(n), root_weights(n), _CEILING // n
    for values in (
        np.full(n, most),
        rng.integers(-most, most, n, endpoint=True),
        most * (-1) ** np.arange(n),
        rng.integers(0, 2, n),
        np.zeros(n, dtype=np.int64),
    ):
        assert toeplitz.triangle_product(weights, values, most).tolist() == _plainly(weights, values)


def test_the_product_is_exact_on_the_longest_line() -> None:
    """The last answer and a few others in whole numbers, with every cell at the ceiling or at random."""
    n = LONGEST
    layout, weights, most = Layout((n,)), root_weights(n), _CEILING // n
    rng = np.random.default_rng(1)
    for counts in (np.full(n, most), rng.integers(0, most, n, endpoint=True), rng.integers(0, 3, n)):
        answers = PrefixRoots().answer(counts, layout)
        for i in (0, 1, 12_345, n // 2, n - 1):
            # Sums of products below 2⁶³ are exact modulo 2⁶⁴.
            assert answers[i] == int((weights[: i + 1][::-1] * counts[: i + 1]).sum())


def test_an_inverse_series_undoes_the_series() -> None:
    n = 300
    product = _plainly(root_weights(n), inverse_weights(n))
    unit = 2 ** (16 + toeplitz.FRACTION)
    assert product[0] == unit
    assert max(map(abs, product[1:])) < 1e-11 * unit


@pytest.mark.parametrize("n", [1, 2, 300, 5000])
def test_what_was_asked_is_undone(n: int) -> None:
    values = np.random.default_rng(3).integers(0, 1000, n)
    answers = toeplitz.triangle_product(root_weights(n), values, 1000)
    found = toeplitz.triangle_solve(inverse_weights(n), answers) / 2.0 ** (16 + toeplitz.FRACTION)
    np.testing.assert_allclose(found, values, atol=1e-4)


def test_long_lines_have_the_intervals_of_their_noise() -> None:
    domain = dphist.Domain([dphist.Ordinal("x", range(4200))])
    errors = prefix_noise(4200, NoiseLaw("gaussian", 1))
    low, high = np.array([[0], [7], [9], [4199]]), np.array([[4000], [8], [700], [4200]])
    found = errors.spread(dphist.Workload(domain, low, high))
    # Draw k has this weight in a prefix; a range is the difference of two.
    prefix = np.cumsum(inverse_weights(4200)) / 2.0 ** (16 + toeplitz.FRACTION)
    for i, (begin, end) in enumerate(zip(low[:, 0], high[:, 0], strict=True)):
        weights = prefix[:end][::-1].copy()
        weights[:begin] -= prefix[:begin][::-1]
        np.testing.assert_allclose(found.variance[i], (weights**2).sum() * errors.law.variance, rtol=1e-9)
    release = dphist.publish(
        dphist.Histogram(domain, np.full(4200, 9)), rho="1/2", mechanism="prefixsums", unattended=True
    )
    release.verify()
    assert abs(float(release.counts.sum()) - 9 * 4200) < 200
