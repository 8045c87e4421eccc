"""Ibis tables, opened in the words of the engine that holds them where we know these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphist.errors import SourceError
from dphist.sources.databases.columns import backend_of
from dphist.sources.databases.expressions import check_expression
from dphist.sources.databases.lite import open_lite
from dphist.sources.databases.missing import without_nan
from dphist.sources.duck.declared import refuse_inferred
from dphist.sources.duck.duck import Duck
from dphist.sources.sql.statements import Sql

# Engines on which it is tested which values are equal, and how numbers, texts and times are read.
_TESTED = ("duckdb", "postgres", "pyspark", "sqlite")


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
    check_expression(table)
    backend = backend_of(table)
    name = getattr(backend, "name", "no engine")
    if name not in _TESTED:
        raise SourceError(
            f"an Ibis table on {name}: only on DuckDB, PostgreSQL, SQLite and Spark is it tested which values are "
            "equal; hand over a frame itself, export the table to Parquet or DuckDB, or count it there and hand "
            "over the counts as a dphist.Histogram"
        )
    if name == "sqlite":
        _refuse_untyped(table, backend, needed)
        return open_lite(table, backend, needed)
    if name == "postgres":
        from dphist.sources.databases.postgres import Postgres

        return Postgres(table)
    table = without_nan(table)
    if name == "duckdb":
        return _duck(table, backend)
    from dphist.sources.databases import spark

    return spark.open_table(table)


def _refuse_untyped(table: Any, backend: Any, needed: Sequence[str]) -> None:
    """A column of SQLite's may declare no type; Ibis takes that of the first row, so one person decides for all."""
    import ibis.expr.operations as ops

    op = table.op()
    for base in op.find(ops.DatabaseTable):
        named = {each.name for each in op.find(ops.Field) if each.rel == base} | set(needed)
        sql = "SELECT name FROM pragma_table_xinfo(?, ?) WHERE type = ''"
        found = backend.con.execute(sql, (base.name, base.namespace.database or "main")).fetchall()
        for (name,) in found:
            if name in named:
                raise SourceError(
                    f"the column {name} of {base.name} declares no type, so that of the first row would be taken for "
                    "all; make a table of it that declares one"
                )


def _duck(table: Any, backend: Any) -> Sql:
    """A table of somebody's own DuckDB, whose types may still be those that a frame had."""
    import ibis.expr.operations as ops

    for base in table.op().find(ops.DatabaseTable):
        refuse_inferred(backend.con, f"({backend.compile(base.to_expr())})", f"the table {base.name}")
    try:
        backend._run_pre_execute_hooks(table)
    except Exception:
        # Ibis makes a column of one type of what is in memory; the words of its errors quote values.
        raise SourceError(
            "a table made in memory mixes types; give its columns one type each first"
        ) from None
    # A column of nothing but NULL has no type: to refuse it would tell that every value is missing.
    empty = {name for name, kind in table.schema().items() if kind.is_null()}
    relation = f"({backend.compile(table)}) AS records"
    return Duck(backend.con, relation, "the table", undeclared=empty.__contains__, inferred=True)
