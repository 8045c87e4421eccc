"""Discrete Laplace noise against its exact law.

Statistical tests use a fixed seed of the test keystream: they cannot fail by chance, only by a change of the
sampler, and the bound (p > 1e-6) is one a correct change would almost never break.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dphist.errors import InputError
from dphist.private.noise import Keystream, Noise, certified
from dphist.private.noise.laplace import BinaryLaplace, TabledLaplace

LONG = Fraction(7 * 10**100 + 3, 2 * 10**100 + 1)
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 2), LONG, Fraction(10), Fraction(100), Fraction(1000)]


def exact_pmf(scale: Fraction, reach: int) -> np.ndarray:
    a = math.exp(-1 / scale)
    return (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1))


def chi_square(draws: np.ndarray, scale: Fraction) -> float:
    # Bins of at least 20 expected draws; the two tails are bins of their own.
    reach = max(1, int(float(scale) * math.log(max(2.0, len(draws) / (60 * max(1.0, float(scale)))))))
    pmf = exact_pmf(scale, reach)
    tail = (1 - pmf.sum()) / 2
    probability = np.concatenate([[tail], pmf, [tail]])
    seen = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=len(probability))
    return float(stats.chisquare(seen, probability / probability.sum() * len(draws)).pvalue)


@pytest.mark.parametrize("scale", SCALES, ids=lambda s: f"{float(s):g}")
def test_few_draws_follow_the_law(scale):
    noise = Noise(Keystream.for_tests(1))
    draws = np.concatenate([noise.laplace(scale, 1000) for _ in range(100)])
    assert chi_square(draws, scale) > 1e-6


@pytest.mark.parametrize("scale", SCALES, ids=lambda s: f"{float(s):g}")
def test_many_draws_follow_the_law(scale):
    draws = Noise(Keystream.for_tests(2)).laplace(scale, 2_000_000)
    assert chi_square(draws, scale) > 1e-6


@pytest.mark.audit
@pytest.mark.parametrize("scale", [Fraction(2), Fraction(40), Fraction(700)])
def test_very_many_draws_follow_the_law(scale):
    noise = Noise(Keystream.for_tests(11))
    reach = int(scale * 12)
    seen = np.zeros(2 * reach + 3, dtype=np.int64)
    for _ in range(20):
        draws = np.clip(noise.laplace(scale, 2_000_000), -reach - 1, reach + 1)
        seen += np.bincount(draws + reach + 1, minlength=len(seen))
    pmf = exact_pmf(scale, reach)
    tail = (1 - pmf.sum()) / 2
    expected = np.concatenate([[tail], pmf, [tail]]) * seen.sum()
    assert expected.min() > 0.1
    enough = expected > 20
    # What is expected less than twenty times goes into one bin.
    seen = np.append(seen[enough], seen[~enough].sum())
    expected = np.append(expected[enough], expected[~enough].sum())
    statistic = ((seen - expected) ** 2 / expected.clip(1e-9)).sum()
    assert stats.chi2.sf(statistic, len(seen) - 1) > 1e-6


@pytest.mark.parametrize("scale", [Fraction(5, 4), Fraction(10)])
def test_a_wrong_scale_would_be_seen(scale):
    draws = Noise(Keystream.for_tests(2)).laplace(scale, 2_000_000)
    assert chi_square(draws, scale * Fraction(51, 50)) < 1e-6


@pytest.mark.parametrize("scale", [10**4, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("size", [20_000, 300_000])
def test_large_scales_follow_the_continuous_law(scale, size):
    draws = Noise(Keystream.for_tests(3)).laplace(Fraction(scale), size)
    # At scale 10^4 the lattice moves the distribution function by at most 5e-5, below what KS resolves here.
    assert stats.kstest(draws, stats.laplace(scale=scale).cdf).pvalue > 1e-6
    # Every low bit must be fair to within the slope of the law, so parities catch a wrong low digit.
    for bit in range(10):
        ones = int(((draws >> bit) & 1).sum())
        assert abs(ones - size / 2) < 6 * math.sqrt(size) / 2 + size * 2.0**bit / scale


def test_tiny_scales():
    noise = Noise(Keystream.for_tests(4))
    assert not noise.laplace(Fraction(1, 1000), 300_000).any()
    draws = noise.laplace(Fraction(1, 8), 1_000_000)
    a = math.exp(-8)
    expected = 1_000_000 * 2 * a / (1 + a)
    assert abs(np.count_nonzero(draws) - expected) < 6 * math.sqrt(expected)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(1, 40), Fraction(10**6), Fraction(3 * 10**12, 7)])
def test_coins_are_the_law_of_the_bits(scale):
    # Rebuilt at twice the precision from the definition, without the squarings.
    law = BinaryLaplace(1 / scale)
    for level, floor in enumerate(law.floors):
        if level == law.bits:
            lo, hi = certified.exp_neg_interval(2**level / scale, 300)
        else:
            lo, hi = certified.logistic_interval(2 ** (level % (law.bits + 1)) / scale, 300)
        assert lo >> 220 == hi >> 220 == floor


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(7, 2), Fraction(300), Fraction(10**7, 3)])
def test_tables_are_the_law_of_the_digits(scale):
    law = TabledLaplace(1 / scale)
    for level, ladder in enumerate(law.ladders):
        assert ladder.floors == sorted(ladder.floors)
        for index, floor in enumerate(ladder.floors):
            lo, hi = law._bounds(level, index)(300)
            assert lo >> 220 == hi >> 220 == floor
    # The top ladder adds up to the law itself: P(Y <= -m) from the sum of the point masses.
    a, step = math.exp(-1 / scale), math.exp(-law.top_rate)
    for k in range(-3, 4):
        mass = sum(step**h * (1 - step) / (1 + a) for h in range(k + 1)) + (
            step ** max(-k - 1, 0) * a / (1 + a)
        )
        assert law.ladders[-1].floors[k + law.reach] / 2**80 == pytest.approx(mass, rel=1e-9)


class Scripted:
    """A keystream whose first answers are given; the rest comes from a seed."""

    test = True

    def __init__(self, answers, seed=0):
        self.answers = list(answers)
        self.rest = Keystream.for_tests(seed)

    def take(self, size):
        if self.answers:
            answer = self.answers.pop(0)
            assert len(answer) == size
            return np.frombuffer(answer, dtype=np.uint8).copy()
        return self.rest.take(size)

    def integer(self, bits):
        return Keystream.integer(self, bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [Fraction(1, 10**9), Fraction(1, 10**300)])
def test_scales_so_tiny_that_nothing_is_ever_added(scale):
    noise = Noise(Keystream.for_tests(4))
    assert not noise.laplace(scale, 10).any()
    assert not noise.laplace(scale, 100_000).any()


def test_thresholds_with_the_same_eighty_bits_are_compared_with_one_uniform():
    # exp(-60), exp(-120), … all begin with 80 zeros. With them U < exp(-60) has probability 2^80·exp(-60).
    law = TabledLaplace(Fraction(60))
    assert law.ladders[-1].floors[:2] == [0, 0]
    keystream = Keystream.for_tests(3)
    drawn = [law._settle(0, 0, keystream) for _ in range(3000)]
    below = math.exp(80 * math.log(2) - 60)
    assert set(drawn) <= {-1, 0}
    assert abs(sum(value == -1 for value in drawn) - 3000 * below) < 6 * math.sqrt(3000 * below)


@pytest.mark.parametrize("negative", [False, True])
def test_a_bit_settled_late_raises_the_magnitude(negative):
    law = BinaryLaplace(Fraction(1, 3))
    words = np.full((len(law.cells), 1), 65535, dtype=np.uint16)
    words[1] = law.cells[1]
    words[-1] = 0 if negative else 65535
    out = np.array([100])
    # 64 zero bits are below any threshold: bit 1 is set, the magnitude is two.
    law.add(Scripted([words.tobytes(), bytes(8)]), out, out)  # type: ignore[arg-type]
    assert out[0] == (100 - 3 if negative else 102)


def test_a_tie_in_the_coins_is_settled_by_the_bits_that_follow():
    law = BinaryLaplace(Fraction(1, 3))
    n = 4000
    words = np.full((len(law.cells), n), 65535, dtype=np.uint16)
    words[0] = law.cells[0]
    rest = (law.floors[0] % 2**64).to_bytes(8, "little")
    out = np.empty(n, dtype=np.int64)

    class Tied(Scripted):
        def integer(self, bits):
            # The 64 bits asked first tie again; those asked after them come from the seed.
            self.turn = not getattr(self, "turn", False)
            return int.from_bytes(rest, "little") if self.turn else super().integer(bits)

    law.add(Tied([words.tobytes()]), np.zeros_like(out), out)  # type: ignore[arg-type]
    assert set(np.unique(out)) == {0, 1}
    # Given 80 tied bits, the coin comes up with the fraction that is left of p·2^80.
    lo, _ = certified.logistic_interval(Fraction(1, 3), 144)
    left = (lo % 2**64) / 2**64
    assert abs(out.sum() - n * left) < 6 * math.sqrt(n * left * (1 - left))


def test_the_tail_of_the_coins_is_memoryless():
    law = BinaryLaplace(Fraction(25))
    assert law.bits == 0
    # Words: the tail's first sixteen bits are zero, then 64 zero bits: U is below exp(-25), so H >= 1.
    words = np.array([[0], [65535]], dtype=np.uint16)
    out = np.empty(1, dtype=np.int64)
    law.add(Scripted([words.tobytes(), bytes(8)]), np.zeros_like(out), out)  # type: ignore[arg-type]
    assert out[0] == 1


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1000)])
def test_a_tie_in_the_tables_is_settled_by_the_bits_that_follow(scale):
    law = TabledLaplace(1 / scale)
    ladder, n = law.ladders[0], 3000
    index = len(ladder.floors) // 2
    words = np.full(n, ladder.floors[index] >> 64, dtype=np.uint16)
    rests = np.full(n, ladder.rests[index], dtype=np.uint64)
    out = np.zeros(n, dtype=np.int64)
    law.add(Scripted([words.tobytes(), rests.tobytes()]), out, out)  # type: ignore[arg-type]
    lo, _ = law._bounds(0, index)(144)
    left = (lo % 2**64) / 2**64
    if law.lows:
        out = np.where(out < 0, ~out, out) % 256
    low_value = ladder.first + index
    assert set(np.unique(out)) == {low_value, low_value + 1}
    # U below the threshold gives the lower value.
    assert abs((out == low_value).sum() - n * left) < 6 * math.sqrt(n * left * (1 - left))


@pytest.mark.parametrize("scale", [Fraction(2), Fraction(1000)])
@pytest.mark.parametrize("end", [0, 65535])
def test_the_tails_of_the_tables_are_memoryless(scale, end):
    law = TabledLaplace(1 / scale)
    n = 300
    values = np.arange(n)
    fixed = []
    for ladder in law.ladders[:-1]:
        word = int(np.argmax(ladder.table != -32768))
        fixed.append(np.full(n, word, dtype=np.uint16).tobytes())
    fixed.append(np.full(n, end, dtype=np.uint16).tobytes())
    fixed.append(np.full(n, 0 if end == 0 else 2**64 - 1, dtype=np.uint64).tobytes())
    out = law.add(Scripted(fixed), values, out := np.empty(n, dtype=np.int64)) or out  # type: ignore[arg-type, func-returns-value]
    top = (out - values) >> 8 * law.lows
    excess = -law.reach - top if end == 0 else top - law.reach
    assert (excess >= 0).all()
    a = math.exp(-law.top_rate)
    assert abs(excess.mean() - a / (1 - a)) < 6 * math.sqrt(a) / (1 - a) / math.sqrt(n)


def test_noise_is_added_in_place_or_beside():
    values = np.random.default_rng(0).integers(0, 10**9, (70, 3000))
    kept = values.copy()
    for scale in (Fraction(5), Fraction(10**6)):
        drawn = Noise(Keystream.for_tests(9)).laplace(scale, values.shape)
        beside = Noise(Keystream.for_tests(9)).add_laplace(values, scale)
        assert (values == kept).all()
        assert (beside == values + drawn).all()
        given = np.empty_like(values)
        assert Noise(Keystream.for_tests(9)).add_laplace(values, scale, given) is given
        inside = values.copy()
        Noise(Keystream.for_tests(9)).add_laplace(inside, scale, inside)
        assert (inside == beside).all()
        assert (given == beside).all()


def test_a_seed_gives_the_same_noise_whatever_ran_before():
    first = Noise(Keystream.for_tests(9)).laplace(Fraction(17), 1000)
    Noise(Keystream.for_tests(9)).laplace(Fraction(17), 1_000_000)
    assert (Noise(Keystream.for_tests(9)).laplace(Fraction(17), 1000) == first).all()


def test_shapes():
    noise = Noise(Keystream.for_tests(1))
    assert noise.laplace(Fraction(2), 5).shape == (5,)
    assert noise.laplace(Fraction(2), (2, 0, 3)).shape == (2, 0, 3)
    assert noise.laplace(Fraction(2), ()).shape == ()
    assert noise.laplace(Fraction(2), (3, 4)).dtype == np.int64


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(10**30)])
def test_impossible_scales_are_refused(scale):
    with pytest.raises(InputError, match="scale"):
        Noise.system().laplace(scale, 3)


def test_any_layout_of_values_but_only_whole_integers():
    noise = Noise.system()
    turned = np.arange(12).reshape(3, 4).T
    drawn = Noise(Keystream.for_tests(1)).laplace(Fraction(3), (4, 3))
    assert (Noise(Keystream.for_tests(1)).add_laplace(turned, Fraction(3)) == turned + drawn).all()
    with pytest.raises(InputError, match="values"):
        noise.add_laplace(np.zeros(4), Fraction(1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="out"):
        noise.add_laplace(
            np.zeros((4, 4), dtype=np.int64), Fraction(1), np.zeros((4, 8), dtype=np.int64)[:, ::2]
        )
    with pytest.raises(InputError, match="out"):
        noise.add_laplace(np.zeros(4, dtype=np.int64), Fraction(1), np.zeros(5, dtype=np.int64))


@pytest.mark.parametrize("rate", [Fraction(25), Fraction(1, 3), Fraction(7, 10**6), Fraction(1, 10**12)])
@pytest.mark.parametrize("negative", [False, True])
def test_the_tail_of_the_coins_has_no_end(monkeypatch, rate, negative):
    """Nobody waits for e⁻²⁰, let alone twice: the tail's coin is made to come up, and its length is given."""
    law = BinaryLaplace(rate)
    words = np.full((len(law.cells), 1), 65535, dtype=np.uint16)
    assert (
        law.cells[law.bits] == 0
    )  # so that sixteen bits never settle it, and the path below is always taken
    words[law.bits] = 0
    words[-1] = 0 if negative else 65535
    asked = []

    def three(given, keystream):
        asked.append(given)
        return 3

    monkeypatch.setattr(certified, "geometric", three)
    out = np.zeros(1, dtype=np.int64)
    # At tiny scales the sign's first sixteen bits are zero too: 64 more settle it.
    ties = [bytes(8)] * (1 + int(negative and law.cells[-1] == 0))
    law.add(Scripted([words.tobytes(), *ties]), out, out)  # type: ignore[arg-type]
    top = 4 << law.bits
    assert asked == [rate * (1 << law.bits)]
    assert asked[0] >= 20
    # A sign drawn first complements what follows: ~0 − top.
    assert out[0] == (-1 - top if negative else top)


