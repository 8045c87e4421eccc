"""Errors that are the same for all data, by the law of the whole numbers that are drawn.

Intervals and least squares go by the continuous law, whose variance is never too small. Where the noise is small,
that is too much for a forecast: at ε = 1 Laplace noise has a variance of 1.84 and not 2, at ε = 3 half of it.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, IndependentNoise, laplace_if_bare
from dphist.inference.trees import TreeNoise
from dphist.model.law import Kind, NoiseLaw
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]

_STEP = 1e-4


def drawn_variance(errors: Errors, asked: Workload) -> FloatArray:
    """Give the variance of every answer that is the truth plus noise.

    Least squares over a tree answers with Σ wⱼ·yⱼ, with weights that make V = Σ wⱼ²·vⱼ least for the continuous vⱼ. A
    least value changes with vⱼ by wⱼ² alone, however the weights then move; so a small step of all vⱼ towards what is
    drawn tells Σ wⱼ² times the differences. Sums of wavelets are left as they are.
    """
    if isinstance(errors, IndependentNoise):
        return _terms(asked) * laplace_if_bare(errors.law).drawn_variance
    if isinstance(errors, TreeNoise):
        tree, known = errors.tree, errors.variance(asked)
        drawn = {v: _drawn(v, tree.kind) for v in np.unique(tree.variance).tolist() if 0.0 < v < math.inf}
        step = np.array([_STEP * (drawn[v] - v) if v in drawn else 0.0 for v in tree.variance.tolist()])
        moved = replace(errors, tree=replace(tree, variance=tree.variance + step)).variance(asked)
        return np.asarray(known + (moved - known) / _STEP, dtype=np.float64)
    return errors.variance(asked)


def _terms(asked: Workload) -> FloatArray:
    """How many draws every question adds up."""
    cells: FloatArray = np.prod(np.maximum(asked.high - asked.low, 0).astype(np.float64), axis=1)
    if asked.query is None:
        return cells
    return np.asarray(np.bincount(asked.query, cells, len(asked)), dtype=np.float64)


def _drawn(variance: float, kind: Kind) -> float:
    return NoiseLaw(kind, variance if kind == "gaussian" else math.sqrt(variance / 2.0)).drawn_variance
