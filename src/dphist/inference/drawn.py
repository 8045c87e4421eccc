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


def drawn_variance(errors: Errors, asked: Workload) -> FloatArray:
    """Give the variance of every answer that is the truth plus noise; sums of wavelets are left as they are.

    Of a tree it is that of least squares for what is drawn, whose weights are the continuous law's but for little:
    where variances are least, they hardly change with the weights.
    """
    if isinstance(errors, IndependentNoise):
        return np.asarray(asked.cells_in_each * laplace_if_bare(errors.law).drawn_variance, dtype=np.float64)
    if isinstance(errors, TreeNoise):
        tree = errors.tree
        known, place = np.unique(tree.variance, return_inverse=True)
        drawn = np.array([_drawn(v, tree.kind) if 0.0 < v < math.inf else v for v in known.tolist()])
        return replace(errors, tree=replace(tree, variance=drawn[place])).variance(asked)
    return errors.variance(asked)


def _drawn(variance: float, kind: Kind) -> float:
    return NoiseLaw(kind, variance if kind == "gaussian" else math.sqrt(variance / 2.0)).drawn_variance
