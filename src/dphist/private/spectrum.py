"""Private counts in an orthonormal basis of waves, and the error of computing them, which questions pay for.

Two bases, each the same along every axis of a table:

* ``fourier``, in Hartley's form: wave f is cas(2π Σᵢ fᵢjᵢ/nᵢ)/√n with cas θ = cos θ + sin θ. The pair f, −f
is the
  cosine and the sine of that frequency turned by 45°, so frequency by frequency it spans what Fourier's
  basis spans, and odd and even lengths need no special cases: a frequency that is its own negative is
  simply alone.
* ``cosine``: wave f is the product over axes of cos(π fᵢ(jᵢ + ½)/nᵢ) times √(2/nᵢ), or √(1/nᵢ) for
frequency 0. Its waves
  do not close into a circle, so the first and the last cell need not be alike.

The record limit. The gate cuts counts at a public ceiling so that they sum to at most 2⁶² whatever the
data; so the Euclidean norm of any cells behind it is at most 2⁶². The transforms (`dphist.kernels.doubledouble`)
err relative to that norm, so their error has a public bound: `coordinates_error`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt, prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.doubledouble import (
    added,
    fourier_error,
    multiplied,
    roots,
    wide_fourier,
    widen,
    widened,
)
from dphist.private.questions import IntArray

FloatArray = NDArray[np.float64]
Basis = Literal["fourier", "cosine"]
Shape = tuple[int, ...]

RECORD_LIMIT = 2**62


def coordinates(counts: IntArray, shape: Shape, basis: Basis) -> FloatArray:
    """All coordinates of the counts as wide numbers ``[2, cells]``, flat in C-order of their frequencies."""
    values = widen(counts.reshape(shape))
    turn = wide_fourier if basis == "fourier" else _cosines
    for axis in range(2, len(shape) + 2):
        values = np.moveaxis(turn(np.ascontiguousarray(np.moveaxis(values, axis, -1))), -1, axis)
    values = values.reshape(2, 2, -1)
    if basis == "cosine":
        return values[:, 0]
    return multiplied(added(values[:, 0], -values[:, 1]), _over_root(prod(shape), 1))


def coordinates_error(shape: Shape, basis: Basis) -> Fraction:
    """Bound ‖computed − exact coordinates‖₂ over all counts the gate lets through.

    Axes are transformed one after the other; each orthonormal transform keeps norms, so relative errors add.
    Taking a difference of real and imaginary part (Fourier), or a real part times √2 (cosine, on each axis),
    errs by √2 times the complex error. The factor 2 at the front covers one √2, products of errors and the
    last multiplication.
    """
    relative = (fourier_error(n) if basis == "fourier" else 2 * fourier_error(n) for n in shape)
    return 2 * RECORD_LIMIT * sum(relative, Fraction(0))


def column_sum(shape: Shape, keep: Shape, basis: Basis) -> Fraction:
    """Bound Σ |wave(j)| over the kept waves, at any cell j: how far one step can move the kept coordinates.

    Fourier: waves f and −f give (|cos θ + sin θ| + |cos θ − sin θ|)/√n = 2 max(|cos θ|, |sin θ|)/√n ≤ 2/√n,
    a wave alone gives 1/√n; so z/√n for z waves. Cosine: an axis gives at most (1 + √2(k − 1))/√n for k
    waves, and by Cauchy-Schwarz at most √k times the column's norm, which is at most √((2k − 1)/n) and at
    most 1; axes multiply.
    """
    if basis == "fourier":
        return prod(kept(shape, keep, basis)) / root_below(prod(shape))
    total = Fraction(1)
    for n, k in zip(shape, keep, strict=True):
        plain = (1 + Fraction(isqrt(2 << 64) + 1, 1 << 32) * (k - 1)) / root_below(n)
        norm = Fraction(1) if 2 * k - 1 >= n else root_above(2 * k - 1) / root_below(n)
        total *= min(plain, root_above(k) * norm)
    return total


def bands(shape: Shape, basis: Basis) -> Shape:
    """How many different absolute frequencies each axis has: the largest useful ``keep``."""
    return tuple(n // 2 + 1 if basis == "fourier" else n for n in shape)


def kept(shape: Shape, keep: Shape, basis: Basis) -> Shape:
    """How many waves of each axis have an absolute frequency below ``keep``."""
    return tuple(min(2 * k - 1, n) if basis == "fourier" else k for n, k in zip(shape, keep, strict=True))


def corner(shape: Shape, keep: Shape, basis: Basis) -> IntArray:
    """Flat places of the kept waves: frequencies 0, 1, …, and for Fourier then …, −2, −1, of every axis."""
    places = np.zeros(1, dtype=np.int64)
    for n, count in zip(shape, kept(shape, keep, basis), strict=True):
        axis = np.arange(count, dtype=np.int64)
        if basis == "fourier":
            axis[(count + 1) // 2 :] += n - count
        places = (places[:, None] * n + axis[None, :]).reshape(-1)
    return places


def fold(shape: Shape, basis: Basis) -> IntArray:
    """The place of every wave among the absolute frequencies ``bands``, in C-order."""
    places = np.zeros(1, dtype=np.int64)
    for n, most in zip(shape, bands(shape, basis), strict=True):
        frequency = np.arange(n, dtype=np.int64)
        if basis == "fourier":
            frequency = np.minimum(frequency, n - frequency)
        places = (places[:, None] * most + frequency[None, :]).reshape(-1)
    return places


def root_below(n: int) -> Fraction:
    """A fraction just below √n."""
    return Fraction(isqrt(n << 128), 1 << 64)


def root_above(n: int) -> Fraction:
    """A fraction just above √n."""
    return Fraction(isqrt(n << 128) + 1, 1 << 64)


def _cosines(values: FloatArray) -> FloatArray:
    """The orthonormal cosine transform along the last axis of a wide complex array without imaginary part.

    Take the cells at even places and then those at odd places backwards: the Fourier coefficient m of that
    sequence, turned by exp(−πim/2n), has the real part Σⱼ xⱼ cos(πm(j + ½)/n) (Makhoul, 1980).
    """
    n = values.shape[-1]
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    turned = wide_fourier(values[..., order])
    factors = _cosine_factors(n).reshape(2, 2, *(1,) * (values.ndim - 3), n)
    turned[:, 0] = added(multiplied(turned[:, 0], factors[:, 0]), -multiplied(turned[:, 1], factors[:, 1]))
    turned[:, 1] = 0.0
    return turned


@lru_cache(maxsize=4)
def _cosine_factors(n: int) -> FloatArray:
    heights = np.repeat(_over_root(n, 2), n, axis=1)
    heights[:, :1] = _over_root(n, 1)
    return multiplied(roots(4 * n, n), heights[:, None])


def _over_root(n: int, numerator: int) -> FloatArray:
    """√numerator ÷ √n as a wide number."""
    return widened([isqrt((numerator << 512) // n)])
