"""The discrete Gaussian sampler against exact probabilities."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

from dphist.errors import InputError
from dphist.kernels.sampling import gaussian as kernels
from dphist.private.noise import Keystream, Noise, certified
from dphist.private.noise.gaussian import COARSE, FINE, BlockGaussian
from dphist.private.noise.selection import EXP_PARTS, EXP_WHOLE

VARIANCES = [
    Fraction(1, 30),
    Fraction(1, 3),
    Fraction(1),
    Fraction(777, 10),
    Fraction(30_000),
    Fraction(10**9, 7),
]


def chances(variance: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """All integers within twelve deviations and their probabilities."""
    reach = int(12 * float(variance) ** 0.5) + 4
    places = np.arange(-reach, reach + 1)
    weights = np.exp(-(places.astype(float) ** 2) / (2 * float(variance)))
    return places, weights / weights.sum()


@pytest.mark.parametrize("draws", [60_000, 400_000], ids=["few", "many"])
@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_the_body_has_its_probabilities(variance: Fraction, draws: int) -> None:
    """χ² over up to 400 bins; the seed is fixed, and the false alarm would be 10⁻⁶."""
    drawn = Noise(Keystream.for_tests(2026)).add_gaussian(np.zeros(draws, dtype=np.int64), variance)
    places, mass = chances(variance)
    # Bins of whole integers with at least 50 expected draws each.
    target = max(50.0 / draws, 1 / 400)
    index = np.minimum((np.cumsum(mass) - mass / 2) / target, 1 / target - 1e-9).astype(int)
    index = np.unique(index, return_inverse=True)[1]
    expected = np.bincount(index, mass) * draws
    seen = np.bincount(index[drawn - places[0]], minlength=expected.size)
    keep = expected > 5
    statistic = float(((seen - expected)[keep] ** 2 / expected[keep]).sum())
    assert special.chdtrc(max(1, int(keep.sum()) - 1), statistic) > 1e-6


@pytest.mark.parametrize("fineness", [COARSE, FINE])
@pytest.mark.parametrize(
    "variance", [Fraction(1, 30), Fraction(5), Fraction(30_000), Fraction(2**90)], ids=str
)
def test_thresholds_are_the_cumulated_weights(variance: Fraction, fineness: int) -> None:
    law = BlockGaussian(variance, fineness)
    y = np.arange(-60 * fineness, 60 * fineness + 1, dtype=float)
    base = np.where(y < 0, (-1 - y) * law.width + 1, y * law.width)
    weights = np.exp(-(base**2) / (2 * float(variance)))
    expected = np.cumsum(weights) / weights.sum()
    floors = np.array([floor / 2.0**80 for floor in law.ladder.floors])
    here = expected[np.searchsorted(y, np.arange(-law.reach, law.reach))]
    assert np.allclose(floors, here, rtol=1e-9, atol=1e-15)
    # A certified floor stays what it is when more digits are known.
    for y_ in (-law.reach, -1, 0, law.reach - 1):
        low, high = law._bounds(y_)(200)
        assert low >> 120 <= law.ladder.floors[y_ + law.reach] <= high >> 120
        assert 0 < high - low < 2**30


@pytest.mark.parametrize("lower", [True, False])
def test_tails_are_not_cut_off(lower: bool) -> None:
    """Given a U in the last 2⁻⁸⁰ of the law, far beyond the table, blocks have the law's own probabilities there."""
    law = BlockGaussian(Fraction(40_000), COARSE)
    y = np.arange(-200, 200, dtype=float)
    base = np.where(y < 0, (-1 - y) * law.width + 1, y * law.width)
    weights = np.exp(-(base**2) / (2 * float(law.variance)))
    # From the end inwards, so that tiny numbers are added before large ones.
    cumulated = np.cumsum(weights if lower else weights[::-1]) / weights.sum() * 2.0**80
    mass = np.diff(np.minimum(cumulated, 1.0), prepend=0.0)
    names = y if lower else y[::-1]
    runs = 300
    drawn = [law._settle(0 if lower else (1 << 80) - 1, Keystream.for_tests(seed)) for seed in range(runs)]
    assert all(block < -law.reach if lower else block > law.reach for block in drawn)
    keep = mass * runs > 5
    seen = np.array([drawn.count(int(name)) for name in names[keep]])
    statistic = float(((seen - mass[keep] * runs) ** 2 / (mass[keep] * runs)).sum())
    assert keep.sum() >= 3
    assert special.chdtrc(int(keep.sum()), statistic) > 1e-6


