"""The same rows in every source: frames as their makers infer them, files, and databases whose types are declared."""

# ruff: noqa: S608 -- names and types are those of this file

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from dphist_bench.records.people import Row, Table

# Turns a table of rows into a source, which is counted before the next is made.
Put = Callable[[Table], Any]
_DECLARED = {"user": "text", "age": "real", "sex": "text", "day": "time", "cost": "real", "town": "whole"}

_REAL = "DOUBLE PRECISION"


class UnrepresentableError(Exception):
    """The maker of a source refuses these rows: there is no such table, hence no pair."""


def _names(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def pandas_frame(table: Table) -> Any:
    """Types as pandas infers them from all rows."""
    import pandas

    return pandas.DataFrame(table.rows)


def pandas_joined(table: Table) -> Any:
    """Each stranger's frame put after the others', as ``concat`` unites their types."""
    import pandas

    return pandas.concat([pandas.DataFrame(rows) for rows in (table.crowd, *table.strangers)])


def polars_frame(table: Table) -> Any:
    """Types as polars infers them from all rows."""
    import polars

    columns = {name: [row.get(name) for row in table.rows] for name in _names(table.rows)}
    try:
        return polars.DataFrame(
            {name: polars.Series(name, each, strict=False) for name, each in columns.items()}
        )
    except BaseException as error:  # polars panics with an error of its own kind on what it cannot hold
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UnrepresentableError from error


def arrow_table(table: Table) -> Any:
    """Types as Arrow infers them, column by column; what it cannot mix is cast to text."""
    return _arrow(table.rows)


def _arrow(rows: Sequence[Row]) -> Any:
    import pyarrow

    def column(values: list[Any]) -> Any:
        try:
            return pyarrow.array(values)
        except (pyarrow.ArrowException, OverflowError):
            return pyarrow.array([None if value is None else str(value) for value in values])

    names = _names(rows)
    return pyarrow.table([column([row.get(name) for row in rows]) for name in names], names=names)


def memtable(table: Table) -> Any:
    """An Ibis table made in memory from a list of dicts."""
    import ibis

    try:
        return ibis.memtable(table.rows)
    except Exception as error:
        raise UnrepresentableError from error


def json_lines(folder: Path) -> Put:
    """Files of one JSON object a line."""

    def put(table: Table) -> Any:
        lines = (json.dumps({name: _jsonable(value) for name, value in row.items()}) for row in table.rows)
        (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
        return folder / "rows.jsonl"

    return put


def csv_lines(folder: Path) -> Put:
    """Files of one record a line; a column that somebody has is in everybody's header."""

    def put(table: Table) -> Any:
        names = _names(table.rows)
        with (folder / "rows.csv").open("w", newline="") as file:
            written = csv.DictWriter(file, names, restval="", lineterminator="\n")
            written.writeheader()
            written.writerows(table.rows)
        return folder / "rows.csv"

    return put


def _jsonable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | list | dict | None) else str(value)


def parquet_files(folder: Path) -> Put:
    """A glob of files: the strangers' own come first and have types of their own."""

    def put(table: Table) -> Any:
        import pyarrow
        import pyarrow.parquet

        for path in folder.glob("*.parquet"):
            path.unlink()
        try:
            for place, rows in enumerate((*table.strangers[::-1], table.crowd)):
                pyarrow.parquet.write_table(_arrow(rows), folder / f"{place:03}.parquet")
        except pyarrow.ArrowException as error:
            raise UnrepresentableError from error
        return folder / "*.parquet"

    return put


def declared(row: Row, *, numeric: bool) -> tuple[Any, ...]:
    """A row as a database of declared types takes it; what does not fit was never stored, and is NULL."""

    def stored(value: Any, kind: str) -> Any:
        if kind == "whole":
            return int(value) if isinstance(value, int | float) else None
        if kind == "text":
            return None if value is None or isinstance(value, list) else str(value).replace("\x00", "")
        if kind == "time":
            return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else None
        number = float(value) if isinstance(value, int | float | Decimal) else math.nan
        return number if abs(number) < 2**62 else None

    kinds = _DECLARED | {"user": "whole" if numeric else "text"}
    # Whoever lives nowhere lives in the first town.
    return tuple(stored(row.get(name, 0 if name == "town" else None), kind) for name, kind in kinds.items())


def is_numeric(rows: Sequence[Row]) -> bool:
    """Whether the ids of a crowd are numbers."""
    return all(isinstance(row["user"], int) for row in rows)


@dataclass(frozen=True)
class Tables:
    """A database that takes declared rows: DuckDB, SQLite, PostgreSQL."""

    execute: Callable[..., Any]
    many: Callable[..., Any]
    hand: Callable[[str], Any]
    mark: str
    text: str

    def put(self, table: Table) -> Any:
        """Store the table anew."""
        numeric = is_numeric(table.crowd)
        who = "BIGINT" if numeric else self.text
        kinds = f'"user" {who}, age {_REAL}, sex {self.text}, day TIMESTAMP, cost {_REAL}, town BIGINT'
        self.execute("DROP TABLE IF EXISTS folk")
        self.execute(f"CREATE TABLE folk ({kinds})")
        marks = ", ".join([self.mark] * len(_DECLARED))
        rows = [declared(row, numeric=numeric) for row in table.rows]
        self.many(f"INSERT INTO folk VALUES ({marks})", rows)
        return self.hand("folk")


def duckdb_tables() -> Put:
    """Tables of a DuckDB, with a collation that takes a and A for one, by Ibis."""
    import ibis

    backend = ibis.duckdb.connect()

    def many(sql: str, rows: list[tuple[Any, ...]]) -> None:
        # One statement for all rows: DuckDB takes one a row slowly.
        head, marks = sql.split("VALUES ")
        backend.con.execute(
            f"{head}VALUES {', '.join([marks] * len(rows))}", [v for row in rows for v in row]
        )

    return Tables(backend.con.execute, many, backend.table, "?", "VARCHAR COLLATE NOCASE").put


def polars_table(table: Table) -> Any:
    """Tables of polars by Ibis, which are frames."""
    import ibis

    try:
        return ibis.polars.connect().create_table("folk", polars_frame(table))
    except KeyError as error:
        raise UnrepresentableError from error


def sqlite_tables() -> Put:
    """Tables of an SQLite, with a collation that takes a and A for one, by Ibis."""
    import ibis

    backend = ibis.sqlite.connect()

    def many(sql: str, rows: list[tuple[Any, ...]]) -> None:
        plain = [tuple(str(v) if isinstance(v, dt.datetime) else v for v in row) for row in rows]
        backend.con.executemany(sql, plain)

    return Tables(backend.con.execute, many, backend.table, "?", "TEXT COLLATE NOCASE").put


@contextmanager
def postgres_tables(address: str) -> Iterator[Put]:
    """Tables of a PostgreSQL, with a collation of its own under which a and A are equal, where the server has ICU."""
    import ibis
    import psycopg

    # The table changes its types, so no statement is kept prepared.
    with psycopg.connect(address, autocommit=True, prepare_threshold=None) as connection:
        try:
            connection.execute(
                "CREATE COLLATION IF NOT EXISTS anycase "
                "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
            text = "TEXT COLLATE anycase"
        except psycopg.Error:
            text = "TEXT"
        backend = ibis.postgres.from_connection(connection)
        yield Tables(connection.execute, connection.cursor().executemany, backend.table, "%s", text).put


def spark_frames(session: Any) -> Put:
    """Data frames of declared types on Spark."""

    def put(table: Table) -> Any:
        numeric = is_numeric(table.crowd)
        who = "BIGINT" if numeric else "STRING"
        kinds = f"user {who}, age DOUBLE, sex STRING, day TIMESTAMP_NTZ, cost DOUBLE, town BIGINT"
        return session.createDataFrame([declared(row, numeric=numeric) for row in table.rows], kinds)

    return put
