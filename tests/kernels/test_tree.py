"""Tree least squares against dense linear algebra, projections against a general solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize

from dphist.errors import MechanismError
from dphist.inference.measured import MeasuredTree, twice
from dphist.inference.trees import TreeNoise
from dphist.kernels.trees.passes import projected
from dphist.mechanisms.tree import complete_tree


def infer(parent, values, variances, *, nonnegative: bool = False) -> np.ndarray:
    """Totals in the order of the nodes that were given, whatever order the tree took."""
    n = len(parent)
    tree = MeasuredTree.of((n,), parent, np.arange(n), np.arange(n) + 1, values, variances)
    totals = tree.nonnegative() if nonnegative else tree.least_squares()
    named = np.full(n + 1, np.nan)
    extra = len(tree) > n  # a root of its own over several
    named[tree.low[extra:, 0]] = totals[extra:]
    return named[:n]


def random_tree(seed: int, nodes: int = 30, roots: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([-1] * roots + [int(rng.integers(max(0, i - 6), i)) for i in range(roots, nodes)])


def leaf_matrix(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows are nodes, columns leaves: which leaves each node sums."""
    leaves = np.setdiff1d(np.arange(len(parent)), parent)
    matrix = np.zeros((len(parent), len(leaves)))
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            matrix[node, column] = 1
            node = parent[node]
    return matrix, leaves


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("roots", [1, 3])
def test_two_passes_equal_dense_weighted_least_squares(seed: int, roots: int) -> None:
    rng = np.random.default_rng(100 + seed)
    parent = random_tree(seed, roots=roots)
    H, leaves = leaf_matrix(parent)
    variances = rng.uniform(0.1, 9.0, len(parent))
    # Inner nodes may go unmeasured, also several in a row.
    unmeasured = (rng.random(len(parent)) < 0.3) & ~np.isin(np.arange(len(parent)), leaves)
    variances[unmeasured] = np.inf
    y = rng.normal(0, 10, len(parent))
    kept = ~unmeasured
    weight = np.diag(1 / variances[kept])
    dense = np.linalg.solve(H[kept].T @ weight @ H[kept], H[kept].T @ weight @ y[kept])
    assert infer(parent, y, variances) == pytest.approx(H @ dense, abs=1e-9)


def test_unmeasured_leaves_share_what_their_parent_has_left() -> None:
    totals = infer([-1, 0, 0, 0], [10.0, 4.0, 0.0, 0.0], [1.0, 1.0, np.inf, np.inf])
    assert totals == pytest.approx([10, 4, 3, 3])
    assert infer([-1, 0, 0], [3, 0, 0], [1, np.inf, np.inf], nonnegative=True) == pytest.approx([3, 1.5, 1.5])


@pytest.mark.parametrize("seed", range(8))
def test_projection_of_a_family_against_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, V = rng.normal(0, 5, 6), rng.uniform(0.2, 4, 6)
    total = float(rng.uniform(0.1, 12))
    (out,) = projected(z[None], V[None], np.array([total]))
    best = optimize.minimize(
        lambda x: ((x - z) ** 2 / V).sum(),
        np.full(6, total / 6),
        jac=lambda x: 2 * (x - z) / V,
        bounds=[(0, None)] * 6,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total, "jac": lambda x: np.ones(6)},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert out == pytest.approx(best.x, abs=1e-4)
    assert out.sum() == pytest.approx(total)


@pytest.mark.parametrize("seed", range(6))
def test_non_negative_totals_are_consistent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parent = random_tree(seed, nodes=60)
    totals = infer(parent, rng.normal(1, 8, 60), rng.uniform(0.1, 5, 60), nonnegative=True)
    assert totals.min() >= 0
    for node in np.unique(parent[parent >= 0]):
        assert totals[parent == node].sum() == pytest.approx(totals[node], abs=1e-9)