def test_ties_are_settled_by_more_bits() -> None:
    law = BlockGaussian(Fraction(50), COARSE)
    for place in (0, 3, law.reach, 2 * law.reach - 1):
        floor = law.ladder.floors[place]
        settled = {law._settle(floor, Keystream.for_tests(seed)) for seed in range(40)}
        first = law.ladder.first + place
        assert settled <= ({first, first + 1} if place else {first - 2, first - 1, first, first + 1})
        assert len(settled) > 1


def test_the_coin_is_exact() -> None:
    """The kernel's verdicts are those of integers of any length, wherever it dares to give one."""
    law = BlockGaussian(Fraction(10**8, 3), COARSE)
    rng = np.random.default_rng(3)
    drawn = rng.integers(-40_000, 40_000, 300)
    coins = rng.integers(0, 65536, 300).astype(np.uint16)
    words = rng.integers(0, 2**64, 300, dtype=np.uint64)
    verdicts = np.empty(300, dtype=np.int8)
    places = np.arange(300, dtype=np.int32)
    kernels.judge(drawn, places, words, coins, law.shift, law.rate, EXP_WHOLE, EXP_PARTS, verdicts)
    for x, coin, word, verdict in zip(drawn.tolist(), coins.tolist(), words.tolist(), verdicts, strict=True):
        exact = law._stays(x, certified.Uniform(Keystream.for_tests(1), coin << 64 | word, 80))
        assert verdict == exact
    assert 20 < verdicts.sum() < 280
    # Right at the chance itself it hands back.
    low, _ = certified.exp_neg_interval(Fraction(5 * (2 * 0 + 5)) / (2 * law.variance), 80)
    one = np.array([5])
    kernels.judge(
        one, places[:1], np.array([low % 2**64], dtype=np.uint64), np.array([low >> 64], dtype=np.uint16),
        law.shift, law.rate, EXP_WHOLE, EXP_PARTS, verdicts[:1],
    )  # fmt: skip
    assert verdicts[0] == -1


def test_places_within_wide_blocks_have_their_probabilities() -> None:
    """χ² integer by integer where blocks are coarse: without the coin each would be level."""
    law, draws = BlockGaussian(Fraction(3000), COARSE), 300_000
    assert law.width == 8
    places, mass = chances(law.variance)
    seen = np.bincount(law.draw(Keystream.for_tests(7), draws) - places[0], minlength=places.size)
    keep = mass * draws > 20
    statistic = float(((seen - mass * draws)[keep] ** 2 / (mass * draws)[keep]).sum())
    assert special.chdtrc(int(keep.sum()) - 1, statistic) > 1e-6


@pytest.mark.parametrize("x", [1, 7, 8, 13, 100, -2, -8, -9, -13, -101])
def test_coins_that_are_settled_late_know_their_block(x: int) -> None:
    """A place stays with exp(−(x² − b²)/2v), b being the place of its block that is nearest to zero."""
    law = BlockGaussian(Fraction(3000), COARSE)
    nearest = x - x % 8 if x >= 0 else (-1 - x) // 8 * 8 + 1
    low, high = certified.exp_neg_interval(Fraction(x * x - nearest * nearest) / (2 * law.variance), 80)
    below, above = low - 2**20, high + 2**20
    assert law._stays(x, certified.Uniform(Keystream.for_tests(1), below, 80))
    assert abs(x) == nearest or not law._stays(x, certified.Uniform(Keystream.for_tests(1), above, 80))


class Rigged:
    """A keystream whose first words are all zeros or all ones."""

    def __init__(self, byte: int, times: int, seed: int) -> None:
        self.byte, self.times, self.rest = byte, times, Keystream.for_tests(seed)

    def take(self, count: int) -> np.ndarray:
        if self.times:
            self.times -= 1
            return np.full(count, self.byte, dtype=np.uint8)
        return self.rest.take(count)

    def integer(self, bits: int) -> int:
        return self.rest.integer(bits)


