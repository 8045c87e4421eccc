"""The budget that an error needs, where a forecast can only be simulated: a search with few simulations."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

Point = tuple[float, float]
"""The logarithm of a budget, and how far above what is wanted the logarithm of its error is."""

NARROWEST, WIDEST = Fraction(1, 10**5), Fraction(10**6)
# Points stay this part of the way off the ends between which they lie.
_OFF_THE_ENDS = 0.1
# An error of nothing counts as so little.
_NOTHING = 1e-12


def least_amount(
    error: Callable[[Fraction], float],
    wanted: float,
    known: tuple[Fraction, float],
    power: float,
    near: float,
) -> float | None:
    """The least ε, or ρ, that brings an error down to what is wanted, nearly.

    The search begins at ``known``, an amount and the error that it leaves; errors fall with about the ``power`` of the
    amount, 1 for ε and a half for ρ. It ends ``near`` the amount in logarithms, or half as near the error. None if
    `WIDEST` is not enough.

    Errors are about a power of the budget. So points are read off a line through logarithms: first until the wanted
    error lies between two of them, then between these (*regula falsi* with the Illinois rule: an end that stays counts
    half as much each time).

    Example:
        >>> round(least_amount(lambda amount: 3.0 / float(amount), 60.0, (Fraction(1), 3.0), 1.0, 0.02), 3)
        0.05
        >>> least_amount(lambda amount: 70.0, 60.0, (Fraction(1), 70.0), 1.0, 0.02) is None
        True
    """

    def above(at: float) -> float:
        return beyond(error(Fraction(math.exp(at)).limit_denominator(10**12)))

    def beyond(left: float) -> float:
        return math.log(max(left, _NOTHING) / wanted)

    ends = math.log(NARROWEST), math.log(WIDEST)
    aim = near / 4.0
    at, off, stretch = math.log(known[0]), beyond(known[1]), 1.0
    low = high = None
    while not -2.0 * aim < off <= 0.0:
        low, high = ((at, off), high) if off > 0.0 else (low, (at, off))
        if low is not None and high is not None:
            return math.exp(_between(above, low, high, near))
        if at in ends:
            return None if high is None else float(NARROWEST)
        at = min(max(at + stretch * (off + aim) / power, ends[0]), ends[1])
        off, stretch = above(at), 2.0 * stretch
    return math.exp(at)


def _between(above: Callable[[float], float], low: Point, high: Point, near: float) -> float:
    """Where an error is about what is wanted, between a point above that and one below."""
    off, aim = high[1], near / 4.0
    while high[0] - low[0] > near and not -2.0 * aim < off <= 0.0:
        part = min(max((low[1] + aim) / (low[1] - high[1]), _OFF_THE_ENDS), 1.0 - _OFF_THE_ENDS)
        at = low[0] + part * (high[0] - low[0])
        off = above(at)
        if off > 0.0:
            low, high = (at, off), (high[0], high[1] / 2.0)
        else:
            low, high = (low[0], low[1] / 2.0), (at, off)
    return high[0]
