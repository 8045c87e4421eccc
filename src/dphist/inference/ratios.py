"""Intervals for ratios of noisy numbers: of a sum and a count, or of two sums.

A plain ratio has no useful law where the denominator may be zero. Fieller's argument needs none: the ratio r = A ÷ B
makes A − rB zero, and that is a noisy number of known spread, so every r with |a − rb| ≤ z · deviation(a − rb) is kept.
Where b is further from zero than its noise these are the numbers between the roots of a quadratic; elsewhere every
ratio, or all but some in the middle, could be the true one, and the honest answer is that it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Errors, NoiseErrors
from dphist.inference.intervals import Spread, half_widths
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyNumbers:
    """Numbers that intervals stand on, and the noise in them."""

    centre: FloatArray
    spread: Spread

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
        spread = errors.spread(workload)
        if workload.query is not None:
            spread = spread.combine(workload.query, len(workload))
        # Steps are so many that their lattice is a continuum: no need for the exact law of a sum of equal draws.
        return NoisyNumbers(centre, Spread(spread.variance, spread.largest))
    variance = errors.variance(workload) + lean**2
    # Where only a variance is known, as if it were normal: calibrated errors were measured that way.
    return NoisyNumbers(centre, Spread(variance, np.zeros(variance.shape)))


def fieller(
    above: NoisyNumbers, below: NoisyNumbers, confidence: float, least: float = -np.inf, most: float = np.inf
) -> tuple[FloatArray, FloatArray]:
    """Every ratio that the noise does not rule out, cut to what is public of it.

    Args:
        above: The numerators.
        below: The denominators, with independent noise.
        confidence: How sure each interval is to hold the ratio of the true numbers.
        least: No ratio lies below this: a public fact.
        most: Nor above this.

    Returns:
        Lower and upper ends; ``least`` and ``most`` where the denominator may be zero: then nothing is known.

    Example:
        >>> one = NoisyNumbers(np.array([50.0]), Spread(np.array([4.0]), np.array([0.0])))
        >>> low, high = fieller(one, NoisyNumbers(np.array([100.0]), one.spread), 0.95)
        >>> bool(low[0] < 0.5 < high[0])
        True
        >>> fieller(one, NoisyNumbers(np.array([1.0]), one.spread), 0.95)[0]
        array([-inf])
    """
    a, b = above.centre, below.centre
    va, vb = above.spread.variance, below.spread.variance
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.clip(np.where(b == 0, 0.0, a / b), max(least, -1e300), min(most, 1e300))
    mixed = Spread(va + ratio**2 * vb, np.maximum(above.spread.largest, np.abs(ratio) * below.spread.largest))
    # How many deviations: by the law of the noise of a − rb, where r is the ratio as it was released.
    deviation = np.sqrt(mixed.variance)
    z = np.divide(_width(mixed, confidence), deviation, out=np.full(a.shape, 2.0), where=deviation > 0)
    square = b**2 - z**2 * vb
    inner = np.maximum(a**2 * vb + va * square, 0.0)
    known = square > 0
    safe = np.where(known, square, 1.0)
    root = z * np.sqrt(inner)
    low = np.where(known, (a * b - root) / safe, -np.inf)
    high = np.where(known, (a * b + root) / safe, np.inf)
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    missing = np.isnan(va) | np.isnan(vb)
    return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def _width(spread: Spread, confidence: float) -> FloatArray:
    """Half-widths; not a number where a question was not measured."""
    known = np.isfinite(spread.variance)
    whole = Spread(np.where(known, spread.variance, 0.0), np.where(known, spread.largest, 0.0))
    return np.where(known, half_widths(whole, confidence), np.nan)
