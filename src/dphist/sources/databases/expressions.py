"""Ibis expressions that may be counted: those that make each row of one row, and name or leave out some.

A table expression is a plan that runs before anything of ours. If a row of its answer depends on one record alone,
what `dphist.sources.people` proves of tables holds for it. So its tables must be those of a database, which declare
their types: what is computed of a frame depends on the types that all of its values gave it (one missing value turns
"1" into "1.0" for everybody), and frames are refused by name. Its steps are select, mutate, filter, drop, fill, rename
and sort, and what these compute looks at one row. Refused by name are steps that look at others or repeat rows
(``limit`` and ``sample``, joins, unions, aggregates, distinct, window functions, subqueries), functions that are handed
whole columns (``udf.scalar.pyarrow`` and ``pandas``) or that the engine alone knows (``udf.scalar.builtin``, such as
``nextval``, which numbers rows), and what was kept of any of these by ``cache()``. (``udf.scalar.python`` is called row
by row; that it remembers nothing is for its author to vouch.)

A table of the database is taken as it is. It may be a *view*: then the database computes it, nobody here can see
how, and you vouch that a person's records become that person's rows, as you do for a Spark data frame or a lazy
polars frame, whose plans are not looked into either. SQL text inside an expression (``.sql(…)``) is refused, since
a view says the same with a name to vouch for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dphist.errors import SourceError

# How Ibis calls tables that it keeps, and the functions that are handed many rows at a time.
_CACHED = "ibis_cached_"
_WHOLE_COLUMNS = ("PANDAS", "PYARROW")


def check_expression(table: Any) -> None:
    """Refuse an expression in which one record could move others' rows, or become several."""
    import ibis.expr.operations as ops

    op = table.op()
    # A bare table by its name: what Ibis calls an alias of a step is a physical table to it, and holds the step.
    while not isinstance(op, ops.DatabaseTable):
        match op:
            case ops.SQLQueryResult() | ops.SQLStringView():
                raise _refused("SQL text")
            case ops.InMemoryTable():
                raise SourceError(
                    "the Ibis expression computes with a table made in memory, whose types depend on all its values; "
                    "hand over that frame itself, or write it to a table that declares its types first"
                )
            case ops.Project():
                _of_one_row(op.values.values())
            case ops.Filter():
                _of_one_row(op.predicates)
            case ops.Sort():
                _of_one_row(op.keys)
            case ops.FillNull():
                _of_one_row([op.replacements] if isinstance(op.replacements, ops.Value) else [])
            case ops.Reference() | ops.AliasedRelation() | ops.DropColumns() | ops.DropNull():
                pass
            case _:
                raise _refused(_NAMES.get(type(op).__name__, f"the step {type(op).__name__}"))
        op = op.parent
    if op.name.startswith(_CACHED):
        raise _refused("a cache, of which nobody can tell how it was made")


def _refused(what: str) -> SourceError:
    return SourceError(
        f"the Ibis expression has {what}, so one row could change what others give; count the table before it, or make "
        "a view in the database and vouch that one person's records become one person's rows"
    )


def _of_one_row(values: Iterable[Any]) -> None:
    """Refuse what looks beyond the row that a value is computed of."""
    import ibis.expr.operations as ops

    refused: list[tuple[str, Any]] = [
        ("a window function or an aggregate", (ops.WindowFunction, ops.Analytic, ops.Reduction)),
        ("a subquery", ops.Subquery),
        ("random values", (ops.RandomScalar, ops.RandomUUID)),
        ("an unnest, which gives a row any number of times", ops.Unnest),
    ]
    if hasattr(ops, "RowID"):
        refused.append(("row numbers", ops.RowID))
    for value in values:
        for what, kinds in refused:
            if isinstance(value, kinds) or value.find(kinds, filter=ops.Value):
                raise _refused(what)
        for made in (value, *value.find(ops.ScalarUDF, filter=ops.Value)):
            kind = str(getattr(made, "__input_type__", ""))
            if kind.endswith(_WHOLE_COLUMNS):
                raise _refused("a function of whole columns")
            if kind.endswith("BUILTIN"):
                raise _refused("a function of the engine's own, of which nobody can tell what it looks at")


_NAMES = {
    "Aggregate": "an aggregate of several rows",
    "Difference": "a difference",
    "Distinct": "distinct, which makes one row of several",
    "Intersection": "an intersection",
    "JoinChain": "a join, which may pair different people's rows or repeat one",
    "Limit": "a limit",
    "Sample": "a sample",
    "TableUnnest": "an unnest, which gives a row any number of times",
    "Union": "a union, which may repeat a row",
}
