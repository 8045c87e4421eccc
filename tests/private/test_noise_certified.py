"""Coins whose probability is only known between two integers: exact probabilities, by every prefix of bits."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dphist.private.noise import Keystream, certified
from dphist.private.noise.certified import Uniform, bernoulli_exp_neg, geometric


class Bits:
    """A keystream of given 64-bit words, then of nothing."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def integer(self, bits: int) -> int:
        assert bits == 64
        return self.words.pop(0)


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(1), Fraction(20), Fraction(1, 10**9)])
def test_a_coin_comes_up_below_its_probability_and_not_above(x: Fraction) -> None:
    low, _ = certified.exp_neg_interval(x, 200)
    words = [low >> 136, (low >> 72) % 2**64, (low >> 8) % 2**64]
    for depth in range(3):
        given, word = words[:depth], words[depth]
        if word > 0:
            assert bernoulli_exp_neg(x, Bits(*given, word - 1)) is True  # type: ignore[arg-type]
        if word < 2**64 - 1:
            assert bernoulli_exp_neg(x, Bits(*given, word + 1)) is False  # type: ignore[arg-type]
    # Equal words settle nothing: more are asked for.
    with pytest.raises(IndexError):
        bernoulli_exp_neg(x, Bits(words[0]))  # type: ignore[arg-type]


def test_a_tie_is_never_decided_early() -> None:
    half = lambda bits: (1 << bits >> 1, (1 << bits >> 1) + 1) if bits else (0, 1)  # noqa: E731
    bits = Bits(2**63 - 1)
    assert Uniform(bits).below(half) is True  # type: ignore[arg-type]
    bits = Bits(2**63, 0, 1)
    assert Uniform(bits).below(half) is False  # type: ignore[arg-type]
    # The word at the lower end may still be above or below: two more words are needed.
    assert not bits.words or bits.words == [1]


def test_geometric_draws_have_their_law() -> None:
    keystream, rate, runs = Keystream.for_tests(5), Fraction(1, 4), 3000
    drawn = [geometric(rate, keystream) for _ in range(runs)]
    a = math.exp(-0.25)
    assert abs(sum(drawn) / runs - a / (1 - a)) < 6 * math.sqrt(a) / (1 - a) / math.sqrt(runs)
    for least in (1, 5, 12):
        p = a**least
        assert abs(sum(g >= least for g in drawn) - runs * p) < 6 * math.sqrt(runs * p * (1 - p))


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1, 7), Fraction(5), Fraction(63), Fraction(200), Fraction(10**6)]
)
def test_enclosures_hold_and_close_in(x: Fraction) -> None:
    for bits in (8, 64, 300):
        low, high = certified.exp_neg_interval(x, bits)
        fine_low, fine_high = certified.exp_neg_interval(x, bits + 200)
        assert low << 200 <= fine_low <= fine_high <= high << 200
        assert high - low <= 3
        p_low, p_high = certified.logistic_interval(x, bits)
        assert p_low <= p_high <= p_low + 3
        if x < 300:
            assert p_low / 2**bits == pytest.approx(1 / (1 + math.exp(x)), abs=4 / 2**bits + 1e-15)
