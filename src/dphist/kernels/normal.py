"""Normal laws and their tails, one by one as compiled loops ask for them, and many at once in NumPy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel
from dphist.kernels.special import ROOT_HALF, each

FloatArray = NDArray[np.float64]

ROOT_TWO_PI = 2.5066282746310002
# The density at zero.
DENSITY = 0.3989422804014327


@kernel
def scaled_tail(t: float) -> float:
    """exp(t²/2)·P(N > t), to a relative 1.2e-7 (Numerical Recipes' Chebyshev fit of erfc, scaled)."""
    x = t * ROOT_HALF
    z = abs(x)
    u = 1.0 / (1.0 + 0.5 * z)
    p = -1.13520398 + u * (1.48851587 + u * (-0.82215223 + u * 0.17087277))
    p = 0.37409196 + u * (0.09678418 + u * (-0.18628806 + u * (0.27886807 + u * p)))
    r = 0.5 * u * math.exp(-1.26551223 + u * (1.00002368 + u * p))
    return r if x >= 0.0 else math.exp(z * z) - r


def scaled_tails(t: FloatArray) -> FloatArray:
    """As `scaled_tail`, for many."""
    x = t * ROOT_HALF
    z = np.abs(x)
    u = 1.0 / (1.0 + 0.5 * z)
    p = -1.13520398 + u * (1.48851587 + u * (-0.82215223 + u * 0.17087277))
    p = 0.37409196 + u * (0.09678418 + u * (-0.18628806 + u * (0.27886807 + u * p)))
    r = 0.5 * u * each(math.exp, -1.26551223 + u * (1.00002368 + u * p))
    long = x < 0.0
    r[long] = each(math.exp, z[long] * z[long]) - r[long]
    return r


@kernel
def truncated(t: float, tail: float) -> tuple[float, float]:
    """Mean and variance of (bound − N) given N < bound, for a standard normal with its bound at t.

    ``tail`` is the scaled tail at −t; infinite where that is next to nothing beside t, from t = 8 on.
    """
    if t < -12.0:
        u = 1.0 / (t * t)
        return -(1.0 - 2.0 * u + 10.0 * u * u) / t, u * (1.0 - 6.0 * u)
    hazard = DENSITY / tail
    return t + hazard, max(1.0 - t * hazard - hazard * hazard, 0.0)
