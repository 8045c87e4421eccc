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

Exact fractions throughout. The argument is for pure ε, where losses add step by step.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

from dphist.errors import InputError
from dphist.model.exact import fraction
from dphist.model.unit import Unit

# A unit of ours; a user's own words for one, which only equal words can match; or nothing said.
Protected = Unit | str | None

_ADDED, _REPLACED = "added or removed", "replaced by any other"
_SAID = (
    # How ledgers were written before units were kept as such. These words stay, whatever `Unit.describe` says later.
    re.compile(rf"(?P<rows>one) row, which may be (?P<how>{_ADDED}|{_REPLACED})"),
    re.compile(rf"a group of up to (?P<rows>\d{{1,18}}) rows, which may be (?P<how>{_ADDED}|{_REPLACED})"),
    re.compile(
        rf"one person, who may be (?P<how>{_ADDED}|{_REPLACED}): all the rows that share a value of (?P<id>.+), "
        r"of which at most (?P<rows>\d{1,18}) (?:is|are) counted"
    ),
)


def factor(budget: Unit, spend: Unit) -> Fraction | None:
    """What ε = 1 for ``spend`` costs whoever ``budget`` protects; None where nothing finite is known."""
    if budget == spend:
        return Fraction(1)
    replaced = Fraction(2 if budget.replace else 1, 2 if spend.replace else 1)
    if spend.id is None:
        plain = budget.id is None and _beyond(budget) == _beyond(spend)
        return Fraction(budget.steps, spend.steps) if plain else None
    if budget.id is None:
        return 2 * budget.rows * replaced
    return replaced if budget.id == spend.id else None


def cost(budget: Protected, spend: Protected, epsilon: Fraction) -> Fraction | None:
    """What a spend takes from a budget; a spend or a budget that says nothing is in the other's unit."""
    if budget is None or spend is None or budget == spend:
        return epsilon
    known = factor(budget, spend) if isinstance(budget, Unit) and isinstance(spend, Unit) else None
    return None if known is None else epsilon * known


def described(unit: Protected) -> str:
    """Say in words who is protected."""
    return unit.describe() if isinstance(unit, Unit) else unit or ""


def written(unit: Protected, epsilon: Fraction | None = None) -> str:
    """Write a unit for a line of the ledger, with the ε that was asked for it."""
    if not isinstance(unit, Unit):
        return unit or ""
    told = unit.to_json() | ({} if epsilon is None else {"epsilon": str(epsilon)})
    return json.dumps(told, sort_keys=True, separators=(",", ":"))


def read(text: str) -> tuple[Protected, Fraction | None]:
    """Read back what `written` wrote, or what an older ledger says in words; damage is a ValueError."""
    if text.startswith("{"):
        try:
            told = json.loads(text)
            asked = told.pop("epsilon", None)
            return Unit.from_json(told), None if asked is None else fraction(asked)
        except (InputError, ValueError, TypeError, RecursionError):
            raise ValueError("a unit that cannot be read") from None
    for form in _SAID:
        match = form.fullmatch(text)
        if match:
            found = match.groupdict()
            rows = 1 if found["rows"] == "one" else int(found["rows"])
            if rows:
                return Unit(rows=rows, replace=found["how"] == _REPLACED, id=found.get("id")), None
    return text or None, None


def _beyond(unit: Unit) -> dict[str, object]:
    """Whatever else bounds what a unit contributes."""
    return {name: value for name, value in unit.to_json().items() if name not in ("rows", "replace", "id")}
