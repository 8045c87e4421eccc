"""Strategies for fixed questions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist.mechanisms.matrix import Matrix, integer_strategy, mean_gram
from dphist.mechanisms.trees.shares import mean_variance, searched
from dphist.model.workload import Workload
from dphist.private.queries.linear import Linear
from dphist.testing import run
from dphist.testing.gates import as_histogram


@pytest.mark.parametrize("kind", ["cells", "prefixes", "all_ranges"])
def test_gram_is_that_of_the_questions_written_out(kind: str) -> None:
    workload = getattr(Workload, kind)(as_histogram(np.zeros(9, dtype=np.int64)).domain)
    rows = (np.arange(9) >= workload.low) & (np.arange(9) < workload.high)
    assert mean_gram(9, kind) == pytest.approx(rows.T.astype(float) @ rows / len(rows))  # type: ignore[arg-type]


def strategy_variance(strategy: NDArray[np.float64], gram: NDArray[np.float64]) -> float:
    """Mean variance of the workload's answers at ε = 1 under least squares from this strategy."""
    sensitivity = np.abs(strategy).sum(axis=0).max()
    return float(2 * sensitivity**2 * np.trace(np.linalg.solve(strategy.T @ strategy, gram)))


@pytest.mark.parametrize("n", [16, 64])
def test_the_optimised_strategy_beats_the_best_tree_on_prefixes(n: int) -> None:
    sides, shares = searched(n, "prefixes")
    tree = mean_variance((n,), sides, "prefixes", np.array(shares, dtype=float))
    optimised = strategy_variance(integer_strategy(n, "prefixes").astype(float), mean_gram(n, "prefixes"))
    assert optimised < 0.9 * tree


def test_columns_are_balanced_and_the_noise_is_their_exact_sum() -> None:
    rows = integer_strategy(32, "prefixes")
    sums = np.abs(rows).sum(axis=0)
    assert np.ptp(sums) <= len(rows)
    assert Linear.dense(rows).sensitivity == sums.max()


def test_stated_variance_is_seen() -> None:
    """400 runs against the stated variance, six standard errors of near-Laplace squares."""
    x = np.random.default_rng(1).poisson(30, 24)
    workload = Workload(as_histogram(x).domain, [[0], [5], [3]], [[24], [6], [20]])
    matrix = Matrix(strategy="optimised", workload="prefixes", nonnegative=False)
    truth = workload.answer(x)
    errors = np.array([workload.answer(run(matrix, x, 1, seed=s).counts) - truth for s in range(400)])
    stated = run(matrix, x, 1, seed=0).errors.spread(workload).variance  # type: ignore[attr-defined]
    assert (np.abs((errors**2).mean(axis=0) / stated - 1) < 6 * np.sqrt(5 / 400)).all()


def test_a_large_histogram_never_becomes_a_matrix() -> None:
    x = np.random.default_rng(1).poisson(3, 32_768)
    assert run(Matrix(workload="prefixes", strategy="optimised"), x, 1, seed=1).counts.shape == (32_768,)


def test_hints_are_heeded() -> None:
    x = np.arange(64)
    cells = Workload.cells(as_histogram(x).domain)
    estimate = run(Matrix(nonnegative=False), x, 1, seed=1, workload=cells)
    # Measuring cells alone: whole numbers come out.
    assert estimate.counts == pytest.approx(np.rint(estimate.counts))
