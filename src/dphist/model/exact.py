"""Budgets as exact fractions, so that 0.1 + 0.2 never refuses 0.3."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import isfinite
from numbers import Rational

from dphist.errors import EpsilonError

Number = int | float | str | Fraction | Decimal | Rational

_EXPONENTS = range(-60, 61)
_WRITTEN = re.compile(r"(-?\d+)(?:/(\d*[1-9]\d*))?", re.ASCII)


def exact(value: Number, argument: str) -> Fraction:
    """Read a number as the fraction a person meant: ``0.1`` is one tenth, not its nearest double."""
    if isinstance(value, bool) or not isinstance(value, Rational | float | str | Decimal):
        raise EpsilonError(f"{argument} must be a number, a fraction or its text, not {type(value).__name__}")
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float):
        if not isfinite(value):
            raise EpsilonError(f"{argument} must be finite")
        # float's own repr, because a NumPy float prints with its type around it.
        value = float.__repr__(value)
    return _parse(str(value).strip(), argument)


def positive(value: Number, argument: str) -> Fraction:
    """Read a number that must be above zero, such as ε or a share of it."""
    fraction = exact(value, argument)
    if fraction <= 0:
        raise EpsilonError(f"{argument} must be above zero")
    return fraction


def shares(values: Iterable[Number]) -> tuple[Fraction, ...]:
    """Read shares that must sum to exactly one."""
    fractions = tuple(positive(value, "share") for value in values)
    if sum(fractions) != 1:
        raise EpsilonError("shares must sum to exactly 1; give fractions such as Fraction(1, 3) or '1/3'")
    return fractions


def fraction(text: object) -> Fraction:
    """Read back a fraction that `str` wrote; anything else, such as ``1e999999999``, is refused uncomputed."""
    # Shares of shares have long fractions; Python reads integers of up to 4,300 digits.
    match = _WRITTEN.fullmatch(text) if isinstance(text, str) and len(text) <= 4_000 else None
    if match is None:
        raise EpsilonError("a fraction must be written as digits, or digits/digits")
    return Fraction(int(match[1]), int(match[2] or 1))


def shown(amount: Fraction) -> str:
    """Write an amount for people: a decimal where it is exact, else a fraction and its size."""
    # Decimal, because an amount may lie outside the range of floats.
    near = Decimal(amount.numerator) / Decimal(amount.denominator)
    if Fraction(short := f"{near:.12g}") == amount:
        return short
    text = str(amount)
    return f"{text} (about {near:.4g})" if len(text) <= 40 else f"about {near:.6g}"


def _parse(text: str, argument: str) -> Fraction:
    wrong = EpsilonError(f"{argument} must be a number such as 1, 0.5 or 1/3")
    # No budget worth spending needs more; beyond it, exponents such as "1e-999999999" would only exhaust memory.
    if not text or len(text) > 60:
        raise wrong
    if "/" not in text:
        try:
            decimal = Decimal(text)
        except InvalidOperation:
            raise wrong from None
        if not decimal.is_finite():
            raise EpsilonError(f"{argument} must be finite")
        if decimal and decimal.adjusted() not in _EXPONENTS:
            raise EpsilonError(f"{argument} is out of any useful range")
        return Fraction(decimal)
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise wrong from None
