"""A memo on the budget: what this release cost, what it bought, and what is left for the people it is about."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dphist.model.exact import shown
from dphist.model.phrases import so_many
from dphist.report.dossier.known import Known, plain, to_fill
from dphist.report.facts import Spend, budget_tree


def memo(known: Known) -> str:
    """The memo, as Markdown."""
    release = known.release
    parts = [
        f"# Budget memo: {plain(known.title)}",
        f"The release promises {plain(release.guarantee.describe())}. It was made on {known.said('created')} by "
        f"{plain(known.mechanism.name)} and asked {so_many(release.questions, 'question')} of the records, "
        f"at a price of {shown(release.spent)} of {shown(release.budget.amount)} {release.budget.symbol}.",
        "## What the price bought",
        "\n".join(_spent(budget_tree(release), 0)),
        "## Who paid",
        _paid(known),
    ]
    return "\n\n".join(parts).replace("TO FILL:", "**TO FILL:**") + "\n"


def _spent(spend: Spend, depth: int) -> list[str]:
    lines = [f"{'  ' * depth}- {plain(spend.title)}: {spend.cost} ({100 * spend.share:.3g} %)"]
    if spend.disjoint:
        lines[0] += "; of disjoint cells the dearest counts"
    for part in spend.parts:
        lines += _spent(part, depth + 1)
    return lines


def _paid(known: Known) -> str:
    ledger, receipt = known.ledger, known.release.receipt
    if receipt is None:
        return to_fill(
            "no ledger was used: say what else was published about these people, and at what price"
        )
    budget = plain(repr(receipt.dataset))
    if ledger is None:
        paid = f"The release says that payment {receipt.payment} of the budget {budget} was its own."
        return f"{paid} {to_fill('give --ledger to have its total, what was spent and what is left written here')}"
    lines = [
        f"Payment {receipt.payment} of the budget {budget}. The budget protects "
        f"{plain(ledger['unit']) if ledger['unit'] else to_fill('whom')}.",
        f"Total {_amount(ledger['total'])}, spent {_amount(ledger['spent'])}, left {_amount(ledger['remaining'])} "
        f"({_percent(ledger['remaining'], ledger['total'])} of it){_currency(ledger)}.",
        "| payment | when | price | cost | for | state |",
        "|---:|---|---:|---:|---|---|",
    ]
    for entry in ledger["entries"]:
        own = " **this release**" if entry["id"] == receipt.payment else ""
        purpose = plain(str(entry["purpose"]))
        lines.append(
            f"| {entry['id']} | {entry['when']} | {_price(entry)} | {_amount(entry['cost'])} | {purpose}{own} | "
            f"{entry['status']} |"
        )
    text = "\n\n".join(lines[:2]) + "\n\n" + "\n".join(lines[2:])
    return f"{text}\n\n{to_fill('what the rest of the budget is meant for')}"


def _price(entry: Mapping[str, Any]) -> str:
    return str(entry["epsilon"]) if entry.get("rho") is None else f"{entry['rho']} ρ"


def _currency(ledger: Mapping[str, Any]) -> str:
    """In what is counted, where that is not pure ε."""
    return "" if ledger.get("currency", "epsilon") == "epsilon" else f", in ρ: {ledger['allows']}"


def _amount(text: str) -> str:
    """An exact fraction, or about how much where nobody could read it."""
    value = Fraction(text)
    return shown(value) if value.denominator <= 1_000 else f"≈ {float(value):.6g}"


def _percent(part: str, whole: str) -> str:
    return f"{100 * float(Fraction(part) / Fraction(whole)):.3g} %"
