"""What a population may lose in all, in ε, (ε, δ) or ρ, and whether one more spend fits.

==========  =====================================================================================================
total       a spend fits when, with it,
==========  =====================================================================================================
ε           every spend was pure, and Σε ≤ ε
ρ           Σρ ≤ ρ, a pure ε counted as ε·tanh(ε/2) (`dphist.model.conversion`)
(ε, δ)      *either* every spend was pure and Σε ≤ ε, *or* Σr ≤ R, where r is the ρ of a spend at one order α
==========  =====================================================================================================

**The (ε, δ) rule.** When the total is set, one Rényi order α > 1 is written down with it, and R is the most for which
D_α ≤ Rα implies (ε, δ). A ρ-spend has D_α ≤ ρα, so its r is ρ; a pure ε has the D_α of randomised response, so its r
is a little less than ε·tanh(ε/2).

*Why it holds although spending is adaptive.* Let P and Q be the laws of everything published, for two neighbouring
populations, and let each spend be chosen by whatever was published before. Sums only grow, and "all were pure" never
becomes true again. So on a path on which the last spend was accepted by the first rule, the first rule held all
along, and the same is true of the second. Split the paths into A, those whose last accepted spend passed by the first
rule, and B, the rest. On A each path's probability is a product of factors within e^εᵢ of each other, and Σεᵢ ≤ ε, so
P(S∩A) ≤ e^ε·Q(S∩A) for every event S. Every path of B is a path of the filter that stops before Σr exceeds R. For a
filter at one fixed order, E_Q[(P/Q)^α·e^{−(α−1)αΣr}] ≤ 1 by multiplying one conditional factor after the other, hence
D_α ≤ Rα where it stops, which is (ε, δ) (Feldman, Zrnic 2021; zCDP is Bun, Steinke 2016): P(S∩B) ≤ e^ε·Q(S∩B) + δ.
Add the two.

**Discovered keys** (`Nominal(discover=True)`) fail with a probability δ′ of their own, whatever else is spent. That
part of δ is set aside when the total is set (``discover``), not taken from what adaptive spending leaves: then Σδ′ is
at most ``discover`` on every path, the rules above run with δ − ``discover``, and together they lose at most δ. Under
a ρ total ``delta`` is that part and nothing else.

How it is written. A pure total, and a spend of one, are plain numbers; anything else is words and numbers,
``epsilon 10 delta 1/1000000000 order 5.18``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from dphist.errors import EpsilonError
from dphist.model.budget import Budget
from dphist.model.conversion import (
    LARGEST,
    best_order,
    epsilon_for_rho,
    pure_at_order,
    rho_at_order,
    rho_of_epsilon,
)
from dphist.model.exact import Number, positive, shown

# Sums of unlike denominators grow; the bounds keep every amount readable and quick to add.
_AMOUNT_DIGITS = 400
_SUM_DIGITS = 2000

_STORED = re.compile(r"(0|[1-9]\d*)(?:/([1-9]\d*))?", re.ASCII)

ZERO = Fraction(0)


def amount_of(value: Number, argument: str) -> Fraction:
    """Read a positive amount exactly, of a length that the ledger can keep."""
    amount = positive(value, argument)
    if not _shorter(amount, _AMOUNT_DIGITS):
        raise EpsilonError(f"{argument} needs more than {_AMOUNT_DIGITS} digits; write a shorter number")
    # What cannot be converted could be spent, and then not be accounted for.
    if amount > LARGEST:
        raise EpsilonError(f"{argument} is out of any useful range")
    return amount


def _shorter(amount: Fraction, digits: int) -> bool:
    # Bits, not digits: printing an enormous integer is what must be avoided.
    longest = max(amount.numerator.bit_length(), amount.denominator.bit_length())
    return longest <= math.floor(digits * math.log2(10))


def added(spent: Fraction, epsilon: Fraction) -> Fraction:
    """Add exactly, refusing denominators that would grow without end."""
    total = spent + epsilon
    if not _shorter(total, _SUM_DIGITS):
        raise EpsilonError(
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


@dataclass(frozen=True, kw_only=True)
class Spend:
    """One loss, in the unit of its budget: a pure ε or a ρ, with the δ of discovered keys where there is one."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = ZERO

    @staticmethod
    def of(budget: Number | Budget, delta: Number | None = None) -> Spend:
        """Read what a release costs: a number is a pure ε; ``delta`` is what its discovered keys take."""
        taken = ZERO if delta is None else amount_of(delta, "delta")
        if not isinstance(budget, Budget):
            return Spend(epsilon=amount_of(budget, "epsilon"), delta=taken)
        amount = amount_of(budget.amount, budget.currency)
        return Spend(epsilon=amount, delta=taken) if budget.pure else Spend(rho=amount, delta=taken)

    @property
    def amount(self) -> Fraction:
        """The ε or the ρ."""
        return self.epsilon if self.epsilon is not None else self.rho or ZERO

    @property
    def text(self) -> str:
        """As a line of the ledger says it: a plain number while it is pure."""
        if self.rho is None and not self.delta:
            return str(self.epsilon)
        return _written(epsilon=self.epsilon, rho=self.rho, delta=self.delta or None)

    @staticmethod
    def read(text: str) -> Spend:
        """Read back what a line says; damage is a ValueError."""
        spend = Spend(**_read(text, "epsilon", "rho", "delta"))
        if (spend.epsilon is None) == (spend.rho is None) or spend.text != text:
            raise ValueError("not a spend")
        return spend

    def rho_cost(self) -> Fraction:
        """What it costs where ρ is counted."""
        return self.rho if self.rho is not None else rho_of_epsilon(self.amount)

    def describe(self) -> str:
        """Say it in words."""
        name = "epsilon" if self.rho is None else "rho"
        return f"{name} {shown(self.amount)}" + (f" with delta {shown(self.delta)}" if self.delta else "")


