"""The statements of counting in SQL: one GROUP BY, of a person no more rows than promised; what three engines all run.

`dphist.sources.sql.words` has the words. What is kept of a person, and why, says `dphist.sources.people`.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from dphist.sources.engine import LARGEST_SUM, Bound, Column, Integers, Key, Value
from dphist.sources.people import most, refuse_floats
from dphist.sources.sql.words import SqlWords
from dphist.sources.tally import Tally


class Sql(SqlWords):
    """A table of an engine, counted by statements in words that each engine may say differently."""

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
        batches: Sequence[Sequence[tuple[int, ...]]],
    ) -> list[tuple[Integers, Integers, Integers]]:
        """Count batches of tables: for each, which table of the batch, which cell of it, and how many rows."""
        codes = self.codes(cells, sizes, bound)
        statements = [self.tables_statement(codes, batch, sizes) for batch in batches]
        answers = self.asked(statements, None if bound is None else bound.id)
        return [tuple(map(_whole, answer.columns)) for answer in answers]  # type: ignore[misc]

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
