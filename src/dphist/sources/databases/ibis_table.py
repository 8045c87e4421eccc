"""SQLite, spoken to by Ibis: the rows stay there, and only the counts come back."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from dphist.errors import SourceError
from dphist.sources.databases.halves import added_halves, halves
from dphist.sources.databases.remote import ibis_columns
from dphist.sources.engine import (
    Bound,
    Column,
    Expression,
    Family,
    Groups,
    Integers,
    Key,
    Value,
)
from dphist.sources.people import DIGITS, SALT, exact_below, is_decimal, most, refuse_floats, refuse_type
from dphist.sources.tally import Tally


@cache
def _function(name: str, takes: str, gives: str) -> Any:
    """A function of one value that SQLite has under a name of its own."""
    import ibis

    def of_one(value: Any) -> None:
        """SQLite has the body."""

    return ibis.udf.scalar.builtin(of_one, name=name, signature=((ibis.dtype(takes),), ibis.dtype(gives)))


class IbisTable:
    """An Ibis table on SQLite, and the expressions to count its rows."""

    watching = False

    def watch(self, tally: Tally) -> None:
        """Say how many rows there are, which takes another pass: no fewer people than elsewhere are to be told."""
        tally.rows = self._rows(self.table)

    def __init__(self, table: Any, backend: Any) -> None:
        self.table = table
        self.backend = backend
        self.columns = ibis_columns(table)

    def column(self, column: Column) -> Expression:
        """The column's value, NULL where it is not of the declared type: SQLite keeps any value in any column.

        Whoever put 2.5 or x among whole numbers would have the answer refused, as one of no type, or a text called 0.
        """
        value = self.table[column.name]
        if column.family == "date":
            # The first ten letters of what may be read as a time, and no other text that lies between two days.
            return _function("date", "date", "date")(value)
        kinds = {"integer": ["integer"], "real": ["integer", "real"], "truth": ["integer"]}.get(column.family)
        return value if kinds is None else self.when(value.typeof().isin(kinds), value, None)

    def parse(self, value: Expression, family: Family) -> Expression:
        """An undeclared value as another type; here it is always NULL."""
        kinds = {"real": "float64", "truth": "boolean", "time": "timestamp", "zoned time": "timestamp"}
        return value.cast(kinds[family])

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
        """As text; put together with something, it has no column's collation."""
        import ibis

        return ibis.literal("") + value.cast("string")

    def told_apart(self, column: Column) -> Expression:
        """A column's value as text by which rows are told apart; NULL for bytes that are no UTF-8."""
        return _decoded()(self.text(self.column(column)))

    def days(self, value: Expression, family: Family, ahead: Expression | None = None) -> Expression:
        """Days since 1970-01-01."""
        import ibis

        if family != "date":
            value = value.date()
        return value.delta(ibis.date(1970, 1, 1), unit="day").cast("int64")

    def day(self, day: dt.date, family: Family) -> Expression:
        """The first moment of a day."""
        import ibis

        if family == "date":
            return ibis.date(day)
        moment = dt.datetime(day.year, day.month, day.day)
        return self.moment(moment) if family == "zoned time" else ibis.timestamp(moment)

    def moment(self, at: dt.datetime) -> Expression:
        """A moment in UTC, which SQLite has no type for."""
        raise SourceError("times with a zone cannot be counted on SQLite; make them dates first")

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
        return value.cases(*((choice, place) for place, choice in enumerate(choices, 1)))

    def when(self, condition: Expression, value: Expression, otherwise: Expression | None) -> Expression:
        """One value where a condition is true, another (or NULL) elsewhere."""
        import ibis

        return ibis.cases((condition, value), else_=otherwise)

    def literal(self, value: Any) -> Expression:
        """A public value."""
        import ibis

        return ibis.literal(value)

    def otherwise(self, value: Expression, instead: Expression) -> Expression:
        """The value, or another where it is NULL."""
        import ibis

        return ibis.coalesce(value, instead)

    def flat(self, cells: Sequence[Key], sizes: Sequence[int]) -> Expression:
        """The number of a cell of the whole domain; NULL for a row in no cell."""
        import ibis

        number: Any = ibis.literal(0).cast("int64")
        for key, size in zip(cells, sizes, strict=True):
            value = key.value if isinstance(key.value, ibis.Value) else ibis.literal(key.value)
            if key.inside is not None:
                value = self.when(key.inside, value, None)
            number = number * size + value.cast("int64")
        return number

    def times(self, value: Expression, factor: Expression) -> Expression:
        """A product."""
        return value * factor

    def plus(self, value: Expression, more: Expression) -> Expression:
        """A sum."""
        return value + more

    def _values(self, values: Sequence[Value]) -> dict[str, Expression]:
        import ibis

        found = {}
        for place, value in enumerate(values):
            amount = value.amount if isinstance(value.amount, ibis.Value) else ibis.literal(value.amount)
            found[f"v{place}"] = amount.cast("int64")
        return found

    def group(self, keys: Sequence[Key], values: Sequence[Value] = ()) -> Groups:
        """Count the rows by their keys, and add their values up."""
        names = [f"k{place}" for place in range(len(keys))]
        found = {
            name: self.when(key.inside, key.value, None)
            if key.other and key.inside is not None
            else key.value
            for name, key in zip(names, keys, strict=True)
        }
        amounts = self._values(values)
        filters = [key.inside for key in keys if key.inside is not None and not key.other]
        table = self.table.filter(filters) if filters else self.table
        keyed = table.select(**found, **amounts)
        if amounts:
            keyed = keyed.filter(*(keyed[name].notnull() for name in amounts))
        counted = keyed.group_by(names).aggregate(n=keyed.count(), **halves(keyed, list(amounts)))
        answer = self._run(counted)
        columns = [answer.column(name) for name in names]
        return Groups(
            keys=[_values(column) for column in columns],
            missing=[column.is_null().to_numpy() for column in columns],
            rows=answer.column("n").to_numpy().astype(np.int64),
            sums=added_halves(answer, len(amounts)),
        )

    def person(self, column: Column) -> Expression:
        """The id as text, NULL for nobody; see `dphist.sources.people`."""
        value = self.table[column.name] if column.family == "text" else self.column(column)
        if column.family == "real" and not is_decimal(column):
            value = value.cast("float64")
            whole = (value.abs() < float(exact_below(column))) & (value == value.floor())
            value = self.when(whole, value, None).cast("int64")
        elif column.family == "truth":
            value = self.when(value, "true", self.when(~value, "false", None))
        elif column.family not in ("integer", "text", "undeclared"):
            raise refuse_type(column)
        # Put together with something, a text is no longer a column, and has no column's collation.
        return SALT + value.cast("string")

    def bounded(
        self, cell: Expression, bound: Bound, values: Sequence[Value] = ()
    ) -> tuple[Integers, Integers, Sequence[Integers]]:
        """Cells, how many rows of them are kept, and sums; the places are those of `dphist.sources.sql.statements`."""
        import ibis

        if bound.id.family == "real" and not is_decimal(bound.id):
            size = self.column(bound.id).cast("float64").abs()
            beyond = (size >= float(exact_below(bound.id))) & (size <= sys.float_info.max)
            if self._run(self.table.aggregate(n=beyond.sum())).column("n").to_pylist()[0]:
                raise refuse_floats(bound.id)
        amounts = self._values(values)
        placed = self.table.select(person=self.person(bound.id), cell=cell, **amounts)
        there = [placed[name].notnull() for name in ("person", "cell", *amounts)]
        placed = placed.filter(*there)
        kept = _chosen(placed, list(amounts), bound)
        for name, value in zip(amounts, values, strict=True):
            if value.limit is not None:
                kept = kept.mutate(
                    whole=kept[name].abs().sum().over(ibis.window(group_by=kept.person)).cast("int64")
                )
                cut = (kept[name].abs() * value.limit) // kept.whole
                signed = ibis.cases((kept[name] < 0, -cut), else_=cut).cast("int64")
                kept = kept.mutate(
                    **{name: ibis.cases((kept.whole <= value.limit, kept[name]), else_=signed)}
                )
        answer = self._run(kept.group_by("cell").aggregate(n=kept.count(), **halves(kept, list(amounts))))
        cells, rows = (answer.column(name).to_numpy().astype(np.int64) for name in ("cell", "n"))
        return cells, rows, added_halves(answer, len(amounts))

    def crowd(self, person: Column) -> tuple[Integers, Integers]:
        """Numbers of rows, and how many people have as many."""
        named = self.table.select(person=self.person(person))
        named = named.filter(named.person.notnull())
        each = named.group_by("person").aggregate(n=named.count())
        answer = self._run(each.group_by("n").aggregate(people=each.count()))
        rows, people = (answer.column(name).to_numpy().astype(np.int64) for name in ("n", "people"))
        return rows, people

    def _rows(self, table: Any) -> int:
        (rows,) = self._run(table.aggregate(n=table.count())).column("n").to_pylist()
        return int(rows)

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


