"""Trees of boxes planned for the ranges that will be asked: what they spend, where they go, what they say."""

from fractions import Fraction

import numpy as np
import pytest

from dphist.mechanisms.trees.growing import grow
from dphist.mechanisms.trees.planning import (
    PlannedBoxes,
    Planner,
)
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Noise
from dphist.private.noise.keystream import Keystream
from dphist.testing import open_counts


def _domain(shape):
    return Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(shape)])


def grow_boxes(data):
    planner = Planner.for_ranges(data.shape, data.workload, data.domain, data.law())
    return grow(data, PlannedBoxes(planner))


def _clusters(shape, records, seed=1):
    generator = np.random.default_rng(seed)
    where = generator.random((5, len(shape)))[generator.integers(0, 5, records)]
    place = (where + generator.normal(0, 0.03, (records, len(shape)))) % 1.0
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple((place * shape).astype(int).T), 1)
    return counts


@pytest.mark.parametrize("shape", [(32, 32), (33, 5), (7, 6, 5), (1, 9), (1, 1)])
@pytest.mark.parametrize("records", [0, 50, 50_000])
def test_every_cell_pays_everything_exactly_once(shape, records):
    # Whatever is asked next depends on noise; what each cell has paid in the end does not.
    histogram = Histogram(_domain(shape), _clusters(shape, records))
    noise = Noise(Keystream.for_tests(records))
    right, transcript = open_gate(histogram, Fraction(1, 3), Unit(), noise=noise)
    tree = grow_boxes(right)
    assert transcript.spent() == Fraction(1, 3)
    size = np.bincount(tree.leaf, minlength=tree.size.size)
    leaves = tree.first < 0
    assert np.array_equal(size[leaves], tree.size[leaves])
    assert not size[~leaves].any()


@pytest.mark.parametrize("shape", [(32, 32), (33, 5), (7, 6, 5)])
def test_boxes_tile_their_parents(shape):
    tree = grow_boxes(open_counts(_clusters(shape, 3000), 1, seed=2))
    volume = np.prod(tree.high - tree.low, axis=1)
    assert np.array_equal(volume, tree.size)
    inner = np.flatnonzero(tree.first >= 0)
    below = np.bincount(tree.parent[1:], volume[1:], minlength=volume.size)
    assert np.array_equal(below[inner], volume[inner])
    for node in inner[:50]:
        children = slice(tree.first[node], tree.last[node])
        assert (tree.parent[children] == node).all()
        assert (tree.low[children] >= tree.low[node]).all()
        assert (tree.high[children] <= tree.high[node]).all()


@pytest.mark.parametrize(("budget", "variance"), [(Budget.of(1), 2.0), (Budget.of(rho="1/2"), 1.0)])
def test_a_look_that_leads_nowhere_costs_nothing(budget, variance):
    """Four boxes, looked at with a quarter of the budget: those that end there are known as if all had been spent."""

    def rule(front):
        if front.level < 0:
            after = front.grid((4, 4), (2, 2), 0).measure(Fraction(1, 4), gradual=True)
            low, high = after.part(np.array([0, 1, 0, 1]))
            return [low.finish(np.ones(2, dtype=bool)), high]
        front.grid((2, 2), (1, 1), 1).measure(front.left)
        return []

    tree = grow(open_counts(np.arange(16).reshape(4, 4), budget, seed=1), rule)
    pure = budget.currency == "epsilon"
    assert tree.gradual == pure
    leaves = tree.leaves[tree.size[tree.leaves] == 4]
    assert leaves.size == 2
    assert np.allclose(tree.variance[leaves], variance)
    assert tree.seen_variance is not None
    # What was seen first is kept, and both have the price of what they cost.
    assert np.allclose(tree.seen_variance[leaves], 32.0 if pure else 4.0)
    cells = tree.leaves[tree.size[tree.leaves] == 1]
    assert np.allclose(tree.variance[cells], 2.0 / 0.75**2 if pure else 1.0 / 0.75)


def test_finer_answers_are_closer():
    """Of boxes that were looked at with half of the budget: half the variance of two answers put together."""
    cells = 20_000

    def rule(front):
        if front.level < 0:
            return [front.grid((cells, 1), (1, 1), 0).measure(Fraction(1, 2), gradual=True)]
        return [front.finish(np.ones(len(front), dtype=bool))]

    tree = grow(open_counts(np.full((cells, 1), 7), 1, seed=2), rule)
    leaves = tree.leaves
    assert tree.seen is not None
    assert np.mean((tree.value[leaves] - 7) ** 2) == pytest.approx(
        2 * np.exp(-1) / (1 - np.exp(-1)) ** 2, rel=0.05
    )
    looked = 2 * np.exp(-0.5) / (1 - np.exp(-0.5)) ** 2
    assert np.mean((tree.seen[leaves] - 7) ** 2) == pytest.approx(looked, rel=0.05)