def test_several_roots_keep_their_sum() -> None:
    """Two roots that nobody measured together: the negative one takes from the other instead of vanishing."""
    totals = infer([-1, -1, 0, 0], [10.0, -4.0, 0, 0], [1.0, 1.0, np.inf, np.inf], nonnegative=True)
    assert totals == pytest.approx([6, 0, 3, 3])
    assert infer([-1, -1], [-1.0, -4.0], [1.0, 1.0], nonnegative=True).tolist() == [0, 0]


def test_non_negative_changes_nothing_when_nothing_is_negative() -> None:
    parent = random_tree(4)
    H, _ = leaf_matrix(parent)
    y = H @ np.full(H.shape[1], 50.0) + np.random.default_rng(1).normal(0, 1, len(parent))
    variances = np.random.default_rng(2).uniform(0.5, 2, len(parent))
    assert infer(parent, y, variances, nonnegative=True) == pytest.approx(infer(parent, y, variances))


@pytest.mark.parametrize(
    ("shape", "sides"),
    [
        ((29,), [(32,), (16,), (4,), (1,)]),
        ((29,), [(16,), (4,), (1,)]),
        ((30,), [(30,), (6,), (3,)]),
        ((5, 7), [(8, 8), (4, 4), (2, 2), (1, 1)]),
        ((5, 7), [(4, 8), (2, 2)]),
        ((1,), [(1,)]),
    ],
)
def test_variance_of_every_box_and_its_heaviest_draw(
    shape: tuple[int, ...], sides: list[tuple[int, ...]]
) -> None:
    """Against (HᵀΣ⁻¹H)⁻¹ written out; leaves of several cells are spread evenly."""
    rng = np.random.default_rng(5)
    tree = complete_tree(shape, sides)
    scales = rng.uniform(0.5, 3, len(tree))
    variances = 2 * scales**2
    inner = np.setdiff1d(np.arange(len(tree)), tree.leaves)
    variances[inner[1::3]] = np.inf
    H, leaves = leaf_matrix(tree.parent)
    kept = np.isfinite(variances)
    information = H[kept].T @ np.diag(1 / variances[kept]) @ H[kept]
    low = np.stack([rng.integers(0, n, 60) for n in shape], axis=1)
    high = np.stack([rng.integers(low[:, t] + 1, n + 1) for t, n in enumerate(shape)], axis=1)
    volume = np.prod(tree.high[leaves] - tree.low[leaves], axis=1)
    expected, heaviest = np.empty(60), np.empty(60)
    for q in range(60):
        overlap = np.minimum(tree.high[leaves], high[q]) - np.maximum(tree.low[leaves], low[q])
        weights = np.prod(np.maximum(overlap, 0), axis=1) / volume
        solved = np.linalg.solve(information, weights)
        expected[q] = weights @ solved
        heaviest[q] = np.abs(H[kept] @ solved / variances[kept] * scales[kept]).max()
    spread = TreeNoise(replace(tree, variance=variances)).spread_boxes(low, high)
    assert spread.variance == pytest.approx(expected, rel=1e-9)
    assert (spread.largest >= heaviest * (1 - 1e-9)).all()
    assert (2 * spread.largest**2 <= spread.variance * (1 + 1e-9)).all()


def test_the_heaviest_draw_is_exact_where_levels_are_noised_alike() -> None:
    tree = complete_tree((64,), [(64,), (16,), (4,), (1,)])
    scales = np.repeat([4.0, 2.0, 3.0, 5.0], [1, 4, 16, 64])
    H, _ = leaf_matrix(tree.parent)
    covariance = np.linalg.inv(H.T @ np.diag(0.5 / scales**2) @ H)
    low, high = np.array([[0], [3], [16], [5], [60]]), np.array([[64], [50], [32], [6], [63]])
    heaviest = []
    for a, b in zip(low[:, 0], high[:, 0], strict=True):
        query = (np.arange(64) >= a) & (np.arange(64) < b)
        heaviest.append(np.abs(H @ covariance @ query / (2 * scales)).max())
    noise = TreeNoise(replace(tree, variance=2 * scales**2))
    assert noise.spread_boxes(low, high).largest == pytest.approx(heaviest)


