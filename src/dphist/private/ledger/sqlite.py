"""The ledger in one SQLite file, opened by any number of processes on one machine.

SQLite keeps its log beside the file, and that must be one log for all who spend. A file that is mounted by itself
(``docker run -v …/budget.db:/app/budget.db``) has another folder, hence another log, in every container and outside of
them: two processes spent the same budget, and one spend was gone in the end. On a network file system machines share
the file and not the memory in which SQLite keeps its locks. Linux says where either is the case; other systems do not,
and there nothing is refused.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from dphist import errors
from dphist.private.ledger.store import FORMAT, Store, readable, tables, vacant

_APPLICATION = 0x64706C67  # "dplg": marks the file as a ledger of ours

_MOUNTS = Path("/proc/self/mountinfo")
# Kinds of file systems that several machines see at once.
_NETWORKED = (
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "ceph-fuse", "glusterfs", "lustre", "gpfs", "beegfs",
    "ocfs2", "gfs2", "orangefs", "panfs", "moosefs", "juicefs", "sshfs", "davfs", "davfs2", "rclone", "s3fs",
    "gcsfuse", "goofys", "blobfuse", "blobfuse2",
)  # fmt: skip
_MOUNT = re.compile(r"(?:\S+ ){4}/\S* .* - \S+")

_TABLES = (
    *tables("INTEGER"),
    # Against accidents with the sqlite3 shell; against intent there is the chain and the witness.
    """CREATE TRIGGER lines_are_not_changed BEFORE UPDATE ON lines
        BEGIN SELECT RAISE(ABORT, 'lines of a ledger are never changed'); END""",
    """CREATE TRIGGER lines_are_not_removed BEFORE DELETE ON lines
        BEGIN SELECT RAISE(ABORT, 'lines of a ledger are never removed'); END""",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)

# Others are at work: wait. PROTOCOL is what heavy contention while recovering from a crash looks like.
_WAIT = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}


class SqliteStore(Store):
    """Keeps a ledger in an SQLite file with a write-ahead log, synced to disk at every commit.

    ``BEGIN IMMEDIATE`` takes the one write lock before anything is read, so what was read is still true when
    it is written. ``synchronous=FULL`` syncs the log before a commit returns, so an acknowledged line
    survives a crash of the process, and of the machine if its disk keeps what it says it has kept.
    """

    WRITING = ("BEGIN IMMEDIATE",)
    READING = ("BEGIN",)

    def __init__(self, path: Path, patience: float) -> None:
        super().__init__(str(path), patience)
        self.path = path
        self._file: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None

    def check(self) -> None:
        """Let SQLite look for physical damage."""
        with self.reading() as run:
            if run("PRAGMA quick_check(1)") != [("ok",)]:
                raise errors.LedgerError(_DAMAGED.format(place=self.place))

    def backup(self, path: Path) -> None:
        """Copy a consistent state, with everything committed so far, to a new file."""
        vacant(path)
        partial = path.with_name(path.name + ".partial")
        try:
            with self.reading():
                _copy(self._connected(), partial)
            _sync(partial)
            partial.rename(path)
            _sync(path.parent)
        except OSError as error:
            raise errors.OutputError(f"the backup {path} cannot be written: {error}") from error
        finally:
            with suppress(OSError):
                partial.unlink(missing_ok=True)

    def _execute(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._connection.execute(sql, values).fetchall()
        return rows

    def _begin(self, *how: str) -> None:
        # SQLite would wait by itself, ever longer between looks, so that whoever has waited longest looks least often
        # and newcomers pass: with 64 writers one in a hundred waited for ten seconds. Here everybody looks equally
        # often, so nobody is passed for long. (Nor does SQLite wait everywhere: where waiting might deadlock, when
        # recovering or changing the journal mode, it asks to let go and try again.)
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._connected().execute(*how)
                # Fixes the state that a reading block sees.
                self._run("SELECT count(*) FROM budgets")
                self._same_log()
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF not in _WAIT or time.monotonic() > deadline:
                    raise
                self._roll_back()
                time.sleep(0.003)

    def _abandon(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _explained(self, error: BaseException) -> str | None:
        if isinstance(error, sqlite3.Error):
            return _explained(error, self.place)
        # A damaged page may hold anything, also where SQLite keeps the text of its schema.
        return _DAMAGED.format(place=self.place) if isinstance(error, UnicodeDecodeError) else None

    def _connected(self) -> Any:
        known = self._connection if self._owner == os.getpid() else None
        if known is not None and _identity(self.path) != self._file:
            # SQLite would go on writing to the file that is no longer there, and the spend would be lost.
            raise errors.LedgerError(
                f"the ledger {self.place} was moved or replaced while it was open; put the newest one in "
                "place while nothing uses it, then open it again"
            )
        if known is not None:
            self._refuse_links()
        return super()._connected()

    def _same_log(self) -> None:
        """Refuse to go on with a log that was removed: SQLite would write to it, and nobody would ever read that."""
        log = _identity(self.path.with_name(self.path.name + "-wal"))
        if self._log is not None and log != self._log:
            raise errors.LedgerError(
                f"the log beside the ledger {self.place} was removed or replaced while it was open, and what is spent "
                "now would be lost; nothing was acknowledged. Never remove files beside a ledger; open it again"
            )
        self._log = log

    def _refuse_links(self) -> None:
        """Refuse a file of several names: SQLite keeps a log beside each, and none knows of the others' spends."""
        with suppress(OSError):
            if self.path.is_file() and self.path.stat().st_nlink > 1:
                raise errors.LedgerError(
                    f"the ledger {self.place} has several names (hard links), and what is spent by one would be lost "
                    "to the others; remove all but one. Symbolic links are fine"
                )

    def _connect(self) -> sqlite3.Connection:
        if self._file is not None and _identity(self.path) != self._file:
            raise errors.LedgerError(f"the ledger {self.place} was moved or replaced; open it again")
        self._refuse_links()
        if (reason := unshareable(self.path)) is not None:
            raise errors.LedgerError(f"the ledger {self.place} {reason}")
        if self.path.is_file() and 0 < self.path.stat().st_size < 512:
            # No page of a database is as small. SQLite takes its stump for an empty one, and everything spent would be
            # forgotten.
            raise errors.LedgerError(_DAMAGED.format(place=self.place))
        self._log = None
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            fresh = self._recognised(connection)
            # Before anything is written, so that the very first line is as durable as the last. The last two
            # make a sync reach the disk itself on macOS.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            connection.execute("PRAGMA checkpoint_fullfsync = ON")
            connection.execute("PRAGMA trusted_schema = OFF")
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise errors.LedgerError(
                    f"the ledger {self.place} is on a file system without shared memory or locks; "
                    "keep it on a local disk"
                )
            if fresh:
                self._furnish(connection)
            self._file = _identity(self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _recognised(self, connection: sqlite3.Connection) -> bool:
        """Tell an empty file (True) from a ledger of ours (False), and refuse to touch anything else."""
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if not tables and application in (0, _APPLICATION):
            return True
        if application != _APPLICATION:
            raise errors.LedgerError(f"{self.place} is a database but not a dphist ledger; name another file")
        readable(version, self.place)
        return False

    def _furnish(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        # Many processes may find the file empty; the first one to hold the lock furnishes it.
        if self._recognised(connection):
            for statement in _TABLES:
                connection.execute(statement)
        connection.execute("COMMIT")
        _sync(self.path.parent)


_DAMAGED = (
    "the ledger {place} is damaged; stop publishing from these data, and restore the newest backup as "
    "docs/ledger.md describes"
)
_LOCKED = "the ledger {place} stayed locked by another process; nothing was acknowledged, try again"
_MEANINGS = {
    "SQLITE_NOTADB": "{place} is not a ledger (not a database); name another file",
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_LOCKED": _LOCKED,
    "SQLITE_PROTOCOL": _LOCKED,
    "SQLITE_READONLY": "the ledger {place} cannot be written; make the file and its folder writable for you",
    "SQLITE_CANTOPEN": "the ledger {place} cannot be opened; its folder must exist and be writable, "
    "because SQLite keeps a log beside the file",
    "SQLITE_PERM": "the ledger {place} cannot be opened; make the file and its folder writable for you",
    "SQLITE_FULL": "the disk of the ledger {place} is full; nothing was acknowledged, so draw no noise: "
    "make room and try again",
    "SQLITE_IOERR": "the disk of the ledger {place} reports an error; nothing was acknowledged, so draw no "
    "noise: check the disk and try again",
}


def _explained(error: sqlite3.Error, place: str) -> str:
    name = "_".join((getattr(error, "sqlite_errorname", None) or "").split("_")[:2])
    meaning = _MEANINGS.get(name, "the ledger {place} cannot be used: {error}")
    return meaning.format(place=place, error=error)


def _copy(source: sqlite3.Connection, path: Path) -> None:
    try:
        with closing(sqlite3.connect(path)) as copy:
            source.backup(copy)
    except sqlite3.Error as error:
        raise errors.OutputError(f"the backup {path} cannot be written: {error}") from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _sync(path: Path) -> None:
    if os.name != "posix" and path.is_dir():
        return  # only POSIX lets a folder be synced
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def unshareable(path: Path) -> str | None:
    """Say why a ledger must not be kept in this file (a path without symbolic links); None if nothing is against it."""
    try:
        # Bytes, as names of folders are: one that is no text must not keep the others from being read.
        lines = os.fsdecode(_MOUNTS.read_bytes()).split("\n")
    except OSError:
        return None
    mounts = dict(map(_mounted, filter(_MOUNT.match, lines)))
    if path in mounts:
        return (
            "is a file that is mounted by itself, and what is spent through one mount would be lost to the others; "
            "mount its folder instead"
        )
    kind = next((mounts[folder] for folder in path.parents if folder in mounts), "")
    if kind.removeprefix("fuse.") in _NETWORKED:
        return (
            f"is on a network file system ({kind}), where machines do not see each other's spends; keep it on a local "
            "disk, or in PostgreSQL"
        )
    return None


def _mounted(line: str) -> tuple[Path, str]:
    """Where a file system is mounted, and of which kind it is; what is mounted there later is listed later."""
    before, _, after = line.partition(" - ")
    # Spaces and the like are written as numbers.
    place = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split(" ")[4])
    return Path(place), after.split(" ")[0]