@dataclass(frozen=True, kw_only=True)
class Total:
    """What may be lost in all: ε alone, ρ (with the δ of discovered keys), or ε with δ and the order it is held to."""

    epsilon: Fraction | None = None
    rho: Fraction | None = None
    delta: Fraction = ZERO
    discover: Fraction = ZERO
    order: Fraction | None = None

    @staticmethod
    def of(**asked: Number | None) -> Total:
        """Make a total of what a user asked for (total or epsilon, delta, rho, discover), or say what is wrong."""
        given = {name: amount_of(value, name) for name, value in asked.items() if value is not None}
        if {"total", "epsilon"} <= set(given):
            raise EpsilonError("total and epsilon are two words for one thing: give one of them")
        epsilon, rho = given.get("total", given.get("epsilon")), given.get("rho")
        delta, discover = given.get("delta"), given.get("discover")
        if (epsilon is None) == (rho is None):
            raise EpsilonError("total: give epsilon (with or without delta) or rho, one of the two")
        if delta is not None and delta >= 1:
            raise EpsilonError("delta must be below 1; 1e-9, or far less than one over the number of people")
        if rho is not None:
            if discover is not None:
                raise EpsilonError(
                    "discover: under a rho total, delta itself is what discovered names may take"
                )
            return Total(rho=rho, delta=delta or ZERO, discover=delta or ZERO)
        if delta is None:
            if discover is not None:
                raise EpsilonError(
                    "discover: a pure epsilon total has no delta to take it from; give delta too"
                )
            return Total(epsilon=epsilon)
        if discover is not None and discover >= delta:
            raise EpsilonError("discover must be below delta, of which it is a part")
        assert epsilon is not None  # noqa: S101 -- one of the two was given
        order = best_order(epsilon, delta - (discover or ZERO))
        made = Total(epsilon=epsilon, delta=delta, discover=discover or ZERO, order=order)
        if made.capacity <= 0:
            raise EpsilonError("epsilon and delta are out of any useful range")
        return made

    @property
    def pure(self) -> bool:
        """Whether this is a total of pure ε."""
        return self.rho is None and self.order is None

    @property
    def currency(self) -> str:
        """In what `capacity` counts: ``epsilon`` or ``rho``."""
        return "epsilon" if self.pure else "rho"

    @property
    def capacity(self) -> Fraction:
        """How much of the currency there is: ε, ρ, or the ρ that (ε, δ) allows at its order."""
        if self.rho is not None:
            return self.rho
        assert self.epsilon is not None  # noqa: S101 -- totals are made by `of` and `read` alone
        if self.order is None:
            return self.epsilon
        return rho_at_order(self.epsilon, self.delta - self.discover, self.order)

    @property
    def text(self) -> str:
        """As a line of the ledger says it: a plain number while it is pure."""
        if self.pure:
            return str(self.epsilon)
        discover = self.discover if self.rho is None and self.discover else None
        return _written(
            epsilon=self.epsilon, rho=self.rho, delta=self.delta or None, order=self.order, discover=discover
        )

    @staticmethod
    def read(text: str) -> Total:
        """Read back what a line says; damage is a ValueError."""
        told = _read(text, "epsilon", "rho", "delta", "order", "discover")
        if "rho" in told:
            told["discover"] = told.get("delta", ZERO)
        total = Total(**told)
        if (total.epsilon is None) == (total.rho is None) or total.text != text:
            raise ValueError("not a total")
        if total.rho is None and (total.order is None) != (total.delta == 0):
            raise ValueError("a total with a delta and no order, or the other way round")
        try:
            sound = total.capacity > 0 and total.discover <= total.delta < 1
        except EpsilonError:
            sound = False
        if not sound:
            raise ValueError("a total that allows nothing")
        return total

    def price(self, spend: Spend) -> Fraction:
        """What a spend takes, in this total's currency."""
        if spend.epsilon is None or self.pure:
            return spend.amount
        return spend.rho_cost() if self.order is None else pure_at_order(spend.amount, self.order)

    def above(self, other: Total) -> bool:
        """Whether this total allows more than another, and less in nothing."""
        mine = (self.epsilon or ZERO, self.rho or ZERO, self.delta, self.discover)
        theirs = (other.epsilon or ZERO, other.rho or ZERO, other.delta, other.discover)
        return (
            (self.rho is None) == (other.rho is None)
            and mine != theirs
            and all(a >= b for a, b in zip(mine, theirs, strict=True))
        )

    def describe(self) -> str:
        """Say it in words; a quoted (ε, δ) never stands without its ρ."""
        kept = f", of which delta {shown(self.discover)} is for discovered names" if self.discover else ""
        if self.rho is not None:
            return f"rho {shown(self.rho)}" + (
                f", and delta {shown(self.delta)} for discovered names" if kept else ""
            )
        assert self.epsilon is not None  # noqa: S101
        if self.order is None:
            return f"epsilon {shown(self.epsilon)}"
        return (
            f"epsilon {shown(self.epsilon)} at delta {shown(self.delta)}{kept}, which allows rho "
            f"{float(self.capacity):.6g}"
        )


