"""The few special functions that the standard library lacks, so that nobody needs a scientific library for them.

Each is checked against SciPy in the tests, to twelve digits; scaled normal tails, which compiled loops ask for one by
one, to seven.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]

ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# From here on, in deviations, the asymptotic series of a normal tail has more digits than a float.
_FAR = 20.0
# Points between which the density of a gamma law is integrated, evenly spaced in the cube root of its values: that
# makes any gamma law nearly normal.
_POINTS = 400
_TAIL = 12.0


def each(function: Callable[[float], float], values: FloatArray) -> FloatArray:
    """A function of the standard library, number by number."""
    flat = np.fromiter(map(function, values.reshape(-1).tolist()), np.float64, values.size)
    return flat.reshape(values.shape)


def log_factorial(values: FloatArray) -> FloatArray:
    """log(n!) for numbers that are not negative."""
    return each(math.lgamma, np.maximum(values, 0.0) + 1.0)


def log_normal(values: FloatArray) -> FloatArray:
    """The logarithm of the chance that a standard normal lies below each value."""
    return each(_log_normal, values)


def _log_normal(x: float) -> float:
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x * ROOT_HALF))
    if x > -_FAR:
        return math.log(0.5 * math.erfc(-x * ROOT_HALF))
    if math.isinf(x):
        return -math.inf
    # φ(x)/|x| · (1 − 1/x² + 3/x⁴ − 15/x⁶ + …), each next term below 5/400 of the last so far.
    term, rest, square = 1.0, 0.0, x * x
    for k in range(1, 9):
        term *= -(2 * k - 1) / square
        rest += term
    return -0.5 * square - LOG_ROOT_TWO_PI - math.log(-x) + math.log1p(rest)


@lru_cache(maxsize=1)
def _nodes() -> tuple[FloatArray, FloatArray]:
    """Gauss and Legendre's places and weights on 0 … 1, exact for polynomials of degree 15."""
    place, weight = np.polynomial.legendre.leggauss(8)
    return 0.5 * (place + 1.0), 0.5 * weight


def gamma_quantiles(shape: float, levels: FloatArray) -> FloatArray:
    """The quantiles of a gamma law of scale one, for a shape of one or more.

    Its distribution function is tabulated once, by Gauss's rule between points; within its two points each level is
    then found by Newton's steps, which the same rule goes along with.
    """
    place, weight = _nodes()

    def integral(start: FloatArray, stop: FloatArray) -> FloatArray:
        # Over the cube root t of x: dx = 3t² dt.
        t = start[:, None] + (stop - start)[:, None] * place
        return np.asarray((density(t) @ weight) * (stop - start), dtype=np.float64)

    def density(t: FloatArray) -> FloatArray:
        x = t * t * t
        return np.asarray(
            3.0 * np.exp((shape - 1.0) * np.log(x) - x - math.lgamma(shape)) * t * t, dtype=np.float64
        )

    # Wilson and Hilferty: the cube root is about normal, of this mean and deviation.
    centre, deviation = shape ** (1.0 / 3.0) * (1.0 - 1.0 / (9.0 * shape)), shape ** (-1.0 / 6.0) / 3.0
    points = np.linspace(max(centre - _TAIL * deviation, 0.0), centre + _TAIL * deviation, _POINTS)
    below = np.concatenate([[0.0], np.cumsum(integral(points[:-1], points[1:]))])
    at = np.clip(np.searchsorted(below, levels, side="right") - 1, 0, _POINTS - 2)
    start, done = points[at], below[at]
    t = start + (points[at + 1] - start) * (levels - done) / (below[at + 1] - done)
    for _ in range(3):
        t = np.clip(t - (done + integral(start, t) - levels) / density(t), start, points[at + 1])
    return np.asarray(t * t * t, dtype=np.float64)


def normal_mixture_quantile(deviations: FloatArray, beta: float, most: float) -> float:
    """The q that |Z| exceeds with probability β, for a Z that is normal with one of these deviations, equally likely.

    Newton's steps on the logarithm, kept between ends that hold the answer; ``most`` at most.
    """
    low, high, root = 0.0, most, deviations * math.sqrt(2.0)
    q = min(1.5 * math.sqrt(float(np.mean(deviations**2)) * -2.0 * math.log(min(beta, 0.5))), 0.5 * most)
    for _ in range(200):
        tail = float(np.mean(each(math.erfc, q / root)))
        low, high = (q, high) if tail > beta else (low, q)
        slope = float(np.mean(np.exp(-((q / root) ** 2)) / root)) * 2.0 / math.sqrt(math.pi)
        step = tail * math.log(tail / beta) / slope if tail > 0.0 and slope > 0.0 else math.inf
        if abs(step) <= 1e-15 * q or high - low <= 1e-15 * high:
            break
        q = q + step if low < q + step < high else 0.5 * (low + high)
    return min(q, most)


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
