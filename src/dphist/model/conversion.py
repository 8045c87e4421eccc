"""From one way of counting privacy to another: ε, ρ and (ε, δ), by certified arithmetic.

A release is **ρ-zCDP** when, between neighbours, the Rényi divergence D_α of its answers is at most ρα for every α >
1. A pure ε promises more in one sense (a bound that always holds) and less in another (it only adds up). These are
the exchange rates, each rounded to the safe side, so that what is bought never promises more than what was paid:

=======================  =============================================================  ==========
`delta_of_rho`           the δ that goes with an ε when ρ was spent                     rounded up
`epsilon_of_rho`         the ε that goes with a δ when ρ was spent                      rounded up
`rho_for`                the most ρ that an (ε, δ) allows                               rounded down
`rho_of_epsilon`         what a pure ε costs where ρ is counted                         rounded up
`epsilon_for_rho`        the largest pure ε that a ρ pays                               rounded down
`choice_epsilon`         the largest ε of an exponential mechanism that a ρ pays        rounded down
`rho_at_order`           the most ρ that an (ε, δ) allows at one order α                rounded down
`pure_at_order`          what a pure ε costs at one order α, as ρ                       rounded up
=======================  =============================================================  ==========

**From ρ to (ε, δ)** (Canonne, Kamath, Steinke 2020, Proposition 12 with D_α ≤ ρα). For *every* α > 1 the answers are
(ε, δ)-private with

    ln δ = (α − 1)(αρ − ε) − ln(α − 1) + α·ln(1 − 1/α)  =  t(αρ − ε) + t·ln t − α·ln α,   t = α − 1.

Its derivative by α is (2α − 1)ρ − ε + ln(1 − 1/α), which grows with α: one α is best, and a float finds it by
halving. The float only *proposes* α. Since every α gives a true statement, all that has to be exact is the value at
the proposed one, and that is computed in decimals of many digits, each operation rounded outward.

**From pure ε to ρ.** An ε-private mechanism is ρ-zCDP for ρ = ε·tanh(ε/2), and for no smaller ρ in general. Any pair
of answers' laws within ε of each other comes from randomised response by forgetting (Kairouz, Oh, Viswanath 2015), so
D_α is at most that of randomised response, ln[cosh((α − ½)ε)/cosh(ε/2)]/(α − 1) = f(α)/(α − 1). Let r(α) = α(α −
1)·ε·tanh(ε/2). Then f(1) = r(1) = 0 and f′(1) = r′(1) = ε·tanh(ε/2). For α ≥ 1, f″ = ε²·sech²((α − ½)ε) ≤
ε²·sech²(ε/2), and r″ = 2ε·tanh(ε/2); with x = ε/2 the first is at most the second because x ≤ sinh(x)·cosh(x) =
sinh(2x)/2. So f ≤ r, which is D_α ≤ ρα. At α → 1 both sides are equal, so nothing smaller holds.

**At one order.** Whoever only wants one (ε, δ) needs D_α ≤ Rα at one α alone (`best_order`), with the R that the
formula gives there (`rho_at_order`). There a pure ε costs f(α)/(α(α − 1)), less than ε·tanh(ε/2): a twentieth less
where many small spends meet a large total. f(α) = (α − 1)ε + ln[(1 + e^{−(2α−1)ε})/(1 + e^{−ε})], written so that
nothing overflows.

**Choices.** An exponential mechanism whose log-ratios range over at most ε is ε²/8-zCDP (Cesar, Rogers 2021), so ρ
pays for ε = √(8ρ), rounded down by an integer square root.

Python's decimals give `exp` and `ln` correctly rounded to nearest; one unit in the last place outward encloses the
truth. Results have `DIGITS` significant decimal digits, so that they can be read, added without growing, and kept in
a ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dphist.errors import EpsilonError

# Significant digits of every result: one part in 10¹⁴ is given away to be safe.
DIGITS = 15
# Working digits: subtractions lose at most 120 of them while t stays within 10^±60 (see `_order`). Plain operators on
# decimals round to the caller's context, 28 digits as a rule: only these two are used below.
DOWN = Context(prec=250, rounding=ROUND_FLOOR, Emin=-999_999, Emax=999_999)
UP = Context(prec=250, rounding=ROUND_CEILING, Emin=-999_999, Emax=999_999)
LARGEST = 10**60
_TINY = Fraction(1, 10**40)
# δ below exp(−2000) is reported as that: of ordinary length, and certainly no less.
_SMALLEST_LOG = Decimal(-2000)

# Ledgers ask the same again and again. By type, since True is 1 to a cache and no amount to `_amount`.
_cached = lru_cache(maxsize=4096, typed=True)


def delta_of_rho(rho: Fraction, epsilon: Fraction) -> Fraction:
    """The δ, at most 1, with which ``rho`` implies (``epsilon``, δ), rounded up."""
    return _delta(_amount(rho, "rho"), _amount(epsilon, "epsilon", zero=True))


@_cached
def _delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    spent, asked = float(rho), float(epsilon)
    t = _order(lambda t: (2 * t + 1) * spent - asked - math.log1p(1 / t))
    alpha = _alpha(t)
    moved = UP.multiply(t, UP.subtract(UP.multiply(alpha, _decimal(rho, UP)), _decimal(epsilon, DOWN)))
    log = UP.subtract(moved, _entropy(t, DOWN))
    if log >= 0:
        return Fraction(1)
    return min(Fraction(1), rounded(Fraction(UP.exp(max(log, _SMALLEST_LOG)).next_plus(UP)), up=True))


@_cached
def epsilon_of_rho(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε, zero or more, with which ``rho`` implies (ε, ``delta``), rounded up."""
    rho, delta = _amount(rho, "rho"), _share(delta)
    spent, log = float(rho), _log(delta, DOWN)
    target = float(log)
    # Where α is best for ε, ε = (2α − 1)ρ + ln(1 − 1/α): along that curve ε grows with α, so δ falls.
    t = _order(lambda t: target - _rough(t, spent, (2 * t + 1) * spent - math.log1p(1 / t)))
    rest = UP.divide(UP.subtract(log.copy_negate(), _entropy(t, DOWN)), t)
    found = Fraction(UP.add(UP.multiply(_alpha(t), _decimal(rho, UP)), rest))
    if found <= 0 or _delta(rho, Fraction(0)) <= delta:
        return Fraction(0)
    found = rounded(found, up=True)
    while _delta(rho, found) > delta:
        found += last_place(found)
    return found


