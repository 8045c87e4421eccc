"""Steps of an Ibis expression that compare values of different rows, made to tell apart all that is different.

Grouping, DISTINCT and joins ask an engine which values are equal, and engines take different values for one: a and A
under a collation that ignores capitals, 0.0 and -0.0, the decimals 1.0 and 1.00. Then two people's rows become one
row, or a row finds more partners in a public list than the list repeats its key. So in these steps, and there alone:

- *texts* are compared as their bytes, under no collation: neither a column's, nor one that the database has by default;
- *numbers* are compared in one form: zero without a sign, one NaN, decimals without the zeros at their end;
- whole numbers, truth values, days, moments, UUIDs and bytes are equal only if they are the same;
- other types (intervals, JSON, lists …) are refused by name.

What is refused is a type that a table declares, never a value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dphist.errors import SourceError


def told_apart(kind: Any) -> bool:
    """Whether values of a type can be compared so that only the same ones are equal."""
    plain = (
        kind.is_integer()
        or kind.is_boolean()
        or kind.is_date()
        or kind.is_timestamp()
        or kind.is_time()
        or kind.is_uuid()
        or kind.is_binary()
        or kind.is_null()
    )
    return bool(plain or kind.is_string() or kind.is_floating() or kind.is_decimal())


def compared_exactly(table: Any, engine: str) -> Any:
    """The same expression, in which values are equal only if they are the same.

    Args:
        table: An Ibis table.
        engine: Ibis's name of the engine that holds it.

    Returns:
        An Ibis table of the same columns.
    """
    import ibis.expr.operations as ops

    if not table.op().find((ops.Distinct, ops.Union, ops.Aggregate, ops.JoinChain)):
        return table
    return table.op().replace(_Exactly(engine).step).to_expr()


class _Exactly:
    """Rewrites steps for one engine."""

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def step(self, op: Any, changed: dict[str, Any] | None) -> Any:
        """A step, made of what its parts have become."""
        import ibis.expr.operations as ops

        op = op if changed is None else type(op)(**changed)
        match op:
            case ops.Distinct():
                return self._back(ops.Distinct(self._rows(op.parent)), op.schema)
            case ops.Union(distinct=True):
                both = ops.Union(self._rows(op.left), self._rows(op.right), distinct=True)
                return self._back(both, op.schema)
            case ops.Aggregate():
                groups = {name: self._one_form(value) for name, value in op.groups.items()}
                metrics = {
                    name: value.replace(self._metric, filter=ops.Value) for name, value in op.metrics.items()
                }
                return self._back(ops.Aggregate(op.parent, groups, metrics), op.schema, set(groups))
            case ops.JoinLink():
                same = tuple(
                    predicate.replace(self._equality, filter=ops.Value) for predicate in op.predicates
                )
                return ops.JoinLink(op.how, op.table, same)
        return op

    def _rows(self, parent: Any) -> Any:
        """A table whose values are as they are compared."""
        import ibis.expr.operations as ops

        return ops.Project(parent, {name: self._one_form(ops.Field(parent, name)) for name in parent.schema})

    def _back(self, relation: Any, schema: Any, names: set[str] | None = None) -> Any:
        """A table whose texts, of all columns or some, are texts again."""
        import ibis.expr.operations as ops

        values = {}
        for name, kind in schema.items():
            value = ops.Field(relation, name)
            there = kind.is_string() and (names is None or name in names)
            values[name] = self._as_text(value) if there else value
        return ops.Project(relation, values)

    def _metric(self, op: Any, changed: dict[str, Any] | None) -> Any:
        """An extreme is one of several equal values, and a number of different ones hangs on which are equal."""
        import ibis.expr.operations as ops

        op = op if changed is None else type(op)(**changed)
        if not isinstance(op, ops.Min | ops.Max | ops.CountDistinct):
            return op
        found = type(op)(arg=self._one_form(op.arg), where=op.where)
        extreme_text = op.arg.dtype.is_string() and not isinstance(op, ops.CountDistinct)
        return self._as_text(found) if extreme_text else found

    def _equality(self, op: Any, changed: dict[str, Any] | None) -> Any:
        """An equality of a join; floats are equal in one way only, whatever their form."""
        import ibis.expr.operations as ops

        op = op if changed is None else type(op)(**changed)
        if isinstance(op, ops.Equals) and op.left.dtype.is_string() and op.right.dtype.is_string():
            return ops.Equals(self._one_form(op.left), self._one_form(op.right))
        if isinstance(op, ops.Equals) and self.engine == "sqlite":
            return ops.Equals(_no_column(op.left), _no_column(op.right))
        return op

    def _one_form(self, value: Any) -> Any:
        """A value in the form in which it is compared."""
        import ibis

        kind = value.dtype
        if not told_apart(kind):
            raise SourceError(
                f"the Ibis expression groups, joins or tells apart rows by a column of the type {kind}, of which "
                "different values may count as equal; make it text or whole numbers first, or leave it out"
            )
        if kind.is_string():
            return self._as_bytes(value)
        found = value.to_expr()
        if kind.is_floating():
            forms = [(found == 0, 0.0)]
            if self.engine != "sqlite":
                forms.append((found.isnan(), float("nan")))
            return ibis.cases(*forms, else_=found).cast(kind).op()
        if kind.is_decimal() and self.engine == "postgres":
            return _word("trim_scale", str(kind.copy(nullable=True)), str(kind.copy(nullable=True)))(
                found
            ).op()
        return _no_column(value) if self.engine == "sqlite" else value

    def _as_bytes(self, value: Any) -> Any:
        """A text by which only the same texts are equal."""
        text = value.to_expr()
        match self.engine:
            case "duckdb":
                return _word("encode", "string", "binary")(text).op()
            case "sqlite" | "pyspark":
                return text.cast("binary").op()
            case "postgres":
                # Bytes, and again a text: one of the database's own collation, by which different texts never are
                # equal. By this name of an encoding bytes stay as they are, whatever encoding the database has.
                plain = _word("convert_to", "string", "binary", "SQL_ASCII")(text)
                return _word("convert_from", "binary", "string", "SQL_ASCII")(plain).op()
        raise NotImplementedError(self.engine)

    def _as_text(self, value: Any) -> Any:
        """What was compared, as a text again."""
        if self.engine == "duckdb":
            return _word("decode", "binary", "string")(value.to_expr()).op()
        if self.engine in ("sqlite", "pyspark"):
            return value.to_expr().cast("string").op()
        return value


def _no_column(value: Any) -> Any:
    """A value of SQLite's as no column, and so without a collation: a column of any type may hold texts there."""
    import ibis

    return ibis.coalesce(value.to_expr(), ibis.null(value.dtype)).op()


@cache
def _word(name: str, takes: str, gives: str, form: str = "") -> Callable[[Any], Any]:
    """A function of an engine's own: of one value, and of the name of a form if one is said."""
    import ibis

    def of_one(value: Any) -> None:
        """The engine has the body."""

    def of_two(value: Any, form: Any) -> None:
        """The engine has the body."""

    kinds = tuple(ibis.dtype(kind) for kind in ((takes, "string") if form else (takes,)))
    found = ibis.udf.scalar.builtin(
        of_two if form else of_one, name=name, signature=(kinds, ibis.dtype(gives))
    )
    return (lambda value: found(value, form)) if form else found
