"""Finding out what a source is, and opening it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphist.errors import SourceError
from dphist.sources.delimited import open_csv
from dphist.sources.duck import Duck
from dphist.sources.engine import Engine
from dphist.sources.machine import configure, reach_network
from dphist.sources.objects import field_names, open_json
from dphist.sources.sql import literal, quote

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


def open_source(source: Any, needed: Sequence[str] | None) -> Engine:
    """Open a source; of a data frame only the ``needed`` columns are handed over (None: all)."""
    if isinstance(source, str | Path):
        return open_path(str(source), needed)
    if (ibis := sys.modules.get("ibis")) is not None and isinstance(source, ibis.expr.types.Table):
        from dphist.sources.ibis_table import open_table

        return open_table(source)
    if (spark := sys.modules.get("pyspark.sql")) is not None and isinstance(source, spark.DataFrame):
        from dphist.sources.spark import Spark

        return Spark(source)
    table = _arrow(source, needed)
    if table is None:
        raise SourceError(f"source: expected {_KINDS}, not {type(source).__name__}")
    names = list(table.schema.names)
    if len(set(names)) != len(names):
        raise SourceError("the table has two columns of one name")
    connection = connect()
    connection.register("records", table)
    # A column of nothing but NULL has no type: to refuse it would tell that every value is missing.
    empty = {field.name for field in table.schema if str(field.type) == "null"}
    return Duck(connection, "records", "the table", undeclared=empty.__contains__)


def spark_session(source: Any) -> Any:
    """The Spark session that holds a source, or None where it is elsewhere."""
    if "pyspark" not in sys.modules:
        return None
    from dphist.sources.spark import session_of

    return session_of(source)


def connect(path: str = ":memory:") -> Any:
    """A DuckDB connection of our own; a database file is only read."""
    import duckdb

    connection = duckdb.connect(path, read_only=path != ":memory:")
    configure(connection)
    return connection


def open_path(source: str, needed: Sequence[str] | None = None) -> Engine:
    """Open files, or a table of a DuckDB or PostgreSQL database."""
    if source.startswith(("postgresql://", "postgres://")):
        from dphist.sources.postgres import open_url

        return open_url(source)
    if "::" in source:
        return _open_database(*source.rsplit("::", 1))
    kind = file_kind(source)
    if kind == "duckdb":
        raise SourceError(f"{source} is a database: say which table, as in {source}::table")
    if not any(mark in source for mark in "*?[{") and "://" not in source and not Path(source).is_file():
        raise SourceError(f"there is no file {source}")
    connection = connect()
    if "://" in source:
        reach_network(connection)
    if kind == "parquet":
        return Duck(connection, f"read_parquet({literal(source)})", source, sized=True)
    if kind == "csv":
        return open_csv(connection, source, needed)
    return open_json(connection, source, field_names(connection, source) if needed is None else needed)


def _open_database(path: str, table: str) -> Engine:
    import duckdb

    if not Path(path).is_file():
        raise SourceError(f"there is no file {path}")
    if not table:
        raise SourceError(f"say which table, as in {path}::table")
    try:
        connection = connect(path)
    except duckdb.Error:
        raise SourceError(
            f"{path} cannot be opened as a DuckDB database; another program may be writing it"
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


def file_kind(source: str) -> str:
    """The format of files, by their name; .gz and .zst files count as what they hold."""
    for suffix in reversed(Path(source).suffixes):
        if suffix.lower() in _SUFFIXES:
            return _SUFFIXES[suffix.lower()]
        if suffix.lower() not in (".gz", ".zst"):
            break
    raise SourceError(f"{source}: the name must end in .csv, .tsv, .parquet, .json, .jsonl or .duckdb::table")


def _arrow(source: Any, needed: Sequence[str] | None) -> Any:
    """A data frame as an Arrow table, or None. A module that is not loaded cannot have made the source."""
    if (pandas := sys.modules.get("pandas")) is not None and isinstance(source, pandas.DataFrame):
        return _from_pandas(source, needed)
    if (polars := sys.modules.get("polars")) is not None and isinstance(
        source, polars.DataFrame | polars.LazyFrame
    ):
        names = source.collect_schema().names()
        chosen = source.select([name for name in names if needed is None or name in needed] or names)
        if isinstance(chosen, polars.LazyFrame):
            try:
                chosen = chosen.collect()
            except polars.exceptions.PolarsError:
                raise SourceError("the polars query failed") from None
        return chosen.to_arrow()
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        if isinstance(source, pyarrow.RecordBatch):
            return pyarrow.Table.from_batches([source])
        if isinstance(source, pyarrow.RecordBatchReader):
            return source.read_all()
        if isinstance(source, pyarrow.Table):
            return source
        dataset = sys.modules.get("pyarrow.dataset")
        if dataset is not None and isinstance(source, dataset.Dataset):
            return source
    return None


def _from_pandas(frame: Any, needed: Sequence[str] | None) -> Any:
    import pyarrow

    names = [str(name) for name in frame.columns]
    chosen = [place for place, name in enumerate(names) if needed is None or name in needed]
    arrays = []
    for place in chosen or range(len(names)):
        try:
            arrays.append(pyarrow.array(frame.iloc[:, place], from_pandas=True))
        except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
            named = (
                f"the column {names[place]}" if needed is not None and names[place] in needed else "a column"
            )
            raise SourceError(f"{named} mixes types; give it one type first") from None
    return pyarrow.table(arrays, names=[names[place] for place in chosen or range(len(names))])
