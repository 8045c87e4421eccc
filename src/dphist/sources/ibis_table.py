"""Any engine that Ibis speaks to: the rows stay there, and only the counts come back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from dphist.errors import SourceError
from dphist.sources.engine import Bound, Column, Engine, Expression, Family, Groups, Key
from dphist.sources.remote import backend_of, ibis_columns


@cache
def _function(name: str, takes: tuple[str, ...], gives: str) -> Any:
    """A function of two values that an engine has under a name of its own."""
    import ibis

    def body(first: Any, second: Any) -> None:
        """The engine has the body."""

    body.__name__ = name
    signature = tuple(ibis.dtype(kind) for kind in takes), ibis.dtype(gives)
    return ibis.udf.scalar.builtin(body, name=name, signature=signature)


class IbisTable:
    """An Ibis table, and the expressions to count its rows."""

    def __init__(self, table: Any) -> None:
        import ibis

        self.table = table
        # A table made in memory belongs to no engine yet; ours will do.
        self.backend = backend_of(table) or ibis.duckdb.connect(
            autoinstall_known_extensions=False, autoload_known_extensions=False
        )
        self.columns = ibis_columns(table)

    def column(self, column: Column) -> Expression:
        """The column's value; unsigned integers as signed ones, to compare with negative bounds."""
        value = self.table[column.name]
        if value.type().is_unsigned_integer():
            value = value.cast("decimal(20, 0)" if value.type().is_uint64() else "int64")
        return value

    def parse(self, value: Expression, family: Family) -> Expression:
        """An undeclared value as another type; here it is always NULL."""
        return value.cast({"real": "float64", "truth": "boolean", "time": "timestamp"}[family])

    def real(self, value: Expression) -> Expression:
        """As a 64-bit float."""
        return value.cast("float64")

    def integer(self, value: Expression) -> Expression:
        """As a 64-bit integer."""
        return value.cast("int64")

    def truth(self, value: Expression) -> Expression:
        """A truth value as 0 or 1."""
        return value.ifelse(1, 0)

    def floor(self, value: Expression) -> Expression:
        """The largest 64-bit integer that is not above the value."""
        return value.floor().cast("int64")

    def text(self, value: Expression) -> Expression:
        """As text."""
        return value.cast("string")

    def days(self, value: Expression, family: Family) -> Expression:
        """Days since 1970-01-01."""
        import ibis

        if family == "zoned time":
            if self.backend.name != "duckdb":
                raise SourceError(
                    f"times with a zone cannot be counted on {self.backend.name}; make them dates first"
                )
            value = _function("timezone", ("string", "timestamp('UTC')"), "timestamp")("UTC", value)
        if family != "date":
            value = value.date()
        return value.delta(ibis.date(1970, 1, 1), unit="day").cast("int64")

    def day(self, day: dt.date, family: Family) -> Expression:
        """The first moment of a day."""
        import ibis

        if family == "date":
            return ibis.date(day)
        moment = dt.datetime(day.year, day.month, day.day)
        if family == "zoned time":
            return ibis.timestamp(moment.replace(tzinfo=dt.UTC), timezone="UTC")
        return ibis.timestamp(moment)

    def between(self, value: Expression, low: Expression, high: Expression) -> Expression:
        """Whether low ≤ value ≤ high; every engine we know holds NaN above all numbers."""
        return (value >= low) & (value <= high)

    def before(self, value: Expression, bound: Expression) -> Expression:
        """Whether value < bound."""
        return value < bound

    def same(self, value: Expression, other: Expression) -> Expression:
        """Whether two values are equal."""
        return value == other

    def is_multiple(self, value: Expression, first: int, step: int) -> Expression:
        """Whether an integer is some steps away from the first."""
        return (value - first) % step == 0

    def steps(self, value: Expression, first: int, step: int) -> Expression:
        """How many whole steps an integer is above the first."""
        return (value - first) // step if step > 1 else value - first

    def one_of(self, value: Expression, choices: Sequence[Any]) -> Expression:
        """Whether the value is one of a list."""
        return value.isin(list(choices))

    def position(self, value: Expression, choices: Sequence[str]) -> Expression:
        """The place of a text in a short list, counted from 1."""
        import ibis

        if self.backend.name == "duckdb":
            return _function("list_position", ("array<string>", "string"), "int64")(
                ibis.array(list(choices)), value
            )
        return value.cases(*((choice, place) for place, choice in enumerate(choices, 1)))

    def when(self, condition: Expression, value: Expression, otherwise: Expression | None) -> Expression:
        """One value where a condition is true, another (or NULL) elsewhere."""
        import ibis

        return ibis.cases((condition, value), else_=otherwise)

    def group(self, keys: Sequence[Key], bound: Bound | None) -> Groups:
        """Count the rows by their keys, after bounding."""
        names = [f"k{place}" for place in range(len(keys))]
        values = {
            name: self.when(key.inside, key.value, None)
            if key.other and key.inside is not None
            else key.value
            for name, key in zip(names, keys, strict=True)
        }
        filters = [key.inside for key in keys if key.inside is not None and not key.other]
        if bound is None:
            table = self.table.filter(filters) if filters else self.table
            keyed = table.select(**values)
        else:
            keyed = self._bounded(
                values, [n for n, k in zip(names, keys, strict=True) if not k.other], filters, bound
            )
        counted = keyed.group_by(names).aggregate(n=keyed.count())
        answer = self._run(counted)
        columns = [answer.column(name) for name in names]
        return Groups(
            keys=[_values(column) for column in columns],
            missing=[column.is_null().to_numpy() for column in columns],
            rows=answer.column("n").to_numpy().astype(np.int64),
        )

    def _bounded(self, values: dict[str, Any], known: Sequence[str], filters: list[Any], bound: Bound) -> Any:
        """See `dphist.sources.count` for why this protects a person."""
        import ibis

        person = self.table[bound.id.name]
        filters = [person.notnull(), *filters]
        if bound.id.family == "real":
            filters.append(~person.cast("float64").isnan())
        row = ibis.struct(
            {f"c{place}": self.table[c.name] for place, c in enumerate((bound.id, *self.columns))}
        )
        inner = self.table.filter(filters).select(person=person, place=row.hash(), **values)
        if known:
            inner = inner.filter([inner[name].notnull() for name in known])
        window = ibis.window(group_by=inner.person, order_by=[inner.place, *(inner[name] for name in values)])
        ranked = inner.mutate(rank=ibis.row_number().over(window))
        return ranked.filter(ranked["rank"] < bound.rows)

    def _run(self, expression: Any) -> Any:
        from ibis.common.exceptions import OperationNotDefinedError, UnsupportedOperationError

        try:
            return self.backend.to_pyarrow(expression)
        except (OperationNotDefinedError, UnsupportedOperationError):
            raise SourceError(
                f"the engine {self.backend.name} lacks a function that this counting needs"
            ) from None
        except Exception:
            # Engines raise errors of their own kinds, whose words may quote a record.
            raise SourceError(f"the engine {self.backend.name} could not count the table") from None


def _values(column: Any) -> Any:
    """A column's values; whatever stands where it is NULL is not looked at."""
    import pyarrow
    import pyarrow.compute

    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if pyarrow.types.is_integer(column.type):
        return pyarrow.compute.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return np.array(column.to_pylist(), dtype=object)


def open_table(table: Any) -> Engine:
    """An Ibis table in the words of its own engine where we know them, else in Ibis's."""
    name = getattr(backend_of(table), "name", None)
    if name == "postgres":
        from dphist.sources.postgres import Postgres

        return Postgres(table)
    if name == "duckdb":
        return _duck(table)
    if name == "pyspark":
        from dphist.sources import spark

        return spark.open_table(table)
    return IbisTable(table)


def _duck(table: Any) -> Engine:
    """A table of somebody's own DuckDB, which ranks people in groups as ours does."""
    from dphist.sources.duck import Duck

    backend = backend_of(table)
    backend._run_pre_execute_hooks(table)
    # A column of nothing but NULL has no type: to refuse it would tell that every value is missing.
    empty = {name for name, kind in table.schema().items() if kind.is_null()}
    relation = f"({backend.compile(table)}) AS records"
    return Duck(backend.con, relation, "the table", undeclared=empty.__contains__)
