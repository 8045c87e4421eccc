"""The commands about budgets: give a population a total, raise it, show, verify and back up a ledger."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dphist.cli import options, screen

if TYPE_CHECKING:
    from dphist.private.ledger import Account, Entry, Ledger

ledger_app = typer.Typer(help="Create and inspect privacy budgets.", no_args_is_help=True)

Place = Annotated[str, typer.Argument(metavar="LEDGER", help="The ledger's file or postgresql:// address.")]
Dataset = Annotated[str, typer.Argument(help="The protected population, by a name of yours.")]
Amount = Annotated[str | None, typer.Argument(help="What may be spent on it in all, as pure ε.")]
Epsilon = Annotated[str | None, typer.Option(help="The total privacy loss ε; with --delta, the ε of (ε, δ).")]
Delta = Annotated[
    str | None, typer.Option(help="The δ of (ε, δ), such as 1e-9; with --rho, for discovered names.")
]
Rho = Annotated[str | None, typer.Option(help="A total in ρ (zero-concentrated) instead.")]
Discover = Annotated[str | None, typer.Option(help="The part of --delta that is kept for discovered names.")]


@ledger_app.command("create")
def ledger_create(
    ledger: Annotated[str, typer.Argument(help="The ledger's file or address; made if missing.")],
    dataset: Dataset,
    total: Amount = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    discover: Discover = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Whom it protects, for good: row, or 'rows=5, id=user'; if not given, the first release decides."
        ),
    ] = None,
) -> None:
    """Give a population its total budget, once: in ε, in (ε, δ) or in ρ."""
    from dphist.model.unit import Unit
    from dphist.private.ledger import Ledger

    protected = None if unit is None else Unit.parse(unit)
    with Ledger.open(ledger) as book:
        book.create(dataset, total, epsilon=epsilon, delta=delta, rho=rho, discover=discover, unit=protected)
        whom = "its first release decides whom it protects, for good"
        whom = f"for {protected.describe()}" if protected else whom
        screen.line(f"{dataset}: total {book.account(dataset).total}; {whom}")


@ledger_app.command("raise")
def ledger_raise(
    ledger: Place,
    dataset: Dataset,
    purpose: Annotated[str, typer.Option(help="Why; kept in the ledger for all to see.")],
    total: Amount = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    discover: Discover = None,
) -> None:
    """Allow a population more, with the reason on record. A total is never lowered."""
    with _book(ledger) as book:
        book.raise_total(dataset, total, purpose, epsilon=epsilon, delta=delta, rho=rho, discover=discover)
        screen.line(f"{dataset}: total {book.account(dataset).total}")


@ledger_app.command("show")
def ledger_show(
    ledger: Place,
    dataset: Annotated[str | None, typer.Argument(help="One population; all if not given.")] = None,
    as_json: options.Json = False,
) -> None:
    """Say what was spent, on what, and what is left in each way of counting."""
    if as_json:
        screen.data(ledger_facts(ledger, dataset))
        return
    with _book(ledger) as book:
        for name in [dataset] if dataset is not None else book.datasets():
            for line in _told(book.account(name)):
                screen.line(line)
            columns = ("id", "asked", "cost", "purpose", "status", "when")
            rows = [
                (str(e.id), _asked(e), _short(e.cost), e.purpose, e.status, str(e.when))
                for e in book.entries(name)
            ]
            if rows:
                screen.table(columns, rows)


@ledger_app.command("verify")
def ledger_verify(
    ledger: Place,
    head: Annotated[
        list[str] | None,
        typer.Option(help="A line noted earlier, as NUMBER:HASH; it must still be there. May be repeated."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Check the whole history and print its last line. Note that line: --head asks later whether it is still there."""
    with _book(ledger) as book:
        now = book.verify(*[_head(text) for text in head or []])
        if as_json:
            screen.data({"number": now.number, "hash": now.hash, "datasets": book.datasets()})
        else:
            screen.line(
                f"{ledger}: every line and every sum is as it was written; note the last line, {now.number}:{now.hash}"
            )


@ledger_app.command("backup")
def ledger_backup(
    ledger: Place, output: Annotated[Path, typer.Argument(help="A file that does not exist yet.")]
) -> None:
    """Copy a ledger, while it is in use. A backup is not a second ledger: never spend from both."""
    with _book(ledger) as book:
        book.backup(output)
    screen.line(f"{output}: a copy of {ledger}")


def ledger_facts(place: str, dataset: str | None) -> list[dict[str, Any]]:
    """Read budgets, in each way of counting, and their entries."""
    with _book(place) as book:
        return [_facts(book, name) for name in ([dataset] if dataset is not None else book.datasets())]


def _book(place: str) -> AbstractContextManager[Ledger]:
    """Open a ledger that is there: a mistyped name must not make an empty one."""
    from dphist.publishing.account import existing

    return existing(place)


def _head(text: str) -> tuple[int, str]:
    from dphist.errors import InputError

    number, colon, seal = text.partition(":")
    if not colon or not number.isdecimal():
        raise InputError("--head: give NUMBER:HASH as `dphist ledger verify` printed it")
    return int(number), seal


def _short(amount: Any) -> str:
    return f"{float(amount):.6g}"


def _asked(entry: Entry) -> str:
    asked = f"ε {_short(entry.epsilon)}" if entry.rho is None else f"ρ {_short(entry.rho)}"
    return asked + (f", δ {_short(entry.delta)}" if entry.delta else "")


def _told(account: Account) -> list[str]:
    """What is spent and left, for people: a quoted (ε, δ) always has its ρ beside it."""
    from dphist.model.exact import shown

    if account.currency == "epsilon":
        spent, left = account.spent, account.remaining
        told = [f"{account.dataset}: spent {shown(spent)} of {shown(left + spent)}, {shown(left)} left"]
        if not spent:
            return told
    else:
        told = [f"{account.dataset}: spent rho {_short(account.spent)} of {account.total}"]
    pure, names = account.epsilon_spent, account.delta_left
    told.append(
        f"  the same, counted otherwise: epsilon {_short(account.epsilon_at_delta)} at delta {_short(account.delta)}, "
        f"rho {_short(account.rho_spent)}"
        + ("" if pure is None else f"; pure epsilon {_short(pure)}, by adding up")
    )
    if account.currency == "rho":
        told.append(
            f"  you can still publish one release with ε up to {_short(account.epsilon_left)}, or ρ up to "
            f"{_short(account.rho_left)}"
            + (f"; delta {_short(names)} for names found in the records" if names else "")
        )
    return told


def _facts(book: Ledger, name: str) -> dict[str, Any]:
    from dphist.private.ledger import described

    account = book.account(name)
    readings = ("epsilon_left", "rho_left", "epsilon_spent", "rho_spent", "delta", "epsilon_at_delta")
    return {
        "dataset": name,
        "unit": described(book.unit(name)) or None,
        "allows": account.total,
        "currency": account.currency,
        "total": str(book.total(name)),
        **_texts(account, "spent", "remaining", *readings, "delta_spent", "delta_left"),
        "entries": [
            {
                **{key: getattr(entry, key) for key in ("id", "hash", "unit", "purpose", "status")},
                **_texts(entry, "epsilon", "rho", "delta", "cost", "when"),
            }
            for entry in book.entries(name)
        ],
    }


def _texts(thing: Any, *names: str) -> dict[str, str | None]:
    values = {name: getattr(thing, name) for name in names}
    return {name: None if value is None else str(value) for name, value in values.items()}
