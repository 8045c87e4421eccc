"""The processes that race for a ledger and are killed: many are started, so they import the ledger and nothing else."""

from __future__ import annotations

import os
import random  # noqa: TID251 -- what to spend where, not noise
import sys
from contextlib import suppress
from fractions import Fraction
from typing import Any

from dphist import errors
from dphist.model.budget import Budget
from dphist.private.ledger import Ledger

__all__ = ["churn", "race"]

_ROUND_TOTAL = Fraction(2)
_AMOUNTS = ("0.1", "0.05", "1/3", "1/7", "0.013")


def _say(text: str) -> None:
    # One small write to a pipe is atomic, so a killed child leaves whole lines.
    os.write(1, f"{text}\n".encode())


def _acknowledge(ledger: Ledger, dataset: str, amount: str | Budget) -> None:
    reservation = ledger.reserve(dataset, amount, "experiment")
    asked = str(reservation.epsilon) if reservation.rho is None else f"rho {reservation.rho}"
    _say(f"spent {reservation.id} {reservation.hash} {asked} {dataset}")
    if reservation.id % 3 == 0:
        reservation.open()
        reservation.complete(f"sha256:{reservation.hash}")


def _taken(kind: str) -> Budget | str:
    return Budget.of(rho="1/1000") if kind == "rho" else "1/10"


def race(path: str, kind: str) -> None:
    """Take the same amount from one budget until it is refused."""
    with Ledger.open(path) as ledger:
        _say("ready")
        sys.stdin.read(1)
        try:
            while True:
                _acknowledge(ledger, "everybody", _taken(kind))
        except errors.BudgetExhausted:
            _say("refused")


def churn(path: str, seed: int) -> None:
    """Create budgets, exhaust them and start over, until killed."""
    chance = random.Random(seed)  # noqa: S311 -- data only
    first = True
    while True:
        with Ledger.open(path) as ledger:
            if first:
                _say("ready")
                first = False
            for _ in range(chance.randrange(1, 40)):
                _spend_somewhere(ledger, chance)


def _spend_somewhere(ledger: Ledger, chance: random.Random) -> None:
    rounds = [int(name.removeprefix("round-")) for name in ledger.datasets()]
    newest = max(rounds, default=0)
    last = f"round-{newest}"
    try:
        amount: str | Budget = chance.choice(_AMOUNTS)
        # Rounds take turns in how they count; ρ and ε are mixed where the total allows it.
        if newest % 3 and chance.random() < 0.5:
            amount = Budget.of(rho=Fraction(chance.choice(_AMOUNTS)) / 20)
        _acknowledge(ledger, last, amount)
    except errors.BudgetExhausted:
        _say("refused")
        if ledger.account(last).epsilon_left < Fraction(1, 10):
            with suppress(errors.InputError):  # another process was first
                ledger.create(f"round-{newest + 1}", **_round(newest + 1))
    except errors.UnknownDataset:
        with suppress(errors.InputError):
            ledger.create(last, **_round(newest))


def _round(number: int) -> dict[str, Any]:
    if number % 3 == 1:
        return {"rho": Fraction(1, 4)}
    return {"epsilon": _ROUND_TOTAL} | ({"delta": Fraction(1, 10**6)} if number % 3 == 2 else {})