def _chosen(placed: Any, amounts: list[str], bound: Bound) -> Any:
    """The rows that are kept of each person: the places of `dphist.sources.sql.statements`."""
    import ibis

    def at_a_place(start: Any, total: Any, place: Any, rows: int) -> Any:
        left = (start - place * rows) % total
        return (total <= rows) | ((left + total) % total < rows)

    # Not by the engine's own remainder: SQLite's computes in floats, and the hash has 60 bits.
    start = _start()
    values = [placed[name] for name in amounts]
    if bound.cells is None:
        own = ibis.window(group_by=placed.person)
        order = ibis.window(group_by=placed.person, order_by=[placed.cell, *values])
        ranked = placed.mutate(total=placed.count().over(own), place=ibis.row_number().over(order))
        first = start(ranked.person, 1, ranked.total)
        return ranked.filter(at_a_place(first, ranked.total, ranked.place, most(bound.rows)))
    both = [placed.person, placed.cell]
    numbered = placed.mutate(
        total=placed.count().over(ibis.window(group_by=both)),
        place=ibis.row_number().over(ibis.window(group_by=both, order_by=values or [placed.cell])),
        which=ibis.dense_rank().over(ibis.window(group_by=placed.person, order_by=placed.cell)),
    )
    ranked = numbered.mutate(cells=numbered.which.max().over(ibis.window(group_by=numbered.person)) + 1)
    among = start(ranked.person, 1, ranked.cells), ranked.cells, ranked.which, most(bound.cells)
    inside = (
        start(ranked.person, ranked.cells, ranked.total),
        ranked.total,
        ranked.place,
        most(bound.per_cell),
    )
    return ranked.filter(at_a_place(*among) & at_a_place(*inside))


