"""How wide an honest interval is, given what is known of the noise in an answer.

An answer's noise is a weighted sum of independent draws, Laplace or Gaussian. Where it is a plain sum of equal discrete
draws the interval is exact. Gaussian draws with any weights have a Gaussian sum. For Laplace draws it is read off the
sum of *equal* Laplace draws that has the same variance and at least the same excess kurtosis: at the confidence levels
people use, more kurtosis means wider, and the whole effect lies between 1.96 and 2.12 standard deviations at 95 %.
"""

from __future__ import annotations

import math
import numbers
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import QueryError
from dphist.kernels.special import gamma_quantiles, normal_mixture_quantile
from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LONGEST_TRANSFORM = 1 << 20
_MOST_EXACT = 256
# Eigenvalues of a matrix of correlations above this are zero but for rounding.
_ROUNDED = 1e-9


@dataclass(frozen=True, eq=False)
class Spread:
    """What is known of the noise in each of several answers.

    ``variance`` counts 2 · (weight · scale)² for every Laplace draw in the answer and (weight · σ)² for every Gaussian
    one; ``largest`` is the largest |weight · scale| among the Laplace draws, 0 where there are none. If every weight is
    one and every draw has the same ``law``, then ``terms`` says how many draws there are and the interval is exact.
    """

    variance: FloatArray
    largest: FloatArray
    terms: IntArray | None = None
    law: NoiseLaw | None = None

    @staticmethod
    def of_terms(terms: IntArray, law: NoiseLaw) -> Spread:
        """The spread of plain sums of ``terms`` equal draws."""
        largest = np.full(terms.shape, 0.0 if law.gaussian else float(law.scale))
        return Spread(terms * law.variance, largest, terms, law)

    def combine(self, query: IntArray | None, queries: int) -> Spread:
        """Give the spread of sums of these answers: answer i belongs to query ``query[i]``; None if each is one.

        Answers over disjoint cells may share draws, so standard deviations are added: never too narrow.
        """
        if query is None:
            return self
        deviation = np.zeros(queries)
        np.add.at(deviation, query, np.sqrt(self.variance))
        largest = np.zeros(queries)
        if self.terms is None:
            # One draw may weigh in several of the answers: its weights add, up to what the whole variance allows.
            np.add.at(largest, query, self.largest)
            return Spread(deviation**2, np.minimum(largest, deviation / np.sqrt(2.0)))
        np.maximum.at(largest, query, self.largest)
        terms = np.zeros(queries, dtype=np.int64)
        np.add.at(terms, query, self.terms)
        variance = np.zeros(queries)
        np.add.at(variance, query, self.variance)
        return Spread(variance, largest, terms, self.law)


def read_confidence(confidence: object) -> float:
    """How sure an interval is to be, as a number strictly between 0 and 1."""
    number = math.nan
    if isinstance(confidence, numbers.Real | Decimal):
        with suppress(OverflowError, ValueError):
            number = float(confidence)
    if not 0 < number < 1:
        raise QueryError("confidence must lie strictly between 0 and 1, for example 0.95")
    return number


def possible(
    low: ArrayLike, high: ArrayLike, least: float = 0.0, most: float = math.inf
) -> tuple[FloatArray, FloatArray]:
    """Intervals of noise, cut to what the truth can be: they hold it as surely as before.

    One whose middle cannot be the truth first moves until it can. Cut where it lay, hardly anything would be left of
    one around a count of -189: "0 to 0" reads as if there were certainly nobody, where noise merely went far.

    Example:
        >>> [end.tolist() for end in possible([-250.0, -20.0, 5.0], [-128.0, 80.0, 9.0])]
        [[0.0, 0.0, 5.0], [61.0, 80.0, 9.0]]
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        middle = (low + high) / 2.0
        moved = np.where(np.isfinite(middle), np.clip(middle, least, most) - middle, 0.0)
    return np.clip(low + moved, least, most), np.clip(high + moved, least, most)


def half_widths(spread: Spread, confidence: float) -> FloatArray:
    """Give the half-width of each answer's interval."""
    beta = 1 - read_confidence(confidence)
    if spread.terms is not None and spread.law is not None:
        return _plain_sums(spread.terms, spread.law, beta)
    # No Laplace draw is as good as endlessly many small ones: the sum is Gaussian.
    heavy = spread.largest > 0
    draws = np.divide(spread.variance, 2 * spread.largest**2, out=np.full(heavy.shape, np.inf), where=heavy)
    matched = _matched(np.maximum(draws, 1.0), beta)
    # The largest draw is often known as a bound. Few heavy draws reach further than a normal law at 95 %, and less far
    # below 87 %: whoever may have overrated them takes what is wider.
    return np.sqrt(spread.variance) * np.maximum(matched, normal_quantile(1.0 - beta))


