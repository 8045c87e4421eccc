"""Counting in SQL as DuckDB, PostgreSQL and Spark all run it: its words, and one GROUP BY made of them.

These three are spoken to directly, because what a row means must not depend on how a translator happens to divide, cast
or hash. What is kept of a person, and why, says `dphist.sources.people`.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import datetime as dt
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dphist.sources.engine import LARGEST_SUM, Bound, Column, Family, Integers, Key, Tally, Value
from dphist.sources.people import exact_below, is_decimal, most, refuse_floats, refuse_type


def quote(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """A public value as SQL."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE PRECISION)"
    return str(value)


def microseconds(value: str) -> str:
    """DuckDB's time of nanoseconds as the microsecond that it lies in.

    DuckDB cuts towards zero, by which the last moments of a day before 1970 would lie in the next, and the cell of a
    row would depend on whether its column came as such times or as texts: in a frame that is up to other rows.
    """
    cut = f"CAST({value} AS TIMESTAMP)"
    return (
        f"CASE WHEN CAST({cut} AS TIMESTAMP_NS) > {value} THEN {cut} - INTERVAL 1 MICROSECOND ELSE {cut} END"
    )


class Sql(ABC):
    """A table of an engine, counted by SQL; each engine overrides the words that it says differently."""

    columns: tuple[Column, ...]
    relation: str
    double = "DOUBLE PRECISION"
    string = "VARCHAR"

    def quote(self, name: str) -> str:
        """A name as an identifier."""
        return quote(name)

    def literal(self, value: Any) -> str:
        """A public value."""
        return literal(value)

    def column(self, column: Column) -> str:
        """The column's value."""
        return self.number(column)

    def number(self, column: Column) -> str:
        """The column as it stands, or what an engine must say to compare its numbers."""
        return self.quote(column.name)

    def parse(self, value: str, family: Family) -> str:
        """An undeclared value as a real number, truth value or time; NULL where it is none.

        A text with an offset is a zoned time and no other, one without is a time and no zoned one.
        """
        return f"TRY_CAST({value} AS {self.kind(family)})"

    def kind(self, family: Family) -> str:
        """What the engine calls such values."""
        return {
            "real": self.double, "truth": "BOOLEAN", "time": "TIMESTAMP", "zoned time": "TIMESTAMPTZ"
        }[family]  # fmt: skip

    def real(self, value: str) -> str:
        """As a 64-bit float."""
        return f"CAST({value} AS {self.double})"

    def integer(self, value: str) -> str:
        """As a 64-bit integer; only asked where the value is one."""
        return f"CAST({value} AS BIGINT)"

    def truth(self, value: str) -> str:
        """A truth value as 0 or 1."""
        return f"CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END"

    def floor(self, value: str) -> str:
        """The largest 64-bit integer that is not above the value; only asked where it fits."""
        return f"CAST(floor({value}) AS BIGINT)"

    def text(self, value: str) -> str:
        """As text that is compared byte by byte, whatever collation the column has."""
        return f'(CAST({value} AS {self.string}) COLLATE "C")'

    def distinct_text(self, column: Column) -> str:
        """A column's value as text by which rows are told apart; NULL where there is none."""
        return self.text(self.column(column))

    def days(self, value: str, family: Family, ahead: str | None = None) -> str:
        """Days since 1970-01-01: of a time by its calendar day, of a zoned time by the day of clocks ``ahead`` of UTC.

        Ahead by that many seconds; NULL gives NULL, None is UTC.
        """
        if family == "zoned time":
            value = f"timezone('UTC', {value})"
        if ahead is not None:
            value = f"({value} + ({self._sql(ahead)}) * INTERVAL '1 second')"
        return f"(CAST({value} AS DATE) - DATE '1970-01-01')"

    def day(self, day: dt.date, family: Family) -> str:
        """The first moment of a day."""
        if family == "zoned time":
            return self.moment(dt.datetime(day.year, day.month, day.day))
        return f"DATE '{day.isoformat()}'" if family == "date" else f"TIMESTAMP '{day.isoformat()} 00:00:00'"

    def moment(self, at: dt.datetime) -> str:
        """A moment in UTC."""
        return f"TIMESTAMPTZ '{at.isoformat(' ')}+00'"

    def between(self, value: str, low: Any, high: Any) -> str:
        """Whether low ≤ value ≤ high; all these engines hold NaN above every number."""
        return f"({value} BETWEEN {self.literal(low)} AND {self.literal(high)})"

    def before(self, value: str, bound: Any) -> str:
        """Whether value < bound."""
        return f"({value} < {self._sql(bound)})"

    def steps(self, value: str, first: int, step: int) -> str:
        """How many whole steps an integer is above the first."""
        return f"({self.divide(f'({value} - {first})', step)})" if step > 1 else f"({value} - {first})"

    def divide(self, value: str, step: int | str) -> str:
        """A non-negative integer divided, without its remainder."""
        return f"{value} / {step}"

    @abstractmethod
    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1; NULL where it is not in it."""

    def bin(self, value: str, edges: Sequence[Any]) -> str | None:
        """The bin of a value known to lie between many edges, if the engine has a way of its own; else None."""
        return None

    def look_up(self, value: str, places: Mapping[Any, int]) -> str | None:
        """The place of a value in a long list, if the engine has a way of its own; else None."""
        return None

    def when(self, condition: str, value: Any, otherwise: Any) -> str:
        """One value where a condition is true, another (or NULL) elsewhere; only that one is evaluated."""
        values = ("NULL" if each is None else self._sql(each) for each in (value, otherwise))
        return f"CASE WHEN {condition} THEN {next(values)} ELSE {next(values)} END"

    def otherwise(self, value: Any, instead: Any) -> str:
        """The value, or another where it is NULL."""
        return f"coalesce({self._sql(value)}, {self._sql(instead)})"

    def flat(self, cells: Sequence[Key], sizes: Sequence[int]) -> str:
        """The number of a cell of the whole domain; NULL for a row in no cell.

        A CASE, not a WHERE: an engine may test conditions in any order, and values exist only inside the bounds.
        """
        number = ""
        for key, size in zip(cells, sizes, strict=True):
            cell = f"CAST({self._sql(key.value)} AS BIGINT)"
            number = f"({number}) * {size} + {cell}" if number else cell
        inside = [f"({key.inside})" for key in cells if key.inside is not None]
        return self.when(" AND ".join(inside), number, None) if inside else number

    def person(self, column: Column) -> str:
        """The id as a whole number or as bytes of text, NULL for nobody; see `dphist.sources.people`."""
        value = self.quote(column.name)
        if column.family == "integer":
            return value
        if is_decimal(column):
            return self._digits(value)
        if column.family == "real":
            value, below = self.real(self.number(column)), self.literal(float(exact_below(column)))
            whole = f"abs({value}) < {below} AND {value} = floor({value})"
            return f"CASE WHEN {whole} THEN CAST({value} AS BIGINT) END"
        if column.family == "truth":
            return f"CASE WHEN {value} THEN 'true' WHEN NOT {value} THEN 'false' END"
        if column.family in ("text", "undeclared", "date") or column.type.lower() == "uuid":
            return self.text(value)
        raise refuse_type(column)

    def _digits(self, value: str) -> str:
        """A whole decimal number as text, without the zeros that its scale adds; NULL for any other."""
        text = self.text(value)
        known = f"{text} NOT IN ('NaN', 'Infinity', '-Infinity')"
        whole = (
            f"CASE WHEN {text} LIKE '%.%' THEN rtrim(rtrim({text}, '0'), '.') WHEN {known} THEN {text} END"
        )
        return f"CASE WHEN {whole} NOT LIKE '%.%' THEN {whole} END"

    @abstractmethod
    def start(self, person: str) -> str:
        """The first 60 bits of the hash of an id, as a number that can be divided."""

    def too_large(self, column: Column) -> str | None:
        """A query for the number of ids that are floats beyond what tells people apart; None where none can be."""
        if column.family != "real" or is_decimal(column):
            return None
        value, below = self.real(self.number(column)), self.literal(float(exact_below(column)))
        largest = self.literal(sys.float_info.max)
        return f"SELECT count(*) AS n FROM {self.relation} WHERE abs({value}) BETWEEN {below} AND {largest}"

    def unnested(self, values: Sequence[str]) -> str:
        """A row for each of some values."""
        return f"unnest(ARRAY[{', '.join(values)}])"

    def total(self, name: str) -> str:
        """The sum of a column of whole numbers, exactly, however many they are."""
        return f"sum({name})"

    def _sql(self, value: Any) -> str:
        return value if isinstance(value, str) else self.literal(value)

    @abstractmethod
    def tables(self, statements: Sequence[str]) -> list[Any]:
        """The answers to queries of the same rows, as Arrow tables."""

    def asked(self, statements: Sequence[str], person: Column | None = None) -> list[Any]:
        """The same, unless there are ids that are floats beyond what tells people apart."""
        looked = None if person is None else self.too_large(person)
        if looked is None or person is None:
            return self.tables(statements)
        large, *answers = self.tables([looked, *statements])
        if large.column(0).to_pylist() != [0]:
            raise refuse_floats(person)
        return answers

    def watch(self, tally: Tally) -> None:
        """Say how many rows there are in all."""
        (found,) = self.tables([f"SELECT count(*) AS n FROM {self.relation}"])
        (tally.rows,) = found.column(0).to_pylist()

    def count(
        self, cell: str, bound: Bound | None, values: Sequence[Value] = ()
    ) -> tuple[Integers, Integers, Sequence[Integers]]:
        """Cells, how many rows count, and sums: of a person as many as the bound says; see `dphist.sources.people`."""
        statement = self.count_statement(cell, bound, values)
        (found,) = self.asked([statement], None if bound is None else bound.id)
        cells, rows, *sums = map(_whole, found.columns)
        return cells, rows, sums

    def rows_per_person(self, person: Column) -> tuple[Integers, Integers]:
        """Numbers of rows, and how many people have as many, whatever the rows hold."""
        (found,) = self.asked([self.rows_per_person_statement(person)], person)
        rows, people = map(_whole, found.columns)
        return rows, people

    def count_tables(
        self,
        cells: Sequence[Key],
        sizes: Sequence[int],
        bound: Bound | None,
        tables: Sequence[tuple[int, ...]],
    ) -> tuple[Integers, Integers]:
        """Count tables in one pass: which cells hold rows, all numbered one table after the other, and how many."""
        statement = self.tables_statement(self.codes(cells, sizes, bound), tables, sizes)
        (found,) = self.asked([statement], None if bound is None else bound.id)
        held, rows = map(_whole, found.columns)
        return held, rows

    def _totals(self, values: Sequence[Value]) -> str:
        """The sums of the columns v0, v1, …, as s0, s1, …, each within what a 64-bit integer holds."""
        return "".join(
            f", CAST(least(greatest({self.total(f'v{place}')}, -{LARGEST_SUM}), {LARGEST_SUM}) AS BIGINT) AS s{place}"
            for place in range(len(values))
        )

    def rows_per_person_statement(self, person: Column) -> str:
        """How many people have how many rows."""
        inner = f"SELECT {self.person(person)} AS person FROM {self.relation}"
        each = f"SELECT count(*) AS n FROM ({inner}) AS rows_of WHERE person IS NOT NULL GROUP BY person"
        return f"SELECT n, count(*) AS people FROM ({each}) AS people_of GROUP BY n"

    def count_statement(self, cell: str, bound: Bound | None, values: Sequence[Value] = ()) -> str:
        """Count the rows that have a cell, of a person no more than the bound says, and add their values up."""
        if bound is not None and not values:
            return self._counted({"cell": cell}, bound)
        names = [f"v{place}" for place in range(len(values))]
        amounts = (f"CAST({self._sql(value.amount)} AS BIGINT)" for value in values)
        named = {"cell": cell, **dict(zip(names, amounts, strict=True))}
        if bound is None:
            kept = self._rows(named)
        else:
            kept = self._chosen(self._placed(named, bound), ["cell"], names, bound)
            if any(value.limit is not None for value in values):
                kept = self._limited(kept, values)
        return f"SELECT cell, count(*) AS n{self._totals(values)} FROM ({kept}) AS kept GROUP BY cell"

    def keys_statement(self, key: str, cell: str, bound: Bound | None) -> str:
        """Count rows by a key that nobody declared and a known cell, of a person no more than the bound says."""
        if bound is not None:
            return self._counted({"key": key, "cell": cell}, bound)
        kept = self._rows({"key": key, "cell": cell})
        return f"SELECT key, cell, count(*) AS n FROM ({kept}) AS kept GROUP BY key, cell"

    def _counted(self, named: dict[str, str], bound: Bound) -> str:
        """Count the rows that are kept of each person by the columns that name a cell, in whose order they are kept."""
        order, rows = [*named], "count(*)"
        listed = ", ".join(order)
        placed = self._placed(named, bound)
        if bound.cells is None:
            kept = self._chosen(placed, order, [], bound)
        else:
            # Rows of one cell are alike, so cells are ranked, and not rows.
            cells = (
                f"SELECT person, {listed}, least(count(*), {most(bound.per_cell)}) AS n FROM ({placed}) AS placed "
                f"GROUP BY person, {listed}"
            )
            kept = self._at_places(cells, order, ["n"], most(bound.cells))
            rows = "CAST(sum(n) AS BIGINT)"
        return f"SELECT {listed}, {rows} AS n FROM ({kept}) AS kept GROUP BY {listed}"

    def _placed(self, named: dict[str, str], bound: Bound) -> str:
        """Each row that counts, as its person and some columns, the first of which name its cell."""
        return self._rows({"person": self.person(bound.id), **named})

    def _rows(self, named: dict[str, str]) -> str:
        """Some columns of each row that has a value in all of them."""
        columns = ", ".join(f"{value} AS {name}" for name, value in named.items())
        known = " AND ".join(f"{name} IS NOT NULL" for name in named)
        return (
            f"SELECT {', '.join(named)} FROM (SELECT {columns} FROM {self.relation}) AS rows_of WHERE {known}"
        )

    def _at_places(self, rows: str, order: Sequence[str], carried: Sequence[str], most: int) -> str:
        """Of the rows of each person, in the order of some columns, those at the places that are kept."""
        listed = ", ".join([*order, *carried])
        ranked = (
            f"SELECT person, {listed}, count(*) OVER (PARTITION BY person) AS total, row_number() OVER "
            f"(PARTITION BY person ORDER BY {_rising(order)}) - 1 AS place FROM ({rows}) AS counted"
        )
        kept = _is_kept(self.start("person"), "total", "place", most)
        return f"SELECT person, {listed} FROM ({ranked}) AS ranked WHERE {kept}"

    def _chosen(self, placed: str, cell: Sequence[str], values: Sequence[str], bound: Bound) -> str:
        """The rows that are kept of each person, by the columns that name their cell and those of their values."""
        order = [*cell, *values]
        if bound.cells is None:
            return self._at_places(placed, order, [], most(bound.rows))
        by, listed, start = ", ".join(["person", *cell]), ", ".join(order), self.start("person")
        numbered = (
            f"SELECT person, {listed}, count(*) OVER (PARTITION BY {by}) AS total, "
            f"row_number() OVER (PARTITION BY {by} ORDER BY {_rising(order)}) - 1 AS place, "
            f"dense_rank() OVER (PARTITION BY person ORDER BY {_rising(cell)}) - 1 AS which FROM ({placed}) AS placed"
        )
        ranked = f"SELECT *, max(which) OVER (PARTITION BY person) + 1 AS cells FROM ({numbered}) AS numbered"
        among = _is_kept(start, "cells", "which", most(bound.cells))
        inside = _is_kept(f"({self.divide(start, 'cells')})", "total", "place", most(bound.per_cell))
        return f"SELECT person, {listed} FROM ({ranked}) AS ranked WHERE ({among}) AND ({inside})"

    def _limited(self, kept: str, values: Sequence[Value]) -> str:
        """Cut the values of a person who has more than the limit, all by the same factor, towards zero."""
        sums = [
            f"CAST(sum(abs(v{place})) OVER (PARTITION BY person) AS BIGINT) AS t{place}"
            for place, value in enumerate(values)
            if value.limit is not None
        ]
        summed = f"SELECT *, {', '.join(sums)} FROM ({kept}) AS chosen"
        cut = ", ".join(self._cut(place, value.limit) for place, value in enumerate(values))
        return f"SELECT cell, {cut} FROM ({summed}) AS summed"

    def _cut(self, place: int, limit: int | None) -> str:
        """A value, cut where what the row's person adds up to, t, is more than the limit.

        Σ ⌊|v|·limit ÷ t⌋ ≤ limit where t = Σ |v|: in whole numbers, so that it holds exactly.
        """
        name, total = f"v{place}", f"t{place}"
        if limit is None:
            return name
        up = self.divide(f"({name} * {limit})", total)
        down = self.divide(f"(-{name} * {limit})", total)
        return (
            f"CASE WHEN {total} <= {limit} THEN {name} WHEN {name} < 0 THEN -({down}) ELSE {up} END AS {name}"
        )

    def code(self, key: Key, size: int) -> str:
        """The number of an attribute's cell; NULL for a row that has none there."""
        value = f"CAST({self._sql(key.value)} AS BIGINT)"
        return value if key.inside is None else self.when(key.inside, value, None)

    def codes(self, cells: Sequence[Key], sizes: Sequence[int], bound: Bound | None) -> str:
        """The codes of every row that counts, c0, c1 and so on; of a person at most ``bound.rows`` rows.

        Ordered by their codes a person's rows are ordered by their cells, so these are the rows that
        `dphist.sources.people` keeps.
        """
        named = {f"c{place}": self.code(key, sizes[place]) for place, key in enumerate(cells)}
        listed = ", ".join(named)
        if bound is not None:
            kept = self._chosen(self._placed(named, bound), [*named], [], bound)
            return f"SELECT {listed} FROM ({kept}) AS kept"
        return self._rows(named)

    def tables_statement(self, codes: str, tables: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> str:
        """Count several tables in one pass: every row names its cell in each, cells being numbered over all of them."""
        begin, numbers = 0, []
        for axes in tables:
            number = "0"
            for axis in axes:
                number = f"({number} * {sizes[axis]} + c{axis})"
            numbers.append(f"CAST({begin} + {number} AS BIGINT)")
            begin += math.prod(sizes[axis] for axis in axes)
        each = f"SELECT {self.unnested(numbers)} AS cell FROM ({codes}) AS kept"
        return f"SELECT cell, count(*) AS n FROM ({each}) AS each_of GROUP BY cell"


def _rising(names: Sequence[str]) -> str:
    """The direction is said, because a connection that we were handed may have another by default."""
    return ", ".join(f"{name} ASC" for name in names)


def _is_kept(start: str, total: str, place: str, most: int) -> str:
    """Whether a place is some ⌊(r + i·n) ÷ L⌋, r being the start modulo n: if r − place·L is below L modulo n.

    All places are if n ≤ L, and only people with more are hashed.
    """
    chosen = f"(({start} % {total} - {place} * {most}) % {total} + {total}) % {total} < {most}"
    return f"CASE WHEN {total} <= {most} THEN TRUE ELSE {chosen} END"


def _whole(column: Any) -> Integers:
    return np.asarray(column.to_numpy(), dtype=np.int64)
