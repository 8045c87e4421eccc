"""Who pays for an opening of the gate, and what only the custodian is told before: rows that do not count, reminders.

A stop because too many rows do not count, and the words of it, depend on the records as much as any count does. They
are for the eyes of whoever holds the records. Where others see whether a run succeeds (a scheduled job, a status page,
an exit code), ``allow_dropped=1`` switches the stop off: a neighbouring table could else be told from this one by the
failure alone, whatever noise the release has. The threat model says the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dphist.errors import BudgetError, DroppedRows, InputError, LedgerError, VerificationError
from dphist.kernels.compile import load
from dphist.mechanisms.registry import load_rooms
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number, exact, shown
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.transcript import Payment
from dphist.release.guarantee import Receipt
from dphist.reminding import remind, remind_of_data
from dphist.sources.engine import Tallied, Tally

if TYPE_CHECKING:
    from dphist.private.ledger import Entry, Ledger
    from dphist.release.release import Release

# Calls between a reminder and the line that called a door; of `account`, a context manager's own three among them.
_ABOVE, _ABOVE_ACCOUNT = 5, 6
# A file that is written as an address.
_FILE = "sqlite:///"


@dataclass(eq=False)
class Account:
    """One payment that is owed before the first noise; without a ledger it is free.

    A release may open several gates (counts and sums, one for every part, one after the other), and which of them asks
    first depends on the mechanism. So each is handed the same ``pay``: whoever asks first pays for all.
    """

    budget: Budget
    unit: Unit
    purpose: str
    ledger: Ledger | None = None
    dataset: str = ""
    delta: Fraction | None = None
    """What discovered keys take of a δ, beyond the budget."""
    receipt: Receipt | None = None
    """Which line of which budget paid, once it has."""
    before: Callable[[], None] | None = None
    """What may still refuse, right before anything is paid."""
    pay: Payment = field(init=False)
    """What every gate calls before it draws: reserves and opens, durably, once."""

    def __post_init__(self) -> None:
        self.pay = Payment(self._pay)

    def receipted(self, release: Release) -> Release:
        """A release, with the line that paid for it, if one did."""
        return release if self.receipt is None else release.with_receipt(*self.receipt)

    def _pay(self) -> None:
        if self.before is not None:
            self.before()
        if self.ledger is not None:
            _load_all()
            reservation = self.ledger.reserve(
                self.dataset, self.budget, self.purpose, self.unit, delta=self.delta
            )
            reservation.open()
            self.receipt = Receipt(self.dataset, reservation.id, reservation.hash)


def _load_all() -> None:
    """Load what is asked for after the payment: what is broken, or does not fit in memory, stops before it."""
    # What noise is drawn with; modules that only some mechanisms use, and that wait elsewhere until they are asked.
    import cryptography.hazmat.primitives.ciphers  # noqa: F401

    load_rooms("kernels", "inference", "mechanisms", "release")
    load()


def counts_rho(ledger: Ledger | str | PathLike[str] | None, dataset: str | None) -> bool:
    """Whether a ledger stands behind that counts ρ: what a total was declared in, a public fact.

    There a pure ε costs ε·tanh(ε/2), far more than the ρ that an (ε, δ) buys.
    """
    if ledger is None or dataset is None:
        return False
    from dphist.private.ledger import Ledger

    if isinstance(ledger, str | PathLike):
        with existing(ledger) as book:
            return book.account(dataset).currency == "rho"
    # What is no ledger, `account` will say.
    return isinstance(ledger, Ledger) and ledger.account(dataset).currency == "rho"


def within(
    ledger: Ledger | str | PathLike[str] | None, dataset: str | None, budget: Budget, unit: Unit
) -> Budget:
    """What may be spent on somebody so that a ledger, which may protect others, takes no more than was said."""
    if ledger is None or dataset is None:
        return budget
    # What a little takes is known while anything is left; where nothing is, `account` refuses.
    little = budget.part(Fraction(1, 1000))
    with existing(ledger) if isinstance(ledger, str | PathLike) else nullcontext(ledger) as book:
        try:
            alike = book.account(dataset).currency == budget.currency
            price = book.check(dataset, little, unit)
        except BudgetError:
            return budget
    return budget.part(little.amount / price) if alike else budget


def paid_by(ledger: Ledger, receipt: Receipt) -> Entry:
    """The very payment that a receipt is of.

    Raises:
        VerificationError: if this ledger did not make it.
    """
    known = receipt.dataset in ledger.datasets()
    for entry in ledger.entries(receipt.dataset) if known else ():
        if entry.id == receipt.payment and entry.hash == receipt.hash:
            return entry
    raise VerificationError(
        f"this ledger did not pay for the release: payment {receipt.payment} of {receipt.dataset!r} was another "
        "ledger's; give the one that paid"
    )


def existing(place: str | PathLike[str]) -> Ledger:
    """Open a ledger that is there: a mistyped name must not make an empty one, from which nobody can pay.

    Where a witness has seen one, `Ledger.open` says that it has gone.
    """
    from dphist.private.ledger import Ledger

    text = local_name(fspath(place))
    if "://" not in text and text != ":memory:" and not (_there(text) or _there(f"{text}.witness")):
        raise LedgerError(f"there is no ledger {text}; `dphist ledger create {text} DATASET TOTAL` makes one")
    return Ledger.open(place)


def local_name(text: str) -> str:
    """The file that a path or an ``sqlite:///`` address names; other addresses as they are."""
    return unquote(text.removeprefix(_FILE)) if text.startswith(_FILE) else text


