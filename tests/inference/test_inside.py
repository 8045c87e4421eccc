"""What repeats inside blocks adds to intervals of what cuts them."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive import Engine
from dphist.inference.predictive.apart import Distances
from dphist.inference.predictive.inside import Inside
from dphist.mechanisms.auto import Auto
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist.testing.gates import run


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


def _line_of_blocks(strength, sizes=(8, 8)):
    ends = np.cumsum([0, *sizes])
    n = int(ends[-1])
    tree = MeasuredTree.of(
        (n,),
        [-1, 0, 0],
        [[0], [0], [ends[1]]],
        [[n], [ends[1]], [n]],
        [4.0 * n, 32.0, 4.0 * n - 32.0],
        [2.0] * 3,
    )
    return Inside(
        Engine.of_tree(tree), np.full(n, 4.0), Distances(np.zeros(1), np.full(1, 8.0)), np.array([strength])
    )


def test_records_of_small_blocks_may_all_lie_in_what_is_asked_for_or_elsewhere():
    low, high = np.array([[7], [2], [0], [0], [3]]), np.array([[9], [4], [8], [16], [4]])
    # One cell on either side of the border, two inside a block, a block, both blocks, one cell.
    below, above = _line_of_blocks(2.0).lumps(low, high)
    assert below.tolist() == pytest.approx([8.0, 8.0, 0.0, 0.0, 0.0])
    assert above.tolist() == pytest.approx([56.0, 24.0, 0.0, 0.0, 0.0])
    assert _line_of_blocks(0.5).lumps(low, high)[1][0] == pytest.approx(14.0)
    assert not np.any(_line_of_blocks(0.0).lumps(low, high))
    # A list of two pieces adds squares; larger blocks are left to the variance; and so are planes.
    both = _line_of_blocks(2.0).lumps(low[:2], high[:2], np.array([0, 2]))
    assert both[1][0] == pytest.approx(np.hypot(56.0, 24.0))
    assert _line_of_blocks(2.0, (8, 32)).lumps(low[:1], high[:1])[1][0] == pytest.approx(28.0)
    assert not np.any(_one_block([2.0, 2.0]).lumps(np.zeros((1, 2), dtype=np.int64), np.array([[2, 2]])))


def test_bursts_beside_borders_of_blocks_are_held_more_often():
    n, place = 512, np.arange(512) % 32
    counts = np.where((place == 0) | (place == 31), 40, 1)
    low = np.arange(n - 8)[:, None]
    asked = Workload(Domain([Ordinal("x0", range(n))]), low, low + 8)
    truth, held = asked.answer(counts), []
    for seed in range(6):
        estimate = run(Auto(), counts, Budget.of(rho="1/200"), seed=seed)
        published = estimate.errors.answer(asked, asked.answer(estimate.counts))
        found = estimate.errors.interval(asked, published, 0.95)
        held.append(float(((found.low <= truth) & (truth <= found.high)).mean()))
    assert np.mean(held) > 0.92
