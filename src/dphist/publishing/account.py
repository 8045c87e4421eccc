"""Who pays for an opening of the gate: one budget of one ledger, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from dphist.errors import BudgetError, InputError, LedgerError, VerificationError
from dphist.kernels.compile import load
from dphist.mechanisms.registry import load_rooms
from dphist.model.budget import Budget
from dphist.model.exact import shown
from dphist.model.unit import Unit
from dphist.private.transcript import Payment
from dphist.publishing.output import local_name
from dphist.release.guarantee import Receipt
from dphist.reminding import remind

if TYPE_CHECKING:
    from dphist.private.ledger import Entry, Ledger
    from dphist.release.release import Release

# Calls between a reminder and the line that called a door: the context manager's own three among them.
_ABOVE = 6


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
                depth=_ABOVE,
            )
        yield Account(budget, unit, purpose, book, dataset, delta)
    finally:
        if book is not ledger:
            book.close()