def normal_quantile(confidence: float) -> float:
    """How many deviations to either side a normal error stays within, with this confidence."""
    sure = read_confidence(confidence)
    above = 0.5 + sure / 2.0
    # So near to one that a half more rounds to it: the other tail is still told apart from zero.
    return NormalDist().inv_cdf(above) if above < 1.0 else -NormalDist().inv_cdf((1.0 - sure) / 2.0)


def joint_deviations(confidence: float, share: float) -> float:
    """How many deviations a calibrated interval reaches for all of many to hold together, each with this share.

    A predictive law is right on average, and the worst of many questions is where it is most wrong: its deviations are
    themselves not known. Were they off by chi-squared factors, errors would follow Student's law. With four degrees of
    freedom, scaled to agree with the normal law for a single question, all cells of a line would hold in 0.996 of
    releases (0.844 by the normal law) and all of a plane in 0.977 (0.578), reckoned from errors over widths of single
    ones on four made-up shapes (bursts, a comb, islands, a bell) with 3 and 30 records a cell in both currencies, eight
    draws each; with five in 0.992 and 0.934. Counted since: bench/results/coverage.md.
    """
    alone = normal_quantile(confidence)
    # To the last bit: a single question has the bounds that it has anywhere.
    return alone if share == confidence else alone * _student(1.0 - share) / _student(1.0 - confidence)


def _student(beta: float) -> float:
    """What Student's law of four degrees of freedom exceeds on either side with this probability (Shaw 2006)."""
    inside = math.sqrt(beta * (2.0 - beta))
    return 2.0 * math.sqrt(math.cos(math.acos(inside) / 3.0) / inside - 1.0)


def chernoff_widths(variance: FloatArray, heaviest: FloatArray, confidence: float) -> FloatArray:
    """How far a sum of independent noises with known weights reaches: never too little, by Chernoff's bound."""
    needed = -math.log((1.0 - confidence) / 2.0)
    deviation = np.sqrt(np.maximum(variance, 1e-300))
    best = np.full(variance.shape, np.inf)
    # The weights do not depend on the noise, so the best of many λ may be taken freely.
    for factor in np.linspace(0.1, 1.6, 61):
        rate = factor * math.sqrt(2.0 * needed) / deviation
        theta = (rate * heaviest) ** 2
        safe = np.clip(theta, 1e-6, 1.0 - 1e-12)
        # ψ(x)/x² grows with x, so the heaviest draw bounds all of them.
        growth = np.where(theta > 1e-6, -np.log1p(-safe) / safe, 1.0 + theta / 2.0)
        reach = (needed + rate * rate * variance / 2.0 * growth) / rate
        best = np.where(theta < 1.0, np.minimum(best, reach), best)
    return np.where(np.isnan(variance), np.nan, np.where(variance > 0.0, best, 0.0))


def _plain_sums(terms: IntArray, law: NoiseLaw, beta: float) -> FloatArray:
    sizes, place = np.unique(terms, return_inverse=True)
    if sizes.size > _MOST_EXACT:
        # Many different sizes: round each up to one of a few, which only widens the interval (by under 1 %).
        grid = np.unique(np.ceil(np.geomspace(max(1, sizes[0]), sizes[-1], _MOST_EXACT)).astype(np.int64))
        grid = grid if sizes[0] > 0 else np.concatenate([np.zeros(1, dtype=np.int64), grid])
        place = np.searchsorted(grid, sizes)[place]
        sizes = grid
    return np.array([_sum_quantile(int(size), law, beta) for size in sizes])[place.reshape(terms.shape)]


