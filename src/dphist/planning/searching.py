"""The budget that an error needs, where a forecast can only be simulated: a search with few simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

_AMOUNTS = 1e-5, 1e6


def least_amount(
    error: Callable[[Fraction], float],
    wanted: float,
    known: tuple[Fraction, float],
    power: float,
    near: float,
) -> float | None:
    """The least ε, or ρ, that brings an error down to what is wanted: ``near`` it in logarithms, or in the error's.

    Errors fall with about the ``power`` of the amount, 1 for ε and a half for ρ: from a ``known`` amount and its error
    steps go by that, then by the last two, and halfway where they would leave the ends between which it lies. None if
    nothing is enough.

    Example:
        >>> round(least_amount(lambda amount: 3.0 / float(amount), 60.0, (Fraction(1), 3.0), 1.0, 0.02), 3)
        0.05
        >>> least_amount(lambda amount: 70.0, 60.0, (Fraction(1), 70.0), 1.0, 0.02) is None
        True
    """
    least, most = map(math.log, _AMOUNTS)
    low, high = -math.inf, math.inf
    at, left = math.log(known[0]), known[1]
    while True:
        off = math.log(max(left, 1e-12) / wanted)
        low, high = (at, high) if off > 0.0 else (low, at)
        if -near / 2 < off <= 0.0 or high - low <= near or high <= least:
            return math.exp(high)
        if low >= most:
            return None
        step = at + (off + near / 4) / power
        step = min(max(step if low < step < high else (low + high) / 2, least), most)
        left = error(Fraction(math.exp(step)).limit_denominator(10**12))
        # The line through the last two; where errors hardly fall, a long step.
        power = max((off - math.log(max(left, 1e-12) / wanted)) / (step - at), 0.1)
        at = step
