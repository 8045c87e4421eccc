"""Where a ledger is kept: one connection a process, one transaction at a time, nothing carried across a fork."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from dphist import errors

FORMAT = 1

# Runs one SQL statement, with ``?`` for values that follow it, inside the transaction that handed it out: its rows.
Run = Callable[..., list[tuple[Any, ...]]]


class Store(ABC):
    """A place with two tables, ``lines`` and ``budgets``, shared by any number of processes.

    The whole promise of the ledger rests on `writing`: at most one such block runs at a time over all processes, it
    sees everything committed before, and when it ends without an error what it wrote survives a crash. If it raises,
    the caller must assume that the write may or may not have happened. `reading` sees one consistent, committed state.
    Every failure arrives as `errors.LedgerError`.

    A transaction holds a lock, so threads take turns; it refuses to be entered twice by one thread (a signal handler
    would tear the transaction that it interrupts). A connection belongs to the process that opened it: before a fork
    every store finishes its transaction and hangs up, parent and child each connect again when they next need to, and
    a connection that crossed a fork all the same is neither used nor closed.
    """

    WRITING: ClassVar[tuple[str, ...]]
    """How a block begins that is alone among all processes, and durable when it ends."""
    READING: ClassVar[tuple[str, ...]]
    """How a block begins that never waits for writers."""

    place: str

    def __init__(self, place: str, patience: float) -> None:
        self.place = place
        self._patience = patience
        self._lock = threading.RLock()
        self._connection: Any = None
        self._owner = os.getpid()
        self._closed = False
        self._inside = False
        _stores.add(self)

    # ---- what a store brings ----------------------------------------------------------------------------

    @abstractmethod
    def check(self) -> None:
        """Look for physical damage."""

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Copy a consistent state to a new file."""

    @abstractmethod
    def _connect(self) -> Any:
        """Open a connection, with everything in place for the first transaction."""

    @abstractmethod
    def _begin(self, *how: str) -> None:
        """Begin a transaction on the present connection, waiting for others as long as `patience` says."""

    @abstractmethod
    def _execute(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """Run one statement."""

    @abstractmethod
    def _abandon(self) -> None:
        """Roll the transaction back, if there is one."""

    @abstractmethod
    def _explained(self, error: BaseException) -> str | None:
        """Say what an engine's error means and what to do; None for an error that is not the engine's."""

    # ---- what all share ---------------------------------------------------------------------------------

    def writing(self) -> AbstractContextManager[Run]:
        """Be alone among all writers; commit durably at the end."""
        return self._transaction(*self.WRITING)

    def reading(self) -> AbstractContextManager[Run]:
        """See one committed state; never wait for writers."""
        return self._transaction(*self.READING)

    def close(self) -> None:
        """Let go of the place; any later use is an error."""
        with self._lock:
            self._closed = True
            self._hang_up()

    def __del__(self) -> None:
        # When Python shuts down, modules may be gone before the last store is; the system closes the connection then.
        if sys is not None and not sys.is_finalizing():
            self._hang_up()

    @contextmanager
    def _transaction(self, *how: str) -> Iterator[Run]:
        with _forking:
            pass  # a fork that waits for the lock goes first, however busy the other threads are
        with self._lock:
            if self._closed:
                raise errors.LedgerError(f"the ledger {self.place} is closed; open it again with Ledger.open")
            if self._inside:
                # Rolling back here would tear the transaction that this one interrupts.
                raise errors.LedgerError(
                    f"the ledger {self.place} is in use by this very thread; do not use it in signal handlers"
                )
            self._inside = True
            try:
                self._begin(*how)
                yield self._run
                self._run("COMMIT")
            except BaseException as error:
                self._roll_back()
                meaning = self._explained(error)
                if meaning is None:
                    raise
                raise errors.LedgerError(meaning) from error
            finally:
                self._inside = False

    def _run(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        if self._connection is None or self._owner != os.getpid():
            raise errors.LedgerError(f"the connection to the ledger {self.place} did not survive a fork")
        return self._execute(sql, values)

    def _connected(self) -> Any:
        if self._owner != os.getpid():
            # A connection that crossed a fork unnoticed must be neither used nor closed here.
            self._hang_up()
            self._owner = os.getpid()
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _roll_back(self) -> None:
        if self._connection is not None and self._owner == os.getpid():
            try:
                self._abandon()
            except Exception:
                # Whatever the engine says: without a connection there is no transaction either.
                self._hang_up()

    def _hang_up(self) -> None:
        connection, self._connection = self.__dict__.get("_connection"), None
        if connection is not None:
            if self._owner != os.getpid():
                _inherited.append(connection)
            else:
                with suppress(Exception):
                    connection.close()


def tables(whole: str) -> tuple[str, str]:
    """The two tables of a ledger, with the engine's word for a 64-bit integer."""
    return (
        f"""CREATE TABLE lines (
        number {whole} PRIMARY KEY, kind TEXT NOT NULL, dataset TEXT NOT NULL, amount TEXT NOT NULL,
        purpose TEXT NOT NULL, unit TEXT NOT NULL, time TEXT NOT NULL, subject {whole} NOT NULL,
        digest TEXT NOT NULL, hash TEXT NOT NULL UNIQUE)""",
        "CREATE TABLE budgets (dataset TEXT PRIMARY KEY NOT NULL, total TEXT NOT NULL, spent TEXT NOT NULL)",
    )


def readable(version: object, place: str) -> None:
    """Refuse a ledger whose format this dphist does not know."""
    if version != FORMAT:
        raise errors.LedgerError(
            f"the ledger {place} has format {version} and this dphist reads format {FORMAT}; "
            "use a dphist as new as the one that wrote it"
        )


def vacant(path: Path) -> None:
    """Refuse to write a backup over a file, or where there is no folder."""
    try:
        taken, there = path.exists(), path.parent.is_dir()
    except OSError as error:
        raise errors.OutputError(f"the backup cannot be written there: {error.strerror}") from error
    if taken:
        raise errors.OutputError(f"{path} exists; a backup is never written over another file")
    if not there:
        raise errors.OutputError(f"the backup {path} cannot be written: there is no such folder")


_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_inherited: list[Any] = []
_forking = threading.RLock()
_held: list[Store] = []


def _before_fork() -> None:
    _forking.acquire()
    _held[:] = sorted(_stores, key=id)
    for store in _held:
        store._lock.acquire()
        if not store._inside:
            store._hang_up()


def _after_fork_in_parent() -> None:
    for store in reversed(_held):
        store._lock.release()
    _held.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    global _forking
    # Locks may belong to threads that the child does not have.
    for store in _held:
        store._lock = threading.RLock()
        store._inside = False
    _held.clear()
    _forking = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
