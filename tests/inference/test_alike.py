"""Trees of boxes in several dimensions: what all leaves have alike; and lines whose cells hide in noise."""

from dataclasses import replace

import numpy as np
import pytest

import dphist
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.learning import learned_of_tree
from dphist.mechanisms import AdaptiveTree
from dphist.testing import run


def _boxes(shape, leaning):
    """A tree of two levels over a cube: halves of the first axis, then of the second, each leaning as it is told."""
    a, b, c = shape
    parents, low, high, value = [-1], [(0, 0, 0)], [shape], [1000.0 * a * c]
    for i in range(a):
        for k in range(c):
            parents.append(0)
            low.append((i, 0, k))
            high.append((i + 1, b, k + 1))
            value.append(1000.0)
    for node in range(1, len(parents)):
        for side in (0, 1):
            parents.append(node)
            low.append((low[node][0], side * b // 2, low[node][2]))
            high.append((high[node][0], b // 2 + side * b // 2, high[node][2]))
            value.append(500.0 + (1 - 2 * side) * leaning(node))
    tree = MeasuredTree.of(shape, parents, low, high, value, np.ones(len(parents)))
    return learned_of_tree(tree).law


def test_what_is_alike_adds_up_over_the_leaves_that_a_table_cuts():
    law = _boxes((8, 8, 8), lambda node: 200.0)
    own, same = replace(law, alike=0.0), replace(law, alike=1.0)
    first, every = np.array([[0, 0, 0]]), np.array([[8, 1, 8]])
    # Sixty-four leaves are cut: their roots add up instead of their squares.
    assert same.ask(first, every).inner[0] == pytest.approx(64.0 * own.ask(first, every).inner[0])
    # A cell lies in one leaf: it has nothing to add up.
    one = np.array([[0, 0, 0], [0, 0, 0]]), np.array([[1, 1, 1], [1, 1, 2]])
    cell, two = same.ask(*one, np.array([0, 1, 2])).inner
    assert two <= 4.0 * cell * (1.0 + 1e-9)
    assert own.ask(*one).inner[0] == pytest.approx(cell)


def _product(records):
    """Seven attributes that do not depend on each other."""
    draws = np.random.default_rng([7, 3, 8])
    shape = (5, 2, 4, 9, 3, 4, 2)
    weights = np.ones((1,) * len(shape))
    for axis, size in enumerate(shape):
        part = draws.dirichlet(np.full(size, 3.0))
        weights = weights * part.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    domain = dphist.Domain([dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(shape)])
    return dphist.Histogram(domain, draws.multinomial(records, weights.reshape(-1)).reshape(shape))


def test_tables_of_one_attribute_out_of_seven_hold():
    """Without what is alike 0.45 of them did."""
    histogram = _product(100_000)
    asked = dphist.Workload.marginals(histogram.domain, 1)
    truth = asked.answer(histogram.counts)
    held = []
    for seed in range(4):
        estimate = run(AdaptiveTree(), histogram, "1/50", seed=seed)
        published = estimate.errors.answer(asked, asked.answer(estimate.counts).astype(np.float64))
        found = estimate.errors.interval(asked, published, 0.95)
        held.append(float(((found.low <= truth) & (truth <= found.high)).mean()))
    assert np.mean(held) >= 0.9


def test_cells_of_a_hidden_comb_hold():
    """Noise is larger than any cell, so that those which were measured look even."""
    counts = np.where(np.arange(4096) % 2 == 0, 50, 0)
    asked = dphist.Workload.cells(dphist.Domain([dphist.Ordinal("x", range(4096))]))
    held = []
    for seed in range(3):
        made = run(AdaptiveTree(estimator="averaged"), counts, "0.1", seed=seed)
        bounds = made.errors.interval(asked, made.counts, 0.95)
        held.append(float(((bounds.low <= counts) & (counts <= bounds.high)).mean()))
    assert np.mean(held) > 0.93
