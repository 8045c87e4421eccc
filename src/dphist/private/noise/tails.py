"""How likely noise is to reach far: upper bounds that hold exactly, for thresholds that a δ depends on.

*Discrete Laplace*, scale b, α = e^{−1/b}: Pr[Z ≥ m] = α^m/(1 + α) for m ≥ 1, by summing a geometric series.

*Discrete Gaussian*, parameter v: Pr[Z ≥ m] = Σ_{k≥m} e^{−k²/2v} ÷ Σ_k e^{−k²/2v}. From k to k + 1 a term shrinks by
e^{−(2k+1)/2v}, at most e^{−(2m+1)/2v}, so the first sum is at most e^{−m²/2v} ÷ (1 − e^{−(2m+1)/2v}). The second is
at least √(2πv), by Poisson's summation formula, all of whose terms are positive; and at least 1, its term at zero.

Both are computed from integer enclosures of e^{−x}, rounded up; no float decides.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

from dphist.errors import EpsilonError
from dphist.private.noise.certified import exp_neg_interval

# e^{−x} to 400 bits: chances down to 10⁻¹⁰⁰ are told from zero.
_BITS = 400
_SMALLEST = Fraction(1, 10**100)
_ONE = 1 << _BITS
_ROOT = Fraction(2_506_628, 1_000_000)  # below √(2π) = 2.50662827…


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
    return Fraction(first, _ONE - shrinks) / max(Fraction(1), _ROOT * deviation)


def least_reach(kind: str, size: Fraction, probability: Fraction) -> int:
    """The least m ≥ 1 that noise of a law reaches with a probability of at most ``probability``, by these bounds."""
    if probability < _SMALLEST:
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
