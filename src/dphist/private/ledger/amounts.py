"""Amounts as the ledger keeps them: exact fractions of a bounded length."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from dphist import errors
from dphist.model.exact import Number, positive

# Sums of unlike denominators grow; the bounds keep every amount readable and quick to add.
_AMOUNT_DIGITS = 400
_SUM_DIGITS = 2000
# As much as `dphist.model.conversion` reads: what cannot be converted could be spent, and then not be accounted for.
_MOST = 10**60

_STORED = re.compile(r"(0|[1-9]\d*)(?:/([1-9]\d*))?", re.ASCII)


def amount_of(value: Number, argument: str) -> Fraction:
    """Read a positive amount exactly, of a length that the ledger can keep."""
    amount = positive(value, argument)
    if not _shorter(amount, _AMOUNT_DIGITS):
        raise errors.EpsilonError(
            f"{argument} needs more than {_AMOUNT_DIGITS} digits; write a shorter number"
        )
    if amount > _MOST:
        raise errors.EpsilonError(f"{argument} is out of any useful range")
    return amount


def _shorter(amount: Fraction, digits: int) -> bool:
    # Bits, not digits: printing an enormous integer is what must be avoided.
    longest = max(amount.numerator.bit_length(), amount.denominator.bit_length())
    return longest <= math.floor(digits * math.log2(10))


def added(spent: Fraction, epsilon: Fraction) -> Fraction:
    """Add exactly, refusing denominators that would grow without end."""
    total = spent + epsilon
    if not _shorter(total, _SUM_DIGITS):
        raise errors.EpsilonError(
            f"epsilon would give the sum of this budget more than {_SUM_DIGITS} digits; "
            "use decimals or fractions with small denominators"
        )
    return total


def stored(text: str) -> Fraction:
    """Read back an amount that the ledger wrote; anything else is damage (ValueError)."""
    match = _STORED.fullmatch(text) if len(text) <= 3 * _SUM_DIGITS else None
    if match is None:
        raise ValueError("not an amount")
    amount = Fraction(int(match[1]), int(match[2] or 1))
    if str(amount) != text:
        raise ValueError("not in lowest terms")
    return amount
