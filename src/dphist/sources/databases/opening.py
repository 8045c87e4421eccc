"""Ibis tables, opened in the words of the engine that holds them where we know these.

Only a table by its name is counted. An expression is a plan that runs before anything of ours: a step of it may look
at other rows (``limit``, joins, windows), repeat one, compute with types that all values of a frame gave it, or compare
NaN by what a file states of everybody's numbers. A table of the database is taken as it is. It may be a *view*: then
the database computes it, nobody here can see how, and you vouch that a person's records become that person's rows, as
you do for a Spark data frame or a lazy polars frame, whose plans are not looked into either.
"""

# ruff: noqa: S608 -- the relation was written by Ibis

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from dphist.errors import SourceError
from dphist.sources.databases.lite import open_lite
from dphist.sources.duck.duck import Duck
from dphist.sources.sql import Sql

# Engines on which it is tested which values are equal, and how numbers, texts and times are read.
_TESTED = ("duckdb", "postgres", "pyspark", "sqlite")
# How Ibis calls tables that it keeps.
_CACHED = "ibis_cached_"
# What a table or a view may read in the end: DuckDB's own tables, Parquet files, and values that a view's text says.
_DECLARED = (
    *("SEQ_SCAN", "READ_PARQUET", "PARQUET_SCAN", "CTE_SCAN", "DELIM_SCAN"),
    *("COLUMN_DATA_SCAN", "DUMMY_SCAN", "EXPRESSION_SCAN", "EMPTY_RESULT", "RANGE", "GENERATE_SERIES"),
)


def backend_of(table: Any) -> Any:
    """The engine a table belongs to; a table made in memory belongs to none yet."""
    from ibis.common.exceptions import IbisError

    try:
        return table.get_backend()
    except IbisError:
        return None


def frame_of(table: Any) -> Any:
    """The data frame that a bare table in memory or of polars's is, read as one; None for any other table."""
    import ibis.expr.operations as ops

    op = table.op()
    if isinstance(op, ops.InMemoryTable):
        return op.data.obj
    backend = backend_of(table)
    if isinstance(op, ops.DatabaseTable) and backend is not None and backend.name == "polars":
        return backend.to_polars(table)
    return None


def open_table(table: Any, needed: Sequence[str] = ()) -> Sql:
    """An Ibis table in the words of the engine that holds it."""
    import ibis.expr.operations as ops

    op, backend = table.op(), backend_of(table)
    name = getattr(backend, "name", "no engine")
    if name not in _TESTED:
        raise SourceError(
            f"an Ibis table on {name}: only on DuckDB, PostgreSQL, SQLite and Spark is it tested which values are "
            "equal; hand over a frame itself, export the table to Parquet or DuckDB, or count it there and hand "
            "over the counts as a dphist.Histogram"
        )
    # Exactly that: what Ibis calls an alias of a step is a physical table to it, and holds the step.
    if type(op) is not ops.DatabaseTable or op.name.startswith(_CACHED):
        raise SourceError(
            "this Ibis expression is no table by its name, and in a step of it one row could change what others give; "
            "hand over the table or frame itself, or make a view of the expression in the database (create_view) and "
            "vouch that one person's records become one person's rows"
        )
    if name == "sqlite":
        _refuse_untyped(op, backend, needed)
        return open_lite(table, backend, needed)
    if name == "postgres":
        from dphist.sources.databases.postgres import Postgres

        return Postgres(table)
    if name == "duckdb":
        return _duck(table, backend)
    from dphist.sources.databases.spark import Spark

    return Spark(backend._session.sql(backend.compile(table)))


def _refuse_untyped(base: Any, backend: Any, needed: Sequence[str]) -> None:
    """A column of SQLite's may declare no type; Ibis takes that of the first row, so one person decides for all."""
    sql = "SELECT name FROM pragma_table_xinfo(?, ?) WHERE type = ''"
    for (name,) in backend.con.execute(sql, (base.name, base.namespace.database or "main")).fetchall():
        if name in needed:
            raise SourceError(
                f"the column {name} of {base.name} declares no type, so that of the first row would be taken for "
                "all; make a table of it that declares one"
            )


def _duck(table: Any, backend: Any) -> Sql:
    """A table of somebody's own DuckDB, whose types may still be those that a frame had."""
    relation = f"({backend.compile(table)}) AS records"
    _refuse_inferred(backend.con, relation, f"the table {table.op().name}")
    # A column of nothing but NULL has no type: to refuse it would tell that every value is missing.
    empty = {name for name, kind in table.schema().items() if kind.is_null()}
    return Duck(backend.con, relation, "the table", undeclared=empty.__contains__, inferred=True)


def _refuse_inferred(connection: Any, relation: str, what: str) -> None:
    """Refuse a table or view over frames, CSV, JSON or anything else whose types depend on its values."""
    import duckdb

    try:
        plans = connection.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {relation}").fetchall()
        found = {
            name for kind, plan in plans if kind == "physical_plan" for name in _leaves(json.loads(plan))
        }
    except (duckdb.Error, ValueError, KeyError, TypeError):
        raise SourceError(f"{what} cannot be read: DuckDB does not say what it is made of") from None
    for name in sorted(found - {*_DECLARED}) or ([] if found else ["nothing"]):
        raise SourceError(
            f"{what} reads {name}, whose types may be guessed from everybody's values; hand over that frame or file "
            "itself, or make a table that declares its types of it"
        )


def _leaves(steps: list[Any]) -> Iterator[str]:
    """The names of the steps that read no other step."""
    for step in steps:
        yield from _leaves(step["children"]) if step["children"] else [step["name"].strip()]
