"""Special functions of our own, beside SciPy's."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import special as theirs

from dphist.inference.intervals import _SHARES, _matched
from dphist.kernels import special
from dphist.kernels.hashing import GOLDEN, mixed


@pytest.mark.parametrize("shape", [1.0, 1.18, 2.0, 6.67, 10.0, 110.0])
def test_quantiles_of_gamma_laws(shape):
    levels = (np.arange(4000) + 0.5) / 4000
    np.testing.assert_allclose(
        special.gamma_quantiles(shape, levels), theirs.gammaincinv(shape, levels), rtol=1e-9
    )


@pytest.mark.parametrize("beta", [1e-9, 0.05, 0.5, 0.999])
def test_quantiles_of_sums_of_laplace_draws(beta):
    """As SciPy's functions and plain halving gave them."""
    with np.errstate(divide="ignore"):
        grid, found = _SHARES, _matched(1.0 / _SHARES, beta)
    # Those beside one place alone are the same.
    assert [_matched(np.array([draws]), beta)[0] for draws in (1.0, 9.0)] == _matched(
        np.array([1.0, 9.0]), beta
    ).tolist()
    levels = (np.arange(4000) + 0.5) / 4000
    assert found[0] == pytest.approx(theirs.ndtri(1 - beta / 2), rel=1e-9)
    for share, quantile in zip(grid[1::7], found[1::7], strict=True):
        spread = np.sqrt(theirs.gammaincinv(1 / share, levels) * share)
        tails = np.mean(
            2 * theirs.ndtr(-quantile * (1 + np.array([-1, 1]) * 1e-10)[:, None] / spread), axis=1
        )
        assert tails[0] > beta > tails[1]
    assert special.normal_mixture_quantile(np.ones(3), 0.05, 1.0) == pytest.approx(1.0)


def test_the_logarithm_of_a_normal_tail():
    x = np.concatenate([np.linspace(-60, 10, 1401), [-1e5, -20.0001, -19.999, 0.0, 30.0]])
    np.testing.assert_allclose(special.log_normal(x), theirs.log_ndtr(x), rtol=1e-13)
    assert special.log_normal(np.array([-np.inf, np.inf])).tolist() == [-np.inf, 0.0]


def test_logarithms_of_factorials():
    n = np.array([[0.0, 1.0, 2.0], [20.0, 1e5, 1e9]])
    np.testing.assert_allclose(special.log_factorial(n), theirs.gammaln(n + 1), rtol=1e-14)


_WITHOUT = """
import sys
sys.modules["scipy"] = None
import numpy as np, dphist
domain = dphist.Domain([dphist.Ordinal("x", range(60))])
histogram = dphist.Histogram(domain, np.arange(60))
for mechanism in ("auto", "structurefirst", "efpa", "matrix", "sparselaplace", "hb", "efpa(basis=either)"):
    release = dphist.publish(histogram, epsilon=1, mechanism=mechanism)
    release.answer("x between 3 and 40", confidence=0.9)
    release.verify()
"""


def test_nothing_needs_scipy():
    run = subprocess.run([sys.executable, "-c", _WITHOUT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_tails_of_normals_are_the_same_one_by_one_and_together():
    t = np.concatenate([np.linspace(-30.0, 30.0, 4001), [-0.0, 0.0]])
    one_by_one = [special.scaled_tail.function(x) for x in t.tolist()]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(special.scaled_tails(t), one_by_one)
    np.testing.assert_allclose(one_by_one, np.exp(t**2 / 2 + theirs.log_ndtr(-t)), rtol=2e-7)


def test_words_are_hashed_as_others_hash_them():
    # What SplitMix64 gives first, second and third from 1234567, as its author's program prints it.
    seeds = np.array([1, 2, 3], dtype=np.uint64) * np.uint64(GOLDEN) + np.uint64(1234567)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert mixed(seeds).tolist() == expected
