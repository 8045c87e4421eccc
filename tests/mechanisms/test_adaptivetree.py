"""AdaptiveTree: what it measures, what it spends, intervals, audit."""

from fractions import Fraction

import numpy as np
import pytest
from attacking import stands

from dphist.audit.neighbours import Pair
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.trees.growing import grow, pool_units
from dphist.mechanisms.trees.layout import group_labels, lay_out
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.testing import open_counts, run
from dphist_bench.attacks.concentrated import audit_rho
from dphist_bench.attacks.law import check_law
from dphist_bench.zoo.mutants import Mutant


def test_a_hierarchy_is_the_tree():
    tree = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}
    attribute = Nominal("place", tree)
    for level, expected in enumerate(([0, 0, 2, 2, 2], [0, 1, 2, 3, 3], [0, 1, 2, 3, 4])):
        assert group_labels(attribute.hierarchy, level).tolist() == expected
    histogram = Histogram(Domain([attribute]), np.array([500, 400, 3000, 900, 800]))
    grown = AdaptiveTree().grow(open_counts(histogram, 10, seed=1))[0]
    assert grown.high[1:3, 0].tolist() == [2, 5], "north and south"


def by_level(sides, shares, finish):
    """A rule that halves nothing but stops and pools as it is told."""

    def rule(front):
        level = front.level + 1
        front = front.runs(front.cells // sides[level], level).measure(shares[level])
        if level == len(sides) - 1:
            return []
        done, together = finish(front)
        return [front.finish(done, pool_units(front.family[done], together[done]))]

    return rule


def test_every_cell_pays_exactly_the_budget():
    # A rule that stops at random places: the transcript must still add up to ε on every path.
    generator = np.random.default_rng(3)

    def finish(front):
        done = generator.random(len(front)) < 0.5
        return done, generator.random(len(front)) < 0.9

    shares = (Fraction(1, 7), Fraction(2, 7), Fraction(1, 7), Fraction(3, 7))
    for size in (64, 50):
        histogram = Histogram(Domain([Ordinal("x", range(size))]), np.arange(size))
        right, transcript = open_gate(histogram, 1, Unit(), noise=Noise(Keystream.for_tests(1)))
        tree, _ = grow(right, by_level((16, 8, 2, 1), shares, finish))
        assert transcript.spent() == 1
        assert tree.leaf.shape == (size,)
        assert tree.pool.any()
        assert (tree.first[tree.leaf] == -1).all(), "cells belong to leaves"
        assert np.array_equal(np.bincount(tree.leaf, minlength=len(tree))[tree.leaf], tree.size[tree.leaf])
        for node in np.flatnonzero(tree.first >= 0):
            children = slice(tree.first[node], tree.last[node])
            assert tree.size[children].sum() == tree.size[node]
            assert tree.low[children].min() == tree.low[node]
            assert tree.high[children].max() == tree.high[node]
            assert not tree.pool[node] or (tree.first[children] == -1).all()


def test_intervals_of_dense_data_cover_about_as_often_as_stated():
    # With counts far above the noise nothing stops, and how totals divide says little.
    counts = np.random.default_rng(8).integers(5_000, 10_000, 256)
    domain = Domain([Ordinal("x", range(256))])
    workload = Workload.random(domain, 200, seed=3)
    hits = []
    for seed in range(40):
        estimate = run(AdaptiveTree(), counts, 1, seed=seed)
        found = estimate.errors.interval(workload, workload.answer(estimate.counts), 0.95)
        truth = workload.answer(counts)
        hits.append(np.mean((found.low <= truth) & (truth <= found.high)))
    assert 0.94 <= np.mean(hits) <= 0.985


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_the_audit_finds_nothing_in_the_look_at_how_full_a_line_is(currency):
    # About as many cells are full as make a line full, so one record may change all that follows.
    domain = Domain([Ordinal("x", range(128))])
    one = np.where(np.arange(128) % 5 < 3, 4, 0)
    other = one.copy()
    other[0] -= 1
    pair = Pair("a line that is just full", Histogram(domain, one), Histogram(domain, other))
    if currency == "rho":
        assert audit_rho(AdaptiveTree(), rho="1/2", runs=300, pairs=[pair]).passed
    else:
        layouts = {lay_out(open_counts(one, 1, seed=seed), 7, 6)[1].full for seed in range(20)}
        assert layouts == {True, False}
        assert stands(AdaptiveTree(), 300, [pair])
        # Half the noise loses little more than ε on this pair, whose look is cheap; the law of the noise tells.
        assert check_law(AdaptiveTree(), pair, 1, 20).holds
        assert check_law(Mutant(inner=AdaptiveTree(), fault="halved"), pair, 1, 20).sizes > 6
