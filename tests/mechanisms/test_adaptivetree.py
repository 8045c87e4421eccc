"""AdaptiveTree: what it measures, what it spends, intervals, audit."""

from fractions import Fraction

import numpy as np

from dphist.mechanisms.adaptivetree import AdaptiveTree, by_group, group_labels
from dphist.mechanisms.trees.growing import grow
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.testing import open_counts, run


def test_a_hierarchy_is_the_tree():
    tree = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}
    attribute = Nominal("place", tree)
    for level, expected in enumerate(([0, 0, 2, 2, 2], [0, 1, 2, 3, 3], [0, 1, 2, 3, 4])):
        assert group_labels(attribute.hierarchy, level).tolist() == expected
    histogram = Histogram(Domain([attribute]), np.array([500, 400, 3000, 900, 800]))
    grown = grow(open_counts(histogram, 10, seed=1), by_group(attribute.hierarchy))
    assert grown.high[1:3, 0].tolist() == [2, 5], "north and south"


def by_level(sides, shares, finish):
    """A rule that halves nothing but stops as it is told."""

    def rule(front):
        level = front.level + 1
        front = front.runs(front.cells // sides[level], level).measure(shares[level])
        if level == len(sides) - 1:
            return []
        return [front.finish(finish(front))]

    return rule


def test_every_cell_pays_exactly_the_budget():
    # A rule that stops at random places: the transcript must still add up to ε on every path.
    generator = np.random.default_rng(3)

    def finish(front):
        return generator.random(len(front)) < 0.5

    shares = (Fraction(1, 7), Fraction(2, 7), Fraction(1, 7), Fraction(3, 7))
    for size in (64, 50):
        histogram = Histogram(Domain([Ordinal("x", range(size))]), np.arange(size))
        right, transcript = open_gate(histogram, 1, Unit(), noise=Noise(Keystream.for_tests(1)))
        tree = grow(right, by_level((16, 8, 2, 1), shares, finish))
        assert transcript.spent() == 1
        assert tree.leaf.shape == (size,)
        assert (tree.first[tree.leaf] == -1).all(), "cells belong to leaves"
        assert np.array_equal(np.bincount(tree.leaf, minlength=len(tree))[tree.leaf], tree.size[tree.leaf])
        for node in np.flatnonzero(tree.first >= 0):
            children = slice(tree.first[node], tree.last[node])
            assert tree.size[children].sum() == tree.size[node]
            assert tree.low[children].min() == tree.low[node]
            assert tree.high[children].max() == tree.high[node]


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