@lru_cache(maxsize=4096)
def _sum_quantile(terms: int, law: NoiseLaw, beta: float) -> float:
    """Smallest s with Pr(|sum of ``terms`` discrete draws| > s) ≤ β.

    The characteristic function of one draw is known; its power is inverted by one FFT. What lies beyond half the
    transform's length L wraps around; by the Chernoff bound that mass is below 10⁻¹⁵ for the L chosen, and it is added
    to the tail.
    """
    if terms == 0:
        return 0.0
    deviation = np.sqrt(terms) * float(law.deviation)
    reach = 2 * max(9.0 * deviation, 40.0 * float(law.scale)) + 8
    length = 1 << int(np.ceil(np.log2(reach)))
    if length > _LONGEST_TRANSFORM:
        # A lattice this fine is a continuum: the law of a sum of equal Laplace draws is the matched one.
        draws = np.inf if law.gaussian else float(terms)
        return float(np.ceil(deviation * _matched(np.array([draws]), beta)[0]))
    spectrum = _characteristic(law, length) ** terms
    mass = np.maximum(np.fft.irfft(spectrum, length), 0.0)
    upper = np.cumsum(mass[1 : length // 2][::-1])[::-1]  # upper[k] = Pr(sum > k)
    tails = 2 * upper + 1e-15
    return float(np.argmax(tails <= beta)) if tails[-1] <= beta else float(length)


def _characteristic(law: NoiseLaw, length: int) -> FloatArray:
    """The characteristic function of one draw at the frequencies of a transform of this length."""
    if law.gaussian:
        places = np.arange(length // 2 + 1, dtype=np.float64)
        weights = np.exp(-(places**2) / (2.0 * float(law.variance)))
        whole = np.concatenate([weights, weights[-2:0:-1]])
        return np.asarray(np.fft.rfft(whole / whole.sum()).real, dtype=np.float64)
    a = np.exp(-1.0 / float(law.size))
    theta = 2 * np.pi * np.arange(length // 2 + 1) / length
    # (1 − a)² ÷ (1 − 2a cos θ + a²), and 1 − 2a cos θ + a² = (1 − a)² + 4a sin²(θ/2): no cancellation near zero.
    one = (1 - a) ** 2
    return np.asarray(one / (one + 4 * a * np.sin(theta / 2) ** 2), dtype=np.float64)


def _matched(draws: FloatArray, beta: float) -> FloatArray:
    """Quantiles of |sum of m equal Laplace draws| ÷ its standard deviation, between those tabulated against 1/m.

    Few answers need few of the table: only what lies beside their 1/m is worked out.
    """
    share = 1.0 / draws
    left = np.clip(np.searchsorted(_SHARES, share, side="right") - 1, 0, _SHARES.size - 2)
    quantiles = np.full(_SHARES.size, np.nan)
    for i in np.union1d(left, left + 1).tolist():
        quantiles[i] = _quantile(float(_SHARES[i]), beta)
    return np.asarray(np.interp(share, _SHARES, quantiles), dtype=np.float64)


# From endlessly many draws to one.
_SHARES = np.concatenate([np.linspace(0.0, 0.1, 12), np.linspace(0.15, 1.0, 18)])


@lru_cache(maxsize=2048)
def _quantile(share: float, beta: float) -> float:
    """One of them: a sum of m Laplace draws is normal with a Gamma(m) variance, Pr(|S| > q) a mean of normal tails."""
    if share == 0.0:
        return normal_quantile(1.0 - beta)
    return normal_mixture_quantile(_spreads(share), beta, 60.0)


@lru_cache(maxsize=32)
def _spreads(share: float) -> FloatArray:
    """The deviations of a sum of 1/share equal Laplace draws given its Gamma variance, at even steps of chance."""
    levels = (np.arange(4000) + 0.5) / 4000
    return np.sqrt(gamma_quantiles(1.0 / share, levels) * share)


def covariances(variance: FloatArray) -> FloatArray:
    """Tell the covariances of neighbours from the variance of each range i … j − 1, at (i, j) and (j, i).

    No sum of them has less than no variance.

    For ranges A and B side by side 2·Cov(A, B) = Var(A ∪ B) − Var(A) − Var(B). What a law adds to the variances of long
    ranges, as a caution, is in none of their parts, and comes out as covariances that nothing can have. So none is
    larger than the product of both deviations; and if sums with less than no variance are left, the matrix of
    correlations loses the directions in which they are. Variances are as they were, or larger.
    """
    if not np.isfinite(variance).all():
        return np.full((len(variance) - 1, len(variance) - 1), np.nan)
    prefix = variance[0]
    # Cov(prefix i, prefix j), then the difference in both directions.
    table = (prefix[:, None] + prefix[None, :] - variance) / 2.0
    told = np.asarray(np.diff(np.diff(table, axis=0), axis=1), dtype=np.float64)
    deviation = np.sqrt(np.maximum(np.diag(told), 0.0))
    most = np.outer(deviation, deviation)
    cut = np.clip(told, -most, most)
    spread, ways = np.linalg.eigh(np.divide(cut, most, out=np.zeros_like(cut), where=most > 0))
    if spread[0] > -_ROUNDED:
        return told
    return np.asarray((ways * np.maximum(spread, 0.0)) @ ways.T * most, dtype=np.float64)
