"""Trees of totals: plans, consistency, budgets, intervals and pruned subtrees."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.mechanisms.tree import Tree, bucket_levels
from dphist.mechanisms.trees.shares import box_energy, contrasts
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.testing import open_counts, run
from dphist.testing.gates import as_histogram
from textbook import mean_variance


def blocks(n: int, m: int) -> np.ndarray:
    return np.equal.outer(np.arange(n) // m, np.arange(n) // m).astype(float)


@pytest.mark.parametrize("kind", ["cells", "prefixes", "all_ranges"])
def test_the_closed_form_is_the_mean_variance(kind: str) -> None:
    """Against (Σ w_l B_l)⁻¹ written out for 64 cells and every question of the workload."""
    n, lengths, shares = 64, (64, 16, 4, 1), np.array([0.1, 0.2, 0.3, 0.4])
    sides = tuple((m,) for m in lengths)
    information = sum(s**2 / 2 * blocks(n, m) for s, m in zip(shares, lengths, strict=True))
    covariance = np.linalg.inv(information)
    workload = getattr(Workload, kind)(as_histogram(np.zeros(n, dtype=np.int64)).domain)
    questions = (np.arange(n) >= workload.low) & (np.arange(n) < workload.high)
    expected = np.einsum("qi,ij,qj->q", questions, covariance, questions).mean()
    assert mean_variance((n,), sides, kind, shares) == pytest.approx(expected)
    energy = contrasts((n,), sides, kind).cumsum()  # type: ignore[arg-type]
    written_out = [box_energy((n,), side, workload.low, workload.high) for side in sides]
    assert written_out == pytest.approx(energy.tolist())


@pytest.mark.parametrize("shape", [(13,), (7, 10), (3, 5, 4)])
def test_the_energy_of_boxes_is_exact_where_the_last_blocks_are_cut(shape: tuple[int, ...]) -> None:
    domain = as_histogram(np.zeros(shape, dtype=np.int64)).domain
    workload = Workload.random(domain, 50, seed=4)
    side = tuple(3 for _ in shape)
    labels = np.ravel_multi_index(tuple(np.indices(shape) // 3), tuple(-(-n // 3) for n in shape)).reshape(-1)
    block = np.unique(labels, return_inverse=True)[1]
    cells = np.stack(np.unravel_index(np.arange(block.size), shape), axis=1)
    expected = 0.0
    for low, high in zip(workload.low, workload.high, strict=True):
        inside = ((cells >= low) & (cells < high)).all(axis=1)
        expected += float((np.bincount(block, inside) ** 2 / np.bincount(block)).sum()) / len(workload.low)
    assert box_energy(shape, side, workload.low, workload.high) == pytest.approx(expected)
    nothing = workload.low[:, :]
    assert box_energy(shape, side, nothing, nothing) == 0.0


@pytest.mark.parametrize("shape", [(37,), (64,), (6, 9), (2, 3, 4)])
def test_without_noise_to_speak_of_the_tree_gives_the_counts(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(0, 50, shape)
    assert run(Tree(fanout=4), x, 10**7, seed=1).counts == pytest.approx(x, abs=1e-3)


def test_intervals_cover_and_variances_are_those_seen() -> None:
    """The spread of 400 runs around the truth against the stated variance (χ², false alarm below 10⁻⁶)."""
    x = np.random.default_rng(3).poisson(20, 60)
    workload = Workload(as_histogram(x).domain, [[0], [3], [16], [59]], [[60], [50], [32], [60]])
    tree = Tree(fanout=4, nonnegative=False)
    truth = workload.answer(x)
    errors = np.array([workload.answer(run(tree, x, 1, seed=s).counts) - truth for s in range(400)])
    stated = run(tree, x, 1, seed=0).errors.spread(workload).variance  # type: ignore[attr-defined]
    ratio = (errors**2).mean(axis=0) / stated
    # Squares of near-Laplace errors have variance up to 5: six standard errors of a mean of 400.
    assert (np.abs(ratio - 1) < 6 * np.sqrt(5 / 400)).all()


def test_a_workload_hint_changes_the_plan() -> None:
    x = np.arange(4096)
    domain = as_histogram(x).domain
    tree = Tree()
    assert Tree(nonnegative=False).plan((4096,), Workload.cells(domain)) == (((1,),), (Fraction(1),))
    # With a total to hold them together, cells that are cut at zero do not drift upward.
    assert tree.plan((4096,), Workload.cells(domain))[0] == ((4096,), (1,))
    assert tree.plan((4096,), Workload.prefixes(domain)) != tree.plan((4096,), None)
    # Groups of a line inherit what is asked of it; other cells do not.
    assert tree.plan((2048,), Workload.cells(domain))[0] == ((2048,), (1,))
    assert tree.plan((64, 64), Workload.cells(domain)) == tree.plan((64, 64), None)
    short = Workload(domain, [[i] for i in range(4090)], [[i + 3] for i in range(4090)])
    sides, shares = tree.plan((4096,), short)
    assert sides[-1] == (1,)
    assert shares[-1] > Fraction(1, 2)


def test_a_workload_of_totals_still_measures_cells() -> None:
    domain = as_histogram(np.zeros(64, dtype=np.int64)).domain
    sides, shares = Tree().plan((64,), Workload(domain, [[0]], [[64]]))
    assert sides[-1] == (1,)
    assert sum(shares) == 1


@pytest.mark.parametrize("n", [1, 16, 37, 64])
def test_a_tree_cut_at_every_leaf_is_the_whole_tree(n: int) -> None:
    """With singletons for groups nothing is pruned; and a single group spends everything on the root."""
    x = np.random.default_rng(0).integers(0, 99, n)
    tree = Tree(fanout=4, budgets="uniform")
    whole = tree.estimate_grouped(open_counts(x, 10**7, seed=1), np.arange(n))
    assert whole.counts == pytest.approx(x, abs=1e-3)
    right, transcript = open_gate(as_histogram(x), 1, Unit(), noise=Noise(Keystream.for_tests(1)))
    root = tree.estimate_grouped(right, np.zeros(1, dtype=np.int64))
    assert transcript.spent() == 1
    assert len(transcript) == 1
    assert np.ptp(root.counts) == pytest.approx(0)


def test_spare_budget_is_pooled_into_one_draw() -> None:
    """Binary tree over four cells, groups {1}{2}{3,4}: the group gets 2/3 of ε₂ in one draw, the leaves 1/3."""
    tree = Tree(fanout=2, budgets="uniform")
    estimate = tree.estimate_grouped(open_counts([5, 1, 7, 7], 3, seed=1), np.array([0, 1, 2]))
    noise = estimate.errors
    scale = {
        (int(a), int(b)): float(s)
        for a, b, s in zip(
            noise.tree.low[:, 0],  # type: ignore[attr-defined]
            noise.tree.high[:, 0],  # type: ignore[attr-defined]
            np.sqrt(noise.tree.variance / 2),  # type: ignore[attr-defined]
            strict=True,
        )
    }
    assert scale == {(0, 4): 1, (0, 2): 1, (2, 4): 0.5, (0, 1): 1, (1, 2): 1}
    assert estimate.counts[2] == estimate.counts[3]


def test_groups_must_be_blocks() -> None:
    with pytest.raises(MechanismError, match="block"):
        bucket_levels(np.array([0, 3]), np.array([3, 8]), (8, 4, 1), 8)
