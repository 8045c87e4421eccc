"""Intervals for ratios of noisy numbers: of a sum and a count, or of two sums.

A plain ratio has no useful law where the denominator may be zero. Fieller's argument needs none: the ratio r = A ÷ B
makes A − rB zero, and that is a noisy number of known spread, so every r with |a − rb| ≤ z · deviation(a − rb) is kept.
Where b is further from zero than its noise these are the numbers between the roots of a quadratic; elsewhere every
ratio, or all but some in the middle, could be the true one, and the honest answer is that it is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, NoiseErrors
from dphist.inference.intervals import Spread, half_widths
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Told = tuple[FloatArray, FloatArray, NDArray[np.bool_]]

# Less doubt than this is none: one less it is not told from one.
_LEAST_DOUBT = 1e-14


@dataclass(frozen=True, eq=False)
class NoisyNumbers:
    """Numbers that intervals stand on, and the noise in them."""

    centre: FloatArray
    spread: Spread

    def __getitem__(self, places: IntArray) -> NoisyNumbers:
        """Some of them."""
        return NoisyNumbers(
            self.centre[places], Spread(self.spread.variance[places], self.spread.largest[places])
        )

    def plus(self, other: NoisyNumbers, weight: float) -> NoisyNumbers:
        """Add some times other numbers whose noise is independent of these."""
        if weight == 0:
            return self
        spread = Spread(
            self.spread.variance + weight**2 * other.spread.variance,
            np.maximum(self.spread.largest, abs(weight) * other.spread.largest),
        )
        return NoisyNumbers(self.centre + weight * other.centre, spread)

    def times(self, factor: float) -> NoisyNumbers:
        """The same in other units."""
        return NoisyNumbers(
            self.centre * factor,
            Spread(self.spread.variance * factor**2, self.spread.largest * abs(factor)),
        )

    def width(self, confidence: float) -> FloatArray:
        """Half of the interval of each."""
        return _width(self.spread, confidence)


def stand_on(errors: Errors, workload: Workload, published: FloatArray) -> NoisyNumbers:
    """What the intervals of some questions stand on: unbiased numbers where there are any, and their noise."""
    centre, lean = errors.stand(workload, published)
    if isinstance(errors, NoiseErrors):
        spread = errors.spread_of_questions(workload)
        # The lattice of steps is as good as a continuum: no need for the exact law of a sum of equal draws.
        return NoisyNumbers(centre, Spread(spread.variance, spread.largest))
    variance = errors.variance(workload) + lean**2
    # Where only a variance is known, as if it were normal: calibrated errors were measured that way.
    return NoisyNumbers(centre, Spread(variance, np.zeros(variance.shape)))


def known_together(
    places: IntArray, asked: int, confidence: float, tell: Callable[[IntArray, float], Told]
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Which of several intervals say anything, such that of these, not of all, as many hold as are promised.

    Of many groups that are asked about together some look filled by luck, and theirs would be the only means that are
    known. So if R of m are known, each of them stands at a confidence of 1 − βR/m instead of 1 − β, and R is the
    largest number that is still known then: of what is said to be known no more than β is expected to be wrong (the
    false coverage rate of Benjamini and Yekutieli, 2005, for independent noise). Where all are known, or one alone is
    asked for, nothing changes.

    A group that would be known with the square of the doubt βR/m is known whatever luck does, so its interval need not
    pay for having been chosen. Of m − R empty groups βR/2m are taken for filled, since noise must come out far above
    zero: (1 − R/m) β/2 of what is known. That leaves clear ones a doubt of (1 + R/m) β/2.

    Args:
        places: Which may be known at all.
        asked: How many were asked for.
        confidence: The share of what is known that should hold.
        tell: Intervals of some of the places at a confidence (a row of several for each, if one is not enough), and
            which of them say anything; a larger confidence makes none known that was not.
    """
    kept, low, high = places.size + 1, np.zeros(places.size), np.zeros(places.size)
    while 0 < places.size < kept:
        kept = places.size
        low, high, known = tell(places, 1 - (1 - confidence) * kept / asked)
        places, low, high = places[known], low[known], high[known]
    if 0 < places.size < asked:
        doubt = (1 - confidence) * kept / asked
        clear = np.flatnonzero(tell(places, 1 - max(doubt**2, _LEAST_DOUBT))[2])
        if clear.size:
            low[clear], high[clear], _ = tell(places[clear], 1 - (1 - confidence) * (1 + kept / asked) / 2)
    return places, low, high


