"""The exponential mechanism against its exact probabilities (fixed test seeds: no false alarms)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dphist.errors import InputError
from dphist.private.noise import Keystream, Noise, certified
from dphist.private.noise.selection import select_exactly

SCORES = np.array([0, 1, 3, 7, 2, 0, 5])
RATE = Fraction(1, 3)


def probabilities(scores, rate):
    weights = np.exp((scores - scores.max()) * float(rate))
    return weights / weights.sum()


def test_many_parts_follow_the_law():
    parts = 100_000
    starts = np.arange(parts + 1) * len(SCORES)
    chosen = Noise(Keystream.for_tests(1)).select(np.tile(SCORES, parts), starts, RATE)
    seen = np.bincount(chosen, minlength=len(SCORES))
    assert stats.chisquare(seen, probabilities(SCORES, RATE) * parts).pvalue > 1e-6
    assert stats.chisquare(seen, probabilities(SCORES, RATE * Fraction(21, 20)) * parts).pvalue < 1e-6


def test_divisors_are_per_part():
    parts = 60_000
    scores = np.tile([0, 4], parts)
    starts = np.arange(parts + 1) * 2
    divisors = np.array([1, 2, 4] * (parts // 3))
    one = Noise(Keystream.for_tests(2)).select(scores, starts, Fraction(1), divisors)
    for which, rate in enumerate((1, 0.5, 0.25)):
        seen = np.bincount(one[which::3], minlength=2)
        assert stats.chisquare(seen, probabilities(np.array([0, 4]), rate) * (parts // 3)).pvalue > 1e-6


def test_the_whole_range_of_scores():
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    starts = np.arange(1001) * 3
    noise = Noise(Keystream.for_tests(3))
    assert (noise.select(np.tile([low, high, 0], 1000), starts, Fraction(1)) == 1).all()
    assert (noise.select(np.tile([low, low + 1, high], 1000), starts, Fraction(10**400)) == 2).all()
    # exp(-2^64 / 2^64): the ends of int64 at a rate that makes them comparable.
    chosen = noise.select(np.tile([low, high], 20_000), np.arange(20_001) * 2, Fraction(1, 2**64 - 1))
    seen = np.bincount(chosen, minlength=2)
    assert stats.chisquare(seen, probabilities(np.array([0, 1]), 1) * 20_000).pvalue > 1e-6
    # A vanishing rate and a zero rate choose uniformly.
    for rate in (Fraction(1, 10**400), Fraction(0)):
        seen = np.bincount(noise.select(np.tile([low, 5, high], 5000), np.arange(5001) * 3, rate))
        assert stats.chisquare(seen).pvalue > 1e-6


def test_a_huge_rate_with_a_huge_divisor_is_not_cut():
    scores = np.tile([0, 1], 20_000)
    divisors = np.full(20_000, 2**62)
    chosen = Noise(Keystream.for_tests(4)).select(scores, np.arange(20_001) * 2, Fraction(2**62), divisors)
    seen = np.bincount(chosen, minlength=2)
    assert stats.chisquare(seen, probabilities(np.array([0, 1]), 1) * 20_000).pvalue > 1e-6


def test_big_integers_follow_the_law():
    keystream = Keystream.for_tests(5)
    chosen = [select_exactly(keystream, SCORES, RATE, keystream.integer(64), 64) for _ in range(4000)]
    seen = np.bincount(chosen, minlength=len(SCORES))
    assert stats.chisquare(seen, probabilities(SCORES, RATE) * 4000).pvalue > 1e-6


def test_both_paths_agree_on_the_same_bits():
    rng = np.random.default_rng(6)
    scores = rng.integers(-200, 200, 600)
    starts = np.arange(0, 601, 20)
    for seed in range(20):
        noise = Noise(Keystream.for_tests(seed))
        chosen = noise.select(scores, starts, Fraction(1, 50))
        words = Keystream.for_tests(seed).take(8 * 30).view(np.uint64)
        for part in range(30):
            exact = select_exactly(
                Keystream.for_tests(99),
                scores[starts[part] : starts[part + 1]],
                Fraction(1, 50),
                int(words[part]),
                64,
            )
            assert chosen[part] == exact


class Tied(Keystream):
    """Its first 64 bits are given, the same for every part."""

    def __init__(self, seed, word=2**63 - 1):
        super().__init__()
        self.first = True
        self.word = word
        self.rest = Keystream.for_tests(seed)

    def take(self, size):
        if self.first:
            self.first = False
            return np.full(size // 8, self.word, dtype=np.uint64).view(np.uint8)
        return self.rest.take(size)


def test_a_tie_is_settled_by_the_bits_that_follow():
    # U in [1/2 - 2^-64, 1/2) is below the boundary between two equal candidates, however close.
    parts = 300
    noise = Noise(Tied(7))
    assert (noise.select(np.tile([5, 5], parts), np.arange(parts + 1) * 2, Fraction(1)) == 0).all()
    noise = Noise(Tied(8))
    assert (noise.select(np.tile([3, 3, 3, 3], parts), np.arange(parts + 1) * 4, Fraction(1)) == 1).all()


def test_a_tie_with_an_irrational_boundary_splits_as_the_boundary_does():
    parts = 4000
    lo, _ = certified.logistic_interval(Fraction(1), 128)
    word, left = lo >> 64, (lo % 2**64) / 2**64
    chosen = Noise(Tied(9, word)).select(np.tile([0, 1], parts), np.arange(parts + 1) * 2, Fraction(1))
    assert abs((chosen == 0).sum() - parts * left) < 6 * (parts * left * (1 - left)) ** 0.5


def test_one_candidate_and_no_parts():
    noise = Noise(Keystream.for_tests(1))
    assert noise.select(np.array([-5, 9]), np.array([0, 1, 2]), Fraction(1)).tolist() == [0, 0]
    assert noise.select(np.empty(0, dtype=np.int64), np.array([0]), Fraction(1)).shape == (0,)


@pytest.mark.parametrize("starts", [[0, 2, 2, 4], [0, 3], [1, 4], []])
def test_starts_must_cover_the_candidates(starts):
    with pytest.raises(InputError, match="starts"):
        Noise.system().select(np.arange(4), np.array(starts, dtype=np.int64), Fraction(1))


def test_rates_must_make_sense():
    noise, scores, starts = Noise.system(), np.arange(4), np.array([0, 2, 4])
    with pytest.raises(InputError, match="rate"):
        noise.select(scores, starts, Fraction(-1))
    with pytest.raises(InputError, match="divisors"):
        noise.select(scores, starts, Fraction(1), np.array([1, 0]))
