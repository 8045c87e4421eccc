"""What the ledger asks of the place where it is kept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol


class Run(Protocol):
    """Runs one SQL statement, with ``?`` for values, inside the transaction that handed it out."""

    def __call__(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of the answer."""
        ...


class Store(Protocol):
    """A place with two tables, ``lines`` and ``budgets``, shared by any number of processes.

    The whole promise of the ledger rests on `writing`: at most one such block runs at a time over all
    processes, it sees everything committed before, and when it ends without an error what it wrote survives a
    crash. If it raises, the caller must assume that the write may or may not have happened. Both blocks also
    keep the threads of one process apart. Every failure arrives as `errors.LedgerError`.
    """

    place: str

    def writing(self) -> AbstractContextManager[Run]:
        """Open a block that is alone among all processes, and durable when it ends."""
        ...

    def reading(self) -> AbstractContextManager[Run]:
        """Open a block that sees one consistent, committed state."""
        ...

    def check(self) -> None:
        """Look for physical damage."""
        ...

    def backup(self, path: Path) -> None:
        """Copy a consistent state to a new file."""
        ...

    def close(self) -> None:
        """Let go of the place; any later use is an error."""
        ...
