"""Ledger and Reservation: ask for budget first, then draw noise."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from dphist import errors
from dphist.arguments import explained
from dphist.extras import need
from dphist.model.budget import Budget
from dphist.model.exact import Number
from dphist.model.unit import Unit
from dphist.private.ledger.journal import Journal, Witness
from dphist.private.ledger.lines import START, Entry, Fund, Head
from dphist.private.ledger.reading import Readings
from dphist.private.ledger.sqlite import SqliteStore
from dphist.private.ledger.store import Store
from dphist.private.ledger.totals import Spend, Sums, Total
from dphist.private.ledger.units import Protected, charged, described, written
from dphist.private.ledger.wording import (
    apart,
    confusing,
    created_twice,
    empty,
    exhausted,
    foreign,
    lowered,
    now,
    older,
    one_line,
    path_of,
    read_alike,
)


@dataclass(frozen=True, kw_only=True)
class Reservation(Entry):
    """Budget that is spent, on disk, for one opening of the gate.

    It is never given back: if the process dies, or the answers are thrown away, the budget stays spent,
    because nobody can prove that nothing was seen. A retry is a new reservation. ``cost`` is what ``epsilon`` or
    ``rho``, for ``unit``, took from the budget, in the budget's unit and currency.
    """

    _ledger: Ledger = field(repr=False, compare=False)

    def open(self) -> None:
        """Claim the one opening of the gate that this reservation pays for.

        The claim is a line in the ledger, so a copy of the reservation in another thread or process cannot
        claim it again: the second raises `errors.RightUsed`.
        """
        self._ledger._open(self)

    def complete(self, digest: str) -> None:
        """Write down the digest of the release that came of this reservation."""
        self._ledger.complete(self, digest)


@explained
class Ledger(Readings):
    """The budgets of your populations, in a file or database that many processes may share.

    A dataset here is a *protected population* (the people), not a table: every table, extract or join about
    the same people spends from the same budget. `reserve` returns only when the spend is on disk, and noise
    is drawn only after that. So whatever crashes when, no noise exists that the ledger does not know of.

    Args:
        store: Where lines are kept; `open` makes it.
        witness: What remembers how far the ledger had come.

    Example:
        >>> import dphist, pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> book = dphist.Ledger.open(pathlib.Path(folder.name) / "budget.db")
        >>> book.create("visitors", total=2)
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(3))])
        >>> histogram = dphist.Histogram(domain, [5, 0, 9])
        >>> release = dphist.publish(histogram, epsilon="1/2", mechanism="laplace", ledger=book, dataset="visitors")
        >>> book.spent("visitors"), book.remaining("visitors")
        (Fraction(1, 2), Fraction(3, 2))
        >>> book.close()
        >>> folder.cleanup()
    """

    def __init__(self, store: Store | None = None, witness: Witness | None = None) -> None:
        if store is None:
            raise errors.LedgerError('a ledger is opened from its place: Ledger.open("budget.db")')
        self._store = store
        self._journal = Journal(store, witness)

    @classmethod
    def open(
        cls,
        place: str | os.PathLike[str],
        *,
        witness: bool | str | os.PathLike[str] = True,
        patience: float = 60.0,
    ) -> Ledger:
        """Open and check the ledger at a path, or a ``sqlite:///`` or ``postgresql://`` URL.

        A missing one is created empty. In a PostgreSQL database it lives in the schema named after ``#`` in the
        URL, ``dphist_ledger`` by default. `witness` is where to note how far the ledger has come: beside it
        (True; for PostgreSQL, in the user's state folder), at a path of yours, or nowhere (False). `patience` is
        how many seconds to wait for other processes.

        Args:
            place: A path, or a ``sqlite:///`` or ``postgresql://`` URL.
            witness: Where to note how far the ledger has come.
            patience: How many seconds to wait for other processes.

        Returns:
            The open ledger; use it in a ``with`` statement, or close it.
        """
        if isinstance(place, str) and place.partition("://")[0] in ("postgresql", "postgres"):
            from dphist.private.ledger.postgres import PostgresStore, witness_path

            need("psycopg", "postgres")
            path = None
            store: Store = PostgresStore(place, patience)
            kept = witness_path(place) if witness is True else Path(witness).absolute() if witness else None
        else:
            path = path_of(place)
            store = SqliteStore(path, patience)
            kept = (
                path.with_name(path.name + ".witness")
                if witness is True
                else apart(Path(witness).absolute(), path)
                if witness
                else None
            )
        watch = None if kept is None else Witness(kept)
        # Read first: whatever the witness has seen was durable before, so the ledger read next must hold it.
        seen = watch.head() if watch else START
        if path is not None and seen.number and empty(path):
            raise older(path, kept)
        made = cls(store, watch)
        try:
            made._journal.begin(seen)
        except BaseException:
            made.close()
            raise
        return made

    def create(
        self,
        dataset: str,
        total: Number | None = None,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        discover: Number | None = None,
        unit: Unit | None = None,
    ) -> None:
        """Give a population its total budget, once: in ε, in (ε, δ) or in ρ.

        What each total accepts, and why that is private, is in `dphist.private.ledger.totals`.

        Args:
            dataset: The protected population.
            total: What may be spent on it in all, as pure ε; the same as ``epsilon``.
            epsilon: Pure ε, or with ``delta`` the ε of (ε, δ).
            delta: The δ of (ε, δ); with ``rho``, what discovered keys may take.
            rho: The ρ of zero-concentrated differential privacy.
            discover: The part of ``delta`` that is set aside for discovered keys, under (ε, δ).
            unit: Whom the total protects; the unit of the first spend if it is not said. Spends for other units are
                converted to it, or refused where no factor is known.
        """
        dataset = one_line(dataset, "dataset")
        made = Total.of(total=total, epsilon=epsilon, delta=delta, rho=rho, discover=discover)
        protected = written(protected_by(unit))
        with self._journal.writing() as run:
            if dataset in self._journal.books.budgets:
                raise created_twice(dataset, self._store.place)
            if (other := read_alike(dataset, self._journal.books.budgets)) is not None:
                raise confusing(dataset, other, self._store.place)
            self._journal.append(
                run, "created", dataset, (made, Sums()), amount=made.text, unit=protected, time=now()
            )

    def raise_total(
        self,
        dataset: str,
        total: Number | None = None,
        purpose: str = "",
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        discover: Number | None = None,
    ) -> None:
        """Allow a population more in all, with the reason on record; a total is never lowered.

        What is not said stays as it is. A pure total that gets a δ composes from then on, over all its spends.

        Args:
            dataset: Which budget.
            total: The new total, as pure ε.
            purpose: Why; kept as written.
            epsilon: The new ε.
            delta: The new δ.
            rho: The new ρ.
            discover: The new part of δ for discovered keys.
        """
        dataset, purpose = one_line(dataset, "dataset"), one_line(purpose, "purpose")
        with self._journal.writing() as run:
            fund = self._journal.fund(dataset)
            old = fund.total
            if total is None and epsilon is None and rho is None:
                epsilon, rho = old.epsilon, old.rho
            kept = None if old.rho is not None else old.discover or None
            made = Total.of(
                total=total,
                epsilon=epsilon,
                delta=old.delta or None if delta is None else delta,
                rho=rho,
                discover=kept if discover is None else discover,
            )
            if not made.above(old):
                raise lowered(dataset, old)
            left = made, Sums.under(made, fund.spends)
            self._journal.append(run, "raised", dataset, left, amount=made.text, purpose=purpose, time=now())

    def reserve(
        self,
        dataset: str,
        budget: Number | Budget,
        purpose: str,
        unit: Unit | str | None = None,
        *,
        delta: Number | None = None,
    ) -> Reservation:
        """Spend of a population's budget, durably, or refuse and spend nothing.

        When this returns the spend is on disk. If it raises anything but a refusal, the spend may or may not
        have been written; draw no noise and reserve again.

        Args:
            dataset: Which budget.
            budget: What the release claims for its own unit: a number is a pure ε, a `Budget` is in its currency.
            purpose: What for; kept as written.
            unit: Whom the release protects. For another unit than the budget's, the spend is converted
                (`dphist.private.ledger.units`). Without one it is the budget's; words of your own match only
                the same words.
            delta: What the release's discovered keys take of δ.

        Returns:
            The reservation, which opens the gate once; its ``cost`` is what was taken from the budget.
        """
        dataset, purpose = one_line(dataset, "dataset"), one_line(purpose, "purpose")
        asked, protected = Spend.of(budget, delta), protected_by(unit)
        with self._journal.writing() as run:
            fund = self._journal.fund(dataset)
            spend, sums = affordable(dataset, fund, asked, protected, self._store.place)
            line = self._journal.append(
                run,
                "reserved",
                dataset,
                (fund.total, sums),
                amount=spend.text,
                purpose=purpose,
                unit=written(protected, asked),
                time=now(),
            )
        return Reservation.of(line, fund.total, _ledger=self)

    def check(
        self,
        dataset: str,
        budget: Number | Budget,
        unit: Unit | str | None = None,
        *,
        delta: Number | None = None,
    ) -> Fraction:
        """Refuse now what `reserve` would refuse, and spend nothing: so that no long work is done in vain.

        Args:
            dataset: Which budget.
            budget: What would be spent: a number is a pure ε.
            unit: For whom.
            delta: What discovered keys would take of δ.

        Returns:
            What it would take from the budget, in the budget's currency and for its unit.
        """
        asked, protected = Spend.of(budget, delta), protected_by(unit)

        def cost(fund: Fund) -> Fraction:
            spend, _ = affordable(dataset, fund, asked, protected, self._store.place)
            return fund.total.price(spend)

        return self._read(dataset, cost)

    def _open(self, reservation: Reservation) -> None:
        with self._journal.writing() as run:
            entry = self._journal.entry(reservation.id, reservation.hash)
            if entry.status != "reserved":
                raise errors.RightUsed(
                    f"reservation {entry.id} of {entry.dataset!r} was used already; reserve again"
                )
            self._journal.append(run, "opened", entry.dataset, subject=entry.id)

    def complete(self, reservation: Reservation | int, digest: str) -> None:
        """Record the digest of the release a reservation paid for, so that an auditor can match the two.

        Recording the same digest again changes nothing; another digest is refused.

        Args:
            reservation: The reservation or its number.
            digest: The SHA-256 of the release's file.
        """
        digest = one_line(digest, "digest")
        number, seal = (
            (reservation.id, reservation.hash)
            if isinstance(reservation, Reservation)
            else (reservation, None)
        )
        with self._journal.writing() as run:
            entry = self._journal.entry(number, seal)
            if entry.status == "published" and entry.digest == digest:
                return
            if entry.status != "opened":
                state = "belongs to another release" if entry.digest else "has not opened the gate"
                raise errors.InputError(
                    f"reservation {number} of {entry.dataset!r} {state}; one reservation pays for one release"
                )
            self._journal.append(run, "published", entry.dataset, subject=number, digest=digest)

    def verify(self, *heads: tuple[int, str]) -> Head:
        """Replay the whole history from its first line, and check that it holds every given head.

        A head that was noted earlier (by `head`, or as a reservation's id and hash) must still be there: a
        rewritten or restored history cannot hold it.

        Args:
            heads: Pairs of a line's number and hash, as they were noted.

        Returns:
            The head as it is now.
        """
        return self._journal.replayed([Head(*head) for head in heads])

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger, while it is in use, to a new file.

        Args:
            path: A file that does not exist yet.
        """
        try:
            os.fsencode(path)
            usable = "\0" not in str(path)
        except UnicodeEncodeError:
            usable = False
        if not usable:
            raise errors.OutputError("path must be the name of a file, which these characters cannot be")
        self._store.backup(Path(path).absolute())

    def close(self) -> None:
        """Let go of the ledger."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger.open({self._store.place!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Ledger cannot be copied or pickled; open it again with Ledger.open")


def protected_by(unit: Unit | str | None) -> Protected:
    """Accept a unit, words of the user's own, or nothing."""
    if unit is None or isinstance(unit, Unit):
        return unit
    text = one_line(unit, "unit", blank=True)
    if text.startswith("{"):
        raise errors.InputError("unit: must be a Unit, or words that do not begin with a brace")
    return text or None


def affordable(dataset: str, fund: Fund, asked: Spend, unit: Protected, place: str) -> tuple[Spend, Sums]:
    """What a spend costs the budget, and what will have been spent with it; or a refusal."""
    spend = charged(fund.unit, unit, asked)
    if spend is None:
        raise foreign(dataset, described(fund.unit), described(unit))
    sums = fund.sums.with_(spend, fund.total)
    if not sums.fits(fund.total):
        raise exhausted(dataset, asked, spend, fund, place)
    return spend, sums
