"""Covariances of neighbours, from the variances of the ranges that they make up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Eigenvalues of a matrix of correlations above this are zero but for rounding.
_ROUNDED = 1e-9


def covariances(variance: FloatArray) -> FloatArray:
    """Tell the covariances of neighbours from the variance of each range i … j − 1, at (i, j) and (j, i).

    No sum of them has less than no variance.

    For ranges A and B side by side 2·Cov(A, B) = Var(A ∪ B) − Var(A) − Var(B). What a law adds to the variances of long
    ranges, as a caution, is in none of their parts, and comes out as covariances that nothing can have. So none is
    larger than the product of both deviations; and if sums with less than no variance are left, the matrix of
    correlations loses the directions in which they are. Variances are as they were, or larger.
    """
    if not np.isfinite(variance).all():
        return np.full((len(variance) - 1, len(variance) - 1), np.nan)
    prefix = variance[0]
    # Cov(prefix i, prefix j), then the difference in both directions.
    table = (prefix[:, None] + prefix[None, :] - variance) / 2.0
    told = np.asarray(np.diff(np.diff(table, axis=0), axis=1), dtype=np.float64)
    deviation = np.sqrt(np.maximum(np.diag(told), 0.0))
    most = np.outer(deviation, deviation)
    cut = np.clip(told, -most, most)
    spread, ways = np.linalg.eigh(np.divide(cut, most, out=np.zeros_like(cut), where=most > 0))
    if spread[0] > -_ROUNDED:
        return told
    return np.asarray((ways * np.maximum(spread, 0.0)) @ ways.T * most, dtype=np.float64)
