"""For whom a budget counts, and what a spend that protects somebody else costs in it.

ε is a promise to somebody: ε = 1/2 for one row and ε = 1/2 for ten rows are different promises, and adding them up
says nothing about anybody. So a budget has one unit, B, set when it is created or by its first spend, and every spend
is converted to it. The gate opens at ε ÷ steps a step (`dphist.private.gate`), so a release for the unit S loses at
most ε ÷ S.steps for every step by which *its* counts move. What B pays is that times the most steps by which a change
of one B moves the counts of S:

* neither names a person. Every row counts once, so the counts move by B.steps: ε · B.steps ÷ S.steps.
* both name the same person column. All of a person's rows come or go, and S counts at most S.rows of them: the counts
  move by S.rows, twice that if B replaces. S.rows cancels: whoever bounds to few rows protects the person no less.
* B is a group of b rows, S a person. One row that comes or goes may change which rows of its person are kept; before
  and after at most S.rows are, so the counts move by at most 2 · S.rows a row, twice that if B replaces.
* S names no person and B does, or they name different columns: a person may own any number of rows that S counts
  one by one. No finite factor is known, and the spend is refused.

Exact fractions throughout. That argument is for pure ε, where losses add step by step.

**Under ρ** losses grow with the square, and a release may have bounded its person more finely than in steps, so the
rule is the one that asks nothing of the release: if m changes of an S, one after the other, make any change of a B,
then B loses at most m²ρ (Bun, Steinke 2016, Proposition 27). How many: ⌈b/s⌉ groups of s rows for one of b rows; one
for the same person; two for a person whose row comes or goes (out as they were, in as they are); twice that where B
replaces and S only adds or removes. A change that is a part of one of S (one row of ten, S replacing where B adds) is
one change. The δ of discovered keys is a promise to S alone: it is only spent where m = 1.
"""

from __future__ import annotations

import json
from fractions import Fraction

from dphist.errors import InputError
from dphist.model.exact import fraction
from dphist.model.unit import Unit
from dphist.private.ledger.totals import ZERO, Spend

# A unit of ours; a user's own words for one, which only equal words can match; or nothing said.
Protected = Unit | str | None


def factor(budget: Unit, spend: Unit) -> Fraction | None:
    """What ε = 1 for ``spend`` costs whoever ``budget`` protects; None where nothing finite is known."""
    if budget == spend:
        return Fraction(1)
    replaced = Fraction(2 if budget.replace else 1, 2 if spend.replace else 1)
    if spend.id is None:
        plain = budget.id is None and _beyond(budget) == _beyond(spend)
        return Fraction(budget.steps, spend.steps) if plain else None
    if budget.id is None:
        return 2 * _rows(budget) * replaced
    return replaced if budget.id == spend.id else None


def changes(budget: Unit, spend: Unit) -> int | None:
    """How many changes of ``spend`` make any change of ``budget``; None where nothing finite is known."""
    if budget == spend:
        return 1
    there_and_back = 2 if budget.replace and not spend.replace else 1
    if spend.id is None:
        if budget.id is not None or _beyond(budget) != _beyond(spend):
            return None
        return -(-_rows(budget) // _rows(spend)) * there_and_back
    if budget.id is None:
        return _rows(budget) * (1 if spend.replace else 2) * (2 if budget.replace else 1)
    return there_and_back if budget.id == spend.id else None


def charged(budget: Protected, spend: Protected, asked: Spend) -> Spend | None:
    """What a spend takes from a budget; a spend or a budget that says nothing is in the other's unit."""
    if budget is None or spend is None or budget == spend:
        return asked
    if not isinstance(budget, Unit) or not isinstance(spend, Unit):
        return None
    if asked.epsilon is not None:
        known = factor(budget, spend)
        whole = known is not None and (known <= 1 or not asked.delta)
        return (
            Spend(epsilon=asked.epsilon * known, delta=asked.delta) if known is not None and whole else None
        )
    count = changes(budget, spend)
    if count is None or asked.rho is None or (count > 1 and asked.delta):
        return None
    return Spend(rho=asked.rho * count**2, delta=asked.delta)


def described(unit: Protected) -> str:
    """Say in words who is protected."""
    return unit.describe() if isinstance(unit, Unit) else unit or ""


def written(unit: Protected, asked: Spend | None = None) -> str:
    """Write a unit for a line of the ledger, with what was asked for it."""
    if not isinstance(unit, Unit):
        return unit or ""
    told = unit.to_json()
    if asked is not None:
        amounts = {"epsilon": asked.epsilon, "rho": asked.rho, "delta": asked.delta or None}
        told |= {name: str(value) for name, value in amounts.items() if value is not None}
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def read(text: str) -> tuple[Protected, Spend | None]:
    """Read back what `written` wrote; damage is a ValueError."""
    if not text.startswith("{"):
        return text or None, None
    try:
        told = json.loads(text)
        asked = {name: fraction(told.pop(name)) for name in ("epsilon", "rho", "delta") if name in told}
        unit = Unit.from_json(told)
    except (InputError, ValueError, TypeError, RecursionError):
        raise ValueError("a unit that cannot be read") from None
    if not asked:
        return unit, None
    spend = Spend(epsilon=asked.get("epsilon"), rho=asked.get("rho"), delta=asked.get("delta", ZERO))
    if (spend.epsilon is None) == (spend.rho is None) or spend.amount <= 0 or spend.delta < 0:
        raise ValueError("a unit that cannot be read")
    return unit, spend


def _beyond(unit: Unit) -> dict[str, object]:
    """Whatever else bounds what a unit contributes."""
    return {name: value for name, value in unit.to_json().items() if name not in ("rows", "replace", "id")}


def _rows(unit: Unit) -> int:
    """How many rows one of a unit may have, however it says so."""
    return unit.steps // (2 if unit.replace else 1)