@_cached
def rho_for(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The most ρ that (``epsilon``, ``delta``) allows, rounded down: in any number of adaptive pieces."""
    epsilon, delta = _amount(epsilon, "epsilon"), _share(delta)
    found = _rho_at(epsilon, delta, _rho_order(epsilon, delta))
    if found <= 0:
        raise EpsilonError("epsilon and delta are out of any useful range")
    found = rounded(found, up=False)
    while _delta(found, epsilon) > delta:
        found -= last_place(found)
    return found


@_cached
def rho_of_epsilon(epsilon: Fraction) -> Fraction:
    """What a pure ``epsilon`` costs where ρ is counted: ε·tanh(ε/2), rounded up."""
    epsilon = _amount(epsilon, "epsilon")
    return rounded(_pure(epsilon), up=True)


@_cached
def epsilon_for_rho(rho: Fraction) -> Fraction:
    """The largest pure ε that ``rho`` pays for: ε·tanh(ε/2) ≤ ρ, rounded down."""
    rho = _amount(rho, "rho")
    # Newton's steps propose, `_pure` decides. Both √(2ρ) and ρ are below the root.
    work = Context(prec=60)
    target = _decimal(rho, work)
    x = max(work.sqrt(work.multiply(target, Decimal(2))), target)
    # Where ρ is tiny the root is √(2ρ) to more digits than are kept, and steps towards it would drown in rounding.
    for _ in range(60 if rho > _TINY else 0):
        small = work.exp(x.copy_negate())
        tanh = work.divide(work.subtract(Decimal(1), small), work.add(Decimal(1), small))
        bend = work.multiply(x, work.subtract(Decimal(1), work.multiply(tanh, tanh)))
        bend = work.divide(bend, Decimal(2))
        step = work.divide(work.subtract(target, work.multiply(x, tanh)), work.add(tanh, bend))
        x = work.add(x, step)
        if abs(step) <= x.scaleb(-30):
            break
    found = rounded(Fraction(x), up=False)
    while _pure(found) > rho:
        found -= last_place(found)
    return found


def choice_epsilon(rho: Fraction) -> Fraction:
    """The largest ε with which an exponential mechanism may choose for ``rho``: √(8ρ), rounded down."""
    squared = 8 * _amount(rho, "rho")
    # ⌊√x·10^k⌋ is the integer root of ⌊x·10^2k⌋: no integer's square lies between a number and its floor.
    places = DIGITS - 1 - _exponent(squared) // 2
    scaled = squared * Fraction(10) ** (2 * places)
    return Fraction(math.isqrt(scaled.numerator // scaled.denominator)) / Fraction(10) ** places


def best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order α > 1 at which (``epsilon``, ``delta``) allows the most ρ; any other is as valid, and allows less."""
    return Fraction(_alpha(_rho_order(_amount(epsilon, "epsilon"), _share(delta))))


@_cached
def rho_at_order(epsilon: Fraction, delta: Fraction, order: Fraction) -> Fraction:
    """The most ρ that (``epsilon``, ``delta``) allows when D_α ≤ ρα is only asked at one order, rounded down.

    It is below zero where this order allows nothing.
    """
    found = _rho_at(_amount(epsilon, "epsilon"), _share(delta), _above_one(order))
    return rounded(found, up=False) if found > 0 else Fraction(-1)


@lru_cache(maxsize=65536, typed=True)
def pure_at_order(epsilon: Fraction, order: Fraction) -> Fraction:
    """What a pure ``epsilon`` costs, as ρ, when D_α ≤ ρα is only asked at one order; rounded up."""
    epsilon, t = _amount(epsilon, "epsilon"), _above_one(order)
    largest, least = _decimal(epsilon, UP), _decimal(epsilon, DOWN)
    twice = DOWN.add(DOWN.multiply(Decimal(2), t), Decimal(1))
    # D_α of randomised response grows with ε; each part is bounded from its own side.
    top = UP.add(Decimal(1), UP.exp(DOWN.multiply(twice, least).copy_negate()).next_plus(UP))
    bottom = DOWN.add(Decimal(1), DOWN.exp(largest.copy_negate()).next_minus(DOWN))
    log = _outward(UP.ln(UP.divide(top, bottom)), UP)
    return rounded(Fraction(UP.divide(UP.add(largest, UP.divide(log, t)), _alpha(t))), up=True)


@_cached
def _rho_order(epsilon: Fraction, delta: Fraction) -> Decimal:
    asked, target = float(epsilon), float(_log(delta, DOWN))
    # Where α is best for ρ, ρ = (ε − ln(1 − 1/α))/(2α − 1): along that curve ρ falls as α grows, and δ with it.
    return _order(lambda t: target - _rough(t, (asked + math.log1p(1 / t)) / (2 * t + 1), asked))


def _rho_at(epsilon: Fraction, delta: Fraction, t: Decimal) -> Fraction:
    rest = DOWN.divide(DOWN.add(_log(delta, DOWN), _entropy(t, DOWN)), t)
    return Fraction(DOWN.divide(DOWN.add(_decimal(epsilon, DOWN), rest), _alpha(t)))


def _pure(epsilon: Fraction) -> Fraction:
    """An upper bound of ε·tanh(ε/2), with (1 − e^−ε)/(1 + e^−ε) for the tanh; ε²/2 is one too, for tiny ε."""
    largest = _decimal(epsilon, UP)
    small = max(Decimal(0), DOWN.exp(largest.copy_negate()).next_minus(DOWN))
    tanh = UP.divide(UP.subtract(Decimal(1), small), DOWN.add(Decimal(1), small))
    return min(Fraction(UP.multiply(largest, tanh)), epsilon**2 / 2)


def _order(sign: Callable[[float], float]) -> Decimal:
    """Propose t = α − 1 where ``sign`` goes from below zero to above; any t > 0 is valid, a good one is sharp.

    The proposal has 17 significant digits and lies within 10^±60, so t and 1 + t are exact in the working digits.
    """
    low, high = -138.0, 138.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if sign(math.exp(middle)) < 0 else (low, middle)
    return Decimal(repr(math.exp(low)))


def _alpha(t: Decimal) -> Decimal:
    """Give 1 + t, exactly: `_order` proposes no more digits than fit."""
    return UP.add(Decimal(1), t)


def _rough(t: float, rho: float, epsilon: float) -> float:
    """Give ln δ at α = 1 + t roughly, to look for α."""
    return t * ((t + 1) * rho - epsilon) - math.log(t) - (t + 1) * math.log1p(1 / t)


def _entropy(t: Decimal, toward: Context) -> Decimal:
    """Bound α·ln α − t·ln t, which is positive, from the side of ``toward``."""
    other = UP if toward is DOWN else DOWN
    alpha = _alpha(t)
    return toward.subtract(
        toward.multiply(alpha, _outward(toward.ln(alpha), toward)),
        # A negative logarithm times t rounds the way it should as well: the context rounds the product itself.
        other.multiply(t, _outward(other.ln(t), other)),
    )


def _log(value: Fraction, toward: Context) -> Decimal:
    """Bound a logarithm from the side of ``toward``."""
    return _outward(toward.ln(_decimal(value, toward)), toward)


def _outward(nearest: Decimal, toward: Context) -> Decimal:
    """Move a correctly rounded value one place further, to a certain bound."""
    return nearest.next_minus(toward) if toward is DOWN else nearest.next_plus(toward)


def _decimal(value: Fraction, toward: Context) -> Decimal:
    return toward.divide(Decimal(value.numerator), Decimal(value.denominator))


def _exponent(value: Fraction) -> int:
    """The power of ten of the leading digit."""
    guess = len(str(value.numerator)) - len(str(value.denominator))
    return guess if value >= Fraction(10) ** guess else guess - 1


def last_place(value: Fraction) -> Fraction:
    """What one is worth in the last digit of a result of this size."""
    return Fraction(10) ** (_exponent(value) - DIGITS + 1)


def rounded(value: Fraction, *, up: bool) -> Fraction:
    """A result: `DIGITS` significant digits, to the safe side."""
    place = last_place(value)
    return place * (math.ceil(value / place) if up else math.floor(value / place))


def _amount(value: Fraction | int, argument: str, *, zero: bool = False) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise EpsilonError(f"{argument} must be a Fraction or a whole number")
    if value < 0 or (value == 0 and not zero):
        raise EpsilonError(f"{argument} must be above zero")
    if value > LARGEST:
        raise EpsilonError(f"{argument} is out of any useful range")
    return Fraction(value)


def _share(delta: Fraction) -> Fraction:
    if _amount(delta, "delta") >= 1:
        raise EpsilonError("delta must be below one")
    return Fraction(delta)


def _above_one(order: Fraction) -> Decimal:
    """Give t = α − 1 exactly; an order of more digits than the working ones have is no order of ours."""
    t = _amount(order, "order") - 1
    exact = _decimal(t, DOWN) if t > 0 else Decimal(0)
    if not Decimal("1e-60") <= exact <= Decimal("1e60") or Fraction(exact) != t:
        raise EpsilonError("order must be a decimal number above one")
    return exact
