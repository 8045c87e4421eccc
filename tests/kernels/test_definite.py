"""Roots of positive definite matrices beside a library's."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.kernels.definite import CurvedRoot, times


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 150])
def test_root_solution_and_determinant_are_the_librarys(rows: int) -> None:
    draws = np.random.default_rng(rows)
    factor = draws.standard_normal((rows, rows))
    precise, prior = factor @ factor.T, np.diag(draws.uniform(1.0, 2.0, rows))
    scale, right = draws.uniform(0.0, 3.0, rows), draws.standard_normal(rows)
    whole = scale[:, None] * precise * scale + prior
    # Upper triangles are not read, but for tiles on the diagonal.
    above = np.triu(np.ones((rows, rows)), 64) > 0.0
    root = CurvedRoot(np.where(above, np.nan, precise), prior, scale)
    assert np.allclose(root.solve(right), np.linalg.solve(whole, right), rtol=1e-8, atol=1e-10)
    assert root.log_determinant == pytest.approx(0.5 * np.linalg.slogdet(whole)[1], rel=1e-12)
    assert np.allclose(root.inverse(), np.linalg.inv(whole), rtol=1e-8, atol=1e-10)
    plain = CurvedRoot(precise, prior)
    assert np.allclose(plain.solve(right), np.linalg.solve(precise + prior, right), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("rows", [1, 8, 100, 1000])
def test_products_by_strips_are_products(rows: int) -> None:
    draws = np.random.default_rng(rows)
    matrix, vector = draws.standard_normal((rows, 77)), draws.standard_normal(77)
    assert np.allclose(times(matrix, vector), matrix @ vector, rtol=1e-12, atol=1e-12)


def test_a_matrix_that_is_not_definite_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        CurvedRoot(-np.eye(3), np.zeros((3, 3)), np.ones(3))
