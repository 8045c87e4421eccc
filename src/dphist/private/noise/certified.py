"""Numbers known to lie between two integers, and coins whose probability is only known that way.

Everything exact in this package rests on one idea. A coin with probability p comes up when U < p for a
uniform U. Neither U nor p is ever known in full: U as far as its bits were drawn, p as far as it was
computed. Both are intervals with integer ends; when they overlap, draw more bits and compute more digits.
The coin's probability is then p itself, not a rounding of it.

Thresholds that a δ depends on need upper bounds, which hold exactly, of how likely noise is to reach them.

*Discrete Laplace*, scale b, α = e^{−1/b}: Pr[Z ≥ m] = α^m/(1 + α) for m ≥ 1, by summing a geometric series.

*Discrete Gaussian*, parameter v: Pr[Z ≥ m] = Σ_{k≥m} e^{−k²/2v} ÷ Σ_k e^{−k²/2v}. From k to k + 1 a term shrinks by
e^{−(2k+1)/2v}, at most e^{−(2m+1)/2v}, so the first sum is at most e^{−m²/2v} ÷ (1 − e^{−(2m+1)/2v}). The second is
at least √(2πv), by Poisson's summation formula, all of whose terms are positive; and at least 1, its term at zero.

Both are computed from integer enclosures of e^{−x}, rounded up; no float decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt

from dphist.errors import EpsilonError
from dphist.private.noise.keystream import Keystream

# (bits) -> integers lo ≤ p·2^bits ≤ hi; the ends close in on each other as bits grow.
Bounds = Callable[[int], tuple[int, int]]

# Thresholds are compared with 16 bits that index a table and 64 more that settle the cells between values.
REST = 64
FLOOR = 16 + REST

# Tails to 400 bits: chances down to 10⁻¹⁰⁰ are told from zero.
_BITS = 400
_ONE = 1 << _BITS


def exp_neg_interval(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose exp(−x) for x ≥ 0: integers lo ≤ exp(−x)·2^bits ≤ hi, with hi − lo ≤ 3.

    Proof. If x ≥ bits, exp(−x) < 2^−bits and (0, 1) encloses it. Otherwise let y = x/2^s ≤ 1/64 and work in
    units of 2^−w. Y = ⌊y·2^w⌋ is at most 1 below y, and exp(−·) has slope at most 1, so replacing y by Y
    costs at most 1. The terms T_k = ⌊T_{k−1}·Y/(k·2^w)⌋ of the series are below the true terms by
    δ_k ≤ δ_{k−1}/64 + 1 < 2. The loop ends at the first T_K = 0, whose true term is below 2; terms alternate
    and decrease, so what is left out is below 2. Together the sum is within 2K + 3 of exp(−y)·2^w. The s
    squarings that lead back to exp(−x) round the lower end down and the upper end up; as ends are at most 1,
    each squaring at most doubles the width and adds 2, so the width after them is below 2^s(4K + 8), and
    K ≤ w/6 + 1. The guard of s + bitlen(w) + 8 bits makes that less than one unit of 2^−bits, and rounding
    both ends outwards adds at most 2.
    """
    if x >= bits:
        return 0, 1
    whole = x.numerator // x.denominator
    halvings = whole.bit_length() + 6
    w = bits + halvings + 8
    w += w.bit_length() + 1
    fixed = (x.numerator << (w - halvings)) // x.denominator
    one = 1 << w
    total = term = one
    k = 0
    while term:
        k += 1
        term = (term * fixed >> w) // k
        total += -term if k & 1 else term
    lo = max(total - 2 * k - 3, 0)
    hi = min(total + 2 * k + 3, one)
    for _ in range(halvings):
        lo = lo * lo >> w
        hi = -(-hi * hi >> w)
    return lo >> (w - bits), -(-hi >> (w - bits))


def ratio_interval(top: tuple[int, int], bottom: tuple[int, int], bits: int) -> tuple[int, int]:
    """Enclose top/bottom, given by the ends of their intervals in one unit, in units of 2^−bits."""
    return (top[0] << bits) // bottom[1], -((-top[1] << bits) // bottom[0])


