"""Roots of positive definite matrices beside a library's."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.kernels.definite import CurvedRoot


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 150])
def test_root_solution_and_determinant_are_the_librarys(rows: int) -> None:
    draws = np.random.default_rng(rows)
    factor = draws.standard_normal((rows, rows))
    precise, prior = factor @ factor.T, np.diag(draws.uniform(1.0, 2.0, rows))
    scale, right = draws.uniform(0.0, 3.0, rows), draws.standard_normal(rows)
    whole = scale[:, None] * precise * scale + prior
    # Whatever the buffer held before is neither read nor left in the lower triangle.
    root = CurvedRoot(precise, prior, scale, np.full((rows, rows), np.nan))
    assert np.allclose(np.tril(root.lower), np.linalg.cholesky(whole), rtol=1e-10, atol=1e-10)
    assert np.allclose(root.solve(right), np.linalg.solve(whole, right), rtol=1e-8, atol=1e-10)
    assert root.log_determinant == pytest.approx(0.5 * np.linalg.slogdet(whole)[1], rel=1e-12)


def test_a_matrix_that_is_not_definite_is_refused() -> None:
    with pytest.raises(np.linalg.LinAlgError):
        CurvedRoot(-np.eye(3), np.zeros((3, 3)), np.ones(3))