@pytest.mark.parametrize("rate", [Fraction(25), Fraction(3, 2), Fraction(1, 1000)])
def test_the_tail_is_met_with_exactly_its_probability(rate):
    """Given sixteen zeros the tail's coin compares 64 bits with a floor, and more where they tie."""
    law = BinaryLaplace(rate)
    level, floor = law.bits, law.floors[law.bits]
    assert 0 < floor < 2**64
    lo, hi = certified.exp_neg_interval(rate * 2**law.bits, 80)
    assert lo <= floor <= hi
    for rest, up in ((floor - 1, True), (floor + 1, False), (0, True), (2**64 - 1, False)):
        assert law._settle(level, Scripted([rest.to_bytes(8, "little")])) is up  # type: ignore[arg-type]
    # A tie: the next 64 bits decide, all zeros below and all ones above.
    for more, up in ((bytes(8), True), (b"\xff" * 8, False)):
        assert law._settle(level, Scripted([floor.to_bytes(8, "little"), more])) is up  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [Fraction(1, 25), Fraction(3), Fraction(10**6)])
def test_every_coin_closes_in_on_its_own_probability(scale):
    law = BinaryLaplace(1 / scale)
    for level in range(law.bits + 2):
        if level == law.bits:
            expected = certified.exp_neg_interval(2**level / scale, 200)
        else:
            expected = certified.logistic_interval((2**level if level < law.bits else 1) / scale, 200)
        got = law._bounds(level)(200)
        assert got == expected
        assert got[0] >> 120 == law.floors[level]