def _there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        # What no file can be called is for `Ledger.open` to refuse.
        return True


@contextmanager
def account(
    ledger: Ledger | str | PathLike[str] | None,
    dataset: str | None,
    *,
    budget: Budget,
    unit: Unit,
    purpose: str,
    delta: Fraction | None = None,
) -> Iterator[Account]:
    """Open the ledger, and refuse at once what it would refuse later: no long work is done in vain."""
    if (ledger is None) != (dataset is None):
        raise InputError("ledger and dataset belong together: give both or neither")
    if ledger is None or dataset is None:
        yield Account(budget, unit, purpose)
        return
    from dphist.private.ledger import Ledger, described

    if not isinstance(ledger, Ledger | str | PathLike):
        raise InputError(f"ledger: a dphist.Ledger, its path or its URL, not a {type(ledger).__name__}")
    book = ledger if isinstance(ledger, Ledger) else existing(ledger)
    try:
        price = book.check(dataset, budget, unit, delta=delta)
        if price != budget.amount and book.account(dataset).currency == budget.currency:
            remind(
                f"price {dataset}",
                f"{shown(budget.amount)} {budget.symbol} for {unit.describe()} takes {shown(price)} {budget.symbol} "
                f"of the budget {dataset!r}, which protects {described(book.unit(dataset))}",
                depth=_ABOVE_ACCOUNT,
            )
        yield Account(budget, unit, purpose, book, dataset, delta)
    finally:
        if book is not ledger:
            book.close()