@cache
def _start() -> Any:
    """The hash of a salted id, divided, modulo a number of rows, by Python: SQLite has no hash of its own."""
    import hashlib

    import ibis

    whole = ibis.dtype("int64")

    @ibis.udf.scalar.python(signature=((ibis.dtype("string"), whole, whole), whole))  # type: ignore[untyped-decorator]
    def dphist_start(person: str, divisor: int, total: int) -> int:
        digits = hashlib.md5(bytes.fromhex(person), usedforsecurity=False).hexdigest()
        return int(digits[:DIGITS], 16) // divisor % total

    return lambda person, divisor, total: dphist_start(_in_digits(person), divisor, total)


@cache
def _decoded() -> Any:
    """A text of SQLite's, NULL where it is none."""
    import ibis

    @ibis.udf.scalar.python(signature=((ibis.dtype("string"),), ibis.dtype("string")))  # type: ignore[untyped-decorator]
    def dphist_text(digits: str) -> str | None:
        try:
            return bytes.fromhex(digits).decode()
        except UnicodeDecodeError:
            return None

    return lambda text: dphist_text(_in_digits(text))


def _in_digits(text: Expression) -> Expression:
    """The bytes of a text, which in SQLite may be no UTF-8: handed over as it is, one would end the counting."""
    return _function("hex", "string", "string")(text)


def _values(column: Any) -> Any:
    """A column's values; whatever stands where it is NULL is not looked at."""
    import pyarrow
    import pyarrow.compute

    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if pyarrow.types.is_integer(column.type):
        return pyarrow.compute.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return np.array(column.to_pylist(), dtype=object)
