"""Budgets as exact fractions, read the way people write them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

from dphist import errors

type_of_amount = "a positive number such as 0.1, '1/3' or Fraction(1, 3)"

# Any finite float fits. The bounds keep '1e999999999' from filling memory and every amount printable.
_AMOUNT_DIGITS = 400
_SUM_DIGITS = 2000

_DECIMAL = re.compile(r"\+?(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,4}))?", re.ASCII)
_RATIO = re.compile(r"\+?\d+\s*/\s*\d+", re.ASCII)
_STORED = re.compile(r"(0|[1-9]\d*)(?:/([1-9]\d*))?", re.ASCII)

Amount = int | float | str | Decimal | Fraction


def exact(value: object, argument: str = "epsilon") -> Fraction:
    """Read a positive amount exactly; a float counts as the decimal it prints as.

    0.1 is one tenth, not the binary number beside it, so that 0.1 + 0.2 fits in 0.3.
    """
    amount = _read(value)
    if amount is None or amount <= 0:
        raise errors.EpsilonError(f"{argument} must be {type_of_amount}")
    if not _shorter(amount, _AMOUNT_DIGITS):
        raise errors.EpsilonError(
            f"{argument} needs more than {_AMOUNT_DIGITS} digits; write a shorter number"
        )
    return amount


def _read(value: object) -> Fraction | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return Fraction(int(value))
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float):
        # float.__repr__, because a NumPy float prints with its type around it.
        return _parse(float.__repr__(value)) if math.isfinite(value) else None
    if isinstance(value, str | Decimal | Real):
        return _parse(str(value).strip())
    return None


def _parse(text: str) -> Fraction | None:
    if len(text) > 2 * _AMOUNT_DIGITS:
        return None
    decimal = _DECIMAL.fullmatch(text)
    if decimal:
        return Fraction(text) if abs(int(decimal[2] or 0)) <= _AMOUNT_DIGITS else None
    if _RATIO.fullmatch(text):
        above, below = text.split("/")
        return Fraction(int(above), int(below)) if int(below) else None
    return None


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


def shown(amount: Fraction) -> str:
    """Write an amount for people: a decimal where it is exact, else a fraction and its size."""
    short = Fraction(f"{float(amount):.12g}") if amount < 10**12 else Fraction(0)
    if short == amount:
        return f"{float(amount):.12g}"
    text = str(amount)
    return f"{text} (about {float(amount):.4g})" if len(text) <= 40 else f"about {float(amount):.6g}"
