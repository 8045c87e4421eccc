"""NaN is no value in an Ibis expression: nobody's NaN is compared by what a file states of everybody's numbers.

The least and the largest value that a Parquet file states of a column leave NaN out, and engines answer conditions by
them without a look at the rows: where all other numbers are below 10, DuckDB finds that every NaN is, and Spark that
none is above 10. One record with an 11 changes both. So columns of floats, and floats inside structures, are read
as NULL where they are NaN, before a step of somebody's own compares them: no NaN is left to be wrong about.
"""

from __future__ import annotations

from typing import Any


def without_nan(table: Any) -> Any:
    """The same expression, in which what a table holds is NULL where it is NaN.

    Args:
        table: An Ibis table.

    Returns:
        An Ibis table of the same columns.
    """
    import ibis.expr.operations as ops

    op = table.op()
    # Bare tables are read by words of our own, which ask for NaN by name.
    return table if isinstance(op, ops.DatabaseTable) else op.replace(_step).to_expr()


def _step(op: Any, changed: dict[str, Any] | None) -> Any:
    """A step, made of what its parts have become."""
    import ibis.expr.operations as ops

    op = op if changed is None else type(op)(**changed)
    if isinstance(op, ops.StructField) and op.dtype.is_floating():
        return _known(op)
    if isinstance(op, ops.DatabaseTable) and any(kind.is_floating() for kind in op.schema.values()):
        fields = {name: ops.Field(op, name) for name in op.schema}
        known = {name: _known(each) if each.dtype.is_floating() else each for name, each in fields.items()}
        return ops.Project(op, known)
    return op


def _known(value: Any) -> Any:
    """A float, NULL where it is NaN."""
    import ibis

    found = value.to_expr()
    return ibis.cases((found.isnan(), ibis.null(value.dtype)), else_=found).cast(value.dtype).op()
