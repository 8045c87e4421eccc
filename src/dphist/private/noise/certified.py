"""Numbers known to lie between two integers, and coins whose probability is only known that way.

Everything exact in this package rests on one idea. A coin with probability p comes up when U < p for a
uniform U. Neither U nor p is ever known in full: U as far as its bits were drawn, p as far as it was
computed. Both are intervals with integer ends; when they overlap, draw more bits and compute more digits.
The coin's probability is then p itself, not a rounding of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from dphist.private.noise.keystream import Keystream

# (bits) -> integers lo ≤ p·2^bits ≤ hi; the ends close in on each other as bits grow.
Bounds = Callable[[int], tuple[int, int]]

# Thresholds are compared with 16 bits that index a table and 64 more that settle the cells between values.
REST = 64
FLOOR = 16 + REST


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


def certified_floor(lo: int, hi: int, work: int) -> int | None:
    """Give ⌊p·2^80⌋ when lo ≤ p·2^work < hi settles it, else None.

    The upper end is never reached: p is a rational function of exp(−x) with rational x > 0, which is
    transcendental. Without that, 1 − exp(−10⁹) could not be told from 1 in less than 10⁹ bits.
    """
    down = work - FLOOR
    floor = lo >> down
    return floor if (hi - 1) >> down == floor else None


def precisions(first: int) -> Iterator[int]:
    """Working precisions to try, each twice the last; some one settles what is no dyadic fraction."""
    while True:
        yield first
        first *= 2


def certified_floors(first: int, enclose: Callable[[int], Sequence[tuple[int, int]]]) -> list[int]:
    """Give ⌊p·2^80⌋ for every p that ``enclose(work)`` encloses in units of 2^−work, from ``first`` bits on."""
    for work in precisions(first):
        floors = [certified_floor(lo, hi, work) for lo, hi in enclose(work)]
        settled = [floor for floor in floors if floor is not None]
        if len(settled) == len(floors):
            return settled
    raise AssertionError


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
