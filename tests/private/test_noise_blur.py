"""Noise made coarser: exactly the coarse law, by a rest that does not depend on the noise that is there."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from test_noise_laplace import chi_square, exact_pmf

from dphist.errors import InputError
from dphist.private.noise import Keystream, Noise
from dphist.private.noise.laplace import Stay

PAIRS = [
    (Fraction(1, 3), Fraction(1, 2)),
    (Fraction(1), Fraction(2)),
    (Fraction(3, 2), Fraction(31, 20)),
    (Fraction(7, 2), Fraction(40)),
    (Fraction(100), Fraction(3000)),
]


@pytest.mark.parametrize(("fine", "coarse"), PAIRS, ids=lambda s: f"{float(s):g}")
def test_what_is_blurred_has_the_coarse_law(fine, coarse):
    noise = Noise(Keystream.for_tests(3))
    finer = noise.laplace(fine, 1_000_000)
    blurred = noise.blur(finer, fine, coarse)
    assert chi_square(blurred, coarse) > 1e-6
    # The rest is independent of what was there: its law is the same whatever the finer noise was.
    rest = blurred - finer
    near, far = np.abs(rest[finer == 0]), np.abs(rest[np.abs(finer) >= max(1, int(fine))])
    table = np.array([[(each == 0).sum(), (each > 0).sum()] for each in (near, far)])
    assert stats.chi2_contingency(table).pvalue > 1e-6


@pytest.mark.parametrize(("fine", "coarse"), PAIRS[:4], ids=lambda s: f"{float(s):g}")
def test_the_laws_convolve_to_the_coarse_one(fine, coarse):
    """Written out: the fine law and the rest's, which is nothing with probability p and coarse otherwise."""
    reach = int(40 * coarse) + 40
    p = Stay(fine, coarse).floor / 2.0**64
    rest = (1 - p) * exact_pmf(coarse, reach)
    rest[reach] += p
    both = np.convolve(exact_pmf(fine, reach), rest, "same")
    middle = slice(reach - int(10 * coarse) - 3, reach + int(10 * coarse) + 4)
    assert np.allclose(both[middle], exact_pmf(coarse, reach)[middle], rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize(("fine", "coarse"), [*PAIRS, (Fraction(2**50), Fraction(2**51) + 1)])
def test_the_coin_is_enclosed_ever_closer(fine, coarse):
    stay = Stay(fine, coarse)
    for bits in (8, 64, 200):
        low, high = stay.bounds(bits)
        assert 0 <= low <= high <= 1 << bits
        assert high - low <= 4
    b, a = (-math.expm1(-1 / scale) for scale in (fine, coarse))
    expected = math.exp(float(1 / coarse - 1 / fine)) * (a / b) ** 2
    assert stay.floor / 2.0**64 == pytest.approx(expected, rel=1e-12)


def test_a_coin_that_64_bits_do_not_settle_is_settled_by_more(monkeypatch):
    stay = Stay(Fraction(1), Fraction(2))

    class Tied(Keystream):
        """Words that tie with the coin's first 64 bits, and then more bits, all of them one or all of them zero."""

        def __init__(self, more):
            super().__init__()
            self.more = more

        def take(self, count):
            return np.full(count // 8, stay.floor, dtype=np.uint64).view(np.uint8)

        def integer(self, bits):
            return self.more

    assert stay.toss(Tied(0), 3).all()
    assert not stay.toss(Tied(2**64 - 1), 3).any()


def test_noise_is_never_made_finer():
    noise = Noise(Keystream.for_tests(4))
    values = np.zeros(3, dtype=np.int64)
    for fine, coarse in ((2, 2), (3, 2)):
        with pytest.raises(InputError, match="coarse"):
            noise.blur(values, Fraction(fine), Fraction(coarse))
