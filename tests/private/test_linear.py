"""A public matrix as a question: its sensitivity over every unit vector, and exact products."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import MechanismError
from dphist.private.queries.linear import Linear
from dphist.private.questions import Layout
from dphist.testing import open_counts


@pytest.mark.parametrize("seed", range(5))
def test_sensitivity_is_the_worst_unit_vector(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-9, 10, (7, 5)) * (rng.random((7, 5)) < 0.6)
    query = Linear.dense(matrix)
    layout = Layout((5,))
    worst = max(int(np.abs(query.answer(unit, layout)).sum()) for unit in np.eye(5, dtype=np.int64))
    assert query.scales(layout) == max(1, worst)
    x = rng.integers(0, 1000, 5)
    assert query.answer(x, layout).tolist() == (matrix @ x).tolist()


def test_repeated_entries_count_together() -> None:
    query = Linear(np.array([0, 2]), np.array([1, 1]), np.array([2, 3]))
    assert query.sensitivity == 5
    assert query.answer(np.array([7, 10]), Layout((2,))).tolist() == [50]


def test_a_huge_count_is_cut_at_a_public_ceiling_and_nothing_overflows() -> None:
    query = Linear.dense(np.array([[4096, 4096]]))
    answer = query.answer(np.array([2**61, 2**61]), Layout((2,)))
    assert 0 < answer[0] <= 2**62


def test_measured_through_the_gate() -> None:
    noisy = open_counts([3, 4], 10**6, seed=1).measure(
        Linear.dense(np.array([[1, 1], [1, -1]]), Fraction(1, 2))
    )
    assert noisy.values.tolist() == [7, -1]
    assert noisy.scale == Fraction(2, 10**6)
    assert noisy.unit == Fraction(1, 2)


def test_columns_must_name_cells() -> None:
    with pytest.raises(MechanismError, match="columns"):
        open_counts([1, 2], 1).measure(Linear.dense(np.array([[1, 1, 1]])))


def test_an_empty_matrix_answers_nothing() -> None:
    query = Linear.dense(np.zeros((0, 3), dtype=np.int64))
    assert query.answer(np.arange(3), Layout((3,))).size == 0
    assert query.scales(Layout((3,))) == 1


@pytest.mark.parametrize("weights", [[[-(2**63)], [1]], [[2**62]] * 4])
def test_weights_whose_sum_would_overflow_are_refused(weights: list[list[int]]) -> None:
    # Computed in 64 bits, both sensitivities come out as one or less.
    with pytest.raises(MechanismError, match="too large"):
        Linear.dense(np.array(weights, dtype=np.int64))
