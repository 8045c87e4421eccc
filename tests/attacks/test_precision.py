"""Porous floats, finite tails, and values that only one neighbour can produce."""

from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.audit.neighbours import worst_pairs
from dphist.mechanisms.options import parse
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.queries import Identity
from dphist.testing import open_counts
from dphist_bench.audit.campaign import claims


def test_every_released_value_lies_on_a_lattice_that_neighbours_share():
    # Mironov's attack reads the low bits of x + noise. Here they are integers: every integer is possible on both sides.
    noise = Noise(Keystream.for_tests(1))
    for scale in (Fraction(1, 10), Fraction(1), Fraction(1000, 7)):
        drawn = noise.laplace(scale, 1_000_000)
        assert drawn.dtype == np.int64
        one, other = np.unique(drawn), np.unique(noise.laplace(scale, 1_000_000) + 1)
        # Values seen a hundred times on one side are seen on the other: no holes, over 10⁶ draws a side.
        values, often = np.unique(drawn, return_counts=True)
        assert np.isin(values[often >= 100], other).all()
        inner = one[(one > np.quantile(drawn, 0.001)) & (one < np.quantile(drawn, 0.999))]
        assert (np.diff(inner) == 1).all()


def test_the_tail_has_no_end_that_tells():
    # A sampler with a finite tail never goes past it: with counts 0 and 1 the largest value would tell which.
    noise = Noise(Keystream.for_tests(2))
    drawn = noise.laplace(Fraction(1), 4_000_000)
    for t in (5, 8, 11):
        expected = 2 * np.exp(-t) / (1 + np.exp(-1.0)) * drawn.size
        seen = int((np.abs(drawn) >= t).sum())
        assert abs(seen - expected) < 6 * np.sqrt(expected) + 1
    # Step by step out to where a handful are left, each further value keeps the share e⁻¹ of the one before.
    beyond = np.array([(np.abs(drawn) >= t).sum() for t in range(1, 13)])
    assert (np.abs(beyond[1:] - beyond[:-1] / np.e) < 6 * np.sqrt(beyond[:-1]) + 1).all()
    assert beyond[-1] > 0


class Rigged(Keystream):
    """Bits of which the first draw's all say "further out" for a while, as real ones might."""

    def __init__(self, luck, lucky):
        super().__init__()
        self._seed = b"rigged"
        self.luck, self.lucky = luck, lucky

    def take(self, size):
        drawn = super().take(size).copy()
        # Many bytes at once belong to many draws, and the first eight to the first of them; a few are a coin's, for
        # which zeros say yes.
        mine = min(size if size <= 64 else 8, self.luck)
        drawn[:mine] = 0 if size <= 64 else self.lucky
        self.luck -= mine
        return drawn


@pytest.mark.parametrize("scale", [Fraction(1, 40), Fraction(1, 3), Fraction(1), Fraction(1000, 7)])
@pytest.mark.parametrize(("lucky", "draws"), [(0x00, 1), (0x00, 1 << 16), (0xFF, 1 << 16)])
def test_no_value_is_the_last_one(scale, lucky, draws):
    """Luck decides how far out a draw lands, and more luck always lands further: no table, word or float ends it.

    A few draws are made of coins (zero bits say yes), many of tables (zeros the lower end, ones the upper).
    """
    reached = [
        int(np.abs(Noise(Rigged(luck, lucky)).laplace(scale, draws)).max())
        for luck in (0, 2_000, 8_000, 20_000)
    ]
    assert reached == sorted(set(reached))
    # A coin of eight bytes moves it one step outward at least, beside a few bytes that got it into the tail.
    assert reached[-1] > 20_000 / 8 - 100


@pytest.mark.parametrize("text", claims())
def test_both_neighbours_give_numbers_of_one_kind(text):
    """Verb by verb the dtype, and whether numbers are whole, is the same on both sides: no bit pattern tells."""
    mechanism = parse(text)
    kinds = []
    pair = worst_pairs()[1]
    for side, seed in ((pair.one, 3), (pair.other, 3), (pair.one, 4), (pair.other, 4)):
        right, transcript = open_gate(side, 1, Unit(), noise=Noise(Keystream.for_tests(seed)))
        estimate = mechanism.estimate(right)
        kinds.append(estimate.counts.dtype)
        for entry in transcript:
            # Floats leave the gate only where they are a function of noisy integers (wavelet cells).
            assert entry.answer.dtype == np.int64 or entry.question["ask"] == "WaveletCells"
    assert set(kinds) == {np.dtype(np.float64)}


def test_the_lowest_bits_of_wavelet_cells_say_nothing():
    # Cells rebuilt in floats are rounded numerators of noisy integers over a public denominator.
    data = open_counts(np.array([5, 0, 1, 2, 9, 9, 1, 3]), 1, seed=5)
    release = dphist.list_mechanisms()["privelet"]().estimate(data)
    numerators = release.counts * 8
    assert np.array_equal(numerators, np.rint(numerators))


def test_saved_numbers_are_the_released_ones_and_nothing_else(tmp_path):
    import pyarrow.parquet as pq

    domain = dphist.Domain([dphist.Ordinal("x", range(6))])
    release = dphist.publish(dphist.Histogram(domain, np.array([0, 0, 7, 0, 0, 1])), epsilon=1)
    release.save(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.column_names == ["x", "estimate", "low", "high"]
    assert np.array_equal(table.column("estimate").to_numpy(), release.counts)
    answers = release.answer(dphist.Workload.cells(domain))
    assert np.array_equal(table.column("low").to_numpy(), answers.low)
    assert np.array_equal(table.column("high").to_numpy(), answers.high)


def test_sums_wrap_rather_than_saturate():
    # Saturating at the end of 64 bits would be a clamp that neighbours reach at different noise. Wrapping is a
    # function of the noisy value.
    scale, full = Fraction(1000), np.full(500, 2**63 - 1, dtype=np.int64)
    noise = Noise(Keystream.for_tests(6)).laplace(scale, 500)
    noisy = Noise(Keystream.for_tests(6)).add_laplace(full, scale)
    assert (noise > 0).any()
    assert np.array_equal(noisy, full + noise)
    assert (noisy[noise > 0] < 0).all()


def test_counts_beyond_the_public_ceiling_look_alike():
    ceiling = 2**62 // 2
    for top in (2**63 - 1, 2**63 - 2, ceiling):
        assert open_counts(np.array([top, 0]), 10**6, seed=6).measure(Identity()).values.tolist() == [
            ceiling,
            0,
        ]
