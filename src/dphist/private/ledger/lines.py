"""The history of a ledger: lines chained by hash, and the books that follow from them.

A ledger *is* its lines. Totals and sums are consequences, recomputed by replaying the lines through `Books`,
which refuses a line that breaks the chain or a rule. So a ledger that opens has, at every point of its
history, spent its entries within its totals, by the rule of `dphist.private.ledger.totals`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Self

from dphist.model.unit import Unit
from dphist.private.ledger.totals import ZERO, Spend, Sums, Total
from dphist.private.ledger.units import Protected, charged, described, read

Status = Literal["reserved", "opened", "published"]


class Head(NamedTuple):
    """How far a ledger has come: the number and hash of its last line."""

    number: int
    hash: str


START = Head(0, "")


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the history; `hash` covers it and, through the line before, everything earlier."""

    number: int
    kind: str  # began, created, raised, reserved, opened, published
    dataset: str = ""
    amount: str = ""
    purpose: str = ""
    unit: str = ""
    time: str = ""  # empty on opened and published: the distance from the reservation would be a duration
    subject: int = 0  # the reservation that an opened or published line is about
    digest: str = ""
    hash: str = ""

    def sealed(self, previous: str) -> Line:
        """Give the line the hash that ties it to the one before."""
        return replace(self, hash=self.seal(previous))

    def seal(self, previous: str) -> str:
        """Compute the hash of this line after `previous`."""
        content = [previous, self.number, self.kind, self.dataset, self.amount, self.purpose]
        content += [self.unit, self.time, self.subject, self.digest]
        return sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).hexdigest()


COLUMNS = ("number", "kind", "dataset", "amount", "purpose", "unit", "time", "subject", "digest", "hash")
_NUMBERS = ("number", "subject")


def line_from(row: Sequence[object]) -> Line:
    """Read a stored row; a value of the wrong type is damage (ValueError)."""
    for name, value in zip(COLUMNS, row, strict=True):
        if not isinstance(value, int if name in _NUMBERS else str):
            raise ValueError(f"{name} is missing or of the wrong type")
    return Line(**dict(zip(COLUMNS, row, strict=True)))  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One spend: what was reserved, for what, and which release came of it.

    ``epsilon`` or ``rho`` is the release's own, for its own ``unit``, and ``delta`` what its discovered keys took;
    ``cost`` is what that took from the budget, in the budget's unit (`dphist.private.ledger.units`) and currency. The
    costs of a budget's entries add up to what it has spent.
    """

    id: int
    dataset: str
    epsilon: Fraction | None
    cost: Fraction
    purpose: str
    unit: str
    when: datetime
    status: Status
    digest: str
    hash: str
    rho: Fraction | None = None
    delta: Fraction = ZERO

    @classmethod
    def of(cls, line: Line, total: Total, **more: Any) -> Self:
        """Read the spend of a line, priced by its budget's total."""
        spend = Spend.read(line.amount)
        unit, asked = read(line.unit)
        return cls(
            id=line.number,
            dataset=line.dataset,
            epsilon=(asked or spend).epsilon,
            rho=(asked or spend).rho,
            delta=spend.delta,
            cost=total.price(spend),
            purpose=line.purpose,
            unit=described(unit),
            when=datetime.fromisoformat(line.time),
            status="reserved",
            digest="",
            hash=line.hash,
            **more,
        )


@dataclass
class Fund:
    """What one population may spend and has spent."""

    total: Total
    sums: Sums = field(default_factory=Sums)
    unit: Protected = None
    entries: list[int] = field(default_factory=list)
    spends: list[Spend] = field(default_factory=list)

    def remaining(self) -> Fraction:
        """What is left of the total, in its currency."""
        return max(ZERO, self.total.capacity - self.sums.price)


class Books:
    """Everything that follows from the lines so far."""

    def __init__(self) -> None:
        self.head = START
        self.budgets: dict[str, Fund] = {}
        self.entries: dict[int, Entry] = {}

    def follow(self, line: Line) -> None:
        """Take one more line, or raise ValueError and change nothing if it cannot come next."""
        if line.number != self.head.number + 1:
            raise ValueError("a line is missing")
        if line.hash != line.seal(self.head.hash):
            raise ValueError("the line was changed after it was written")
        if (line.kind == "began") != (line.number == 1):
            raise ValueError("the history does not start where it should")
        match line.kind:
            case "began":
                pass
            case "created":
                if line.dataset in self.budgets:
                    raise ValueError("a budget is created twice")
                self.budgets[line.dataset] = Fund(Total.read(line.amount), unit=read(line.unit)[0])
            case "raised":
                self._raise(line)
            case "reserved":
                self._reserve(line)
            case "opened":
                self._advance(line, "reserved", "opened")
            case "published":
                self._advance(line, "opened", "published")
            case _:
                raise ValueError("a line of an unknown kind")
        self.head = Head(line.number, line.hash)

    def _budget(self, line: Line) -> Fund:
        if line.dataset not in self.budgets:
            raise ValueError("a line about a dataset that was never created")
        return self.budgets[line.dataset]

    def _raise(self, line: Line) -> None:
        fund, total = self._budget(line), Total.read(line.amount)
        if not total.above(fund.total):
            raise ValueError("a total is lowered")
        fund.total = total
        # Another total may count in another currency, or at another order.
        fund.sums = Sums.under(total, fund.spends)
        for number, spend in zip(fund.entries, fund.spends, strict=True):
            self.entries[number] = replace(self.entries[number], cost=total.price(spend))

    def _reserve(self, line: Line) -> None:
        budget = self._budget(line)
        spend, entry = Spend.read(line.amount), Entry.of(line, budget.total)
        unit, asked = read(line.unit)
        # A unit of ours says what was asked for it; words of the user's own, or none, are in the budget's unit.
        if (asked is None) == isinstance(unit, Unit) or charged(budget.unit, unit, asked or spend) != spend:
            raise ValueError("a spend was not converted to its budget's unit")
        sums = budget.sums.with_(spend, budget.total)
        if not sums.fits(budget.total):
            raise ValueError("more is spent than the total")
        budget.sums = sums
        budget.spends.append(spend)
        if budget.unit is None:
            budget.unit = unit
        budget.entries.append(line.number)
        self.entries[line.number] = entry

    def _advance(self, line: Line, before: Status, after: Status) -> None:
        entry = self.entries.get(line.subject)
        if entry is None or entry.dataset != line.dataset or entry.status != before:
            raise ValueError(f"a reservation is {after} out of turn")
        self.entries[line.subject] = replace(entry, status=after, digest=line.digest)
