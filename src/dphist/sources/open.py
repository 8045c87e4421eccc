"""Finding out what a source is, and opening it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist.errors import SourceError
from dphist.model.unit import Unit
from dphist.sources.duck.allowance import configure, reach_network
from dphist.sources.duck.duck import Duck
from dphist.sources.engine import Tallied
from dphist.sources.files.delimited import open_csv
from dphist.sources.files.objects import field_names, open_json
from dphist.sources.files.parquet import Parquet, parquet_files
from dphist.sources.frames import arrow_of
from dphist.sources.sql import literal, quote

if TYPE_CHECKING:
    from dphist.sources.sql import Sql

_SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), "csv"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    **dict.fromkeys((".duckdb", ".ddb", ".db"), "duckdb"),
}
_KINDS = (
    'a path or glob of .csv, .parquet or .json files, "file.duckdb::table", "postgresql://host/database::table", '
    "a pandas, polars, pyarrow or Spark table, an Ibis table, or a Histogram"
)


def open_source(source: Any, needed: Sequence[str], unit: Unit) -> Sql:
    """Open a source to read the ``needed`` columns of it."""
    if isinstance(source, Tallied):
        source = source.source
    if isinstance(source, str | Path):
        return open_path(str(source), needed, unit.id)
    if (ibis := sys.modules.get("ibis")) is not None and isinstance(source, ibis.expr.types.Table):
        from dphist.sources.databases.opening import frame_of, open_table

        frame = frame_of(source)
        if frame is None:
            return open_table(source, needed)
        source = frame
    if (spark := sys.modules.get("pyspark.sql")) is not None and isinstance(source, spark.DataFrame):
        from dphist.sources.databases.spark import Spark

        return Spark(source)
    _refuse_alike(needed)
    found = arrow_of(source, needed, unit.id)
    if found is None:
        raise SourceError(f"source: expected {_KINDS}, not {type(source).__name__}")
    table, undeclared = found
    if not table.schema.names:
        raise SourceError("source: the table has no columns")
    connection = connect()
    _register(connection, table)
    return Duck(
        connection, "records", "the table", undeclared=undeclared.__contains__, inferred=True, checked=False
    )


def _register(connection: Any, table: Any) -> None:
    """Hand a table over; DuckDB refuses a type that it does not have by its schema, before any row."""
    import duckdb

    try:
        connection.register("records", table)
    except duckdb.Error:
        raise SourceError(
            "source: a column has a type that cannot be read, such as floats of 16 bits or decimals of more than 38 "
            "digits; give it another"
        ) from None


def lasting(source: Any) -> Any:
    """A source that can be read as often as it takes: a stream of batches is over after once, so it is held."""
    if isinstance(source, Tallied):
        return Tallied(lasting(source.source), source.tally)
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or not isinstance(source, pyarrow.RecordBatchReader):
        return source
    return source.read_all()


def connect(path: str = ":memory:") -> Any:
    """A DuckDB connection of our own; a database file is only read."""
    import duckdb

    connection = duckdb.connect(path, read_only=path != ":memory:")
    configure(connection)
    return connection


def open_path(source: str, needed: Sequence[str] | None = None, person: str | None = None) -> Sql:
    """Open files, or a table of a DuckDB or PostgreSQL database."""
    if source.startswith(("postgresql://", "postgres://")):
        from dphist.sources.databases.postgres import open_url

        return open_url(source)
    if "::" in source:
        return _open_database(*source.rsplit("::", 1))
    kind = file_kind(source)
    if kind == "duckdb":
        raise SourceError(f"{source} is a database: say which table, as in {source}::table")
    _refuse_alike(needed or ())
    connection = connect()
    if "://" in source:
        reach_network(connection)
    else:
        source = _pattern(connection, source)
    if kind == "parquet":
        return Parquet(connection, parquet_files(connection, source, needed), source)
    if kind == "csv":
        return open_csv(connection, source, needed)
    return open_json(
        connection, source, field_names(connection, source) if needed is None else needed, person
    )


def _refuse_alike(needed: Sequence[str]) -> None:
    """DuckDB does not tell capitals apart, so of two columns that differ in nothing else it would read one twice."""
    seen: dict[str, str] = {}
    for name in needed:
        if (other := seen.setdefault(name.lower(), name)) != name:
            raise SourceError(
                f"the columns {other} and {name} differ in capitals alone, which DuckDB does not tell apart; rename one"
            )


def _pattern(connection: Any, source: str) -> str:
    """A path or pattern as DuckDB will take it; refused if it names no file, or one file twice.

    A file whose name has marks of a pattern in it is that file, and not those that the pattern names. A link beside
    what it links to (``latest.parquet``) would count every record twice, and protect nobody's second row.
    """
    import duckdb

    try:
        if Path(source).is_file():
            return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in source)
        named = [name for (name,) in connection.execute(f"FROM glob({literal(source)})").fetchall()]
        found = [Path(name).stat() for name in named]
    except (OSError, ValueError, duckdb.Error):
        named, found = [], []
    if not named:
        raise SourceError(f"there is no file {source}")
    if len({(file.st_dev, file.st_ino) for file in found}) < len(found):
        raise SourceError(
            f"{source} names one file twice, by a link: its records would count twice; name each file once"
        )
    return source


def _open_database(path: str, table: str) -> Sql:
    import duckdb

    if not Path(path).is_file():
        raise SourceError(f"there is no file {path}")
    if not table:
        raise SourceError(f"say which table, as in {path}::table")
    try:
        connection = connect(path)
    except duckdb.Error:
        raise SourceError(
            f"{path} is an SQLite database; give its table by Ibis, in Python: "
            f"ibis.sqlite.connect({path!r}).table({table!r})"
            if _is_sqlite(path)
            else f"{path} cannot be opened as a DuckDB database; another program may be writing it"
        ) from None
    listed = [
        f"{schema}.{name}" if schema != "main" else name
        for schema, name in connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables ORDER BY ALL"
        ).fetchall()
    ]
    if table not in listed:
        raise SourceError(f"there is no table {table} in {path}; there are {', '.join(listed)}")
    return Duck(connection, ".".join(quote(part) for part in table.split(".")), f"{path}::{table}")


def _is_sqlite(path: str) -> bool:
    with suppress(OSError), Path(path).open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
    return False


def file_kind(source: str) -> str:
    """The format of files, by their name; .gz and .zst files count as what they hold."""
    for suffix in reversed(Path(source).suffixes):
        if suffix.lower() in _SUFFIXES:
            return _SUFFIXES[suffix.lower()]
        if suffix.lower() not in (".gz", ".zst"):
            break
    raise SourceError(f"{source}: the name must end in .csv, .tsv, .parquet, .json, .jsonl or .duckdb::table")
