"""A Fourier transform in numbers twice as wide as a double, with an error bound that can be paid for.

A *wide* number is an unevaluated sum of two doubles, high + low, about 106 bits. Error-free sums and products of
doubles (Knuth, Dekker) make its arithmetic out of ordinary instructions. A wide array is ``[2, …]``, high and low; a
wide complex array ``[2, 2, …]`` has the real and the imaginary part second.

Why so wide: a Fourier coefficient of counts is released on a lattice finer than its noise, for counts that
may sum to 2⁶². A double's transform errs by about 2⁻⁴⁸ of that, more than the noise; this one by less than
2⁻⁹⁰, or 2⁻⁷⁵ if the length is not a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Butterflies that are computed together: their numbers stay in a cache.
_BLOCK = 4096

# What one butterfly, a + b and w(a − b), can err by, in units of u² = 2⁻¹⁰⁶ relative to |a| + |b|: a sum of wide
# numbers errs by 3, a product by 5; a complex product by √2·(5 + 3) < 12; a twiddle factor w, itself one
# product of rounded table entries, by 13; so w(a − b) by √2·3 + 12 + 13 < 30. Over a pass that is 30 u² of the
# norm of its result. We charge 256, so there is room for a factor of eight.
_BUTTERFLY = Fraction(1, 2**98)
_DIGITS = 256  # bits of the integers that the tables are computed in


def fourier_error(n: int) -> Fraction:
    """Bound ‖computed − exact‖₂ ÷ ‖input‖₂ for the orthonormal transform of ``n`` values by `wide_fourier`.

    A power of two takes log₂ n passes of butterflies; each pass is an isometry up to √2, so errors add up
    over passes relative to the norm. Other lengths go through a convolution of length L < 4n by three
    transforms. The chirp has at most 2n entries of modulus one, so its transform is at most 2n anywhere and
    is known to √(2nL)·passes·error; carrying both through the convolution and dividing by √n costs a factor
    below 8√n.
    """
    if n & (n - 1) == 0:
        return _BUTTERFLY * (n.bit_length() + 3)
    passes = (4 * n).bit_length()
    return _BUTTERFLY * (3 * passes + 9) * 8 * (isqrt(n) + 1)


def added(a: FloatArray, b: FloatArray) -> FloatArray:
    """The sum of wide numbers, real or complex."""
    s = a[0] + b[0]
    t = s - a[0]
    e = (a[0] - (s - t)) + (b[0] - t) + (a[1] + b[1])
    h = s + e
    return np.stack([h, e - (h - s)])


def multiplied(a: FloatArray, b: FloatArray) -> FloatArray:
    """The product of wide real numbers."""
    p = a[0] * b[0]
    (ah, al), (bh, bl) = _halves(a[0]), _halves(b[0])
    e = ((ah * bh - p) + ah * bl + al * bh) + al * bl + (a[0] * b[1] + a[1] * b[0])
    h = p + e
    return np.stack([h, e - (h - p)])


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Doubles as sums of two with half the digits, whose products are exact."""
    c = 134217729.0 * a  # 2²⁷ + 1
    high = c - (c - a)
    return high, a - high


def times(a: FloatArray, b: FloatArray) -> FloatArray:
    """The product of wide complex numbers."""
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    whole: int = max(a.shape[-1], b.shape[-1])
    for begin in range(0, whole, _BLOCK):
        block = slice(begin, begin + _BLOCK)
        parts = multiplied(a[:, :, None, ..., block], b[:, None, ..., block])
        out[..., block] = added(parts[:, 0], np.stack([-parts[:, 1, 1], parts[:, 1, 0]], axis=1))
    return out


def widened(values: Sequence[int]) -> FloatArray:
    """Integers over 2^digits as wide numbers: two roundings each, so 106 bits are right."""
    high = [float(Fraction(value, 2**_DIGITS)) for value in values]
    low = [float(Fraction(value, 2**_DIGITS) - Fraction(h)) for value, h in zip(values, high, strict=True)]
    return np.array([high, low])


def widen(counts: IntArray) -> FloatArray:
    """Integers below 2⁶² as wide complex numbers, exactly."""
    out = np.zeros((2, 2, *counts.shape))
    out[0, 0] = counts
    out[1, 0] = counts - out[0, 0].astype(np.int64)
    return out


def _unit_root(order: int) -> tuple[int, int]:
    """Cosine and sine of −2π ÷ order as integers over 2^digits, by Taylor series in integers."""
    # Machin's formula: π = 16 arctan(1/5) − 4 arctan(1/239).
    angle = 2 * (16 * _arctan(5) - 4 * _arctan(239)) // order
    parts, term, k = [0, 0], 1 << _DIGITS, 0
    while term:
        parts[k % 2] += term if k % 4 < 2 else -term
        k += 1
        term = term * angle // (k << _DIGITS)
    return parts[0], -parts[1]


def _arctan(inverse: int) -> int:
    total, power, k = 0, (1 << _DIGITS) // inverse, 1
    while power:
        total += power // k if k % 4 == 1 else -(power // k)
        power //= inverse * inverse
        k += 2
    return total


