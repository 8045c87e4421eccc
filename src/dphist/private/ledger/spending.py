"""What one spend is: whom it protects, what it costs its budget, and the reservation that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Protocol

from dphist import errors
from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.unit import Unit
from dphist.private.ledger.amounts import amount_of
from dphist.private.ledger.lines import Fund
from dphist.private.ledger.totals import ZERO, Spend, Sums
from dphist.private.ledger.units import Protected, charged, described
from dphist.private.ledger.wording import exhausted, foreign, one_line


class Book(Protocol):
    """Where a reservation stands, and where what becomes of it is written down."""

    def _open(self, reservation: Reservation) -> None: ...

    def complete(self, reservation: Reservation, digest: str) -> None:
        """Write down the digest of the release that came of it."""
        ...


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """Budget that is spent, on disk, for one opening of the gate.

    It is never given back: if the process dies, or the answers are thrown away, the budget stays spent,
    because nobody can prove that nothing was seen. A retry is a new reservation. ``cost`` is what ``epsilon`` or
    ``rho``, for ``unit``, took from the budget, in the budget's unit and currency.
    """

    id: int
    dataset: str
    epsilon: Fraction | None
    cost: Fraction
    purpose: str
    unit: str
    when: datetime
    hash: str
    rho: Fraction | None = None
    delta: Fraction = ZERO
    _ledger: Book = field(repr=False, compare=False)

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
    """Accept a unit, words of the user's own, or nothing."""
    if unit is None or isinstance(unit, Unit):
        return unit
    text = one_line(unit, "unit", blank=True)
    if text.startswith("{"):
        raise errors.InputError("unit: must be a Unit, or words that do not begin with a brace")
    return text or None


def spend_of(budget: Number | Budget, delta: Number | None = None) -> Spend:
    """Read what a release costs: a number is a pure ε; ``delta`` is what its discovered keys take."""
    taken = ZERO if delta is None else amount_of(delta, "delta")
    if isinstance(budget, Budget):
        amount = amount_of(budget.amount, budget.currency)
        return (
            Spend(rho=amount, delta=taken) if budget.currency == "rho" else Spend(epsilon=amount, delta=taken)
        )
    return Spend(epsilon=amount_of(budget, "epsilon"), delta=taken)


def affordable(dataset: str, fund: Fund, asked: Spend, unit: Protected, place: str) -> tuple[Spend, Sums]:
    """What a spend costs the budget, and what will have been spent with it; or a refusal."""
    spend = charged(fund.unit, unit, asked)
    if spend is None:
        raise foreign(dataset, described(fund.unit), described(unit))
    sums = fund.sums.with_(spend, fund.total)
    if not sums.fits(fund.total):
        raise exhausted(dataset, asked, spend, fund, place)
    return spend, sums
