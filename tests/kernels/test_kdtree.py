"""Growth by Algorithm 3 against a plain search, and leaf variances against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.kernels.trees import kdtree
from dphist.mechanisms.dpcube import box_tree


def grow_plainly(cells, variance):
    """Algorithm 3 by walking cells: the set of its leaves."""
    leaves = []

    def go(low, high):
        box = cells[tuple(slice(a, b) for a, b in zip(low, high, strict=True))].astype(float)
        if box.size == 1 or box.var() <= variance:
            leaves.append((low, high))
            return
        best = (np.inf, None, None)
        for axis in range(cells.ndim):
            for cut in range(low[axis] + 1, high[axis]):
                one, other = np.split(box, [cut - low[axis]], axis=axis)
                left = one.size * one.var() + other.size * other.var()
                if left < best[0] - 1e-9 * (1 + abs(left)):
                    best = (left, axis, cut)  # type: ignore[assignment]
        _, axis, cut = best  # type: ignore[assignment]
        go(low, (*high[:axis], cut, *high[axis + 1 :]))
        go((*low[:axis], cut, *low[axis + 1 :]), high)

    go((0,) * cells.ndim, cells.shape)
    return set(leaves)


def leaves_of(tree):
    ends = tree.leaves
    return {(tuple(map(int, tree.low[i])), tuple(map(int, tree.high[i]))) for i in ends}


@pytest.mark.parametrize("shape", [(23,), (7, 9), (4, 5, 6), (3, 1, 4), (1,), (2, 3, 2, 3)])
@pytest.mark.parametrize("variance", [0.0, 5.0, 60.0])
def test_growth_is_algorithm_3(shape, variance):
    rng = np.random.default_rng(sum(shape))
    # A prime scale and real noise keep cuts from tying.
    cells = (rng.integers(-30, 30, shape) * 7 + rng.integers(0, 4, shape) ** 3).astype(np.int64)
    assert leaves_of(box_tree(cells, variance=variance)) == grow_plainly(cells, variance)


def test_labels_tile_the_cells_and_name_their_leaf():
    rng = np.random.default_rng(3)
    cells = rng.integers(0, 50, (9, 6, 5)).astype(np.int64)
    tree = box_tree(cells, variance=100.0)
    labels = tree.labels.reshape(cells.shape)
    for number, node in enumerate(tree.leaves):
        box = tuple(slice(a, b) for a, b in zip(tree.low[node], tree.high[node], strict=True))
        assert (labels[box] == number).all()
    assert np.array_equal(np.bincount(tree.labels), tree.sizes)
    assert (tree.parent[1:] < np.arange(1, tree.parent.size)).all()


@pytest.mark.parametrize("offset", [0, 10**6, -(10**9)])
def test_splits_do_not_feel_how_far_from_zero_the_cells_are(offset):
    rng = np.random.default_rng(4)
    cells = rng.integers(0, 40, (12, 12)).astype(np.int64)
    assert leaves_of(box_tree(cells + offset, variance=30.0)) == leaves_of(box_tree(cells, variance=30.0))


def test_a_huge_cell_does_not_blur_small_ones():
    # Its square passes 2^64, and 60 small cells after it must still be told apart exactly.
    cells = np.zeros(64, dtype=np.int64)
    cells[0] = 2**40
    cells[40:] = 3
    found = leaves_of(box_tree(cells, variance=0.01))
    assert found == {((0,), (1,)), ((1,), (40,)), ((40,), (64,))}


def test_values_beyond_the_limit_are_still_apart():
    cells = np.array([0, 2**60, -(2**60), 5, 5, 5], dtype=np.int64)
    assert ((3,), (6,)) in leaves_of(box_tree(cells, variance=0.5))


def test_pruning_keeps_the_cheapest_tree():
    rng = np.random.default_rng(5)
    cells = rng.integers(0, 9, 14).astype(np.int64)
    sums, squares, loose = kdtree.tables(cells)
    left, sse, _, _ = kdtree.grow(sums, squares, loose, np.array([14]), 0.0, 0.0, 0, np.inf)
    full = left.copy()

    def cheapest(node, price):
        own = sse[node] + price
        return (
            own if full[node] < 0 else min(own, cheapest(full[node], price) + cheapest(full[node] + 1, price))
        )

    def cost(node, price):
        return sse[node] + price if left[node] < 0 else cost(left[node], price) + cost(left[node] + 1, price)

    for price in (0.5, 3.0, 20.0):
        left[:] = full
        kdtree.prune(left, sse, price)
        assert cost(0, price) == pytest.approx(cheapest(0, price))


@pytest.mark.parametrize("pull_rule", ["weighted", "printed", "uniform"])
def test_leaf_variances_equal_dense_algebra(pull_rule):
    rng = np.random.default_rng(6)
    cells = rng.integers(0, 60, (6, 7)).astype(np.int64)
    tree = box_tree(cells, variance=80.0)
    n = tree.sizes.astype(float)
    cell_scale, leaf_scale = (0.0, 2.0) if pull_rule == "uniform" else (3.0, 2.0)
    pull = {"weighted": 1 / (n + (2 / 3) ** 2), "printed": 1 / (n + 1), "uniform": 1 / n}[pull_rule]
    full = np.zeros(tree.left.size)
    full[tree.leaves] = pull
    # Estimate = (I − P S) y + P z with S summing leaves and P spreading pull over their cells.
    S = (tree.labels[None, :] == np.arange(n.size)[:, None]).astype(float)
    P = S.T * pull
    on_cells, on_leaves = np.eye(42) - P @ S, P
    low = np.array([[0, 0], [1, 2], [3, 3], [0, 0], [2, 2]])
    high = np.array([[6, 7], [4, 6], [4, 4], [3, 7], [2, 5]])
    variance, largest = kdtree.leaf_spread(
        tree.left, tree.parent, tree.low, tree.high, full, cell_scale, leaf_scale, low, high
    )
    for q in range(len(low)):
        mask = np.zeros((6, 7))
        mask[low[q, 0] : high[q, 0], low[q, 1] : high[q, 1]] = 1
        weight = mask.reshape(-1) @ on_cells, mask.reshape(-1) @ on_leaves
        exact = 2 * cell_scale**2 * (weight[0] ** 2).sum() + 2 * leaf_scale**2 * (weight[1] ** 2).sum()
        assert variance[q] == pytest.approx(exact)
        top = max(np.abs(weight[0]).max() * cell_scale, np.abs(weight[1]).max() * leaf_scale)
        assert largest[q] == pytest.approx(top) or (mask.sum() == 0 and largest[q] == 0)
