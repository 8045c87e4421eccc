"""Ibis expressions that may be counted: those in which a person's rows become that person's rows.

A table expression is a plan that runs before anything of ours. If a row of its answer hangs on one record alone,
what `dphist.sources.people` proves of tables holds for it. So its tables must be those of a database, which declare
their types: what is computed of a frame hangs on the types that all of its values gave it (one missing value turns
"1" into "1.0" for everybody), and frames are refused by name. Steps that look at other rows are, too:
``limit`` and ``sample`` (who is taken shifts when somebody leaves), window functions, subqueries, aggregates, set
differences, joins that can pair different people, functions that are handed whole columns (``udf.scalar.pyarrow`` and
``pandas``) or that the engine alone knows (``udf.scalar.builtin``, such as ``nextval``, which numbers rows), and what
was kept of any of these by ``cache()``. (``udf.scalar.python`` is called row by row; that it remembers nothing is for
its author to vouch.) What is let through:

- *row by row*: select, mutate, filter, drop, fill, sort, distinct. (Adding a row adds at most one distinct row and
  takes none away.)
- *unions*: a table that occurs k times gives each of its rows k times, and the unit must allow for k rows.
- *joins with a list*: a table made in memory (``ibis.memtable``) that is joined to the counted one is part of the
  question and so public. Each row finds at most as many partners as the list repeats a key: the factor that the
  unit must allow for. A key is a column of one type on both sides, or of whole numbers.
- *within one person*: with ``Unit(id=…)``, joins that equate the id on both sides, and counts, sums of whole
  numbers, extremes grouped by the id. Each row of the answer hangs on the rows of one person, and rows are bounded
  afterwards.

Where these compare rows (to group, to join, to tell apart) equal values must be the same ones, under whatever
collation a column or a database has: `dphist.sources.databases.compared` sees to it.

A table of the database is taken as it is. It may be a *view*: then the database computes it, nobody here can see
how, and you vouch that a person's records become that person's rows, as you do for a Spark data frame or a lazy
polars frame, whose plans are not looked into either. SQL text inside an expression (``.sql(…)``) is refused, since
a view says the same with a name to vouch for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from dphist.errors import SourceError
from dphist.model.phrases import so_many
from dphist.model.unit import Unit
from dphist.sources.databases.compared import told_apart

# How Ibis calls tables that it keeps, and the functions that are handed many rows at a time.
_CACHED = "ibis_cached_"
_WHOLE_COLUMNS = ("PANDAS", "PYARROW")
_WAY_OUT = (
    "count the table before it, or make a view in the database and vouch that one person's records become one "
    "person's rows"
)


def check_expression(table: Any, unit: Unit) -> None:
    """Refuse an expression in which one person's records could move others' rows, or more rows than the unit says."""
    occurs = _Walk(unit.id is not None).occurrences(table.op(), unit.id)
    factor = max(occurs.values(), default=1)
    # The same row counted again may lie in the same cell.
    most = unit.rows if unit.cells is None else unit.per_cell or 1
    if unit.id is None and factor > most:
        where = "" if unit.cells is None else " in a cell"
        raise SourceError(
            f"the expression counts a row up to {factor} times, but the unit is {so_many(most, 'row')}{where}; take a "
            "unit of as many rows (times those of a person), or an id"
        )


def _refused(what: str) -> SourceError:
    return SourceError(
        f"the Ibis expression has {what}, so one row could change what others give; {_WAY_OUT}"
    )


class _Walk:
    """Follows an expression down to its tables; ``bounded`` says that rows are bounded by an id afterwards."""

    def __init__(self, bounded: bool) -> None:
        self.bounded = bounded

    def occurrences(self, op: Any, person: str | None) -> Counter[Any]:
        """How often a row of each table can occur in the answer.

        ``person`` is the column that holds the id here, or None where it was computed and no step below may rely on
        it.
        """
        import ibis.expr.operations as ops

        match op:
            case ops.SQLQueryResult() | ops.SQLStringView():
                raise _refused("SQL text")
            case ops.DatabaseTable() if op.name.startswith(_CACHED):
                raise _refused("a cache, of which nobody can tell how it was made")
            case ops.InMemoryTable():
                raise SourceError(
                    "the Ibis expression computes with a table made in memory, whose types hang on all of its values; "
                    "hand over that frame itself, or write it to a table that declares its types first"
                )
            # By name: what Ibis calls an alias of a step is a physical table to it, and holds the step.
            case ops.DatabaseTable():
                return Counter({op: 1})
            case ops.Project():
                self._row_by_row(op.values.values())
                return self.occurrences(op.parent, _carried(op.values, person))
            case ops.Filter():
                self._row_by_row(op.predicates)
                return self.occurrences(op.parent, person)
            case ops.Sort():
                self._row_by_row(op.keys)
                return self.occurrences(op.parent, person)
            case ops.FillNull():
                self._row_by_row([op.replacements] if isinstance(op.replacements, ops.Value) else [])
                return self.occurrences(op.parent, person)
            case (
                ops.Reference() | ops.AliasedRelation() | ops.DropColumns() | ops.DropNull() | ops.Distinct()
            ):
                return self.occurrences(op.parent, person)
            case ops.TableUnnest() if self.bounded:
                return self.occurrences(op.parent, None)
            case ops.Union():
                return self.occurrences(op.left, person) + self.occurrences(op.right, person)
            case ops.JoinChain():
                return self._joined(op, person)
            case ops.Aggregate():
                return self._aggregated(op, person)
        raise _refused(_NAMES.get(type(op).__name__, f"the step {type(op).__name__}"))

    def _row_by_row(self, values: Iterable[Any]) -> None:
        import ibis.expr.operations as ops

        many = (ops.WindowFunction, ops.Analytic, ops.Reduction)
        self._without(values, [("a window function or an aggregate", many)])

    def _without(self, values: Iterable[Any], also: Iterable[tuple[str, Any]] = ()) -> None:
        """Refuse what looks beyond the rows that a value is computed of, and some more."""
        import ibis.expr.operations as ops

        refused: list[tuple[str, Any]] = [
            *also,
            ("a subquery", ops.Subquery),
            ("random values", (ops.RandomScalar, ops.RandomUUID)),
        ]
        if hasattr(ops, "RowID"):
            refused.append(("row numbers", ops.RowID))
        if not self.bounded:
            refused.append(
                ("an unnest, which gives a row any number of times; give the unit an id", ops.Unnest)
            )
        for value in values:
            for what, kinds in refused:
                if isinstance(value, kinds) or value.find(kinds, filter=ops.Value):
                    raise _refused(what)
            for made in (value, *value.find(ops.ScalarUDF, filter=ops.Value)):
                kind = str(getattr(made, "__input_type__", ""))
                if kind.endswith(_WHOLE_COLUMNS):
                    raise _refused("a function of whole columns")
                if kind.endswith("BUILTIN"):
                    raise _refused(
                        "a function of the engine's own, of which nobody can tell what it looks at"
                    )

    def _aggregated(self, op: Any, person: str | None) -> Counter[Any]:
        """Each person by themselves; only aggregates that give the same in every order of the rows."""
        import ibis.expr.operations as ops

        below = _carried(op.groups, person)
        if not self.bounded or below is None:
            raise _refused("an aggregate that is not grouped by the unit's id")
        exact = (ops.Count, ops.CountStar, ops.CountDistinct, ops.Min, ops.Max, ops.Any, ops.All)
        # Beside its aggregates, too: what is added to a person's count may come from everybody's rows.
        self._without(op.metrics.values())
        for metric in op.metrics.values():
            for found in metric.find((ops.Reduction, ops.Analytic, ops.WindowFunction), filter=ops.Value):
                whole = isinstance(found, ops.Sum) and (
                    found.arg.dtype.is_integer() or found.arg.dtype.is_boolean()
                )
                if not (isinstance(found, exact) or whole):
                    raise _refused(
                        f"the aggregate {type(found).__name__}, which may hang on the order of rows"
                    )
                self._row_by_row(value for value in found.args if isinstance(value, ops.Value))
        self._row_by_row(op.groups.values())
        return self.occurrences(op.parent, below)

    def _joined(self, op: Any, person: str | None) -> Counter[Any]:
        """Joins with a public list, and joins within one person."""
        import ibis.expr.operations as ops

        self._row_by_row(op.values.values())
        source = op.values.get(person) if person is not None else None
        ids = {op.first: source.name} if isinstance(source, ops.Field) and source.rel == op.first else {}
        occurs = self.occurrences(op.first, ids.get(op.first))
        for link in op.rest:
            self._row_by_row(link.predicates)
            if link.how not in ("inner", "left", "semi", "anti"):
                raise _refused(f"a join of the kind {link.how}")
            equal = list(_equalities(link))
            listed = link.table.parent
            other = next(
                (mine for rel, column, mine in equal if self.bounded and ids.get(rel) == column), None
            )
            if other is not None:
                ids[link.table] = other
                occurs += self.occurrences(listed, other)
            elif isinstance(listed, ops.InMemoryTable):
                times = 1 if link.how in ("semi", "anti") else _repeats(listed, [mine for *_, mine in equal])
                occurs = Counter({table: count * times for table, count in occurs.items()})
            else:
                raise _refused("a join that can pair different people's rows")
        return occurs


def _carried(values: Any, person: str | None) -> str | None:
    """The name that a column has one step below, if it is handed through as it is."""
    import ibis.expr.operations as ops

    value = values.get(person) if person is not None else None
    return value.name if isinstance(value, ops.Field) else None


def _equalities(link: Any) -> Iterable[tuple[Any, str, str]]:
    """The equalities of a join: the other side's table and column, and the joined table's column.

    Only those that hold of equal values alone. An engine that compares a whole number with a float rounds it, so one
    float is equal to many whole numbers. A column that is compared with one of the same side tells no rows apart.
    """
    import ibis.expr.operations as ops

    for predicate in link.predicates:
        if not isinstance(predicate, ops.Equals):
            continue
        sides = (predicate.left, predicate.right)
        for there, here in (sides, sides[::-1]):
            if not (isinstance(there, ops.Field) and isinstance(here, ops.Field)):
                continue
            if here.rel == link.table != there.rel and _alike(there.dtype, here.dtype):
                yield there.rel, there.name, here.name


def _alike(one: Any, other: Any) -> bool:
    """Whether values of two types are equal only if they are the same."""
    alike = one(nullable=True) == other(nullable=True) and told_apart(one)
    return bool((one.is_integer() and other.is_integer()) or alike)


def _repeats(listed: Any, columns: list[str]) -> int:
    """How often a list in memory repeats a key at most."""
    import pyarrow.compute

    table = listed.data.to_pyarrow(listed.schema)
    if not columns:
        return max(1, len(table))
    for name in columns:
        if pyarrow.types.is_floating(table.schema.field(name).type):
            # Two zeros are one number to an engine, and two to Arrow.
            zeros = pyarrow.compute.add(table.column(name), 0.0)
            table = table.set_column(table.schema.get_field_index(name), name, zeros)
    counted = table.group_by(columns).aggregate([([], "count_all")])
    times: list[int] = counted.column("count_all").to_pylist()
    return max([1, *times])


_NAMES = {
    "Limit": "a limit",
    "Sample": "a sample",
    "Intersection": "an intersection",
    "Difference": "a difference",
    "TableUnnest": "an unnest, which gives a row any number of times; give the unit an id",
}
