"""What repeats inside blocks adds to intervals of what cuts them."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive import Engine
from dphist.inference.predictive.apart import Distances
from dphist.inference.predictive.inside import Inside


def _one_block(strengths):
    tree = MeasuredTree.of((4, 6), [-1], [[0, 0]], [[4, 6]], [240.0], [8.0])
    counts = np.full((4, 6), 10.0)
    return Inside(Engine.of_tree(tree), counts, Distances(np.zeros(2), np.full(2, 8.0)), np.array(strengths))


@pytest.mark.parametrize("axis", [0, 1])
def test_what_a_cut_adds_is_the_variance_of_values_less_their_mean(axis):
    inside = _one_block([1.0, 0.0] if axis == 0 else [0.0, 1.0])
    n, across = (4, 6) if axis == 0 else (6, 4)
    draws = np.random.default_rng(1).standard_normal((20_000, n))
    draws -= draws.mean(axis=1, keepdims=True)
    for stop in range(1, n + 1):
        low, high = np.zeros((1, 2), dtype=np.int64), np.array([[4, 6]])
        high[0, axis] = stop
        expected = float((10.0 * across * draws[:, :stop].sum(axis=1)).var())
        assert inside.variance(low, high)[0] == pytest.approx(expected, rel=0.05, abs=1e-6)
    # One value between others: no more than all of its cells, not both of its ends.
    low, high = np.zeros((1, 2), dtype=np.int64), np.array([[4, 6]])
    low[0, axis], high[0, axis] = 1, 2
    assert inside.variance(low, high)[0] == pytest.approx((10.0 * across) ** 2)
    both = inside.variance(np.repeat(low, 2, axis=0), np.repeat(high, 2, axis=0), np.array([0, 2]))
    assert both[0] == pytest.approx(2 * (10.0 * across) ** 2)
