"""What one spend is: whom it protects, what it costs its budget, and the reservation that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import TYPE_CHECKING

from dphist import errors
from dphist.model.unit import Unit
from dphist.private.ledger.amounts import added
from dphist.private.ledger.lines import Budget
from dphist.private.ledger.units import Protected, cost, described, read
from dphist.private.ledger.wording import exhausted, foreign, one_line

if TYPE_CHECKING:
    from dphist.private.ledger.book import Ledger


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Budget that is spent, on disk, for one opening of the gate.

    It is never given back: if the process dies, or the answers are thrown away, the budget stays spent,
    because nobody can prove that nothing was seen. A retry is a new reservation. ``cost`` is what ``epsilon``, for
    ``unit``, took from the budget, in the budget's unit.
    """

    id: int
    dataset: str
    epsilon: Fraction
    cost: Fraction
    purpose: str
    unit: str
    when: datetime
    hash: str
    _ledger: Ledger = field(repr=False, compare=False)

    def open(self) -> None:
        """Claim the one opening of the gate that this reservation pays for.

        The claim is a line in the ledger, so a copy of the reservation in another thread or process cannot
        claim it again: the second raises `errors.RightUsed`.
        """
        self._ledger._open(self)

    def complete(self, digest: str) -> None:
        """Write down the digest of the release that came of this reservation."""
        self._ledger.complete(self, digest)


def protected_by(unit: Unit | str | None) -> Protected:
    """Accept a unit, its description, words of the user's own, or nothing."""
    if unit is None or isinstance(unit, Unit):
        return unit
    text = one_line(unit, "unit", blank=True)
    if text.startswith("{"):
        raise errors.InputError("unit: must be a Unit, or words that do not begin with a brace")
    return read(text)[0]


def affordable(dataset: str, budget: Budget, asked: Fraction, unit: Protected) -> tuple[Fraction, Fraction]:
    """What a spend costs the budget, and what will have been spent with it; or a refusal."""
    amount = cost(budget.unit, unit, asked)
    if amount is None:
        raise foreign(dataset, described(budget.unit), described(unit))
    spent = added(budget.spent, amount)
    if spent > budget.total:
        raise exhausted(dataset, asked, amount, budget)
    return amount, spent