def test_noise_below_one_cell_is_as_rare_as_it_should_be():
    """At scale 1/12 a draw moves once in 81,000: counted over 2·10⁷ draws of the tables, and of the coins."""
    scale, a = Fraction(1, 12), math.exp(-12)
    for size, times in ((4_000_000, 5), (60_000, 100)):
        noise = Noise(Keystream.for_tests(21))
        moved = [0, 0, 0]
        for _ in range(times):
            draws = noise.laplace(scale, size)
            moved[0] += int((draws > 0).sum())
            moved[1] += int((draws < 0).sum())
            moved[2] += int((np.abs(draws) > 1).sum())
        expected = size * times * a / (1 + a)
        assert expected > 30
        for side in moved[:2]:
            assert abs(side - expected) < 6 * math.sqrt(expected)
        assert moved[2] <= 1


@pytest.mark.parametrize("scale", [2**40, 2**52])
@pytest.mark.parametrize("size", [60_000, 200_000])
def test_tails_of_huge_scales(scale, size):
    """Beyond 5 and 8 scales: as many as e⁻⁵ and e⁻⁸ say, on either side, and none wrapped."""
    draws = Noise(Keystream.for_tests(22)).laplace(Fraction(scale), size)
    for far in (2, 5, 8):
        expected = size * math.exp(-far) / 2
        for side in (draws > far * scale, draws < -far * scale):
            assert abs(int(side.sum()) - expected) < 6 * math.sqrt(expected) + 1
    assert np.abs(draws).max() < 40 * scale
