"""Covariances of neighbours are told from variances of ranges, and are such that something can have them."""

from __future__ import annotations

import numpy as np
import pytest

from dphist.inference.intervals import covariances


def variances(covariance: np.ndarray) -> np.ndarray:
    """Of every range of neighbours."""
    n = len(covariance)
    found = np.zeros((n + 1, n + 1))
    for i in range(n):
        for j in range(i + 1, n + 1):
            found[i, j] = found[j, i] = covariance[i:j, i:j].sum()
    return found


def test_true_covariances_are_found_again():
    part = np.random.default_rng(1).normal(size=(12, 12))
    true = part @ part.T
    assert covariances(variances(true)) == pytest.approx(true)


def test_a_caution_about_long_ranges_gives_no_sum_less_than_no_variance():
    told = variances(np.diag(np.where(np.arange(40) == 13, 5000.0, 0.5)))
    i, j = np.indices(told.shape)
    told += np.where(np.abs(i - j) > 32, 1600.0, 0.0)
    plain = np.diff(np.diff((told[0][:, None] + told[0][None] - told) / 2, axis=0), axis=1)
    away = np.arange(40.0) - 13.0
    assert away @ plain @ away < 0
    found = covariances(told)
    assert np.linalg.eigvalsh(found)[0] > -1e-6
    assert (np.diag(found) >= np.diag(plain) - 1e-9).all()
    # Without the caution it is half of the squares; ends that are cautious together cancel out in part.
    assert 0.25 * (away @ away) <= away @ found @ away <= 0.75 * (away @ away)


def test_unknown_variances_stay_unknown():
    told = np.full((4, 4), np.inf)
    np.fill_diagonal(told, 0.0)
    assert np.isnan(covariances(told)).all()
