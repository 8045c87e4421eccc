"""A Fourier transform in numbers twice as wide as a double, with an error bound that can be paid for.

A *wide* number is an unevaluated sum of two doubles, ``high + low``, about 106 bits. Error-free sums and
products of doubles (Knuth, Dekker) make its arithmetic out of ordinary instructions. A wide array is
``float64[2, …]``, a wide complex array ``float64[4, …]`` = real high, real low, imaginary high, imaginary
low.

Why so wide: a Fourier coefficient of counts is released on a lattice finer than its noise, for counts that
may sum to 2⁶². A double's transform errs by about 2⁻⁴⁸ of that, more than the noise; this one by less than
2⁻⁹⁰, or 2⁻⁷⁵ if the length is not a power of two.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]

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


@kernel
def _two_sum(a: float, b: float) -> tuple[float, float]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@kernel
def _two_product(a: float, b: float) -> tuple[float, float]:
    p = a * b
    c = 134217729.0 * a  # 2²⁷ + 1: splits a double into halves whose products are exact
    ah = c - (c - a)
    al = a - ah
    c = 134217729.0 * b
    bh = c - (c - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


@kernel
def _add(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    s, e = _two_sum(ah, bh)
    e += al + bl
    h = s + e
    return h, e - (h - s)


@kernel
def _multiply(ah: float, al: float, bh: float, bl: float) -> tuple[float, float]:
    p, e = _two_product(ah, bh)
    e += ah * bl + al * bh
    h = p + e
    return h, e - (h - p)


@kernel
def _times(
    ar: float, as_: float, ai: float, aj: float, br: float, bs: float, bi: float, bj: float
) -> tuple[float, float, float, float]:
    """Multiply the wide complex numbers (ar+as) + i(ai+aj) and (br+bs) + i(bi+bj)."""
    rh, rl = _multiply(ar, as_, br, bs)
    sh, sl = _multiply(ai, aj, bi, bj)
    th, tl = _multiply(ar, as_, bi, bj)
    uh, ul = _multiply(ai, aj, br, bs)
    xh, xl = _add(rh, rl, -sh, -sl)
    yh, yl = _add(th, tl, uh, ul)
    return xh, xl, yh, yl


@kernel
def _stockham(x: FloatArray, y: FloatArray, roots: FloatArray) -> int:
    """Transform x in place of length 2^p with scratch y; returns 1 when the result ended up in y.

    Stockham's order needs no bit reversal and its inner loop runs over neighbours.
    """
    n = x.shape[1]
    half, m, swapped = n // 2, 1, 0
    while half >= 1:
        for j in range(half):
            wr, ws, wi, wj = roots[0, j * m], roots[1, j * m], roots[2, j * m], roots[3, j * m]
            a, b, c, d = j * m, (j + half) * m, 2 * j * m, (2 * j + 1) * m
            for k in range(m):
                pr, ps, pi, pj = x[0, a + k], x[1, a + k], x[2, a + k], x[3, a + k]
                qr, qs, qi, qj = x[0, b + k], x[1, b + k], x[2, b + k], x[3, b + k]
                y[0, c + k], y[1, c + k] = _add(pr, ps, qr, qs)
                y[2, c + k], y[3, c + k] = _add(pi, pj, qi, qj)
                er, es = _add(pr, ps, -qr, -qs)
                ei, ej = _add(pi, pj, -qi, -qj)
                y[0, d + k], y[1, d + k], y[2, d + k], y[3, d + k] = _times(er, es, ei, ej, wr, ws, wi, wj)
        x, y = y, x
        swapped = 1 - swapped
        half //= 2
        m *= 2
    return swapped


@kernel
def _pointwise(x: FloatArray, factors: FloatArray) -> None:
    for k in range(x.shape[1]):
        x[0, k], x[1, k], x[2, k], x[3, k] = _times(
            x[0, k],
            x[1, k],
            x[2, k],
            x[3, k],
            factors[0, k],
            factors[1, k],
            factors[2, k],
            factors[3, k],
        )


@kernel
def _powers(coarse: FloatArray, fine: FloatArray, out: FloatArray) -> None:
    size = fine.shape[1]
    for t in range(out.shape[1]):
        a, b = t // size, t % size
        out[0, t], out[1, t], out[2, t], out[3, t] = _times(
            coarse[0, a],
            coarse[1, a],
            coarse[2, a],
            coarse[3, a],
            fine[0, b],
            fine[1, b],
            fine[2, b],
            fine[3, b],
        )


def widen_integer(value: int) -> tuple[float, float]:
    """Write ``value`` ÷ 2^digits as a wide number: two roundings, so 106 bits are right."""
    exact = Fraction(value, 2**_DIGITS)
    high = float(exact)
    return high, float(exact - Fraction(high))


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
    base = _unit_root(order)
    fine, giant = _table(base, size)
    coarse, _ = _table(giant, -(-count // size))
    out = np.empty((4, count))
    _powers(coarse, fine, out)
    out.flags.writeable = False
    return out


def _table(base: tuple[int, int], count: int) -> tuple[FloatArray, tuple[int, int]]:
    """Powers 0 … count − 1 of ``base`` as wide numbers, and power ``count`` as integers."""
    table = np.empty((4, count))
    c, s = 1 << _DIGITS, 0
    for t in range(count):
        table[0, t], table[1, t] = widen_integer(c)
        table[2, t], table[3, t] = widen_integer(s)
        c, s = (c * base[0] - s * base[1]) >> _DIGITS, (c * base[1] + s * base[0]) >> _DIGITS
    return table, (c, s)


@lru_cache(maxsize=2)
def _chirp(n: int, length: int) -> tuple[FloatArray, FloatArray]:
    """Bluestein's chirp exp(−πi j² ÷ n), and the transform of its conjugate around a circle, ÷ length."""
    table = roots(2 * n, 2 * n)
    squares = (np.arange(n, dtype=np.int64) ** 2) % (2 * n)
    chirp = np.ascontiguousarray(table[:, squares])
    circle = np.zeros((4, length))
    circle[:, :n] = chirp
    circle[:, length - n + 1 :] = chirp[:, 1:][:, ::-1]
    circle[2:] *= -1.0
    spectrum = _transform(circle, np.empty_like(circle), roots(length, length // 2))
    return chirp, np.ascontiguousarray(spectrum) / length


def _transform(x: FloatArray, scratch: FloatArray, table: FloatArray) -> FloatArray:
    return scratch if _stockham(x, scratch, table) else x


def wide_fourier(values: FloatArray) -> FloatArray:
    """Transform the last axis of a wide complex array: Σⱼ xⱼ exp(−2πi jf ÷ n), not yet divided by √n."""
    n = values.shape[-1]
    out = np.empty_like(values)
    rows, target = values.reshape(4, -1, n), out.reshape(4, -1, n)
    if n & (n - 1) == 0:
        table = roots(n, max(1, n // 2))
        x, y = np.empty((4, n)), np.empty((4, n))
        for r in range(rows.shape[1]):
            x[:] = rows[:, r]
            target[:, r] = _transform(x, y, table)
        return out
    # Bluestein: jf = (j² + f² − (f − j)²) ÷ 2 turns any length into a circular convolution with a chirp.
    length = 1 << (2 * n - 2).bit_length()
    chirp, spectrum = _chirp(n, length)
    table = roots(length, length // 2)
    x, y = np.zeros((4, length)), np.empty((4, length))
    for r in range(rows.shape[1]):
        x[:] = 0.0
        x[:, :n] = rows[:, r]
        _pointwise(x[:, :n], chirp)
        there = _transform(x, y, table)
        _pointwise(there, spectrum)
        # The inverse transform is the transform between two conjugations.
        there[2:] *= -1.0
        back = _transform(there, y if there is x else x, table)[:, :n]
        back[2:] *= -1.0
        _pointwise(back, chirp)
        target[:, r] = back
    return out


def widen(counts: NDArray[np.int64]) -> FloatArray:
    """Integers below 2⁶² as wide complex numbers, exactly."""
    out = np.zeros((4, *counts.shape))
    out[0] = counts
    out[1] = counts - out[0].astype(np.int64)
    return out


@kernel
def difference_of_parts(values: FloatArray, high: float, low: float) -> FloatArray:
    """(Real − imaginary part) × (high + low) of wide complex numbers ``[4, k]``: Hartley's coordinates."""
    out = np.empty((2, values.shape[1]))
    for k in range(values.shape[1]):
        a, b = _add(values[0, k], values[1, k], -values[2, k], -values[3, k])
        out[0, k], out[1, k] = _multiply(a, b, high, low)
    return out


@kernel
def turned_real_parts(values: FloatArray, factors: FloatArray) -> FloatArray:
    """Real part of wide complex ``values[4, r, k] × factors[4, k]`` for the first k entries of every row."""
    rows, size = values.shape[1], factors.shape[1]
    out = np.empty((2, rows, size))
    for r in range(rows):
        for k in range(size):
            a, b = _multiply(values[0, r, k], values[1, r, k], factors[0, k], factors[1, k])
            c, d = _multiply(values[2, r, k], values[3, r, k], factors[2, k], factors[3, k])
            out[0, r, k], out[1, r, k] = _add(a, b, -c, -d)
    return out


def scaled(factors: FloatArray, high: float, low: float) -> FloatArray:
    """Wide complex numbers ``[4, k]`` times the wide number high + low."""
    constant = np.zeros_like(factors)
    constant[0], constant[1] = high, low
    out = factors.copy()
    _pointwise(out, constant)
    return out


@kernel
def to_lattice(
    values: FloatArray, index: NDArray[np.int64], power: float, ceiling: float
) -> NDArray[np.int64]:
    """Round chosen wide numbers × ``power`` (a power of two) to integers, cut at ±ceiling (at most 2⁶¹).

    Rounded first and cut afterwards, as integers: so two answers are never further apart than they were uncut. To
    compare the high word alone with the ceiling would not do: of two numbers on either side of the nearest double, one
    would be cut and the other, up to half the spacing of doubles there (128) away, would not be.
    """
    out = np.empty(index.size, dtype=np.int64)
    most = np.int64(ceiling)
    for i in range(index.size):
        a, b = values[0, index[i]] * power, values[1, index[i]] * power
        # A high word twice the ceiling is beyond it whatever the low word is; nearer ones fit 64 bits.
        if a >= 2.0 * ceiling:
            out[i] = most
        elif a <= -2.0 * ceiling:
            out[i] = -most
        else:
            whole = np.floor(a)
            rounded = np.int64(whole) + np.int64(np.floor((a - whole) + b + 0.5))
            out[i] = min(most, max(-most, rounded))
    return out


@kernel
def folded_energy(values: FloatArray, fold: NDArray[np.int64], size: int) -> FloatArray:
    """Sum the squares of the wide numbers with the same ``fold`` index."""
    out = np.zeros((2, size))
    for k in range(fold.size):
        a, b = _multiply(values[0, k], values[1, k], values[0, k], values[1, k])
        f = fold[k]
        out[0, f], out[1, f] = _add(out[0, f], out[1, f], a, b)
    return out


@kernel
def wide_running_sum(values: FloatArray, backwards: bool) -> FloatArray:
    """Running sums of wide numbers ``[2, a, k, b]`` along k, inclusive; from the end when ``backwards``."""
    out = values.copy()
    _, outer, size, inner = values.shape
    for a in range(outer):
        for step in range(1, size):
            k = size - 1 - step if backwards else step
            previous = k + 1 if backwards else k - 1
            for b in range(inner):
                out[0, a, k, b], out[1, a, k, b] = _add(
                    out[0, a, k, b], out[1, a, k, b], out[0, a, previous, b], out[1, a, previous, b]
                )
    return out


@kernel
def wide_sum(first: FloatArray, second: FloatArray) -> FloatArray:
    """Add two wide arrays ``[2, k]``."""
    out = np.empty_like(first)
    for k in range(first.shape[1]):
        out[0, k], out[1, k] = _add(first[0, k], first[1, k], second[0, k], second[1, k])
    return out


@kernel
def root_lattice(energy: FloatArray, power: float, ceiling: float) -> NDArray[np.int64]:
    """⌊√energy × power⌋ of wide non-negative numbers, for a power of two, cut at ``ceiling`` as `to_lattice` cuts."""
    out = np.empty(energy.shape[1], dtype=np.int64)
    most = np.int64(ceiling)
    for k in range(energy.shape[1]):
        if energy[0, k] <= 0.0:
            out[k] = 0
            continue
        s = np.sqrt(energy[0, k])
        p, e = _two_product(s, s)
        a, b = _add(energy[0, k], energy[1, k], -p, -e)
        t = a / (2.0 * s)  # Newton's step from a double's root
        h = s + t
        a, b = h * power, (t - (h - s)) * power
        if a >= 2.0 * ceiling:
            out[k] = most
        else:
            whole = np.floor(a)
            out[k] = min(most, np.int64(whole) + np.int64(np.floor((a - whole) + b)))
    return out
