"""A first look at a cube: what it costs, and that it tells cubes whose attributes depend on each other from others."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.glimpse import BLOCKS, TOTAL, Glimpse, Look, dependence
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.law import NoiseLaw
from dphist.testing import open_counts

SHAPE = (20, 6, 5)


def _apart(records):
    one, two, three = (np.arange(1.0, n + 1.0) for n in SHAPE)
    weights = one[:, None, None] * two[:, None] * three
    return np.rint(weights / weights.sum() * records).astype(np.int64)


def _together(records):
    counts = np.zeros(SHAPE, dtype=np.int64)
    for place in range(20):
        counts[place, place * 6 // 20, place * 5 // 20] = records // 20
    return counts


def test_it_spends_three_percent_and_no_more():
    right = open_counts(_apart(10**5), 1)
    _, rest = Look().at(right)
    assert rest.unit_scale == 1 / (1 - TOTAL - BLOCKS)
    assert Fraction(1, 30) > TOTAL + BLOCKS


def test_it_tells_how_many_and_whether_they_depend_on_each_other():
    # Noise of the total has a scale of 128: a chance below 1e-6 to be off by 4,000.
    for counts, low, high in ((_apart(10**6), 0.0, 0.001), (_together(10**6), 0.15, 0.6)):
        seen, _ = Look().at(open_counts(counts, 1))
        assert seen.records == pytest.approx(counts.sum(), abs=4000)
        assert seen.dependence is not None
        assert low <= seen.dependence <= high


def test_what_noise_hides_is_what_was_expected():
    blocks = np.full((4, 4, 4), 2.0)
    assert dependence(blocks, 1e6, 128.0) == pytest.approx(0.01, abs=1e-3)
    assert dependence(np.zeros((4, 1, 1)), 1.0, 1.0) == pytest.approx(0.01)


def test_what_noise_may_hide_is_not_said_to_be_nothing():
    level = np.full((4, 4, 4), 100.0)
    # Nothing stands out of noise; with a tenth of its variance a tenth may be hidden, since residuals are squared.
    more, less = (dependence(level, variance, 6400.0) for variance in (1e4, 1e3))
    assert 0.0001 < less < more < 0.01
    assert more == pytest.approx(10.0 * less, rel=0.1)


def test_the_less_attributes_depend_the_less_is_spent_on_tables_of_many():
    kinds = asked_kinds(SHAPE, None, None, None)

    def spent(dependence):
        plan = Forecaster(SHAPE, kinds, NoiseLaw("laplace", 10), 1e4, dependence).tables()
        return sum(
            float(share) for axes, share in zip(plan.tables, plan.shares, strict=True) if len(axes) == 1
        )

    assert spent(0.0) > 0.8 > 0.3 > spent(0.05)


def test_shares_go_by_how_far_blocks_say_that_pairs_are_from_chance():
    def shares(shape, records, scale, dependence, kind="laplace"):
        kinds = asked_kinds(shape, None, None, None)
        plan = Forecaster(shape, kinds, NoiseLaw(kind, scale), records, dependence).tables()
        return dict(zip(plan.tables, map(float, plan.shares), strict=True))

    # Ten thousand noise scales of records that go together by chance: more than one attribute tells nothing.
    assert set(shares((20, 6, 5), 1e5, 10, 0.0)) == {(0,), (1,), (2,), (0, 1, 2)}
    # Where they do not, cells hold far more than what tables of two suggest, so the cube has most.
    assert shares((60, 8, 12, 2), 2e4, 1, 0.01)[(0, 1, 2, 3)] > 0.5
    # Under ρ shares do not exclude each other.
    assert (0, 1) in shares((20, 6, 5), 1e5, 10, 0.0, "gaussian")


def test_strong_pairs_say_more_than_blocks_that_hide_them_and_their_noise_says_nothing():
    assert Glimpse(1e4, 0.01).beyond == 0.0
    assert Glimpse(1e4, 0.01, 0.05, apart=0.45).beyond == pytest.approx(0.4)
    assert Glimpse(1e4, 0.01, 0.05, apart=0.24).beyond == 0.0
    assert Glimpse(1e4, 0.2, 0.05, apart=0.45).beyond == 0.0
    assert Glimpse(1e4, None, 0.05, apart=0.45).beyond == 0.0
    assert Glimpse(1e4, 0.01, 0.05, apart=0.45, elsewhere=0.3).beyond == 0.0


def test_what_blocks_show_of_short_attributes_is_not_taken_for_two_long_ones():
    domain = Domain([Ordinal("x", range(32)), Ordinal("y", range(16)), Nominal("z", list("abcd"))])
    leans = np.full(domain.shape, 10, dtype=np.int64)
    leans[:16, :, 0] = 90
    level = Look().at(open_counts(Histogram(domain, np.full(domain.shape, 30)), 1, seed=1))[0]
    shown = Look().at(open_counts(Histogram(domain, leans), 1, seed=1))[0]
    diagonal = np.zeros(domain.shape, dtype=np.int64)
    diagonal[np.arange(32), np.arange(32) // 2] = 600
    long = Look().at(open_counts(Histogram(domain, diagonal), 1, seed=1))[0]
    truth = leans.sum(axis=1) / leans.sum()
    apart = np.abs(truth - np.outer(truth.sum(axis=1), truth.sum(axis=0))).sum() / 2.0
    assert shown.elsewhere == pytest.approx(apart, abs=0.05)
    assert level.elsewhere < 0.05
    assert long.elsewhere < 0.05
