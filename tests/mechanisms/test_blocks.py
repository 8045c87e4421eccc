"""The algebra of blocks, and the errors they state."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.inference.linear import BucketNoise, CellBound
from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.mechanisms.blocks import Blocks, Sort
from dphist.mechanisms.smooth import Smooth
from dphist.mechanisms.tree import Tree
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.compare import skyline
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.testing import run
from dphist.testing.gates import as_histogram


@pytest.mark.parametrize("inner", [Laplace(), Tree(fanout=4), Uniform(), Blocks(group=Smooth("squared"))])
@pytest.mark.parametrize("shape", [(40,), (5, 8)])
def test_blocks_with_nothing_but_an_inner_mechanism_are_that_mechanism(inner, shape) -> None:
    x = np.random.default_rng(0).poisson(5, shape)
    assert np.array_equal(run(Blocks(inner=inner), x, 1, seed=4).counts, run(inner, x, 1, seed=4).counts)


def test_one_noisy_copy_orders_and_groups() -> None:
    """Two questions only: the copy with 13/20 of the budget, the groups with the rest."""
    right, transcript = open_gate(
        as_histogram(np.arange(30) % 4), 1, Unit(), noise=Noise(Keystream.for_tests(1))
    )
    Blocks(order=Sort(), group=Smooth("squared")).estimate(right)
    assert [entry.epsilon for entry in transcript] == [Fraction(13, 20), Fraction(7, 20)]


def test_nonnegative_only_raises_what_is_negative() -> None:
    x = np.zeros(64, dtype=np.int64)
    x[3] = 50
    plain = run(Blocks(group=Smooth("squared")), x, "0.5", seed=5).counts
    kept = run(Blocks(group=Smooth("squared"), nonnegative=True), x, "0.5", seed=5).counts
    assert plain.min() < 0
    assert np.array_equal(kept, np.maximum(plain, 0))


def test_variances_of_grouped_trees_are_never_too_small() -> None:
    """Runs of the inner noise alone, groups given: the stated variance is at least what is seen (6 standard errors)."""
    x = np.repeat(np.arange(12) * 100, 5)
    sizes = np.full(12, 5)
    starts = np.arange(12)
    workload = Workload(as_histogram(x).domain, [[0], [3], [5], [7], [1]], [[60], [52], [20], [9], [2]])
    inner = Tree(fanout=4, nonnegative=False)
    seen, truth = [], workload.answer(x)
    totals = np.bincount(np.repeat(starts, 5), x).astype(np.int64)
    for seed in range(300):
        counts = np.repeat(run(inner, totals, 1, seed=seed).counts / 5, 5)
        seen.append(workload.answer(counts) - truth)
    errors = run(inner, totals, 1, seed=0).errors
    stated = BucketNoise(sizes, errors).spread(workload)
    actual = (np.array(seen) ** 2).mean(axis=0)
    assert (actual < stated.variance * (1 + 6 * np.sqrt(5 / 300))).all()
    # Exact where no group is cut, and inside one group.
    assert (actual[[0, 2, 3, 4]] > stated.variance[[0, 2, 3, 4]] * (1 - 6 * np.sqrt(5 / 300))).all()
    bound = CellBound((60,), np.repeat(starts, 5), sizes, errors).spread(workload)
    assert (bound.variance >= stated.variance * (1 - 1e-9)).all()


def test_a_tree_of_groups_needs_a_tree() -> None:
    with pytest.raises(MechanismError, match="tree"):
        run(Blocks(group=Smooth("squared", sizes="tree")), np.arange(8), 1, seed=1)
    with pytest.raises(MechanismError, match="order"):
        run(
            Blocks(order=Sort(), group=Smooth("squared", sizes="tree"), inner=Tree()), np.arange(8), 1, seed=1
        )


@pytest.mark.parametrize("order", [None, Sort()])
@pytest.mark.parametrize("metric", ["absolute", "squared"])
def test_groups_of_a_great_many_cells_are_refused_before_anything_is_paid(order, metric) -> None:
    right, transcript = open_gate(as_histogram(np.zeros(2**17 + 1, dtype=np.int64)), 1, Unit())
    with pytest.raises(MechanismError, match='at most 131,072 cells; use "powers"'):
        Blocks(order=order, group=Smooth(metric)).estimate(right)
    assert len(transcript) == 0


def test_skyline_by_hand() -> None:
    rows = [("fast", 1.0, 9.0), ("slow", 9.0, 1.0), ("both", 9.0, 9.0), ("twin", 1.0, 9.0)]
    assert skyline(rows) == ["fast", "slow", "twin"]
    assert skyline([]) == []


def test_a_tree_over_groups_is_a_tree_over_their_cells():
    counts = np.repeat(np.random.default_rng(2).integers(0, 90, 16), 8)
    estimate = run(Blocks(group=Smooth("absolute"), inner=Tree(nonnegative=False)), counts, 1, seed=4)
    tree = estimate.errors.tree  # type: ignore[attr-defined]
    assert tree.shape == counts.shape
    assert tree.cells(tree.least_squares()) == pytest.approx(estimate.counts)
