"""What one spend is: whom it protects, and what it costs its budget."""

from __future__ import annotations

from dphist import errors
from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.unit import Unit
from dphist.private.ledger.lines import Fund
from dphist.private.ledger.totals import ZERO, Spend, Sums, amount_of
from dphist.private.ledger.units import Protected, charged, described
from dphist.private.ledger.wording import exhausted, foreign, one_line


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
