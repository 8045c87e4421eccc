"""A release checked from the terminal."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

from dphist.cli import screen
from dphist.model.exact import shown
from dphist.model.phrases import counted
from dphist.publishing.checking import verify_file


def verify_release(
    release: Path,
    ledger: str | None = None,
    as_json: bool = False,
    choice: bool = False,
    exact: bool = False,
) -> None:
    """Replay the mechanism with no data, and say that the release is the same."""
    if ledger:
        from dphist.publishing.account import existing
    with existing(ledger) if ledger else nullcontext() as book, screen.long_work():
        loaded = verify_file(release, book, choice=choice, exact=exact)
    budget, spent = loaded.budget, loaded.spent
    facts = {"verified": True, budget.currency: str(budget.amount), "spent": str(spent)}
    if as_json:
        screen.line(json.dumps(facts))
    else:
        paid = f"{counted(loaded.questions, 'paid answer')}, spent {shown(spent)} of {shown(budget.amount)}"
        screen.line(f"verified: {paid}, and nothing else")