@lru_cache(maxsize=4)
def roots(order: int, count: int) -> FloatArray:
    """The wide complex numbers exp(−2πi t ÷ order) for t < count.

    Two small tables, right to some 240 bits, are multiplied once: every entry errs by a few units of 2⁻¹⁰⁶.
    """
    size = isqrt(max(count - 1, 0)) + 1
    fine, giant = _table(_unit_root(order), size)
    coarse, _ = _table(giant, -(-count // size))
    rows = [times(coarse[..., row, None], fine) for row in range(coarse.shape[-1])]
    out = np.concatenate(rows, axis=-1)[..., :count]
    out.flags.writeable = False
    return out


def _table(base: tuple[int, int], count: int) -> tuple[FloatArray, tuple[int, int]]:
    """Powers 0 … count − 1 of ``base`` as wide numbers, and power ``count`` as integers."""
    powers = [(1 << _DIGITS, 0)]
    for _ in range(count):
        c, s = powers[-1]
        powers.append(((c * base[0] - s * base[1]) >> _DIGITS, (c * base[1] + s * base[0]) >> _DIGITS))
    cosines, sines = zip(*powers[:-1], strict=True)
    return np.stack([widened(cosines), widened(sines)], axis=1), powers[-1]


@lru_cache(maxsize=2)
def _chirp(n: int, length: int) -> tuple[FloatArray, FloatArray]:
    """Bluestein's chirp exp(−πi j² ÷ n), and the transform of its conjugate around a circle, ÷ length."""
    chirp = roots(2 * n, 2 * n)[..., np.arange(n, dtype=np.int64) ** 2 % (2 * n)]
    circle = np.zeros((2, 2, length))
    circle[..., :n] = chirp
    circle[:, 1] *= -1.0
    circle[..., length - n + 1 :] = circle[..., n - 1 : 0 : -1]
    return chirp, _transform(circle) / length


def _transform(x: FloatArray) -> FloatArray:
    """Transform wide complex numbers, a power of two of them, in place.

    Stockham's order needs no bit reversal, and neighbours stay neighbours.
    """
    n, m = x.shape[-1], 1
    half, table = n // 2, roots(n, max(1, n // 2))
    made = np.empty((2, 2, 2, half))
    while m < n:
        factors = np.repeat(table[..., ::m], m, axis=-1)
        for begin in range(0, half, _BLOCK):
            block = slice(begin, begin + _BLOCK)
            one, other = x[..., :half][..., block], x[..., half:][..., block]
            made[:, :, 0, block] = added(one, other)
            made[:, :, 1, block] = times(added(one, -other), factors[..., block])
        x.reshape(2, 2, -1, 2, m)[...] = made.reshape(2, 2, 2, -1, m).swapaxes(2, 3)
        m *= 2
    return x


def wide_fourier(values: FloatArray) -> FloatArray:
    """Transform the last axis of a wide complex array: Σⱼ xⱼ exp(−2πi jf ÷ n), not yet divided by √n."""
    rows = values.reshape(2, 2, -1, values.shape[-1])
    turned = [_fourier(rows[:, :, row]) for row in range(rows.shape[2])]
    return np.stack(turned, axis=2).reshape(values.shape)


def _fourier(row: FloatArray) -> FloatArray:
    n = row.shape[-1]
    if n & (n - 1) == 0:
        return _transform(row.copy())
    # Bluestein: jf = (j² + f² − (f − j)²) ÷ 2 turns any length into a circular convolution with a chirp.
    length = 1 << (2 * n - 2).bit_length()
    chirp, spectrum = _chirp(n, length)
    x = np.zeros((2, 2, length))
    x[..., :n] = times(row, chirp)
    # The inverse transform is the transform between two conjugations.
    x = times(_transform(x), spectrum)
    x[:, 1] *= -1.0
    x = _transform(x)[..., :n]
    x[:, 1] *= -1.0
    return times(x, chirp)


def to_lattice(values: FloatArray, power: float, ceiling: float) -> IntArray:
    """Round wide numbers × ``power`` (a power of two) to integers, cut at ±ceiling (at most 2⁶¹).

    Rounded first and cut afterwards, as integers: so two answers are never further apart than they were uncut. To
    compare the high word alone with the ceiling would not do: of two numbers on either side of the nearest double, one
    would be cut and the other, up to half the spacing of doubles there (128) away, would not be.
    """
    a, b = values * power
    # A high word twice the ceiling is beyond it whatever the low word is; nearer ones fit 64 bits.
    a = np.clip(a, -2.0 * ceiling, 2.0 * ceiling)
    whole = np.floor(a)
    rounded = whole.astype(np.int64) + np.floor((a - whole) + b + 0.5).astype(np.int64)
    most = int(ceiling)
    return np.asarray(np.clip(rounded, -most, most), dtype=np.int64)


def in_units(values: FloatArray, bits: int) -> NDArray[Any]:
    """Wide numbers in units of 2^−bits as Python's integers, within two units."""
    high, low = np.floor(values * 2.0**bits)
    return np.array([int(a) + int(b) for a, b in zip(high.tolist(), low.tolist(), strict=True)], dtype=object)