def allowed_share(share: object) -> float:
    """The share of rows that may be left out, read from what was given."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise InputError("allow_dropped: a share of the rows between 0 and 1, such as 0.25")
    return float(share)


def watched(
    source: Any, payer: Account, share: float, domain: Domain | None, unit: Unit, added: Sequence[str] = ()
) -> Any:
    """The source, of which `refuse_dropped` will be asked right before anything is paid; not of a histogram."""
    if isinstance(source, Histogram):
        return source
    tallied = source if isinstance(source, Tallied) else Tallied(source)
    payer.before = partial(refuse_dropped, tallied.tally, share, domain, unit, added)
    return tallied


def refuse_dropped(
    tally: Tally, allowed: float, domain: Domain | None, unit: Unit, added: Sequence[str] = ()
) -> None:
    """Stop before paying where more than the allowed share of the rows does not count; says neither how many nor which.

    Those do not that have no cell, nor those of a person beyond what the unit keeps; those in a cell for everything
    else are as good as lost. ``added`` are the columns that measures are read from: a row without a number there has no
    cell either. Nor is a table without rows published, unless all of them may be missing.
    """
    if tally.rows is None or tally.dropped is None:
        return
    if not tally.rows and allowed < 1:
        raise DroppedRows(
            "source: there are no rows in it; nothing was spent. Is it the right file, and complete? If there "
            "may truly be nobody, or others see whether this succeeds: allow_dropped=1, --allow-dropped 1"
        )
    if tally.dropped + tally.elsewhere <= allowed * tally.rows:
        return
    numbers = (
        f", and for --measure rows without a number in {' or '.join(dict.fromkeys(added))}" if added else ""
    )
    people = (
        f", or are beyond the {unit.rows:,} that count of one {unit.id} (--rows, --id)"
        if unit.id is not None
        else ""
    )
    other = domain is not None and any(each.other_cell is not None for each in domain.attributes)
    elsewhere = ", or count only as everything else (other = true)" if other else ""
    raise DroppedRows(
        f"more than {allowed:.4g} of the rows fit no value of the schema and would not be counted{people}{elsewhere}; "
        "nothing was spent. "
        "`dphist rehearse` (dphist.rehearse) shows which and why, to you alone: dates and decimals written another "
        f"way, other spellings, another encoding{numbers}. If they are to be left out, allow a larger share: "
        "allow_dropped=0.5, --allow-dropped 0.5 (1 for all, where others see whether this succeeds)"
    )


def remind_of(budget: Budget, *, kept: bool, delta: Number | None = None) -> None:
    """What promises next to nothing is allowed, but not in silence; nor is a release that no ledger remembers."""
    epsilon = budget.amount if budget.currency == "epsilon" else budget.epsilon
    # An ε above this promises next to nothing: what somebody believes may change by a factor of e¹⁰ = 22,026.
    if epsilon is not None and epsilon > 10:
        factor = f"e^{float(epsilon):g}" if epsilon > 20 else f"{math.exp(epsilon):,.0f}"
        remind(
            "epsilon",
            f"an epsilon of {float(epsilon):g} promises little: what somebody believes about a person may change by a "
            f"factor of {factor}; most releases spend 0.1 to 2",
            depth=_ABOVE,
        )
    chance = budget.delta if delta is None else exact(delta, "delta")
    # A δ above this is a chance that somebody notices.
    if chance is not None and chance > 1e-3:
        remind(
            "delta",
            f"a delta of {float(chance):g} promises little: with this chance the promise may fail, and show all that "
            "somebody added; choose it far below one over the number of people, such as 1e-9",
            depth=_ABOVE,
        )
    if not kept:
        remind(
            "ledger",
            "no ledger keeps account: nobody adds up what releases about these people spend together. Give "
            'ledger="budget.db", dataset="…" (--ledger, --dataset; `dphist ledger create` makes one), or '
            "unattended=True (--unattended) if something else keeps the account",
            depth=_ABOVE,
        )


def remind_of_edges(domain: Domain) -> None:
    """Steps of 0.1 that were added up put an edge at 0.30000000000000004, and whoever has 0.3 below it."""
    for attribute in domain.attributes:
        if attribute.kind == "nominal" or attribute.scale.form != "edges":
            continue
        # Edges that are looked at for what adding up did to them.
        for edge in attribute.scale.edges[:1000]:
            meant = float(f"{edge:.12g}")
            if edge != meant and math.isclose(edge, meant, rel_tol=2e-15):
                remind(
                    f"edges {attribute.name}",
                    f"{attribute.name}: the edge {edge!r} is not {meant!r}, and decides about rows with {meant!r}; "
                    "round what was computed, as in edges=np.round(np.arange(0, 5, 0.1), 9)",
                    depth=_ABOVE,
                )
                break


def remind_of_bounds(source: Any, domain: Domain | None) -> None:
    """A range that ends exactly where a frame's column does was read off it, more likely than not.

    Only the custodian is told: it is a fact about the records.
    """
    if domain is None or not hasattr(source, "columns") or not hasattr(source, "__getitem__"):
        return
    for attribute in domain.attributes:
        if (
            attribute.kind != "ordinal"
            or attribute.scale.form not in ("range", "edges")
            or attribute.size < 3
        ):
            continue
        ends = attribute.scale.values if attribute.scale.form == "range" else attribute.scale.edges
        try:
            column = source[attribute.name]
            found = (column.min(), column.max())
            same = bool(found[0] == ends[0]) and bool(found[1] == ends[-1])
        except Exception:  # noqa: S112 -- whatever kind of frame this is, a reminder is not worth an error
            continue
        if same:
            remind_of_data(
                attribute.name, "a range from the least to the largest value of its column", depth=_ABOVE
            )
