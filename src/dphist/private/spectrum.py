"""The spectrum of private counts, and the bound on its error that questions about it pay for.

The basis is Hartley's: coordinate f of counts x over axes of n₁ × n₂ × … = n cells is Σⱼ xⱼ · cas(2π Σᵢ
fᵢjᵢ/nᵢ) / √n with cas θ = cos θ + sin θ. It is orthonormal and spans, frequency by frequency, the same
spaces as cosines and sines; the pair f, −f is the cosine and sine of that frequency turned by 45°. Odd,
even and mixed lengths need no special cases: a frequency that is its own negative is simply alone.

The record limit. The gate cuts counts at a public ceiling so that they sum to at most 2⁶² whatever the
data, so the Euclidean norm of any cells behind it is at most 2⁶². The transform (`dphist.kernels.wide`)
errs relative to the norm, so its error is bounded by a public number: `spectrum_error`.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt, prod

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.wide import fourier_error, wide_fourier, widen, widen_integer
from dphist.private.questions import IntArray

FloatArray = NDArray[np.float64]

RECORD_LIMIT = 2**62


def spectrum(counts: IntArray, shape: tuple[int, ...]) -> FloatArray:
    """Fourier coefficients Σⱼ xⱼ exp(−2πi f·j/n) as wide complex numbers ``[4, cells]``, flat in C-order."""
    values = widen(counts.reshape(shape))
    for axis in range(len(shape)):
        values = np.moveaxis(
            wide_fourier(np.ascontiguousarray(np.moveaxis(values, axis + 1, -1))), -1, axis + 1
        )
    return np.ascontiguousarray(values).reshape(4, -1)


def spectrum_error(shape: tuple[int, ...]) -> Fraction:
    """Bound ‖computed − exact coordinates‖₂ over all counts the gate lets through.

    Axes are transformed one after the other; each orthonormal transform keeps norms, so relative errors
    add. The factor 2 covers their products and the final division by √n.
    """
    return 2 * RECORD_LIMIT * sum((fourier_error(n) for n in shape), Fraction(0))


def over_root(n: int, power: int) -> tuple[float, float]:
    """2^power ÷ √n as a wide number."""
    return widen_integer(isqrt((1 << (512 + 2 * power)) // n))


def root_below(n: int) -> Fraction:
    """A fraction just below √n."""
    return Fraction(isqrt(n << 128), 1 << 64)


def kept(shape: tuple[int, ...], keep: tuple[int, ...]) -> tuple[int, ...]:
    """How many frequencies of each axis lie below ``keep`` in absolute value: 2·keep − 1, or all of them."""
    return tuple(min(2 * k - 1, n) for n, k in zip(shape, keep, strict=True))


def bands(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many different absolute frequencies each axis has: the largest useful ``keep``."""
    return tuple(n // 2 + 1 for n in shape)


def corner(shape: tuple[int, ...], keep: tuple[int, ...]) -> IntArray:
    """Flat places of the kept frequencies 0, 1, …, keep − 1, −(keep − 1), …, −1 of every axis, in C-order."""
    places = np.zeros(1, dtype=np.int64)
    for n, count in zip(shape, kept(shape, keep), strict=True):
        axis = np.arange(count, dtype=np.int64)
        axis[(count + 1) // 2 :] += n - count
        places = (places[:, None] * n + axis[None, :]).reshape(-1)
    return places


def size(shape: tuple[int, ...]) -> int:
    """How many cells a shape has."""
    return prod(shape)
