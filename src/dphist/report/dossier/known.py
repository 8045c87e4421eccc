"""What a release says of itself, gathered once for every paper; what only the custodian knows is marked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from dphist.errors import VerificationError
from dphist.model.about import FACTS
from dphist.model.exact import shown
from dphist.model.phrases import counted, visible
from dphist.release import Release
from dphist.release.columns import number_names
from dphist.release.tables import in_tables, largest_tables, measured_rows
from dphist.release.writing import told_columns
from dphist.version import __version__

MARK = "TO FILL"


def to_fill(what: str) -> str:
    """The custodian's own: nothing in the release says it."""
    return f"{MARK}: {what}"


def plain(text: str) -> str:
    """A name that anybody may have given, on one line of Markdown, letter by letter: no link, heading or column."""
    return re.sub(r"[\\`*_\[\]<>|#&!~]", r"\\\g<0>", visible(" ".join(text.split())))


@dataclass(frozen=True, eq=False)
class Known:
    """A release, the file it is published as, and what the ledger says, as plain values."""

    release: Release
    file: Path
    ledger: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        receipt, ledger = self.release.receipt, self.ledger
        # Names of budgets and numbers of payments repeat from ledger to ledger; a line's hash does not.
        if ledger is not None and not any(
            receipt is not None and (each["id"], each["hash"]) == (receipt.payment, receipt.hash)
            for each in ledger["entries"]
        ):
            raise VerificationError("this ledger did not pay for the release; give the one that did")

    @property
    def title(self) -> str:
        """What it is called; the file's name by default."""
        return self.release.about.title or self.file.stem

    def said(self, name: str) -> str:
        """What the custodian said under a name when publishing, or the mark."""
        return self.release.about.given().get(name) or to_fill(FACTS[name].wanted)

    @cached_property
    def counted(self) -> str:
        """What is counted, in words."""
        domain, tables = self.release.domain, largest_tables(self.release)
        cells = " × ".join(f"{each.name} ({each.size:,})" for each in domain.attributes)
        published = self.release.cells.describe()
        if not published:
            largest, number = max(map(len, tables)), counted(len(tables), "table")
            part = f", guessed from {number} of up to {counted(largest, 'attribute')} that were measured"
            published = f"{domain.size:,} cells{part if largest < len(domain.shape) else ''}"
        return f"Counts of records by {cells}: {published}"

    @property
    def description(self) -> str:
        """What the release is, in two sentences."""
        bounds = ", or bounds where it was not measured" if in_tables(self.release) else ""
        return (
            f"{self.counted}, each with an estimate and a 95 % interval{bounds}. Noise was added on purpose: "
            f"{self.release.guarantee.describe()}."
        )

    @property
    def variant(self) -> str:
        """Which differential privacy was promised, as the literature calls it."""
        return "Pure DP" if self.release.budget.pure else "Zero-concentrated DP"

    @property
    def parameters(self) -> dict[str, float]:
        """Its parameters, and those that it was bought for."""
        budget = self.release.budget
        if budget.pure:
            return {"epsilon": float(budget.amount)}
        said = {"rho": budget.amount, "epsilon": budget.epsilon, "delta": budget.delta}
        return {name: float(value) for name, value in said.items() if value is not None}

    @property
    def spent(self) -> str:
        """What that cost."""
        budget = self.release.budget
        return f"{shown(self.release.spent)} of {shown(budget.amount)} {budget.symbol}"

    @property
    def left(self) -> str:
        """Which part of the budget is left."""
        ledger = self.ledger or {}
        return f"{100 * float(Fraction(ledger['remaining']) / Fraction(ledger['total'])):.3g} %"

    @property
    def software(self) -> str:
        """What made these papers."""
        return f"dphist {__version__}"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the release's file."""
        return hashlib.sha256(self.file.read_bytes()).hexdigest()

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the file, and what each says."""
        told = told_columns(self.release, 0.95, number_names(self.release.domain))
        return {name: words for names, words in told.items() for name in names}

    @cached_property
    def measured(self) -> Any:
        """The cells of what was measured, as an Arrow table."""
        return measured_rows(self.release)

    @cached_property
    def uncertain(self) -> Any:
        """Which of them have noise that exceeds their count: half their interval is wider than the estimate."""
        names = number_names(self.release.domain)
        low, high, estimate = (
            self.measured.column(names[name]).to_numpy() for name in ("low", "high", "estimate")
        )
        return ~((high - low) / 2 <= estimate)