def fieller(
    above: NoisyNumbers,
    below: NoisyNumbers,
    confidence: float,
    *,
    shared: FloatArray | float = 0.0,
    least: float = -np.inf,
    most: float = np.inf,
    positive: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """Every ratio that the noise does not rule out, cut to what is public of it.

    Where a denominator may be zero the interval is everything, which says nothing; of the others as many hold as are
    promised (`known_together`).

    Args:
        above: The numerators.
        below: The denominators.
        confidence: How sure each interval that says anything is to hold the ratio of the true numbers.
        shared: The covariance of their noises.
        least: No ratio lies below this: a public fact.
        most: Nor above this.
        positive: Whether denominators are never negative: then one that comes out below zero may be zero.

    Returns:
        Lower and upper ends; ``least`` and ``most`` where the denominator may be zero: then nothing is known.
    """
    asked = np.isfinite(above.spread.variance) & np.isfinite(below.spread.variance)
    covariance = np.broadcast_to(shared, asked.shape)

    def tell(which: IntArray, sure: float) -> Told:
        return _roots(above[which], below[which], covariance[which], sure, (least, most))

    possible = np.flatnonzero(asked & (below.centre > 0) if positive else asked)
    known, first, last = known_together(possible, int(asked.sum()), confidence, tell)
    low, high = (np.where(asked, end, np.nan) for end in (least, most))
    low[known], high[known] = np.clip(first, least, most), np.clip(last, least, most)
    return low, high


def _roots(
    above: NoisyNumbers, below: NoisyNumbers, shared: FloatArray, confidence: float, cut: tuple[float, float]
) -> Told:
    """Where (a − rb)² is z² times its variance va − 2rs + r²vb, and whether r between these is what is left."""
    a, b = above.centre, below.centre
    va, vb = above.spread.variance, below.spread.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip(np.where(b == 0, 0.0, a / b), max(cut[0], -1e300), min(cut[1], 1e300))
    variance = np.maximum(va + ratio**2 * vb - 2.0 * ratio * shared, 0.0)
    deviation = np.sqrt(variance)
    largest = np.maximum(above.spread.largest, np.abs(ratio) * below.spread.largest)
    # How many deviations: by the law of the noise of a − rb, where r is the ratio as it was released.
    mixed = Spread(variance, np.minimum(largest, deviation / np.sqrt(2.0)))
    z = np.divide(_width(mixed, confidence), deviation, out=np.full(a.shape, 2.0), where=deviation > 0)
    square = b**2 - z**2 * vb
    bounded = square > 0
    # The difference of squares under the root, multiplied out: large sums with little noise would cancel.
    inner = a**2 * vb + b**2 * va - 2.0 * a * b * shared - z**2 * (va * vb - shared**2)
    root = z * np.sqrt(np.maximum(inner, 0.0))
    middle, safe = a * b - z**2 * shared, np.where(bounded, square, 1.0)
    return (middle - root) / safe, (middle + root) / safe, bounded


def _width(spread: Spread, confidence: float) -> FloatArray:
    """Half-widths; not a number where a question was not measured."""
    known = np.isfinite(spread.variance)
    whole = Spread(np.where(known, spread.variance, 0.0), np.where(known, spread.largest, 0.0))
    return np.where(known, half_widths(whole, confidence), np.nan)