@pytest.mark.parametrize("byte", [0, 255], ids=["lower", "upper"])
@pytest.mark.parametrize("variance", [Fraction(2), Fraction(3000)], ids=["cells", "blocks"])
def test_a_draw_from_a_tail_is_far_out(variance: Fraction, byte: int) -> None:
    law = BlockGaussian(variance, COARSE)
    drawn = []
    for seed in range(20):
        keystream: Any = Rigged(byte, 2, seed)
        drawn += law.draw(keystream, 1).tolist()
    # Eighty bits that are all the same leave 2⁻⁸⁰ of the law, which begins more than ten deviations out. Of a block as
    # far out as that about half of the draws are rejected.
    far = [x for x in drawn if abs(x) > 9.5 * float(variance) ** 0.5]
    assert len(far) == 20 if law.width == 1 else len(far) > 4
    assert all((x > 0) == (byte == 255) for x in far)


def test_places_in_a_tail_are_rejected_as_often_as_they_should() -> None:
    law, block, runs = BlockGaussian(Fraction(3000), COARSE), 20, 400
    r = np.arange(law.width)
    stay = float(np.exp(-r * (2.0 * block * law.width + r) / (2 * float(law.variance))).mean())
    placed = np.array([law._placed(block, Keystream.for_tests(seed)) for seed in range(runs)])
    stayed = int((placed // law.width == block).sum())
    # The seeds are fixed; six deviations. Who is rejected comes back to this block once in two thousand times.
    assert abs(stayed - runs * stay) < 6 * (runs * stay * (1 - stay)) ** 0.5
    assert stay < 0.9


def test_block_edges_and_signs() -> None:
    """Every integer belongs to exactly one place of one block."""
    law = BlockGaussian(Fraction(3000), COARSE)
    assert law.width == 8
    y = np.repeat(np.arange(-3, 3), 8).astype(np.int16)
    offsets = np.tile(np.arange(8), 6).astype(np.uint64)
    out = np.empty(48, dtype=np.int64)
    sure = np.full(2 * law.reach + 1, 65535, dtype=np.uint16)
    coins = np.zeros(48, dtype=np.uint16)
    kernels.place_in_blocks(y, coins, offsets, sure, law.ladder.first, law.shift, out)
    assert sorted(out.tolist()) == list(range(-24, 24))
    assert out[[24, 23, 16]].tolist() == [0, -8, -1]


def test_tiny_and_huge_and_wrong_variances() -> None:
    noise = Noise(Keystream.for_tests(1))
    assert not noise.add_gaussian(np.zeros(1000, dtype=np.int64), Fraction(1, 10**6)).any()
    assert abs(noise.add_gaussian(np.zeros(100, dtype=np.int64), Fraction(2**105))).max() > 2**50
    values = np.arange(5)
    assert noise.add_gaussian(values, Fraction(1, 10**6)).tolist() == values.tolist()
    for wrong in (Fraction(0), Fraction(-1), Fraction(2**106)):
        with pytest.raises(InputError, match="variance"):
            noise.add_gaussian(values, wrong)


@pytest.mark.parametrize("size", [5, 1 << 16])
@pytest.mark.parametrize("variance", [Fraction(1, 10**310), Fraction(1, 10**400), Fraction(1, 10**30)])
@pytest.mark.filterwarnings("error")
def test_variances_smaller_than_any_float_can_be_drawn(variance, size):
    """All but a chance that nobody lives to see is zero; it had been an overflow, after payment."""
    assert not Noise(Keystream.for_tests(3)).add_gaussian(np.zeros(size, dtype=np.int64), variance).any()


@pytest.mark.parametrize(("scale", "threshold"), [(Fraction(1, 10**400), 1), (Fraction(1), 10**400)])
def test_thresholds_further_than_any_float_are_never_reached(scale, threshold):
    """The same for coins of cells that nobody visits."""
    assert not Noise(Keystream.for_tests(3)).hits(10**6, scale, threshold).size
