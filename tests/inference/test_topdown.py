"""Polished counts: whole, none negative, and every part of the table as good as it was."""

import numpy as np
import pytest

import dphist
from dphist.inference.topdown import integers_topdown, nearest, nonnegative_topdown

TREE = {f"t{t}": {f"g{t}{g}": [f"b{t}{g}{b}" for b in range(40)] for g in range(5)} for t in range(6)}
PLACES = dphist.Nominal("place", TREE)
DOMAINS = {
    "a line": dphist.Domain([dphist.Ordinal("x", range(37))]),
    "a line with others": dphist.Domain([dphist.Ordinal("x", range(9), other=True)]),
    "a plane": dphist.Domain([dphist.Ordinal("x", range(13)), dphist.Ordinal("y", range(5))]),
    "categories": dphist.Domain([dphist.Nominal("a", list("abcdefg"))]),
    "one cell": dphist.Domain([dphist.Nominal("a", ["a"])]),
    "uneven groups": dphist.Domain(
        [dphist.Nominal("a", {"x": {"w": ["1", "2"], "y": ["3"]}, "z": ["4"]}, other=True)]
    ),
    "two hierarchies": dphist.Domain(
        [
            dphist.Nominal("a", {"x": {"w": ["1", "2"], "y": ["3"]}, "z": ["4"]}),
            dphist.Ordinal("n", range(3)),
            dphist.Nominal("b", {"p": ["5", "6"], "q": ["7"]}),
        ]
    ),
}


def _sums(counts):
    """By tract, by group of blocks and by block, each by sex."""
    return [counts.reshape(parts, -1, 2).sum(axis=1) for parts in (1, 6, 30, 1200)]


def _release(mechanism):
    draw = np.random.default_rng(4)
    domain = dphist.Domain([PLACES, dphist.Nominal("sex", ["F", "M"])])
    truth = np.where(draw.random(domain.shape) < 0.1, draw.poisson(30, domain.shape), 0)
    histogram = dphist.Histogram(domain, truth)
    return truth, dphist.publish(histogram, rho=1, unit=dphist.Unit(replace=True), mechanism=mechanism)


@pytest.mark.parametrize("mechanism", ["laplace", "privelet", "adaptivetree"])
def test_polished_groups_of_a_hierarchy_are_about_as_good_as_they_were(mechanism):
    truth, release = _release(mechanism)
    nice = release.polished(nonnegative=True, integer=True)
    assert (nice.counts >= 0).all()
    assert np.array_equal(nice.counts, np.rint(nice.counts))
    for one, other, true in zip(_sums(release.counts), _sums(nice.counts), _sums(truth), strict=True):
        # One number taken from all cells had them off by twenty to two hundred times as much.
        assert np.abs(other - true).mean() <= 1.3 * np.abs(one - true).mean() + 1.0
    nice.verify()
    # Intervals of groups hold what is published.
    for group in ("t0", "g31", "b010"):
        answer = nice.answer(where={"place": group, "sex": "F"})
        assert answer.low <= answer.value <= answer.high


def test_the_largest_remainders_are_rounded_up():
    four = dphist.Domain([dphist.Nominal("a", list("abcd"))])
    assert integers_topdown(np.array([0.9, 3.2, 0.2, 5.7]), four).tolist() == [1, 3, 0, 6]


@pytest.mark.parametrize("name", DOMAINS)
def test_rounded_parts_are_within_one_of_their_sums_and_nothing_is_lost(name):
    domain, draw = DOMAINS[name], np.random.default_rng(7)
    for spread in (0.3, 5.0, 1e9):
        counts = draw.normal(spread, 2 * spread, domain.shape)
        nice = nonnegative_topdown(counts, domain)
        assert nice.shape == domain.shape
        assert (nice >= 0).all()
        assert nice.sum() == pytest.approx(max(0.0, counts.sum()), abs=1e-6 * spread)
        assert nonnegative_topdown(counts, domain, 17.0).sum() == pytest.approx(17.0, abs=1e-6 * spread)
        for before in (counts, nice):
            whole = integers_topdown(before, domain)
            assert np.array_equal(whole, np.rint(whole))
            assert np.abs(whole - before).max() < 1 + 1e-6
            assert abs(whole.sum() - before.sum()) <= 0.5 + 1e-6 * spread
            if name == "a line":
                halves = [each[:18].sum() for each in (whole, before)]
                assert abs(halves[0] - halves[1]) < 1 + 1e-6 * spread
            if name == "uneven groups":
                groups = [each[:3].sum() for each in (whole, before)]
                assert abs(groups[0] - groups[1]) < 1 + 1e-6 * spread


def test_numbers_that_need_nothing_stay_as_they_are():
    domain = DOMAINS["two hierarchies"]
    counts = np.random.default_rng(1).poisson(5, domain.shape).astype(float)
    assert nonnegative_topdown(counts, domain) == pytest.approx(counts, abs=1e-12)
    assert np.array_equal(integers_topdown(counts, domain), counts)


def test_a_total_that_vanishes_beside_a_count_is_held_by_that_count_alone():
    found = nearest(np.array([1e20, 5.0, -3.0]), np.zeros(3, dtype=int), np.array([1.0]))
    assert found.min() >= 0
    assert found[1:].tolist() == [0, 0]


def test_the_nearest_point_that_adds_up():
    draw = np.random.default_rng(1)
    for _ in range(50):
        values, owner, total = draw.normal(1, 3, 12), draw.integers(0, 3, 12), draw.random(3) * 9
        owner[:3] = [0, 1, 2]
        found = nearest(values, owner, total)
        assert (found >= 0).all()
        assert np.bincount(owner, found, 3) == pytest.approx(total)
        for _ in range(20):
            other = draw.random(12)
            other *= (total / np.bincount(owner, other, 3))[owner]
            assert np.sum((found - values) ** 2) <= np.sum((other - values) ** 2) + 1e-9
