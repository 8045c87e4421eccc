"""The words of counting in SQL: what DuckDB, PostgreSQL and Spark share, and the one statement they all run.

Ibis says the same for other engines. These three are spoken to directly, because what a row means must not
hang on how a translator happens to divide, cast or hash.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import datetime as dt
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from dphist.sources.engine import LARGEST_SUM, Bound, Column, Family, Key, Value
from dphist.sources.people import exact_below, is_decimal, most, refuse_type


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


class Sql(ABC):
    """Expressions as SQL text. Each engine overrides the words that it says differently."""

    columns: tuple[Column, ...]
    relation: str
    watching = False
    had_cell: int | None = None
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
        return self.quote(column.name)

    def parse(self, value: str, family: Family) -> str:
        """An undeclared value as a real number, truth value or time; NULL where it is none."""
        kind = {"real": self.double, "truth": "BOOLEAN", "time": "TIMESTAMP"}[family]
        return f"TRY_CAST({value} AS {kind})"

    def real(self, value: str) -> str:
        """As a 64-bit float."""
        return f"CAST({value} AS {self.double})"

    def integer(self, value: str) -> str:
        """As a 64-bit integer."""
        return f"CAST({value} AS BIGINT)"

    def truth(self, value: str) -> str:
        """A truth value as 0 or 1."""
        return f"CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END"

    def floor(self, value: str) -> str:
        """The largest 64-bit integer that is not above the value."""
        return f"CAST(floor({value}) AS BIGINT)"

    def text(self, value: str) -> str:
        """As text that is compared byte by byte, whatever collation the column has."""
        return f'(CAST({value} AS {self.string}) COLLATE "C")'

    def days(self, value: str, family: Family) -> str:
        """Days since 1970-01-01."""
        if family == "zoned time":
            value = f"timezone('UTC', {value})"
        return f"(CAST({value} AS DATE) - DATE '1970-01-01')"

    def day(self, day: dt.date, family: Family) -> str:
        """The first moment of a day."""
        if family == "zoned time":
            return f"TIMESTAMPTZ '{day.isoformat()} 00:00:00+00'"
        return f"DATE '{day.isoformat()}'" if family == "date" else f"TIMESTAMP '{day.isoformat()} 00:00:00'"

    def between(self, value: str, low: Any, high: Any) -> str:
        """Whether low ≤ value ≤ high; all these engines hold NaN above every number."""
        return f"({value} BETWEEN {self.literal(low)} AND {self.literal(high)})"

    def before(self, value: str, bound: Any) -> str:
        """Whether value < bound."""
        return f"({value} < {self._sql(bound)})"

    def same(self, value: str, other: str) -> str:
        """Whether two values are equal."""
        return f"({value} = {other})"

    def is_multiple(self, value: str, first: int, step: int) -> str:
        """Whether an integer is some steps away from the first."""
        return f"(({value} - {first}) % {step} = 0)"

    def steps(self, value: str, first: int, step: int) -> str:
        """How many whole steps an integer is above the first."""
        return f"({self.divide(f'({value} - {first})', step)})" if step > 1 else f"({value} - {first})"

    def divide(self, value: str, step: int | str) -> str:
        """A non-negative integer divided, without its remainder."""
        return f"{value} / {step}"

    def one_of(self, value: str, choices: Sequence[Any]) -> str:
        """Whether the value is one of a list."""
        return f"({value} IN ({', '.join(map(self.literal, choices))}))"

    @abstractmethod
    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1."""

    def bin(self, value: str, edges: Sequence[Any]) -> str | None:
        """The bin of a value known to lie between many edges, if the engine has a way of its own; else None."""
        return None

    def when(self, condition: str, value: Any, otherwise: Any) -> str:
        """One value where a condition is true, another (or NULL) elsewhere."""
        value, otherwise = self._sql(value), "NULL" if otherwise is None else self._sql(otherwise)
        return f"CASE WHEN {condition} THEN {value} ELSE {otherwise} END"

    def otherwise(self, value: Any, instead: int) -> str:
        """The value, or a number where it is NULL."""
        return f"coalesce({self._sql(value)}, {instead})"

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
            value, below = self.real(value), self.literal(float(exact_below(column)))
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
        """The first 60 bits of the hash of an id."""

    def too_large(self, column: Column) -> str | None:
        """A query for the number of ids that are floats beyond what tells people apart; None where none can be."""
        if column.family != "real" or is_decimal(column):
            return None
        value, below = self.real(self.quote(column.name)), self.literal(float(exact_below(column)))
        largest = self.literal(sys.float_info.max)
        return f"SELECT count(*) AS n FROM {self.relation} WHERE abs({value}) BETWEEN {below} AND {largest}"

    def times(self, value: str, factor: Any) -> str:
        """A product."""
        return f"({value} * {self._sql(factor)})"

    def plus(self, value: str, more: Any) -> str:
        """A sum."""
        return f"({value} + {self._sql(more)})"

    def total(self, name: str) -> str:
        """The sum of a column of whole numbers, exactly, however many they are."""
        return f"sum({name})"

    def totals(self, values: Sequence[Value]) -> str:
        """The sums of the columns v0, v1, …, as s0, s1, …, each within what a 64-bit integer holds."""
        return "".join(
            f", CAST(least(greatest({self.total(f'v{place}')}, -{LARGEST_SUM}), {LARGEST_SUM}) AS BIGINT) AS s{place}"
            for place in range(len(values))
        )

    def _valued(self, values: Sequence[Value]) -> tuple[str, list[str], list[str]]:
        """The values as columns of a SELECT, their names, and that all of them are there."""
        names = [f"v{place}" for place in range(len(values))]
        columns = "".join(
            f", CAST({self._sql(value.amount)} AS BIGINT) AS {name}"
            for value, name in zip(values, names, strict=True)
        )
        return columns, names, [f"{name} IS NOT NULL" for name in names]

    @property
    def tells_unplaced(self) -> bool:
        """Whether the GROUP BY has one more key: 1 for rows inside all bounds, 0 for the others."""
        return False

    def statement(self, keys: Sequence[Key], values: Sequence[Value] = ()) -> str:
        """The GROUP BY."""
        filters = [f"({key.inside})" for key in keys if key.inside is not None and not key.other]
        found = [
            self.when(key.inside, key.value, None) if key.other and key.inside is not None else key.value
            for key in keys
        ]
        if self.tells_unplaced:
            # One more key, and one more group: the rows that the filters would have dropped, in the same pass.
            fits = " AND ".join(filters) or self.literal(True)
            found, filters = [*(self.when(fits, value, None) for value in found), self.when(fits, 1, 0)], []
            keys = [*keys, keys[0]]
        names = [f"k{place}" for place in range(len(keys))]
        listed = ", ".join(names)
        named = ", ".join(f"{self._sql(value)} AS {name}" for value, name in zip(found, names, strict=True))
        columns, _, there = self._valued(values)
        # Keys by name from a subquery: an expression repeated in GROUP BY need not be computed once.
        inner = f"SELECT {named}{columns} FROM {self.relation}{where(filters)}"
        asked = f"{listed}, count(*) AS n{self.totals(values)}"
        return f"SELECT {asked} FROM ({inner}) AS keyed{where(there)} GROUP BY {listed}"

    def crowd_statement(self, person: Column) -> str:
        """How many people have how many rows."""
        inner = f"SELECT {self.person(person)} AS person FROM {self.relation}"
        each = f"SELECT count(*) AS n FROM ({inner}) AS rows_of WHERE person IS NOT NULL GROUP BY person"
        return f"SELECT n, count(*) AS people FROM ({each}) AS people_of GROUP BY n"

    def placed(self, cell: str, bound: Bound, part: str | None = None, values: Sequence[Value] = ()) -> str:
        """Each row that counts as its person, cell and values; ``part`` is a further condition on the person."""
        columns, names, there = self._valued(values)
        inner = f"SELECT {self.person(bound.id)} AS person, {cell} AS cell{columns} FROM {self.relation}"
        known = ["person IS NOT NULL", "cell IS NOT NULL", *there, *([part] if part else [])]
        return f"SELECT {', '.join(['person', 'cell', *names])} FROM ({inner}) AS rows_of{where(known)}"

    def bounded_statement(
        self, cell: str, bound: Bound, part: str | None = None, values: Sequence[Value] = ()
    ) -> str:
        """Count the rows that are kept, by cell: at most ``bound.rows`` of a person; and add their values up.

        `dphist.sources.people` says which and why. The place p is some (r + i·n) // L exactly if r − p·L is below L
        modulo n, and all places are if n ≤ L.
        """
        names = [f"v{place}" for place in range(len(values))]
        kept = self.chosen(
            self.placed(cell, bound, part, values), ["cell"], names, self.start("person"), bound
        )
        if any(value.limit is not None for value in values):
            kept = self._limited(kept, values)
        return f"SELECT cell, count(*) AS n{self.totals(values)} FROM ({kept}) AS kept GROUP BY cell"

    def _limited(self, kept: str, values: Sequence[Value]) -> str:
        """Cut the values of a person who has more than the limit, all by the same factor, towards zero."""
        sums = [
            f"CAST(sum(abs(v{place})) OVER (PARTITION BY person) AS BIGINT) AS t{place}"
            for place, value in enumerate(values)
            if value.limit is not None
        ]
        summed = f"SELECT *, {', '.join(sums)} FROM ({kept}) AS chosen"
        return f"SELECT cell, {', '.join(self.cut(values))} FROM ({summed}) AS summed"

    def cut(self, values: Sequence[Value]) -> list[str]:
        """The values v0 and so on, cut where t0 and so on, what the row's person adds up to, is more than the limit.

        Σ ⌊|v|·limit ÷ t⌋ ≤ limit where t = Σ |v|: in whole numbers, so that it holds exactly.
        """
        cut = []
        for place, value in enumerate(values):
            name = f"v{place}"
            if value.limit is None:
                cut.append(name)
                continue
            up = self.divide(f"({name} * {value.limit})", f"t{place}")
            down = self.divide(f"(-{name} * {value.limit})", f"t{place}")
            whole = f"WHEN t{place} <= {value.limit} THEN {name}"
            cut.append(f"CASE {whole} WHEN {name} < 0 THEN -({down}) ELSE {up} END AS {name}")
        return cut

    def code(self, key: Key, size: int) -> str:
        """The number of an attribute's cell; NULL for a row that has none there."""
        value = f"CAST({self._sql(key.value)} AS BIGINT)"
        return value if key.inside is None else self.when(key.inside, value, None)

    def codes(self, cells: Sequence[Key], sizes: Sequence[int], bound: Bound | None) -> str:
        """The codes of every row that counts, c0, c1 and so on; of a person at most ``bound.rows`` rows.

        Ordered by their codes a person's rows are ordered by their cells, so these are the rows that
        `dphist.sources.people` keeps; the condition is that of `bounded_statement`.
        """
        names = [f"c{place}" for place in range(len(cells))]
        listed = ", ".join(names)
        named = [f"{self.code(key, size)} AS {c}" for key, size, c in zip(cells, sizes, names, strict=True)]
        known = [f"{name} IS NOT NULL" for name in names]
        if bound is None:
            inner = f"SELECT {', '.join(named)} FROM {self.relation}"
            return f"SELECT {listed} FROM ({inner}) AS coded{where(known)}"
        inner = f"SELECT {self.person(bound.id)} AS person, {', '.join(named)} FROM {self.relation}"
        placed = f"SELECT person, {listed} FROM ({inner}) AS rows_of{where(['person IS NOT NULL', *known])}"
        kept = self.chosen(placed, names, [], self.first_bits("person"), bound)
        return f"SELECT {listed} FROM ({kept}) AS kept"

    def key_order(self, size: int) -> str | None:
        """A whole number by which cells of a key and one of ``size`` known cells are ordered before their texts."""
        return None

    def keys_statement(self, key: str, cell: str, bound: Bound | None, size: int) -> str:
        """Count rows by a key that nobody declared and a known cell, of a person no more than the bound says."""
        known = ["key IS NOT NULL", "cell IS NOT NULL"]
        rows = "count(*)"
        if bound is None:
            inner = f"SELECT {key} AS key, {cell} AS cell FROM {self.relation}"
            kept = f"SELECT key, cell FROM ({inner}) AS rows_of{where(known)}"
        else:
            placed = self.placed_keys(key, cell, bound)
            first = self.key_order(size)
            order = ["key", "cell"] if first is None else ["first", "key", "cell"]
            if first is not None:
                placed = f"SELECT person, {first} AS first, key, cell FROM ({placed}) AS placed"
            if bound.cells is None:
                kept = self.chosen(placed, order, [], self.first_bits("person"), bound)
            else:
                # Rows of one cell are alike, so cells are ranked and not rows; only people above the limit are hashed.
                listed = ", ".join(["person", *order])
                cells = (
                    f"SELECT {listed}, least(count(*), {most(bound.per_cell)}) AS n FROM ({placed}) AS ordered "
                    f"GROUP BY {listed}"
                )
                kept = self.kept_cells(cells, most(bound.cells), order)
                rows = "CAST(sum(n) AS BIGINT)"
        # A constant is no key to group by.
        grouped = "key" if cell == "0" else "key, cell"
        shown = "key, 0 AS cell" if cell == "0" else "key, cell"
        return f"SELECT {shown}, {rows} AS n FROM ({kept}) AS kept GROUP BY {grouped}"

    def placed_keys(self, key: str, cell: str, bound: Bound) -> str:
        """Each row that counts as its person, its key and its known cell."""
        person = self.person(bound.id)
        inner = f"SELECT {person} AS person, {key} AS key, {cell} AS cell FROM {self.relation}"
        known = ["person IS NOT NULL", "key IS NOT NULL", "cell IS NOT NULL"]
        return f"SELECT person, key, cell FROM ({inner}) AS rows_of{where(known)}"

    def kept_cells(self, cells: str, most: int, order: Sequence[str]) -> str:
        """Of the cells of each person (person, key, cell, n) those at the places that are kept."""
        listed = ", ".join(f"{name} ASC" for name in order)
        ranked = (
            "SELECT person, key, cell, n, count(*) OVER (PARTITION BY person) AS total, row_number() OVER "
            f"(PARTITION BY person ORDER BY {listed}) - 1 AS place FROM ({cells}) AS cells"
        )
        chosen = _at_a_place(self.first_bits("person"), "total", "place", most)
        return f"SELECT key, cell, n FROM ({ranked}) AS ranked WHERE {chosen}"

    def chosen(
        self, placed: str, cell: Sequence[str], values: Sequence[str], start: str, bound: Bound
    ) -> str:
        """The rows that are kept of each person, by the columns that name their cell and those of their values."""
        listed = ", ".join([*cell, *values])
        # The direction is said, because a connection that we were handed may have another by default.
        order = ", ".join(f"{name} ASC" for name in (*cell, *values))
        if bound.cells is None:
            ranked = (
                f"SELECT person, {listed}, {start} AS start, count(*) OVER (PARTITION BY person) AS total, "
                f"row_number() OVER (PARTITION BY person ORDER BY {order}) - 1 AS place FROM ({placed}) AS placed"
            )
            kept = _at_a_place("start", "total", "place", most(bound.rows))
            return f"SELECT person, {listed} FROM ({ranked}) AS ranked WHERE {kept}"
        by, cells = ", ".join(["person", *cell]), ", ".join(f"{name} ASC" for name in cell)
        numbered = (
            f"SELECT person, {listed}, {start} AS start, count(*) OVER (PARTITION BY {by}) AS total, "
            f"row_number() OVER (PARTITION BY {by} ORDER BY {order}) - 1 AS place, "
            f"dense_rank() OVER (PARTITION BY person ORDER BY {cells}) - 1 AS which FROM ({placed}) AS placed"
        )
        ranked = f"SELECT *, max(which) OVER (PARTITION BY person) + 1 AS cells FROM ({numbered}) AS numbered"
        among = _at_a_place("start", "cells", "which", most(bound.cells))
        inside = _at_a_place(f"({self.divide('start', 'cells')})", "total", "place", most(bound.per_cell))
        return f"SELECT person, {listed} FROM ({ranked}) AS ranked WHERE ({among}) AND ({inside})"

    def first_bits(self, person: str) -> str:
        """The first 60 bits of the hash of an id, as a number that can be divided."""
        return self.start(person)

    def tables_statement(self, codes: str, tables: Sequence[tuple[int, ...]], sizes: Sequence[int]) -> str:
        """Count several tables in one pass: which table, which of its cells, how many rows.

        A code is never NULL, so the columns of a group that are not say which table it belongs to; larger tables are
        asked for first, because a smaller one's columns may be among theirs.
        """
        sets = ", ".join(f"({', '.join(f'c{axis}' for axis in axes)})" for axes in tables)
        used = sorted({axis for axes in tables for axis in axes})
        listed = "".join(f"c{axis}, " for axis in used)
        grouped = f"SELECT {listed}count(*) AS n FROM ({codes}) AS kept GROUP BY GROUPING SETS ({sets})"
        which, cell = [], []
        for place in sorted(range(len(tables)), key=lambda t: -len(tables[t])):
            number = "0"
            for axis in tables[place]:
                number = f"({number} * {sizes[axis]} + c{axis})"
            here = " AND ".join(f"c{axis} IS NOT NULL" for axis in tables[place]) or "TRUE"
            which.append(f"WHEN {here} THEN {place}")
            cell.append(f"WHEN {here} THEN {number}")
        return (
            f"SELECT CASE {' '.join(which)} END AS which, CASE {' '.join(cell)} END AS cell, n "
            f"FROM ({grouped}) AS grouped"
        )

    def _sql(self, value: Any) -> str:
        return value if isinstance(value, str) else self.literal(value)


def where(conditions: Sequence[str]) -> str:
    """The WHERE clause of some conditions, or nothing."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _at_a_place(start: str, total: str, place: str, most: int) -> str:
    """Whether a place is one of ⌊(r + i·n) ÷ L⌋, r being the start modulo n; all are if n ≤ L."""
    return f"{total} <= {most} OR (({start} % {total} - {place} * {most}) % {total} + {total}) % {total} < {most}"
