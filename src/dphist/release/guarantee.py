"""What a release promises, and to whom; and which payment stands behind it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.unit import Unit


class Receipt(NamedTuple):
    """Which payment of which ledger a release was made from.

    Numbers repeat from ledger to ledger, and so do names of budgets. The hash of a ledger's line covers all lines
    before it, of which the first holds a number drawn at random: no other ledger has it.

    Args:
        dataset: The budget's name.
        payment: The reservation's number.
        hash: Of the line that reserved it.

    Example:
        >>> Receipt("people", 3, "ab").payment
        3
    """

    dataset: str
    payment: int
    hash: str


@dataclass(frozen=True, init=False)
class Guarantee:
    """What was promised: a budget of privacy loss for one unit, and against whom a mistake would count.

    Args:
        budget: The privacy loss; a bare number is pure ε.
        unit: Who is protected.
        delta: The chance, beyond the budget, that discovered keys show one that only one unit brought.
        threshold: From which noisy count on discovered keys are shown.

    Example:
        >>> import dphist
        >>> Guarantee(Fraction(1, 2), dphist.Unit()).describe()
        '0.5-differential privacy for one row, which may be added or removed'
    """

    budget: Budget
    unit: Unit
    delta: Fraction
    threshold: int

    def __init__(
        self, budget: Budget | Number, unit: Unit, delta: Fraction = Fraction(0), threshold: int = 0
    ) -> None:
        object.__setattr__(self, "budget", Budget.of(budget))
        object.__setattr__(self, "unit", unit)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "threshold", threshold)

    @property
    def epsilon(self) -> Fraction | None:
        """The pure ε that was promised; None where the promise is one of ρ."""
        return self.budget.amount if self.budget.pure else None

    def describe(self) -> str:
        """Say it in words.

        Returns:
            A phrase such as ``1-differential privacy for one row, which may be added or removed``.
        """
        said = f"{self.budget.describe()} for {self.unit.describe()}"
        if not self.delta:
            return said
        return (
            f"{said}; names are shown if their noisy count is {self.threshold:,} or more, and the chance of showing a "
            f"name that only one of them has is at most one in {float(1 / self.delta):,.0f}"
        )
