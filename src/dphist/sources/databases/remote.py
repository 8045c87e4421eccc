"""Engines elsewhere that are spoken to in SQL: an Ibis table names the rows, our own words count them."""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values went through quote() and literal()

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dphist.errors import SourceError
from dphist.sources.engine import Bound, Column, Family, Groups, Integers, Key, Value
from dphist.sources.people import most, refuse_floats
from dphist.sources.sql.statements import Sql
from dphist.sources.tally import Tally

# Places that are written out one by one: sooner done than a list of numbers that is gone through.
WRITTEN_OUT = 8
# Numbers below this fit into 64 bits with a sign.
_WITHIN = 1 << 62


class Remote(Sql):
    """A table of another engine; the rows stay there, and only the counts come back."""

    name = "the engine"
    fence = ""
    """What keeps an engine from working a subquery out again wherever it is used."""
    sent = ""
    """What sends the rows of a person to one place before they are gathered."""
    _seen: int | None = None

    @property
    def tells_unplaced(self) -> bool:
        """Rows outside are counted in a group of their own where somebody wants to know: a count(*) is another scan."""
        return self.watching

    def watch(self, tally: Tally) -> None:
        """Say how many rows there were."""
        if self._seen is None:
            ((self._seen,),) = self._answer(self._all_rows)
        tally.rows = self._seen

    @property
    def _all_rows(self) -> str:
        return f"SELECT count(*) FROM {self.relation}"

    def group(self, keys: Sequence[Key], values: Sequence[Value] = ()) -> Groups:
        """Count the rows by their keys, and add their values up."""
        answer = self._answer(self.statement(keys, values))
        if self.tells_unplaced:
            fits = answer.pop(len(keys))
            self._seen = sum(answer[len(keys)])
            answer = [
                [value for value, inside in zip(column, fits, strict=True) if inside] for column in answer
            ]
        columns, rows, sums = answer[: len(keys)], answer[len(keys)], answer[len(keys) + 1 :]
        return Groups(
            keys=[_filled(column) for column in columns],
            missing=[np.array([value is None for value in column], dtype=bool) for column in columns],
            rows=np.array(rows, dtype=np.int64),
            sums=[np.array(column, dtype=np.int64) for column in sums],
        )

    def bounded_statement(
        self, cell: str, bound: Bound, part: str | None = None, values: Sequence[Value] = ()
    ) -> str:
        """Count the rows that are kept, by cell: one aggregation by person, no window and no join.

        The cells of a person are put in order, and those at the places ⌊(r + i·n) / L⌋ are taken out: what
        `dphist.sources.people` says in its own words. Only people of more than L rows are hashed, and each once.

        *With measures* the list is of rows, in the order of their cells and then of their values: the same places of
        the same order. What a person adds up to is a sum over that person's kept rows, as they lie in the list.

        *Where cells are bounded* rows of one cell are the same to the counts, so of a person's different cells, in
        order, those at the places ⌊(r + i·d) / k⌋ are taken out, each with how many rows it has, at most c. With
        measures as well, which rows of a cell are kept depends on d; those are ranked by windows.

        Each list is made of one person's rows and nobody else's, so the theorem there holds as it stands.
        """
        if values and bound.cells is not None:
            return super().bounded_statement(cell, bound, part, values)
        placed = f"{self.placed(cell, bound, part, values)}{self.sent}"
        if values:
            return self._listed_rows(placed, bound, values)
        if bound.cells is None:
            each = f"SELECT person, {self.in_order('cell')} AS cells, count(*) AS total"
            people = f"{each} FROM ({placed}) AS placed GROUP BY person"
            return self._listed_cells(people, most(bound.rows))
        if bound.per_cell == 1:
            each = f"SELECT person, {self.once_in_order('cell')} AS cells"
            people = f"{each} FROM ({placed}) AS placed GROUP BY person"
            people = f"SELECT person, cells, {self.length('cells')} AS total FROM ({people}) AS listed"
            return self._listed_cells(people, most(bound.cells))
        rows = f"least(count(*), {most(bound.per_cell)})"
        cells = f"SELECT person, cell, {rows} AS n FROM ({placed}) AS placed GROUP BY person, cell"
        kept = self._kept(cells, {"n": (1, bound.per_cell)}, bound.size, most(bound.cells))
        return f"SELECT cell, CAST(sum(n) AS BIGINT) AS n FROM ({kept}) AS kept GROUP BY cell"

    def _listed_cells(self, people: str, limit: int) -> str:
        """Count cells: those at the kept places of every person's list."""
        begun = self._with_first(people, limit)
        kept = f"CASE WHEN total <= {limit} THEN cells ELSE {self.at_places(limit)} END"
        rows = f"SELECT {self.each_of(kept)} AS cell FROM ({begun}) AS begun"
        return f"SELECT cell, count(*) AS n FROM ({rows}) AS kept GROUP BY cell"

    def _listed_rows(self, placed: str, bound: Bound, values: Sequence[Value]) -> str:
        """Count cells and add values up: of the rows at the kept places of every person's list."""
        bounds = {f"v{place}": value.bounds for place, value in enumerate(values)}
        limited = [place for place, value in enumerate(values) if value.limit is not None]
        kept = self._kept(placed, bounds, bound.size, most(bound.rows), limited)
        if limited:
            kept = f"SELECT cell, {', '.join(self.cut(values))} FROM ({kept}) AS summed"
        return f"SELECT cell, count(*) AS n{self.totals(values)} FROM ({kept}) AS kept GROUP BY cell"

    def _kept(
        self,
        rows: str,
        bounds: Mapping[str, tuple[int, int]],
        size: int | None,
        limit: int,
        limited: Sequence[int] = (),
    ) -> str:
        """The rows at the kept places of every person's list, in the order of their cells and then of these columns.

        A row is one number where all that there can be fits into one, cell first, so that the order is the same: lists
        of numbers are sorted sooner than lists of rows.
        """
        spans = [high - low + 1 for low, high in bounds.values()]
        if size is None or size * math.prod(spans) >= _WITHIN:
            names = ["cell", *bounds]
            each = f"SELECT person, {self.rows_in_order(names)} AS cells, count(*) AS total"
            people = f"{each} FROM ({rows}) AS placed GROUP BY person"
            return self.kept_rows(self._with_first(people, limit), names, limit, limited)
        code = "cell"
        for (name, (low, _)), span in zip(bounds.items(), spans, strict=True):
            code = f"({code}) * {span} + ({name} - ({low}))"
        coded = f"SELECT person, {code} AS code FROM ({rows}) AS placed"
        each = f"SELECT person, {self.in_order('code')} AS cells, count(*) AS total"
        begun = self._with_first(f"{each} FROM ({coded}) AS coded GROUP BY person", limit)

        def value(name: str, code: str) -> str:
            """What a column was, read off the number."""
            place = list(bounds).index(name)
            found = self.divide(f"({code})", math.prod(spans[place + 1 :]))
            return f"(({found}) % {spans[place]} + ({bounds[name][0]}))"

        picked = f"CASE WHEN total <= {limit} THEN cells ELSE {self.at_places(limit)} END"
        sums = "".join(
            f", {self.added_up('kept', functools.partial(value, f'v{each}'), limit)} AS t{each}"
            for each in limited
        )
        kept = f"SELECT {picked} AS kept FROM ({begun}) AS begun{self.fence}"
        listed = f"SELECT {self.each_of('kept')} AS code{sums} FROM ({kept}) AS picked"
        columns = [f"{self.divide('code', math.prod(spans))} AS cell"]
        columns += [f"{value(name, 'code')} AS {name}" for name in bounds]
        columns += [f"t{each}" for each in limited]
        return f"SELECT {', '.join(columns)} FROM ({listed}) AS listed"

    def _with_first(self, people: str, limit: int) -> str:
        first = f"CASE WHEN total > {limit} THEN {self.start('person')} % total END"
        # Without the fence an engine may hash a person for every place.
        return f"SELECT cells, total, {first} AS first FROM ({people}) AS people{self.fence}"

    @abstractmethod
    def in_order(self, value: str) -> str:
        """An aggregate: all values of a group, as a list in order."""

    @abstractmethod
    def once_in_order(self, value: str) -> str:
        """An aggregate: the different values of a group, as a list in order."""

    @abstractmethod
    def rows_in_order(self, names: Sequence[str]) -> str:
        """An aggregate: the rows of a group, as a list in the order of these columns of whole numbers."""

    @abstractmethod
    def length(self, values: str) -> str:
        """How long a list is, as a 64-bit integer."""

    @abstractmethod
    def added_up(self, values: str, value: Callable[[str], str], limit: int) -> str:
        """The sum over a list of at most ``limit`` numbers of the absolute of what each stands for."""

    @abstractmethod
    def kept_rows(self, begun: str, names: Sequence[str], limit: int, limited: Sequence[int] = ()) -> str:
        """A query for the rows at the kept places of the lists ``cells``, of ``total`` rows from ``first`` on.

        Beside the columns the lists were made of, ``t0`` and so on: the sum of |v0| over all that are kept of the same
        person, for the values that are ``limited``.
        """

    @abstractmethod
    def each_of(self, values: str) -> str:
        """A row for each value of a list."""

    @abstractmethod
    def at_places(self, rows: int) -> str:
        """The values of the list ``cells`` of ``total`` at the places ⌊(first + i·total) / rows⌋."""

    def bounded(
        self, cell: str, bound: Bound, values: Sequence[Value] = ()
    ) -> tuple[Integers, Integers, Sequence[Integers]]:
        """Cells, how many rows of them are kept, and sums of their values."""
        asked = [sql for sql in (self.too_large(bound.id),) if sql is not None]
        if self.watching:
            asked.insert(0, self._all_rows)
        *looked, (cells, rows, *sums) = self._answers(
            [*asked, self.bounded_statement(cell, bound, values=values)]
        )
        if self.watching:
            ((self._seen,),) = looked.pop(0)
        if looked and looked[0] != [[0]]:
            raise refuse_floats(bound.id)
        return (
            np.array(cells, dtype=np.int64),
            np.array(rows, dtype=np.int64),
            [np.array(column, dtype=np.int64) for column in sums],
        )

    def count_tables(
        self,
        cells: Sequence[Key],
        sizes: Sequence[int],
        bound: Bound | None,
        batches: Sequence[Sequence[tuple[int, ...]]],
    ) -> list[tuple[Integers, Integers, Integers]]:
        """Count batches of tables: for each, which table of the batch, which cell of it, and how many rows."""
        asked = []
        if bound is not None and (sql := self.too_large(bound.id)) is not None:
            asked.append(sql)
        codes = self.codes(cells, sizes, bound)
        statements = [self.tables_statement(codes, batch, sizes) for batch in batches]
        answers = self._answers([*asked, *statements])
        if asked and answers.pop(0) != [[0]]:
            raise refuse_floats(bound.id)  # type: ignore[union-attr]
        return [
            tuple(np.array(column, dtype=np.int64) for column in answer)  # type: ignore[misc]
            for answer in answers
        ]

    def table_of(self, sql: str) -> Any:
        """What a query for keys, cells and numbers gives, as an Arrow table."""
        import pyarrow as pa

        answer = self._answer(sql)
        names = ["key", "cell", "n"] if len(answer) == 3 else ["n"]
        kinds = [pa.string() if name == "key" else pa.int64() for name in names]
        return pa.table([pa.array(each, kind) for each, kind in zip(answer, kinds, strict=True)], names)

    def rows_per_person(self, person: Column) -> tuple[Integers, Integers]:
        """Numbers of rows, and how many people have as many."""
        asked = [sql for sql in (self.too_large(person),) if sql is not None]
        *seen, (rows, people) = self._answers([*asked, self.rows_per_person_statement(person)])
        if seen and seen[0] != [[0]]:
            raise refuse_floats(person)
        return np.array(rows, dtype=np.int64), np.array(people, dtype=np.int64)

    def _answer(self, sql: str) -> list[list[Any]]:
        return self._answers([sql])[0]

    def _answers(self, statements: Sequence[str]) -> list[list[list[Any]]]:
        try:
            return self._fetch(statements)
        except SourceError:
            raise
        except Exception:
            # Engines raise errors of their own kinds, whose words may quote a record.
            raise SourceError(f"{self.name} could not count the table") from None

    @abstractmethod
    def _fetch(self, statements: Sequence[str]) -> list[list[list[Any]]]:
        """Run queries on the same rows and give the columns of each."""


