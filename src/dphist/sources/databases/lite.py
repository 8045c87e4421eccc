"""SQLite: its rows are read as the types that are declared, by its own driver, and counted by DuckDB.

SQLite keeps any value in any column, so a value that is none of its column's is missing, row by row. What comes over
are the needed columns alone.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names went through quote()

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphist.errors import SourceError
from dphist.sources.duck.allowance import configure
from dphist.sources.duck.duck import Duck, known_texts
from dphist.sources.engine import ibis_columns
from dphist.sources.sql import quote

# A day is what a text begins with and what SQLite reads it as, too: "now" is a text that names none.
_DAY = "CASE WHEN date({0}) = substr({0}, 1, 10) THEN substr({0}, 1, 10) END"
# How values are asked for, how they come over and what they are then, by kind.
_READ = {
    "integer": ("CASE typeof({0}) WHEN 'integer' THEN {0} END", "int64", "int64"),
    "real": ("CASE WHEN typeof({0}) IN ('integer', 'real') THEN CAST({0} AS REAL) END", "float64", "float64"),
    "truth": ("CASE WHEN typeof({0}) = 'integer' AND {0} IN (0, 1) THEN {0} END", "int8", "bool"),
    "text": ("CAST({0} AS BLOB)", "binary", "string"),
    "date": (_DAY, "string", "date32"),
    "time": (_DAY, "string", "timestamp[us]"),
    "undeclared": ("NULL", "string", "string"),
}


def open_lite(table: Any, backend: Any, needed: Sequence[str]) -> Duck:
    """Open an Ibis table on SQLite, to read the ``needed`` columns of it; none is all."""
    import duckdb
    import pyarrow as pa

    columns = [column for column in ibis_columns(table) if not needed or column.name in needed]
    for column in columns:
        if column.family == "zoned time":
            raise SourceError(
                f"the column {column.name} has times with a zone, which cannot be counted on SQLite; make them dates"
            )
    read = [_READ.get(column.family, ("NULL", "binary", "binary")) for column in columns]
    asked = [how.format(quote(column.name)) for column, (how, *_) in zip(columns, read, strict=True)]
    schema = pa.schema([(column.name, as_is) for column, (*_, as_is) in zip(columns, read, strict=True)])
    try:
        cursor = backend.con.execute(f"SELECT {', '.join(asked)} FROM ({backend.compile(table)}) AS records")
        batches = [
            _batch(rows, [come for _, come, _ in read], schema)
            for rows in iter(lambda: cursor.fetchmany(1 << 16), [])
        ]
    except Exception:
        # Its words, and those of Arrow, may quote a record.
        raise SourceError("SQLite could not read the table") from None
    connection = duckdb.connect()
    configure(connection)
    connection.register("records", pa.Table.from_batches(batches, schema))
    undeclared = {column.name for column in columns if column.family == "undeclared"}
    return Duck(connection, "records", "the table", undeclared=undeclared.__contains__)


def _batch(rows: list[tuple[Any, ...]], come: list[str], schema: Any) -> Any:
    """Some rows as an Arrow batch; bytes that are no UTF-8 are no text."""
    import pyarrow as pa

    found = []
    for values, kind, field in zip(zip(*rows, strict=True), come, schema, strict=True):
        column = pa.array(values, pa.type_for_alias(kind))
        found.append(
            known_texts(column).cast(field.type) if field.type == pa.string() else column.cast(field.type)
        )
    return pa.record_batch(found, schema)
