"""What a reader should know of a release before trusting a number in it: promise, price, origin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import e
from typing import Any

from dphist.model.phrases import counted
from dphist.model.transcript import Entry
from dphist.release import Release

# What a question of the transcript means to somebody who has not read the code.
_ASKED = {
    "Identity": "every count",
    "Totals": "the total of each part",
    "Boundaries": "where bins begin",
    "Bisections": "where to cut parts in two",
    "AbsoluteDeviation": "where groups of like counts begin",
}
_VERBS = {
    "measure": "measured, with noise",
    "look": "asked first, with much noise",
    "again": "measured again, with less noise",
    "choose": "chosen at random, better ones more often",
    "segment": "found",
}
_MOST_SHOWN = 24
_PARTS = {(False, False): "sums", (True, False): "squares", (False, True): "clipped records"}


@dataclass(frozen=True)
class Spend:
    """A part of the budget: what it bought, how much it cost, and what it was divided into."""

    title: str
    cost: Fraction
    share: float
    parts: tuple[Spend, ...] = ()
    disjoint: bool = False


def budget_tree(release: Release) -> Spend:
    """Give the budget as a tree: shares of the same people's budget add up, disjoint cells cost only the largest."""
    whole = release.budget.amount
    counts = _spend(release.transcript.tree(), "counts" if release.sums else "everything", whole)
    if not release.sums:
        return counts
    sums = [
        _spend(
            each.release.transcript.tree(),
            f"{_PARTS[each.quantity.squared, each.quantity.clipped]} of {each.measure.name}",
            whole,
        )
        for each in release.sums
    ]
    return Spend("everything", release.spent, float(release.spent / whole), (counts, *sums))


def _spend(node: dict[str, Any], title: str, whole: Fraction) -> Spend:
    parts = [_bought(entry, whole) for entry in node["asked"][:_MOST_SHOWN]]
    left = len(node["asked"]) - len(parts)
    if left > 0:
        cost = sum((entry.cost for entry in node["asked"][_MOST_SHOWN:]), Fraction(0))
        parts.append(Spend(f"{counted(left, 'more question')}", cost, float(cost / whole)))
    asked = sum((entry.cost for entry in node["asked"]), Fraction(0))
    along, beside = Fraction(0), Fraction(0)
    for step, child in node["children"].items():
        disjoint = step.startswith("d")
        name = f"part {int(step[1:]) + 1} of the counts" if disjoint else f"share {int(step[1:]) + 1}"
        below = _spend(child, name, whole)
        # A share that bought one thing is that thing; a reader need not open it.
        parts.append(below.parts[0] if len(below.parts) == 1 and not disjoint else below)
        along, beside = (along, max(beside, below.cost)) if disjoint else (along + below.cost, beside)
    total = asked + along + beside
    return Spend(title, total, float(total / whole), tuple(parts), any(s[0] == "d" for s in node["children"]))


def _bought(entry: Entry, whole: Fraction) -> Spend:
    asked = str(entry.question.get("ask", "a question"))
    what = _ASKED.get(asked) or re.sub(r"(?<!^)(?=[A-Z])", " ", asked).lower()
    size = f"{entry.answer.size:,} number{'s' if entry.answer.size != 1 else ''}"
    title = f"{what}: {_VERBS.get(entry.verb, entry.verb)} ({size})"
    return Spend(title, entry.cost, float(entry.cost / whole))


def plain_words(release: Release) -> list[str]:
    """Say what was promised to people, without a symbol in it."""
    unit, budget = release.guarantee.unit, release.budget
    who = "one record" if unit.rows == 1 and unit.id is None else "all that one person added to the records"
    said = [
        f"Whether {who} is in the data or not, a release like this one would look nearly the same. So nobody can tell "
        "from it who is in the data, whatever else they know, now or later."
    ]
    if budget.pure:
        odds = e ** float(budget.amount)
        said.append(
            f"How nearly is said by a number called ε, which is {_short(budget.amount)} here: somebody who thought it "
            "even odds that a person is in the data can, having seen the release, become at most "
            f"{100 * odds / (1 + odds):.0f} % sure of it. The smaller ε, the stronger the protection; at 0 the release "
            "could say nothing."
        )
    else:
        said.append(
            f"How nearly is said by a number called ρ, which is {_short(budget.amount)} here. The smaller ρ, the "
            "stronger the protection; at 0 the release could say nothing."
        )
    said.append(
        "An interval says where the true number most likely lies. A wide one is no fault of the data: it is the "
        "price of protecting people in small groups."
    )
    return said


def _short(amount: Fraction) -> str:
    return f"{float(amount):.3g}"
