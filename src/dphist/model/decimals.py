"""Decimals of many digits, each operation rounded outward: what `dphist.model.conversion` stands on."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

# Significant digits of every result: one part in 10¹⁴ is given away to be safe.
DIGITS = 15

# Working digits: subtractions lose at most 120 of them while t stays within 10^±60 (see `_order`).
DOWN = Context(prec=250, rounding=ROUND_FLOOR, Emin=-999_999, Emax=999_999)
UP = Context(prec=250, rounding=ROUND_CEILING, Emin=-999_999, Emax=999_999)


def log_of(value: Fraction, toward: Context) -> Decimal:
    """Bound a logarithm from the side of ``toward``."""
    return outward(toward.ln(decimal_of(value, toward)), toward)


def outward(nearest: Decimal, toward: Context) -> Decimal:
    """Move a correctly rounded value one place further, to a certain bound."""
    return nearest.next_minus(toward) if toward is DOWN else nearest.next_plus(toward)


def decimal_of(value: Fraction, toward: Context) -> Decimal:
    """A fraction in decimals, rounded as ``toward`` says."""
    return toward.divide(Decimal(value.numerator), Decimal(value.denominator))


def exponent(value: Fraction) -> int:
    """The power of ten of the leading digit."""
    guess = len(str(value.numerator)) - len(str(value.denominator))
    return guess if value >= Fraction(10) ** guess else guess - 1


def last_place(value: Fraction) -> Fraction:
    """What one is worth in the last digit of a result of this size."""
    return Fraction(10) ** (exponent(value) - DIGITS + 1)


def rounded(value: Fraction, *, up: bool) -> Fraction:
    """A result: `DIGITS` significant digits, to the safe side."""
    place = last_place(value)
    return place * (math.ceil(value / place) if up else math.floor(value / place))