def logistic_interval(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose exp(−x)/(1 + exp(−x)) for x ≥ 0 in units of 2^−bits.

    The function p/(1 + p) grows with p, so the ends of p give the ends of the answer.
    """
    work = bits + 8
    one = 1 << work
    lo, hi = exp_neg_interval(x, work)
    return (lo << bits) // (one + lo), -((-hi << bits) // (one + hi))


def certified_floors(
    first: int, enclose: Callable[[int], Sequence[tuple[int, int]]], bits: int = FLOOR
) -> list[int]:
    """Give ⌊p·2^bits⌋ for every p that ``enclose(work)`` encloses, lo ≤ p·2^work < hi, from ``first`` bits of work on.

    The upper end is never reached: p is a rational function of exp(−x) with rational x > 0, which is
    transcendental. Without that, 1 − exp(−10⁹) could not be told from 1 in less than 10⁹ bits.
    """
    work = first
    while True:
        ends, down = enclose(work), work - bits
        floors = [lo >> down for lo, _ in ends]
        if all((hi - 1) >> down == floor for (_, hi), floor in zip(ends, floors, strict=True)):
            return floors
        work *= 2


class Uniform:
    """A uniform number U in [0, 1) of which only as many bits are drawn as its comparisons need.

    U lies in [prefix, prefix + 1]·2^−known. A comparison answers only when that interval lies wholly on one
    side of p, so it is the answer the infinitely long U would give; bits drawn for one comparison stay for
    the next. Each round makes another 2^64 times less likely.
    """

    def __init__(self, keystream: Keystream, prefix: int = 0, known: int = 0) -> None:
        self.keystream = keystream
        self.prefix = prefix
        self.known = known

    def below(self, bounds: Bounds) -> bool:
        """Decide U < p exactly."""
        while True:
            lo, hi = bounds(self.known)
            if self.prefix + 1 <= lo:
                return True
            if self.prefix >= hi:
                return False
            self.prefix = self.prefix << 64 | self.keystream.integer(64)
            self.known += 64


def bernoulli_exp_neg(x: Fraction, keystream: Keystream) -> bool:
    """Toss a coin that comes up with probability exactly exp(−x)."""
    return Uniform(keystream).below(lambda bits: exp_neg_interval(x, bits))


def geometric(rate: Fraction, keystream: Keystream) -> int:
    """Draw g ≥ 0 with probability ∝ exp(−rate·g), one coin at a time: for the rare tails only."""
    drawn = 0
    while bernoulli_exp_neg(rate, keystream):
        drawn += 1
    return drawn


def laplace_tail(reach: int, scale: Fraction) -> Fraction:
    """Bound the probability that discrete Laplace noise is at least ``reach``, which is at least one."""
    high = exp_neg_interval(reach / scale, _BITS)[1]
    low = exp_neg_interval(1 / scale, _BITS)[0]
    return Fraction(high, _ONE + low)


def gaussian_tail(reach: int, variance: Fraction) -> Fraction:
    """Bound the probability that discrete Gaussian noise is at least ``reach``, which is at least one."""
    first = exp_neg_interval(Fraction(reach * reach) / (2 * variance), _BITS)[1]
    shrinks = exp_neg_interval(Fraction(2 * reach + 1) / (2 * variance), _BITS)[1]
    if shrinks >= _ONE:
        return Fraction(1)
    deviation = Fraction(isqrt(int(variance * 10**12)), 10**6)
    root = Fraction(2_506_628, 1_000_000)  # below √(2π) = 2.50662827…
    return Fraction(first, _ONE - shrinks) / max(Fraction(1), root * deviation)


def least_reach(kind: str, size: Fraction, probability: Fraction) -> int:
    """The least m ≥ 1 that noise of a law reaches with a probability of at most ``probability``, by these bounds."""
    if probability < Fraction(1, 10**100):
        raise EpsilonError("delta is out of any useful range")
    tail = laplace_tail if kind == "laplace" else gaussian_tail
    high = 1
    while tail(high, size) > probability:
        high *= 2
    low = high // 2  # reached too often, or zero
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle, size) > probability else (low, middle)
    return high
