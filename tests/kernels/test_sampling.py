"""The samplers' loops against plain Python, word by word."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dphist.kernels.sampling import laplace as sampling
from dphist.kernels.sampling.laplace import UNSETTLED
from dphist.private.noise import certified
from dphist.private.noise.selection import EXP_PARTS, EXP_WHOLE


def test_exp_neg_keeps_its_bound():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.random(400) * 64, [0.0, 63.999999999999, 1.0, 1 / 64, np.nextafter(1.0, 0)]])
    for x in points:
        got = Fraction(float(sampling.exp_neg(x, EXP_WHOLE, EXP_PARTS)))
        lo, hi = certified.exp_neg_interval(Fraction(float(x)), 256)
        assert abs(got * 2**256 - lo) <= lo >> 49
        assert hi - lo <= 3


def test_exp_neg_interval_is_tight_and_nested():
    for x in (
        Fraction(0),
        Fraction(1, 10**100),
        Fraction(1, 3),
        Fraction(20),
        Fraction(79),
        Fraction(10**40),
    ):
        previous = None
        for bits in (0, 1, 16, 80, 200, 1000):
            lo, hi = certified.exp_neg_interval(x, bits)
            assert 0 <= lo <= hi <= max(1 << bits, 1)
            assert hi - lo <= 3
            if previous is not None:
                old_lo, old_hi, old = previous
                assert lo >= (old_lo << (bits - old)) - 0 or hi >= old_lo << (bits - old)
                assert lo <= old_hi << (bits - old)
            previous = lo, hi, bits
    # e⁻¹ to 40 digits, from tables.
    lo, hi = certified.exp_neg_interval(Fraction(1), 130)
    known = Fraction(3678794411714423215955237701614608674458, 10**40)
    assert lo - 1 <= known * 2**130 <= hi + 1


def test_high_product():
    rng = np.random.default_rng(1)
    words = [*rng.integers(0, 2**64, 60, dtype=np.uint64), np.uint64(2**64 - 1), np.uint64(0), np.uint64(1)]
    for a in words:
        for b in words:
            assert int(sampling.high_product(a, b)) == int(a) * int(b) >> 64


def test_table_counts_the_thresholds_below():
    cells = np.array([0, 3, 3, 10, 65535], dtype=np.uint16)
    table = sampling.fill_table(sampling.count_below(cells), -2)
    for word in (0, 3, 10, 65535):
        assert table[word] == UNSETTLED
    assert table[1] == table[2] == -1
    assert table[4] == table[9] == 1
    assert table[11] == table[65534] == 2


def test_looking_up_reads_every_word():
    rng = np.random.default_rng(5)
    table = rng.integers(-5, 5, 65536).astype(np.int16)
    table[rng.random(65536) < 0.1] = UNSETTLED
    words = rng.integers(0, 65536, 400).astype(np.uint16)
    digits = np.empty(400, dtype=np.int16)
    positions = sampling.look_up(words.view(np.uint64), table, digits)
    assert (digits == table[words]).all()
    assert positions.tolist() == np.flatnonzero(table[words] == UNSETTLED).tolist()


def test_settling_is_a_search_among_the_floors():
    rng = np.random.default_rng(2)
    floors = sorted(
        {int(c) << 64 | int(r) for c, r in zip(rng.integers(0, 9, 30), rng.integers(0, 9, 30), strict=True)}
    )
    cells = np.array([f >> 64 for f in floors], dtype=np.uint16)
    rests = np.array([f & 2**64 - 1 for f in floors], dtype=np.uint64)
    words = rng.integers(0, 10, 500).astype(np.uint16)
    more = rng.integers(0, 10, 500).astype(np.uint64)
    positions = np.arange(500, dtype=np.int32)
    starts = sampling.count_below(cells)
    for tailed in (False, True):
        digits = np.full(500, 77, dtype=np.int16)
        hard = set(sampling.settle_digits(words, positions, more, starts, rests, 5, tailed, digits).tolist())
        for i in range(500):
            bits = int(words[i]) << 64 | int(more[i])
            below = sum(floor < bits for floor in floors)
            difficult = bits in floors or (tailed and below in (0, len(floors)))
            assert (i in hard) == difficult
            if not difficult:
                assert digits[i] == 5 + below


def test_adding_digits_is_exact_arithmetic():
    rng = np.random.default_rng(3)
    for lows in range(6):
        digits = rng.integers(0, 256, (lows + 1, 2500)).astype(np.int16)
        digits[lows] = rng.integers(-300, 300, 2500)
        values = rng.integers(-(10**6), 10**6, 2500)
        out = np.empty(2500, dtype=np.int64)
        sampling.add_digits(digits, values, out)
        for i in range(0, 2500, 7):
            low = sum(int(digits[j, i]) * 256**j for j in range(lows))
            top = int(digits[lows, i])
            magnitude = (top if top >= 0 else -1 - top) * 256**lows + low
            assert out[i] == values[i] + (magnitude if top >= 0 else -1 - magnitude)


def test_binary_draws_are_bits_below_their_cells():
    rng = np.random.default_rng(4)
    cells = np.array([30, 20, 10, *range(1, 35), 0, 30], dtype=np.uint16)
    levels = len(cells)
    words = rng.integers(0, 60, (levels, 200)).astype(np.uint16)
    out = np.empty(200, dtype=np.int64)
    positions = sampling.draw_binary(words.reshape(-1), cells, out)
    assert sorted(positions.tolist()) == np.flatnonzero(words.reshape(-1) == np.repeat(cells, 200)).tolist()
    ones = words < cells[:, None]
    magnitude = (ones[:-1] << np.arange(levels - 1)[:, None]).sum(axis=0)
    assert (out == np.where(ones[-1], ~magnitude, magnitude)).all()