def test_blocks_nest_and_cells_take_even_shares() -> None:
    tree = complete_tree((5,), [(5,), (2,)])
    assert tree.parent.tolist() == [-1, 0, 0, 0]
    assert tree.low[:, 0].tolist() == [0, 0, 2, 4]
    assert tree.high[:, 0].tolist() == [5, 2, 4, 5]
    assert tree.leaf.tolist() == [1, 1, 2, 2, 3]
    assert tree.cells(np.array([9.0, 2, 4, 3])).tolist() == [1, 1, 2, 2, 3]
    square = complete_tree((3, 2), [(2, 2), (1, 2)])
    assert square.parent.tolist() == [-1, 0, 0, 1, 1, 2], "two roots get one over them"
    assert square.first.tolist() == [1, 3, 5, -1, -1, -1]
    assert square.cells(np.array([0.0, 0, 0, 2, 4, 6])).tolist() == [[1, 1], [2, 2], [3, 3]]


def test_two_measurements_of_one_total() -> None:
    value, variance = twice(np.array([1.0]), np.array([1.0]), np.array([4.0]), np.array([2.0]))
    assert value == pytest.approx([2.0])
    assert variance == pytest.approx([2 / 3])
    tree = MeasuredTree.of((1,), [-1], [[0]], [[1]], value, variance, seen=[1.0], seen_variance=[1.0])
    assert tree.again()[0] == pytest.approx([4.0])
    assert tree.again()[1] == pytest.approx([2.0])


def pooled_tree() -> MeasuredTree:
    """Blocks 0–1, 4–5 and 8–9 pooled; the others and everything measured by themselves, one of them in cells."""
    parent = [-1, 0, 0, 0, 1, 1, 1, 2, 2]
    low = [0, 0, 2, 6, 0, 4, 8, 2, 3]
    high = [10, 10, 4, 8, 2, 6, 10, 3, 4]
    value = [50.0, 28.0, 12.0, 9.0, 10.0, 6.0, 15.0, 7.0, 4.0]
    variance = [9.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 3.0, 3.0]
    return MeasuredTree.of((10,), parent, low, high, value, variance, pool=[0, 1, 0, 0, 0, 0, 0, 0, 0])


def test_a_pool_is_a_node_over_its_blocks() -> None:
    tree = pooled_tree()
    assert tree.size.tolist() == [10, 6, 2, 2, 2, 2, 2, 1, 1]
    assert tree.leaf.tolist() == [4, 4, 7, 8, 5, 5, 3, 3, 6, 6]
    z, variance = tree.gathered
    assert z[1] == pytest.approx((28 / 2 + 31 / 12) / (1 / 2 + 1 / 12))
    assert variance[1] == pytest.approx(1 / (1 / 2 + 1 / 12))
    for totals in (tree.least_squares(), tree.nonnegative()):
        assert totals[1:4].sum() == pytest.approx(totals[0])
        assert totals[4:7].sum() == pytest.approx(totals[1])
        assert tree.cells(totals).sum() == pytest.approx(totals[0])


def test_the_noise_of_ranges_that_cut_a_pool_is_exact() -> None:
    tree = pooled_tree()
    H, leaves = leaf_matrix(tree.parent)
    information = H.T @ np.diag(1 / tree.variance) @ H
    bounds = np.array([(a, b) for a in range(10) for b in range(a + 1, 11)])
    spread = TreeNoise(tree).spread_boxes(bounds[:, :1], bounds[:, 1:])
    for (a, b), found in zip(bounds, spread.variance, strict=True):
        overlap = np.minimum(tree.high[leaves, 0], b) - np.maximum(tree.low[leaves, 0], a)
        weights = np.maximum(overlap, 0) / tree.size[leaves]
        assert found == pytest.approx(weights @ np.linalg.solve(information, weights), rel=1e-9)


def test_a_tree_that_is_not_one_is_refused() -> None:
    with pytest.raises(MechanismError, match="parents"):
        infer([0, 0], [1, 1], [1, 1])
    with pytest.raises(MechanismError, match="one value"):
        infer([-1, 0], [1], [1, 1])
