"""The statements of counting in SQL: one GROUP BY, of a person no more rows than promised; what three engines all run.

`dphist.sources.sql.words` has the words. What is kept of a person, and why, says `dphist.sources.people`.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from dphist.sources.engine import LARGEST_SUM, Bound, Column, Key, Value
from dphist.sources.people import most
from dphist.sources.sql.words import SqlWords
from dphist.sources.tally import Tally


class Sql(SqlWords):
    """Statements as SQL text, in words that each engine may say differently."""

    @abstractmethod
    def watch(self, tally: Tally) -> None:
        """Say how many rows there were in all, where that is known by now."""

    @abstractmethod
    def table_of(self, sql: str) -> Any:
        """What a query for keys, cells and numbers gives, as an Arrow table."""

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
        columns, amounts, there = self._valued(values)
        # Keys by name from a subquery: an expression repeated in GROUP BY need not be computed once.
        inner = f"SELECT {named}{columns} FROM {self.relation}{where(filters)}"
        if self.tells_unplaced and there:
            # A row without a value has no cell either, and is counted among those.
            valued, last = " AND ".join(there), names[-1]
            keyed = ", ".join(f"{self.when(valued, name, None)} AS {name}" for name in names[:-1])
            told = f"{keyed}, {self.when(valued, last, 0)} AS {last}, {', '.join(amounts)}"
            inner, there = f"SELECT {told} FROM ({inner}) AS valued", []
        asked = f"{listed}, count(*) AS n{self.totals(values)}"
        return f"SELECT {asked} FROM ({inner}) AS keyed{where(there)} GROUP BY {listed}"

    def rows_per_person_statement(self, person: Column) -> str:
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

    def keys_statement(self, key: str, cell: str, bound: Bound | None) -> str:
        """Count rows by a key that nobody declared and a known cell, of a person no more than the bound says."""
        known = ["key IS NOT NULL", "cell IS NOT NULL"]
        rows = "count(*)"
        if bound is None:
            inner = f"SELECT {key} AS key, {cell} AS cell FROM {self.relation}"
            kept = f"SELECT key, cell FROM ({inner}) AS rows_of{where(known)}"
        else:
            placed = self.placed_keys(key, cell, bound)
            order = ["key", "cell"]
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


def where(conditions: Sequence[str]) -> str:
    """The WHERE clause of some conditions, or nothing."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _at_a_place(start: str, total: str, place: str, most: int) -> str:
    """Whether a place is one of ⌊(r + i·n) ÷ L⌋, r being the start modulo n; all are if n ≤ L."""
    return f"{total} <= {most} OR (({start} % {total} - {place} * {most}) % {total} + {total}) % {total} < {most}"