@dataclass
class Sums:
    """What has been spent: Σ of the pure ε, Σ in the total's currency, Σ of δ′, and whether all were pure."""

    epsilon: Fraction = ZERO
    price: Fraction = ZERO
    delta: Fraction = ZERO
    pure: bool = True

    def with_(self, spend: Spend, total: Total) -> Sums:
        """The sums with one more spend."""
        return Sums(
            epsilon=added(self.epsilon, spend.epsilon or ZERO),
            price=added(self.price, total.price(spend)),
            delta=added(self.delta, spend.delta),
            pure=self.pure and spend.epsilon is not None,
        )

    @staticmethod
    def under(total: Total, spends: list[Spend]) -> Sums:
        """The sums of some spends as another total counts them."""
        sums = Sums()
        for spend in spends:
            sums = sums.with_(spend, total)
        return sums

    def text(self, total: Total) -> str:
        """As the table of sums says it."""
        if total.pure:
            return str(self.epsilon)
        return _written(epsilon=self.epsilon or None, rho=self.price, delta=self.delta or None)

    def fits(self, total: Total) -> bool:
        """Whether these sums are within the total: the rule above."""
        if self.delta > total.discover:
            return False
        if total.pure:
            return self.pure and self.price <= total.capacity
        if (
            total.order is not None
            and self.pure
            and total.epsilon is not None
            and self.epsilon <= total.epsilon
        ):
            return True
        return self.price <= total.capacity


def most_epsilon(total: Total, sums: Sums) -> Fraction:
    """The largest pure ε that still fits, rounded down."""
    rest = total.capacity - sums.price
    if total.pure:
        return rest
    left = ZERO
    if rest > 0:
        left = epsilon_for_rho(rest)
        # At the order a little more fits than ρ alone says: a float proposes how much, the exact price decides.
        more = _proposed(total.order, rest, left) if total.order is not None else left
        if total.order is not None and pure_at_order(more, total.order) <= rest:
            left = more
    if total.order is not None and sums.pure and total.epsilon is not None:
        left = max(left, total.epsilon - sums.epsilon)
    return left


def _proposed(order: Fraction, rest: Fraction, least: Fraction) -> Fraction:
    """Look for the pure ε whose price at an order is a given ρ: at least ``least``, a billionth on the safe side."""
    t, alpha, target = float(order - 1), float(order), float(rest)
    low, high = float(least), 2 * alpha * (float(least) + target)
    for _ in range(60):
        x = (low + high) / 2
        price = (x + (math.log1p(math.exp(-(2 * t + 1) * x)) - math.log1p(math.exp(-x))) / t) / alpha
        low, high = (x, high) if price < target else (low, x)
    return max(least, Fraction(f"{low * (1 - 1e-9):.12g}"))


def _written(**amounts: Fraction | None) -> str:
    return " ".join(f"{name} {value}" for name, value in amounts.items() if value is not None)


def _read(text: str, *known: str) -> dict[str, Fraction]:
    words = (f"epsilon {text}" if text[:1].isdigit() else text).split(" ")
    if len(words) % 2 or not set(words[::2]) <= set(known):
        raise ValueError("not an amount")
    told = {name: stored(value) for name, value in zip(words[::2], words[1::2], strict=True)}
    if any(value <= 0 for value in told.values()):
        raise ValueError("an amount that is not positive")
    return told
