"""The journal of a ledger: its lines as they are stored, read, added and held to what others have noted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from dphist import errors
from dphist.private.ledger.lines import COLUMNS, START, Books, Entry, Fund, Head, Line, line_from
from dphist.private.ledger.store import Run, Store
from dphist.private.ledger.totals import Sums, Total
from dphist.private.ledger.wording import not_held, now, older, unknown

_ALL = ", ".join(COLUMNS)
_NOTE = re.compile(r"(\d{1,18}) ([0-9a-f]{64})", re.ASCII)
# What notes are made of, cut short or lost to a crash as they may be.
_BEGINNING = re.compile(rb"[0-9a-f \n\0]*")

T = TypeVar("T")


class Journal:
    """Keeps the books of one store in step with its lines, and adds lines to it."""

    def __init__(self, store: Store, witness: Witness | None) -> None:
        self.store = store
        self.witness = witness
        self.books = Books()
        self._appended: list[Line] = []

    def begin(self, seen: Head) -> None:
        """Check what is there against what a witness has seen, and write the first line of an empty ledger."""
        self.store.check()
        with self.store.reading() as run:
            self.catch_up(run)
            noted = None if self.witness is None else self.witness.path
            self.require(run, seen, lambda: older(self.store.place, noted))
        if not self.books.head.number:
            with self.writing() as run:
                if not self.books.head.number:
                    # A name of its own, so that two ledgers never share a hash. Not noise, and not secret.
                    self.append(run, "began", purpose=str(uuid4()), time=now())

    @contextmanager
    def writing(self) -> Iterator[Run]:
        """A block that is alone and has read all lines; the witness hears of what it appends once that is durable."""
        with self.store.writing() as run:
            self.catch_up(run)
            self._appended.clear()
            yield run
            appended = list(self._appended)
        if self.witness is not None:
            for line in appended:
                self.witness.note(Head(line.number, line.hash))

    def look(self, answer: Callable[[], T]) -> T:
        """Answer from one committed state."""
        with self.store.reading() as run:
            self.catch_up(run)
            return answer()

    def lines(self) -> list[Line]:
        """Every line, first to last."""
        with self.store.reading() as run:
            self.catch_up(run)
            return [line_from(row) for row in run(f"SELECT {_ALL} FROM lines ORDER BY number")]  # noqa: S608

    def replayed(self, heads: list[Head]) -> Head:
        """Replay everything from the first line, and require the given heads."""
        self.store.check()
        with self.store.reading() as run:
            self.books = Books()
            self.catch_up(run)
            for number, seal in heads:
                # Line 0 stands for the empty ledger that every ledger once was: having it would prove nothing.
                if not number:
                    raise not_held(self.store.place, Head(number, seal))
                self.require(run, Head(number, seal), partial(not_held, self.store.place, Head(number, seal)))
            return self.books.head

    def catch_up(self, run: Run) -> None:
        """Replay what others wrote since the last look, and hold the stored sums to it.

        The last line this process has seen is read again, so that a file rolled back under a running process
        is noticed too.
        """
        head = self.books.head
        number = head.number
        # The columns are ours, so this is no way in for text of the user's.
        rows = run(f"SELECT {_ALL} FROM lines WHERE number >= ? ORDER BY number", number)  # noqa: S608
        try:
            if head.number:
                if not rows or (rows[0][0], rows[0][-1]) != head:
                    raise ValueError("lines that were here have gone")
                rows = rows[1:]
            for row in rows:
                number += 1
                self.books.follow(line_from(row))
            sums = {name: (total, spent) for name, total, spent in run("SELECT * FROM budgets")}
            if sums != {name: (b.total.text, b.sums.text(b.total)) for name, b in self.books.budgets.items()}:
                raise ValueError("the stored sums are not those of its entries")
        except ValueError as error:
            raise errors.LedgerError(
                f"the ledger {self.store.place} cannot be trusted at line {number}: {error}. Stop "
                "publishing from these data, and restore the newest backup as docs/ledger.md describes"
            ) from error

    def require(self, run: Run, head: Head, failure: Callable[[], errors.LedgerError]) -> None:
        """Refuse a ledger that does not hold a line."""
        if head.number and run("SELECT hash FROM lines WHERE number = ?", head.number) != [(head.hash,)]:
            raise failure()

    def append(
        self, run: Run, kind: str, dataset: str = "", left: tuple[Total, Sums] | None = None, **told: Any
    ) -> Line:
        """Add the next line, and the sums that a budget is left with, inside a writing block.

        The books take it in when they next catch up.
        """
        line = Line(number=self.books.head.number + 1, kind=kind, dataset=dataset, **told)
        line = line.sealed(self.books.head.hash)
        marks = ", ".join("?" * len(COLUMNS))
        run(f"INSERT INTO lines ({_ALL}) VALUES ({marks})", *(getattr(line, name) for name in COLUMNS))  # noqa: S608
        self._appended.append(line)
        if left is not None:
            self._keep(run, dataset, left[0].text, left[1].text(left[0]))
        return line

    def _keep(self, run: Run, dataset: str, total: str, spent: str) -> None:
        before = self.books.budgets.get(dataset)
        if before is None:
            run("INSERT INTO budgets (dataset, total, spent) VALUES (?, ?, ?)", dataset, total, spent)
            return
        # Guarded: it changes the row only if the row still says what the decision was based on.
        changed = run(
            "UPDATE budgets SET total = ?, spent = ? WHERE dataset = ? AND total = ? AND spent = ? "
            "RETURNING dataset",
            *(total, spent, dataset, before.total.text, before.sums.text(before.total)),
        )
        if changed != [(dataset,)]:
            raise errors.LedgerError(
                f"the ledger {self.store.place} changed inside a transaction; nothing was spent"
            )

    def fund(self, dataset: str) -> Fund:
        """Find a budget, or offer the names near it."""
        if dataset not in self.books.budgets:
            raise unknown(dataset, sorted(self.books.budgets), self.store.place)
        return self.books.budgets[dataset]

    def entry(self, number: int, seal: str | None) -> Entry:
        """Find a reservation."""
        entry = self.books.entries.get(number)
        if entry is None or seal not in (None, entry.hash):
            raise errors.InputError(
                f"the ledger {self.store.place} has no reservation {number} like this one"
            )
        return entry


class Witness:
    """A note beside the ledger of how far it had come, so that an older ledger put back in its place is noticed.

    It is a text file that only grows: a line ``number hash`` for every line of the ledger, added *after* that line is
    durable. It is therefore never ahead of an honest ledger, whatever crashes when, and needs no lock: several
    processes append whole lines and the largest number counts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def head(self) -> Head:
        """Return the furthest line seen, or the start when there is no witness yet."""
        try:
            with self.path.open("rb") as notes:
                foreign = not _BEGINNING.fullmatch(notes.read(128))
                size = notes.seek(0, os.SEEK_END)
                # Writers may be reordered by as many notes as there are processes, so the largest is near the end.
                notes.seek(max(0, size - (1 << 20)))
                text = notes.read().decode("ascii", errors="replace")
        except FileNotFoundError:
            return START
        except OSError as error:
            raise errors.LedgerError(
                f"the ledger's witness {self.path} cannot be read ({error.strerror}); make it a readable "
                "file, or name another place with witness=…"
            ) from error
        if foreign:
            # In a database, the ledger's own too, what is appended is written over sooner or later.
            raise errors.LedgerError(
                f"{self.path} is no witness: it holds something else, which notes would spoil; name another place with "
                "witness=…"
            )
        heads = [Head(int(match[1]), match[2]) for match in map(_NOTE.fullmatch, text.splitlines()) if match]
        return max(heads, default=START)

    def note(self, head: Head) -> None:
        """Add a note; the ledger's line must already be durable."""
        # A newline first, so that a note cut short by a crash cannot run into this one.
        text = f"\n{head.number} {head.hash}\n".encode("ascii")
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(file, text)
            finally:
                os.close(file)
        except OSError as error:
            raise errors.LedgerError(
                f"line {head.number} is in the ledger, and what it spends stays spent, but the witness "
                f"{self.path} cannot be written ({error.strerror}); make it writable, or open the ledger "
                "with witness=…"
            ) from error
