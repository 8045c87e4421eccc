"""Ibis tables, opened in the words of the engine that holds them where we know these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dphist.errors import SourceError
from dphist.model.unit import Unit
from dphist.sources.databases.compared import compared_exactly
from dphist.sources.databases.expressions import check_expression, made_in_memory
from dphist.sources.databases.ibis_table import IbisTable
from dphist.sources.databases.remote import backend_of
from dphist.sources.duck.duck import Duck
from dphist.sources.engine import Engine


def frame_of(table: Any, needed: Sequence[str]) -> Any:
    """The data frame that a table in memory was made from, read as one; None for any other table."""
    import ibis.expr.operations as ops

    op = table.op()
    frame: Any = getattr(op.data, "obj", None) if isinstance(op, ops.InMemoryTable) else None
    # Arrow calls its arrays columns, and their names something else.
    named = getattr(frame, "column_names" if hasattr(frame, "column_names") else "columns", None)
    return frame if named is not None and set(needed) <= set(named) else None


def open_table(table: Any, unit: Unit, needed: Sequence[str] = ()) -> Engine:
    """An Ibis table in the words of its own engine where we know them, else in Ibis's."""
    check_expression(table, unit)
    backend = backend_of(table)
    if backend is not None and backend.name == "sqlite":
        _refuse_untyped(table, backend, needed)
    table = compared_exactly(table, "duckdb" if backend is None else backend.name)
    if backend is None or backend.name == "duckdb":
        return _duck(table, backend)
    if backend.name == "postgres":
        from dphist.sources.databases.postgres import Postgres

        return Postgres(table)
    if backend.name == "pyspark":
        from dphist.sources.databases import spark

        return spark.open_table(table)
    return IbisTable(table, backend)


def _refuse_untyped(table: Any, backend: Any, needed: Sequence[str]) -> None:
    """A column of SQLite's may declare no type; Ibis takes that of the first row, so one person decides for all."""
    import ibis.expr.operations as ops

    op = table.op()
    # What is handed through without being named.
    passed = set(table.columns) if op.find((ops.Distinct, ops.Union)) else set(needed)
    for base in op.find(ops.DatabaseTable):
        named = {each.name for each in op.find(ops.Field) if each.rel == base} | passed
        sql = "SELECT name FROM pragma_table_xinfo(?, ?) WHERE type = ''"
        found = backend.con.execute(sql, (base.name, base.namespace.database or "main")).fetchall()
        for (name,) in found:
            if name in named:
                raise SourceError(
                    f"the column {name} of {base.name} declares no type, so that of the first row would be taken for "
                    "all; make a table of it that declares one"
                )


def _duck(table: Any, backend: Any) -> Engine:
    """A table of somebody's own DuckDB; one made in memory belongs to no engine yet, and ours will do."""
    import ibis

    if backend is None:
        backend = ibis.duckdb.connect(autoinstall_known_extensions=False, autoload_known_extensions=False)
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
    return Duck(
        backend.con,
        relation,
        "the table",
        undeclared=empty.__contains__,
        inferred=made_in_memory(table),
        checked=False,
    )
