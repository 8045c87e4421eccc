"""Triangles with constant diagonals, in integers and in n·log n: products of power series, exact by certified rounding.

A product of integer series is computed by floating Fourier transforms and rounded to whole numbers. That is exact, and
so the same on every machine, while the transform's error stays below a half. With u = 2⁻⁵³ and N the length of the
transforms the error of every coefficient is at most C·u·log₂N·‖a‖₂·‖b‖₂ (Higham, *Accuracy and Stability of Numerical
Algorithms*, section 24.1, has a small C; 64 is taken where counts are behind it). Series of larger numbers are taken in
limbs of so few bits that this holds for any numbers of their size: how many there are follows from public facts, never
from the values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_MARGIN = 64.0
_UNIT = 2.0**-53
# Of numbers that are public anyway, limbs have 13 bits: with C = 1 that is enough for 2²⁰ of them, and errors are
# typically a thousandth of that. One that was not forgiven would move a count by 2⁻³⁹.
_BITS = 13
_LIMBS = 3
FRACTION = _BITS * _LIMBS
"""Inverse series are in units of 2 to the minus this."""
# What the error of a coefficient may come to: half of what rounding forgives.
_FORGIVEN = 0.25


def _length(n: int) -> int:
    return 1 << max(1, (2 * n - 1).bit_length())


def limb_bits(n: int, norm: float) -> int:
    """How many bits a limb of n numbers may have beside a series of this norm."""
    size = _length(n)
    allowed = _FORGIVEN / (_MARGIN * _UNIT * math.log2(size) * norm * math.sqrt(n))
    return math.floor(math.log2(allowed))


def limbs(values: IntArray, bits: int, count: int) -> list[IntArray]:
    """Split integers: the sum of limb k times 2^(bits·k), each but the last within half of 2^bits of nothing."""
    found, rest, half = [], values.copy(), np.int64(1 << (bits - 1))
    for _ in range(count - 1):
        low = ((rest + half) & ((1 << bits) - 1)) - half
        found.append(low)
        rest = (rest - low) >> bits
    return [*found, rest]


def products(one: Sequence[IntArray], other: Sequence[IntArray], n: int) -> list[IntArray]:
    """The first n coefficients of a product of two series in limbs, as limbs again (which may overlap).

    The caller sees to it that `limb_bits` allows for these limbs.
    """
    size = _length(n)
    mine, theirs = ([np.fft.rfft(each.astype(np.float64), size) for each in side] for side in (one, other))
    found = []
    for k in range(len(mine) + len(theirs) - 1):
        pairs = [(i, k - i) for i in range(len(mine)) if 0 <= k - i < len(theirs)]
        total = sum(mine[i] * theirs[j] for i, j in pairs)
        found.append(np.rint(np.fft.irfft(total, size)[:n]).astype(np.int64))
    return found


def carried(parts: Sequence[IntArray], bits: int) -> list[IntArray]:
    """The same number in limbs that do not overlap: what exceeds one goes to the next."""
    done, carry, half = [], np.zeros_like(parts[0]), np.int64(1 << (bits - 1))
    for part in parts[:-1]:
        whole = part + carry
        low = ((whole + half) & ((1 << bits) - 1)) - half
        done.append(low)
        carry = (whole - low) >> bits
    return [*done, parts[-1] + carry]


def triangle_product(weights: IntArray, values: IntArray, most: int) -> IntArray:
    """Answer i is Σ_{j ≤ i} weights[i − j] · values[j], exactly; values lie between −most and most, a public fact.

    The answers must fit into 64 bits.
    """
    n = len(values)
    if not n:
        return np.zeros(0, dtype=np.int64)
    norm = math.sqrt(float((weights.astype(np.float64) ** 2).sum())) * (1.0 + 1e-9)
    bits = limb_bits(n, norm)
    count = max(1, -(-(int(most).bit_length() + 1) // bits))
    parts = products([weights], limbs(values, bits, count), n)
    answer = np.zeros(n, dtype=np.int64)
    for k, part in enumerate(parts):
        # Modulo 2⁶⁴, so that limbs of the top which overflow and come back do no harm.
        answer += part << np.int64(bits * k)
    return answer


def inverse_series(known: IntArray, unit: int, n: int) -> IntArray:
    """The first n coefficients of 2^FRACTION ÷ Σ wₖ·2^−unit·xᵏ, rounded: Newton's iteration in integers.

    The first of the weights ``known`` is 2^unit. With v the series so far and e = wv − 1, the
    next is v − ve, right for twice as many coefficients. Roundings are off by half a unit, so vw is 1 but for a few
    units times the root of Σ wₖ².
    """
    series = np.array([1 << FRACTION], dtype=np.int64)
    while len(series) < n:
        m = 2 * len(series)
        ahead = known[:m] if len(known) >= m else np.append(known, np.zeros(m - len(known), dtype=np.int64))
        begun = np.append(series, np.zeros(len(series), dtype=np.int64))
        mine = limbs(begun, _BITS, _LIMBS + 1)
        off = np.zeros(m, dtype=np.int64)
        for k, part in enumerate(products([ahead], mine, m)):
            off += part << np.int64(_BITS * k)
        off = (off + (1 << (unit - 1))) >> unit
        off[0] -= 1 << FRACTION
        change = carried(products(mine, limbs(off, _BITS, _LIMBS + 1), m), _BITS)[_LIMBS:]
        for k, part in enumerate(change):
            begun -= part << np.int64(_BITS * k)
        series = begun
    out = series[:n].copy()
    out.setflags(write=False)
    return out


def triangle_solve(inverse: IntArray, answers: IntArray) -> FloatArray:
    """Undo `triangle_product` by the inverse series; in the units of that."""
    n = len(answers)
    count = -(-64 // _BITS)
    parts = products(limbs(inverse[:n], _BITS, _LIMBS + 1), limbs(answers, _BITS, count), n)
    total = np.zeros(n)
    # From the smallest on, each exactly: the same floats everywhere.
    for k, part in enumerate(carried(parts, _BITS)):
        total += part * 2.0 ** (_BITS * k)
    return total