def _filled(values: list[Any]) -> Any:
    """Values as an array; whatever stands where one is NULL is not looked at."""
    known = next((value for value in values if value is not None), 0)
    if isinstance(known, int):
        return np.array([0 if value is None else value for value in values], dtype=np.int64)
    return np.array(values, dtype=object)


def transposed(rows: Iterable[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows as columns, also when there are none."""
    columns: list[list[Any]] = [[] for _ in range(width)]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return columns


def ibis_columns(table: Any) -> tuple[Column, ...]:
    """The columns of an Ibis table."""
    return tuple(Column(name, ibis_type(kind), ibis_family(kind)) for name, kind in table.schema().items())


def ibis_family(kind: Any) -> Family:
    """What kind of values an Ibis type holds."""
    if kind.is_timestamp():
        return "time" if kind.timezone is None else "zoned time"
    tests: list[tuple[bool, Family]] = [
        (kind.is_null(), "undeclared"),
        (kind.is_integer(), "integer"),
        (kind.is_floating() or kind.is_decimal(), "real"),
        (kind.is_string(), "text"),
        (kind.is_boolean(), "truth"),
        (kind.is_date(), "date"),
    ]
    return next((family for fits, family in tests if fits), "something else")


def ibis_type(kind: Any) -> str:
    """The name of an Ibis type, without what stands in brackets."""
    return str(kind).split("(")[0].split("<")[0]


def backend_of(table: Any) -> Any:
    """The engine a table belongs to; a table made in memory belongs to none yet."""
    from ibis.common.exceptions import IbisError

    try:
        return table.get_backend()
    except IbisError:
        return None
