"""Ledger and Reservation: ask for budget first, then draw noise."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import NoReturn, TypeVar

from dphist import errors
from dphist.extras import need
from dphist.model.exact import Number
from dphist.model.unit import Unit
from dphist.private.ledger.amounts import amount_of, shown
from dphist.private.ledger.lines import COLUMNS, START, Books, Budget, Entry, Head, Line, line_from
from dphist.private.ledger.spending import Reservation, affordable, protected_by
from dphist.private.ledger.sqlite import SqliteStore
from dphist.private.ledger.store import Run, Store
from dphist.private.ledger.units import described, written
from dphist.private.ledger.witness import Witness
from dphist.private.ledger.wording import beside, empty, now, older, one_line, path_of, unknown

_ALL = ", ".join(COLUMNS)

T = TypeVar("T")


class Ledger:
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

    def __init__(self, store: Store, witness: Witness | None) -> None:
        self._store = store
        self._witness = witness
        self._books = Books()

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
            return cls._on_postgres(place, witness, patience)
        path = path_of(place)
        watch = Witness(beside(path) if witness is True else Path(witness).absolute()) if witness else None
        # Read first: whatever the witness has seen was durable before, so the ledger read next must hold it.
        seen = watch.head() if watch else START
        if seen.number and empty(path):
            raise older(path, watch)
        return cls(SqliteStore(path, patience), watch)._begun(seen)

    @classmethod
    def _on_postgres(cls, url: str, witness: bool | str | os.PathLike[str], patience: float) -> Ledger:
        from dphist.private.ledger.postgres import PostgresStore, witness_path

        need("psycopg", "postgres")
        store = PostgresStore(url, patience)
        watch = (
            Witness(witness_path(url) if witness is True else Path(witness).absolute()) if witness else None
        )
        return cls(store, watch)._begun(watch.head() if watch else START)

    def _begun(self, seen: Head) -> Ledger:
        try:
            self._begin(seen)
        except BaseException:
            self.close()
            raise
        return self

    def _begin(self, seen: Head) -> None:
        self._store.check()
        with self._store.reading() as run:
            self._catch_up(run)
            self._require(run, seen, lambda: older(self._store.place, self._witness))
        if not self._books.head.number:
            with self._store.writing() as run:
                self._catch_up(run)
                line = None
                if not self._books.head.number:
                    from uuid import uuid4

                    # A name of its own, so that two ledgers never share a hash. Not noise, and not secret.
                    line = self._append(run, Line(number=1, kind="began", purpose=str(uuid4()), time=now()))
            self._written(line)

    def create(self, dataset: str, total: Number, *, unit: Unit | None = None) -> None:
        """Give a population its total budget, once.

        Args:
            dataset: The protected population.
            total: What may be spent on it in all.
            unit: Whom the total protects; the unit of the first spend if it is not said. Spends for other units are
                converted to it, or refused where no factor is known.
        """
        dataset, amount = one_line(dataset, "dataset"), amount_of(total, "total")
        protected = written(protected_by(unit))
        with self._store.writing() as run:
            self._catch_up(run)
            if dataset in self._books.budgets:
                raise errors.InputError(
                    f"dataset {dataset!r} already has a budget in {self._store.place}; spend from it, or "
                    "raise it with raise_total and a reason"
                )
            line = self._append(
                run, self._next("created", dataset, amount=str(amount), unit=protected, time=now())
            )
            run("INSERT INTO budgets (dataset, total, spent) VALUES (?, ?, '0')", (dataset, str(amount)))
        self._written(line)

    def raise_total(self, dataset: str, total: Number, purpose: str) -> None:
        """Allow a population more in all, with the reason on record; a total is never lowered.

        Args:
            dataset: Which budget.
            total: The new total.
            purpose: Why; kept as written.
        """
        dataset, purpose = one_line(dataset, "dataset"), one_line(purpose, "purpose")
        amount = amount_of(total, "total")
        with self._store.writing() as run:
            self._catch_up(run)
            budget = self._budget(dataset)
            if amount <= budget.total:
                raise errors.InputError(
                    f"total must be above the present total of {dataset!r}, {shown(budget.total)}"
                )
            line = self._append(
                run, self._next("raised", dataset, amount=str(amount), purpose=purpose, time=now())
            )
            self._update(run, dataset, budget, total=amount, spent=budget.spent)
        self._written(line)

    def reserve(
        self, dataset: str, epsilon: Number, purpose: str, unit: Unit | str | None = None
    ) -> Reservation:
        """Spend `epsilon` of a population's budget, durably, or refuse and spend nothing.

        When this returns the spend is on disk. If it raises anything but a refusal, the spend may or may not
        have been written; draw no noise and reserve again.

        Args:
            dataset: Which budget.
            epsilon: What the release claims for its own unit.
            purpose: What for; kept as written.
            unit: Whom the release protects. For another unit than the budget's, ε is converted
                (`dphist.private.ledger.units`). Without one it is the budget's; words of your own match only
                the same words.

        Returns:
            The reservation, which opens the gate once; its ``cost`` is what was taken from the budget.
        """
        dataset, purpose = one_line(dataset, "dataset"), one_line(purpose, "purpose")
        asked, protected = amount_of(epsilon, "epsilon"), protected_by(unit)
        with self._store.writing() as run:
            self._catch_up(run)
            budget = self._budget(dataset)
            amount, spent = affordable(dataset, budget, asked, protected)
            line = self._append(
                run,
                self._next(
                    "reserved",
                    dataset,
                    amount=str(amount),
                    purpose=purpose,
                    unit=written(protected, asked),
                    time=now(),
                ),
            )
            self._update(run, dataset, budget, total=budget.total, spent=spent)
        self._written(line)
        return Reservation(
            id=line.number,
            dataset=dataset,
            epsilon=asked,
            cost=amount,
            purpose=purpose,
            unit=described(protected),
            when=datetime.fromisoformat(line.time),
            hash=line.hash,
            _ledger=self,
        )

    def check(self, dataset: str, epsilon: Number, unit: Unit | str | None = None) -> None:
        """Refuse now what `reserve` would refuse, and spend nothing: so that no long work is done in vain.

        Args:
            dataset: Which budget.
            epsilon: What would be spent.
            unit: For whom.
        """

        def look() -> None:
            budget = self._budget(one_line(dataset, "dataset"))
            affordable(dataset, budget, amount_of(epsilon, "epsilon"), protected_by(unit))

        self._look(look)

    def _open(self, reservation: Reservation) -> None:
        with self._store.writing() as run:
            self._catch_up(run)
            entry = self._entry(reservation.id, reservation.hash)
            if entry.status != "reserved":
                raise errors.RightUsed(
                    f"reservation {entry.id} of {entry.dataset!r} has already opened the gate; reserve again"
                )
            line = self._append(run, self._next("opened", entry.dataset, subject=entry.id))
        self._written(line)

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
        with self._store.writing() as run:
            self._catch_up(run)
            entry = self._entry(number, seal)
            if entry.status == "published" and entry.digest == digest:
                return
            if entry.status != "opened":
                state = "belongs to another release" if entry.digest else "has not opened the gate"
                raise errors.InputError(
                    f"reservation {number} of {entry.dataset!r} {state}; one reservation pays for one release"
                )
            line = self._append(run, self._next("published", entry.dataset, subject=number, digest=digest))
        self._written(line)

    def spent(self, dataset: str) -> Fraction:
        """Return what has been spent.

        Args:
            dataset: Which budget.

        Returns:
            An exact fraction.
        """
        return self._look(lambda: self._budget(one_line(dataset, "dataset")).spent)

    def total(self, dataset: str) -> Fraction:
        """Return what may be spent in all.

        Args:
            dataset: Which budget.

        Returns:
            An exact fraction.
        """
        return self._look(lambda: self._budget(one_line(dataset, "dataset")).total)

    def unit(self, dataset: str) -> Unit | str | None:
        """Return whom the budget protects: as created, or as its first spend said; None while nobody has said.

        Args:
            dataset: Which budget.

        Returns:
            The unit, the words that were given for it, or None.
        """
        return self._look(lambda: self._budget(one_line(dataset, "dataset")).unit)

    def remaining(self, dataset: str) -> Fraction:
        """Return what may still be spent.

        Args:
            dataset: Which budget.

        Returns:
            An exact fraction.
        """

        def rest() -> Fraction:
            budget = self._budget(one_line(dataset, "dataset"))
            return budget.total - budget.spent

        return self._look(rest)

    def entries(self, dataset: str) -> list[Entry]:
        """List every spend, in the order they were made; the sum of their costs is `spent`.

        Args:
            dataset: Which budget.

        Returns:
            What was spent, for what, when and whether it was published.
        """
        return self._look(
            lambda: [self._books.entries[n] for n in self._budget(one_line(dataset, "dataset")).entries]
        )

    def datasets(self) -> list[str]:
        """List the populations that have a budget, sorted.

        Returns:
            Their names.
        """
        return self._look(lambda: sorted(self._books.budgets))

    def head(self) -> Head:
        """Return number and hash of the last line: note it elsewhere and `verify` can be held to it.

        Returns:
            The last line's number and hash.
        """
        return self._look(lambda: self._books.head)

    def history(self) -> list[Line]:
        """List every line ever written: budgets created and raised, reservations, openings, publications.

        Returns:
            Every line, first to last.
        """
        with self._store.reading() as run:
            self._catch_up(run)
            return [line_from(row) for row in run(f"SELECT {_ALL} FROM lines ORDER BY number")]  # noqa: S608

    def verify(self, *heads: tuple[int, str]) -> Head:
        """Replay the whole history from its first line, and check that it holds every given head.

        A head that was noted earlier (by `head`, or as a reservation's id and hash) must still be there: a
        rewritten or restored history cannot hold it.

        Args:
            heads: Pairs of a line's number and hash, as they were noted.

        Returns:
            The head as it is now.
        """
        self._store.check()
        with self._store.reading() as run:
            self._books = Books()
            self._catch_up(run)
            for head in heads:
                self._require(run, Head(*head), lambda: older(self._store.place, None))
            return self._books.head

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger, while it is in use, to a new file.

        Args:
            path: A file that does not exist yet.
        """
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

    def _look(self, answer: Callable[[], T]) -> T:
        with self._store.reading() as run:
            self._catch_up(run)
            return answer()

    def _catch_up(self, run: Run) -> None:
        """Replay what others wrote since the last look, and hold the stored sums to it.

        The last line this process has seen is read again, so that a file rolled back under a running process
        is noticed too.
        """
        head = self._books.head
        number = head.number
        # The columns are ours, so this is no way in for text of the user's.
        rows = run(f"SELECT {_ALL} FROM lines WHERE number >= ? ORDER BY number", (number,))  # noqa: S608
        try:
            if head.number:
                if not rows or (rows[0][0], rows[0][-1]) != head:
                    raise ValueError("lines that were here have gone")
                rows = rows[1:]
            for row in rows:
                number += 1
                self._books.follow(line_from(row))
            sums = {name: (total, spent) for name, total, spent in run("SELECT * FROM budgets")}
            if sums != {name: (str(b.total), str(b.spent)) for name, b in self._books.budgets.items()}:
                raise ValueError("the stored sums are not those of its entries")
        except ValueError as error:
            raise errors.LedgerError(
                f"the ledger {self._store.place} cannot be trusted at line {number}: {error}. Stop "
                "publishing from these data, and restore the newest backup as docs/ledger.md describes"
            ) from error

    def _require(self, run: Run, head: Head, failure: Callable[[], errors.LedgerError]) -> None:
        if head.number and run("SELECT hash FROM lines WHERE number = ?", (head.number,)) != [(head.hash,)]:
            raise failure()

    def _next(
        self,
        kind: str,
        dataset: str,
        *,
        amount: str = "",
        purpose: str = "",
        unit: str = "",
        time: str = "",
        subject: int = 0,
        digest: str = "",
    ) -> Line:
        return Line(
            number=self._books.head.number + 1,
            kind=kind,
            dataset=dataset,
            amount=amount,
            purpose=purpose,
            unit=unit,
            time=time,
            subject=subject,
            digest=digest,
        )

    def _append(self, run: Run, line: Line) -> Line:
        line = line.sealed(self._books.head.hash)
        marks = ", ".join("?" * len(COLUMNS))
        run(f"INSERT INTO lines ({_ALL}) VALUES ({marks})", [getattr(line, name) for name in COLUMNS])  # noqa: S608
        return line

    def _update(self, run: Run, dataset: str, before: Budget, *, total: Fraction, spent: Fraction) -> None:
        # Guarded: it changes the row only if the row still says what the decision was based on.
        changed = run(
            "UPDATE budgets SET total = ?, spent = ? WHERE dataset = ? AND total = ? AND spent = ? "
            "RETURNING dataset",
            (str(total), str(spent), dataset, str(before.total), str(before.spent)),
        )
        if changed != [(dataset,)]:
            raise errors.LedgerError(
                f"the ledger {self._store.place} changed inside a transaction; nothing was spent"
            )

    def _written(self, line: Line | None) -> None:
        # The line is durable here. The books take it in when they next catch up, like anybody else's line.
        if line is not None and self._witness is not None:
            self._witness.note(Head(line.number, line.hash))

    def _budget(self, dataset: str) -> Budget:
        if dataset not in self._books.budgets:
            raise unknown(dataset, sorted(self._books.budgets), self._store.place)
        return self._books.budgets[dataset]

    def _entry(self, number: int, seal: str | None) -> Entry:
        entry = self._books.entries.get(number)
        if entry is None or seal not in (None, entry.hash):
            raise errors.InputError(
                f"the ledger {self._store.place} has no reservation {number} like this one"
            )
        return entry
