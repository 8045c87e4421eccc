"""What may be spent: an exact amount of one currency, pure ε or concentrated ρ."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from dphist.errors import EpsilonError
from dphist.model.conversion import delta_of_rho, rho_for
from dphist.model.exact import Number, exact, fraction, positive

Currency = Literal["epsilon", "rho"]
CURRENCIES: tuple[Currency, ...] = ("epsilon", "rho")
_SYMBOLS = {"epsilon": "ε", "rho": "ρ"}
# What a text may say (`dphist.model.exact`), for whole numbers and fractions too: squares of variances, and their
# inverses, are floats within it.
_LEAST, _MOST = Fraction(1, 10**60), Fraction(10**61)


@dataclass(frozen=True)
class Budget:
    """An exact amount of privacy loss, in one currency.

    - ``Budget.of(1)`` or ``Budget.of(epsilon=1)``: pure ε-differential privacy.
    - ``Budget.of(rho="1/100")``: ρ-zero-concentrated differential privacy (ρ-zCDP).
    - ``Budget.of(epsilon=1, delta="1e-9")``: the largest ρ that implies (1, 10⁻⁹)-differential privacy.

    Args:
        amount: How much, an exact fraction.
        currency: Of what: ``"epsilon"`` or ``"rho"``.
        epsilon: Where (ε, δ) was asked for and bought a ρ, or is kept by pure ε alone: that ε.
        delta: And that δ.

    Example:
        >>> Budget.of("1/2").describe()
        '0.5-differential privacy'
        >>> Budget.of(rho="1/100").currency
        'rho'
        >>> Budget.of(epsilon=1, delta="1e-9").describe()
        '0.0149731-zCDP, which implies (1, 1e-09)-differential privacy'
    """

    amount: Fraction
    currency: Currency = "epsilon"
    epsilon: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        if self.currency not in CURRENCIES:
            raise EpsilonError("budget: the currency must be 'epsilon' or 'rho'")
        if self.amount <= 0:
            raise EpsilonError(f"{self.currency} must be above zero")
        if not _LEAST <= self.amount <= _MOST:
            raise EpsilonError(f"{self.currency} is out of any useful range")
        if (self.epsilon is None) != (self.delta is None):
            raise EpsilonError("budget: epsilon and delta belong together")
        if self.epsilon is not None and self.delta is not None:
            if self.currency == "epsilon":
                # What is ε-private is (ε, δ)-private for every δ.
                if self.amount != self.epsilon or not 0 < self.delta < 1:
                    raise EpsilonError("budget: pure epsilon keeps an (epsilon, delta) of the same epsilon")
            elif delta_of_rho(self.amount, self.epsilon) > self.delta:
                raise EpsilonError("budget: this rho does not imply that (epsilon, delta)")

    @staticmethod
    def of(
        epsilon: Number | Budget | None = None, *, rho: Number | None = None, delta: Number | None = None
    ) -> Budget:
        """Read what a user wrote: ε, or ρ, or ε with a δ, which buys the largest ρ; a `Budget` is taken as it is.

        Raises:
            EpsilonError: if nothing was said, or too much, or a number makes no sense.
        """
        if isinstance(epsilon, Budget):
            if rho is not None or delta is not None:
                raise EpsilonError("a budget was given: say nothing beside it")
            return epsilon
        if rho is not None:
            if epsilon is not None or delta is not None:
                raise EpsilonError("give rho, or epsilon (with or without delta), not both")
            return Budget(positive(rho, "rho"), "rho")
        if epsilon is None:
            raise EpsilonError(
                "epsilon is missing: say what privacy loss you may spend, such as epsilon=1 (--epsilon 1); or give "
                "rho, or epsilon with delta"
            )
        asked = positive(epsilon, "epsilon")
        if delta is None:
            return Budget(asked)
        chance = exact(delta, "delta")
        if not 0 < chance < 1:
            raise EpsilonError(
                "delta must lie strictly between 0 and 1, far below one over the number of people"
            )
        bought = rho_for(asked, chance)
        if bought <= 0:
            raise EpsilonError("epsilon and delta are so small that they buy nothing")
        return Budget(bought, "rho", asked, chance)

    @property
    def pure(self) -> bool:
        """Whether this is pure ε."""
        return self.currency == "epsilon"

    @property
    def symbol(self) -> str:
        """ε or ρ."""
        return _SYMBOLS[self.currency]

    def without_delta(self) -> Budget:
        """Keep an (ε, δ) by pure ε, which leaves δ unused; a budget that was not bought by one stays as it is."""
        if self.pure or self.epsilon is None:
            return self
        return Budget(self.epsilon, "epsilon", self.epsilon, self.delta)

    def part(self, share: Fraction) -> Budget:
        """A share of a budget, of the same currency; it names no (ε, δ), which do not add up."""
        return Budget(self.amount * share, self.currency)

    def delta_at(self, epsilon: Number) -> Fraction:
        """The δ for which this budget implies (ε, δ)-differential privacy, rounded up; 0 where pure ε is within it."""
        asked = positive(epsilon, "epsilon")
        if self.pure:
            return Fraction(0 if self.amount <= asked else 1)
        return delta_of_rho(self.amount, asked)

    def describe(self) -> str:
        """Say it in words; a quoted (ε, δ) never stands without its ρ."""
        if self.pure:
            said = f"{float(self.amount):g}-differential privacy"
            if self.epsilon is None or self.delta is None:
                return said
            allowed = f"({float(self.epsilon):g}, {float(self.delta):g})"
            return f"{said} (of the {allowed} that was allowed, δ is not used)"
        words = f"{float(self.amount):g}-zCDP"
        if self.epsilon is None or self.delta is None:
            return f"{words} (zero-concentrated differential privacy)"
        return f"{words}, which implies ({float(self.epsilon):g}, {float(self.delta):g})-differential privacy"

    def to_json(self) -> dict[str, str]:
        """Plain values that `from_json` turns back into an equal budget."""
        if self.pure:
            # The ε that was allowed is the one that is spent: `Budget.without_delta`.
            return {"epsilon": str(self.amount)} | ({} if self.delta is None else {"delta": str(self.delta)})
        written = {"rho": str(self.amount)}
        if self.epsilon is not None and self.delta is not None:
            written |= {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        return written

    @staticmethod
    def from_json(value: Any) -> Budget:
        """Read what `to_json` wrote; keys of others are not looked at."""
        currency: Currency = "rho" if "rho" in value else "epsilon"
        amount = fraction(value[currency])
        if ("epsilon" if currency == "rho" else "delta") in value:
            return Budget(amount, currency, fraction(value["epsilon"]), fraction(value["delta"]))
        return Budget(amount, currency)
