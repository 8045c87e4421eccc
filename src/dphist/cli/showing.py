"""Releases, mechanisms and budgets in words and in a picture of characters."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from dphist.cli import screen
from dphist.model.domain import Ordinal
from dphist.model.domain.scales import Dates
from dphist.model.exact import shown
from dphist.model.phrases import counted, visible
from dphist.release import Release, SparseCells, TableCells
from dphist.release.answers import spoken
from dphist.release.cells import DenseCells
from dphist.report.cuts import cut
from dphist.report.tables import tabulate

_WIDTH = 50
_MOST_BARS = 40
# What facts are called on the screen, where people read them; programs know them by the names in JSON.
CALLED = {"cells": "counts", "chosen": "replay runs", "polish": "adjusted"}


def describe(release: Release) -> dict[str, Any]:
    """Say what a release holds and promises."""
    facts: dict[str, Any] = {
        **release.about.given(),
        "cells": " × ".join(f"{a.name} {a.size}" for a in release.domain.attributes)
        + f" = {release.domain.size:,}",
        **({"days": f"{days}, of times that have an offset"} if (days := _zones(release)) else {}),
        "guarantee": release.guarantee.describe(),
        "mechanism": release.maker.name,
        "spent": f"{shown(release.spent)} of {shown(release.budget.amount)} {release.budget.symbol} in "
        f"{counted(release.questions, 'question')}",
    }
    if release.sums:
        facts["measures"] = "; ".join(
            f"{'squares of ' * sums.quantity.squared}{'clipped records of ' * sums.quantity.clipped}"
            f"{sums.measure.describe()} by {sums.release.maker.name}"
            for sums in release.sums
        )
    cells = release.cells
    facts["intervals"] = (
        spoken(release.model.errors.words, 0.95)[0]
        if isinstance(cells, DenseCells)
        else release.answer().method
    )
    if release.note:
        facts["why"] = release.note
    if release.maker.chosen:
        facts["chosen"] = release.maker.chosen
    if release.polish:
        facts["polish"] = ", ".join(release.polish)
    if release.receipt:
        facts["receipt"] = f"entry {release.receipt[1]} of the budget {release.receipt[0]}"
    return facts


def _zones(release: Release) -> str:
    """Whose calendar says in which day a time with an offset lies."""
    return ", ".join(
        f"{each.name} in {each.scale.zone}"
        for each in release.domain.attributes
        if isinstance(each, Ordinal) and isinstance(each.scale, Dates)
    )


def draw(release: Release) -> None:
    """Draw the first attribute as bars, with the interval's reach behind each."""
    if isinstance(release.cells, SparseCells):
        screen.line(f"{release.cells.describe()} are published; every other one counts as zero")
        return
    if isinstance(release.cells, TableCells):
        screen.line(f"{release.cells.describe()} are published; what lies in none of them was not measured")
    numbers = tabulate(release, [cut(release.domain.attributes[0], _MOST_BARS)])
    answers, bars = numbers.answers, numbers.cuts[0]
    labels = [visible(label) for label in bars.labels]
    width = max(map(len, labels))
    unit = _WIDTH / np.nanmax([*answers.value, *answers.high, 1e-9])
    screen.line("")
    screen.line(f"{bars.title} (bars: estimate, dots: up to the interval’s end)")
    for label, value, high, measured in zip(
        labels, answers.value, answers.high, answers.measured, strict=True
    ):
        bar = "█" * max(0, round(unit * value))
        # What nothing can be said of has no end to show.
        bar += "" if isnan(high) else "·" * (round(unit * high) - len(bar))
        screen.line(f"{label:>{width}} {bar}{'' if measured else ' (not measured)'} {value:,.0f}")
