"""The ledger in a PostgreSQL database, shared by any number of processes on any number of machines."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dphist import errors
from dphist.extras import need
from dphist.private.ledger.sqlite import SqliteStore
from dphist.private.ledger.store import FORMAT, Store, readable, tables, vacant

SCHEMES = ("postgresql", "postgres")
_SCHEMA = "dphist_ledger"

_TABLES = (
    "CREATE SCHEMA IF NOT EXISTS {schema}",
    *tables("BIGINT"),
    # Against accidents with psql; against intent there is the chain and the witness.
    """CREATE FUNCTION lines_are_kept() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'lines of a ledger are never changed or removed'; END$$""",
    """CREATE TRIGGER lines_are_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON lines
        FOR EACH STATEMENT EXECUTE FUNCTION lines_are_kept()""",
    "CREATE TABLE format (version BIGINT NOT NULL)",
    f"INSERT INTO format VALUES ({FORMAT})",  # noqa: S608 -- a number of ours
)


class PostgresStore(Store):
    """Keeps a ledger in a schema of a PostgreSQL database.

    A writing block locks the table of lines against other writers before it reads anything, at an isolation
    level where each statement sees everything committed before; so what was read is still true when it is
    written. ``synchronous_commit = on`` returns from a commit only when it is on the server's disk (and on its
    synchronous standbys, if there are any). All settings are made inside each transaction, because a connection
    pool may hand every transaction to another session.
    """

    WRITING = ("ISOLATION LEVEL READ COMMITTED READ WRITE", "LOCK TABLE lines IN EXCLUSIVE MODE")
    READING = ("ISOLATION LEVEL REPEATABLE READ READ ONLY",)

    def __init__(self, url: str, patience: float) -> None:
        self._address, self._schema = _parts(url)
        super().__init__(shown(url), patience)
        self._furnished = False

    def check(self) -> None:
        """Refuse a server that does not keep what it acknowledges."""
        with self.reading() as run:
            for setting in ("fsync", "full_page_writes"):
                if run(f"SHOW {setting}") != [("on",)]:
                    raise errors.LedgerError(
                        f"the server of the ledger {self.place} runs with {setting} off: a crash could undo "
                        "spends; turn it on"
                    )
            # Reads every row, so that a damaged page is met now and not in the middle of a spend.
            run("SELECT count(hash || digest) FROM lines")

    def backup(self, path: Path) -> None:
        """Copy a consistent state to a new SQLite ledger, which `Ledger.open` reads like any other."""
        vacant(path)
        with self.reading() as run:
            lines, budgets = run("SELECT * FROM lines ORDER BY number"), run("SELECT * FROM budgets")
        partial = path.with_name(path.name + ".copying")
        copy = SqliteStore(partial, self._patience)
        try:
            with copy.writing() as write:
                for table, rows in (("lines", lines), ("budgets", budgets)):
                    for row in rows:
                        marks = ", ".join("?" * len(row))
                        write(f"INSERT INTO {table} VALUES ({marks})", *row)  # noqa: S608 -- names are ours
            copy.backup(path)
        finally:
            copy.close()
            for ending in ("", "-wal", "-shm", "-journal"):
                partial.with_name(partial.name + ending).unlink(missing_ok=True)

    def _begin(self, *how: str) -> None:
        import psycopg

        try:
            self._prepare(*how)
        except psycopg.OperationalError as error:
            # A server that restarted has hung up on us. Nothing has been asked yet, so it is safe to call again.
            if isinstance(error, psycopg.errors.LockNotAvailable) or self._connection is None:
                raise
            self._hang_up()
            self._prepare(*how)

    def _prepare(self, mode: str, *locks: str) -> None:
        self._connected()
        if not self._furnished:
            self._furnish()
            self._furnished = True
        self._run(f"BEGIN {mode}")
        self._settle()
        for lock in locks:
            self._run(lock)

    def _settle(self) -> None:
        self._run(f"SET LOCAL search_path = {self._schema}, pg_catalog")
        self._run("SET LOCAL synchronous_commit = on")
        self._run(f"SET LOCAL lock_timeout = {max(1, round(self._patience * 1000))}")

    def _execute(self, sql: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(sql.replace("?", "%s") if values else sql, values or None)
        return cursor.fetchall() if cursor.description else []

    def _connect(self) -> Any:
        psycopg = need("psycopg", "postgres")
        return psycopg.connect(
            self._address,
            autocommit=True,
            connect_timeout=max(2, round(min(self._patience, 60))),
            prepare_threshold=None,
            client_encoding="utf8",
        )

    def _furnish(self) -> None:
        """Make the tables, once; refuse a schema that holds something else."""
        if self._run("SELECT pg_is_in_recovery()") != [(False,)]:
            raise errors.LedgerError(
                f"the server of the ledger {self.place} is a standby that only follows another; name the primary"
            )
        if self._run("SHOW server_encoding") != [("UTF8",)]:
            raise errors.LedgerError(f"the database of the ledger {self.place} must have the encoding UTF8")
        self._run("BEGIN")
        try:
            # Many processes may find nothing; the first one to hold this lock makes the tables.
            key = int.from_bytes(sha256(self._schema.encode()).digest()[:8], "big", signed=True)
            self._run("SELECT pg_advisory_xact_lock(?)", key)
            found = {
                name
                for (name,) in self._run("SELECT tablename FROM pg_tables WHERE schemaname = ?", self._schema)
            }
            if not found:
                for number, statement in enumerate(_TABLES):
                    self._run(statement.format(schema=self._schema))
                    if number == 0:
                        self._settle()
            else:
                self._recognise(found)
            self._run("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    def _recognise(self, found: set[str]) -> None:
        if not {"lines", "budgets", "format"} <= found:
            raise errors.LedgerError(
                f"{self.place}: the schema {self._schema} holds something else than a dphist ledger; name "
                "another one after #"
            )
        self._settle()
        ((version,),) = self._run("SELECT version FROM format")
        readable(version, self.place)

    def _abandon(self) -> None:
        self._connection.execute("ROLLBACK")

    def _explained(self, error: BaseException) -> str | None:
        import psycopg.errors as kinds

        if not isinstance(error, kinds.Error):
            return None
        meanings: list[tuple[type[Exception], str]] = [
            (kinds.LockNotAvailable, "stayed locked by another process; nothing was acknowledged, try again"),
            (kinds.InsufficientPrivilege, "cannot be used by this user; grant it the schema and its tables"),
            (kinds.InvalidPassword, "refuses this user or password"),
            (kinds.InvalidCatalogName, "is in a database that does not exist; create the database first"),
            (kinds.DiskFull, "is on a full disk; nothing was acknowledged, so draw no noise: make room"),
            (kinds.RaiseException, "refuses to change or remove lines"),
        ]
        for kind, meaning in meanings:
            if isinstance(error, kind):
                return f"the ledger {self.place} {meaning}"
        if isinstance(error, kinds.OperationalError):
            return (
                f"the ledger {self.place} cannot be reached; nothing was acknowledged, so draw no noise: check "
                "that the server runs, and the host, database, user and password"
            )
        return f"the ledger {self.place} cannot be used: {type(error).__name__}"


def _parts(url: str) -> tuple[str, str]:
    """The address that libpq understands, and the schema named after ``#``."""
    try:
        urlsplit(url)
    except ValueError:
        raise errors.LedgerError(
            "this is no address of a PostgreSQL database; write postgresql://user@host/database"
        ) from None
    address, _, schema = url.partition("#")
    schema = unquote(schema) or _SCHEMA
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,50}", schema) or schema.startswith("pg_"):
        raise errors.LedgerError(
            "the schema after # must be lower-case letters, digits and underscores, as in #budget"
        )
    return address, schema


def shown(url: str) -> str:
    """The ledger's address without a password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{host}{parts.path}" + (f"#{parts.fragment}" if parts.fragment else "")


def witness_path(url: str) -> Path:
    """Where this machine notes how far a ledger elsewhere has come: in the user's state folder."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    folder = Path(state) / "dphist"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise errors.LedgerError(
            f"the witness of the ledger cannot be kept in {folder} ({error.strerror}); name a place with witness=…"
        ) from error
    return folder / f"{sha256(shown(url).encode()).hexdigest()[:24]}.witness"
