"""PostgreSQL: one read-only GROUP BY where the rows are."""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values went through quote() and literal()

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from dphist.errors import SourceError
from dphist.extras import need
from dphist.sources.databases.remote import WRITTEN_OUT, Remote, ibis_columns, transposed
from dphist.sources.engine import Column, Family
from dphist.sources.people import DIGITS, SALT

SCHEMES = ("postgresql://", "postgres://")


class Postgres(Remote):
    """An Ibis table on PostgreSQL."""

    name = "PostgreSQL"
    string = "TEXT"
    fence = " OFFSET 0"

    def __init__(self, table: Any) -> None:
        self.backend = table.get_backend()
        self.columns = ibis_columns(table)
        self._decimals = {name for name, kind in table.schema().items() if kind.is_decimal()}
        self.backend._run_pre_execute_hooks(table)
        self.relation = f"({self.backend.compile(table)}) AS records"

    def column(self, column: Column) -> str:
        """The column's value. A numeric beyond the range of floats stays beyond every bound, and raises no error."""
        value = self.quote(column.name)
        if column.name not in self._decimals:
            return value
        return (
            f"CASE WHEN abs({value}) <= 1e300 AND (abs({value}) >= 1e-300 OR {value} = 0) "
            f"THEN {value} WHEN abs({value}) < 1e-300 THEN sign({value}) * 1e-300 "
            f"WHEN {value} <> 'NaN' THEN sign({value}) * 1e300 END"
        )

    def parse(self, value: str, family: Family) -> str:
        """An undeclared value as another type; here it is always NULL."""
        return f"CAST({value} AS {self.kind(family)})"

    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1."""
        return f"array_position(CAST(ARRAY[{', '.join(map(self.literal, choices))}] AS TEXT[]), {value})"

    def start(self, person: str) -> str:
        """The first 60 bits of the hash of an id."""
        digits = f"substr(md5('{SALT}' || CAST({person} AS TEXT)), 1, {DIGITS})"
        return f"CAST(CAST('x' || {digits} AS BIT({4 * DIGITS})) AS BIGINT)"

    def in_order(self, value: str) -> str:
        """An aggregate: all values of a group, as a list in order."""
        return f"array_agg({value} ORDER BY {value} ASC)"

    def once_in_order(self, value: str) -> str:
        """An aggregate: the different values of a group, as a list in order."""
        return f"array_agg(DISTINCT {value} ORDER BY {value} ASC)"

    def rows_in_order(self, names: Sequence[str]) -> str:
        """An aggregate: the rows of a group as a list of lists, which PostgreSQL compares number by number."""
        row = f"ARRAY[{', '.join(f'CAST({name} AS BIGINT)' for name in names)}]"
        return f"array_agg({row} ORDER BY {row} ASC)"

    def length(self, values: str) -> str:
        """How long a list is."""
        return f"CAST(cardinality({values}) AS BIGINT)"

    def added_up(self, values: str, value: Callable[[str], str], limit: int) -> str:
        """The sum over a list of the absolute of what each number stands for."""
        if limit > WRITTEN_OUT:
            return f"(SELECT CAST(sum(abs({value('x')})) AS BIGINT) FROM unnest({values}) AS x)"
        # Beyond the end of a list there is nothing.
        return " + ".join(f"coalesce(abs({value(f'{values}[{i + 1}]')}), 0)" for i in range(limit))

    def kept_rows(self, begun: str, names: Sequence[str], limit: int, limited: Sequence[int] = ()) -> str:
        """A query for the rows at the kept places of the lists."""

        def at(i: str, column: int) -> str:
            place = f"CASE WHEN total <= {limit} THEN {i} ELSE (first + {i} * total) / {limit} END"
            return f"cells[1 + {place}][{column + 1}]"

        sums = ""
        for value in limited:
            column = names.index(f"v{value}")
            if limit > WRITTEN_OUT:
                each = f"generate_series(0, least(total, {limit}) - 1) AS i"
                total = f"(SELECT CAST(sum(abs({at('i', column)})) AS BIGINT) FROM {each})"
            else:
                # Beyond the end of a list there is nothing.
                total = " + ".join(f"coalesce(abs({at(str(i), column)}), 0)" for i in range(limit))
            sums += f", {total} AS t{value}"
        each = f"SELECT cells, total, first{sums}, generate_series(0, least(total, {limit}) - 1) AS i"
        columns = [f"{at('i', column)} AS {name}" for column, name in enumerate(names)]
        columns += [f"t{value}" for value in limited]
        return f"SELECT {', '.join(columns)} FROM ({each} FROM ({begun}) AS begun) AS each_of"

    def each_of(self, values: str) -> str:
        """A row for each value of a list."""
        return f"unnest({values})"

    def at_places(self, rows: int) -> str:
        """The values of the list ``cells`` of ``total`` at the places ⌊(first + i·total) / rows⌋."""
        if rows > WRITTEN_OUT:
            return f"ARRAY(SELECT cells[1 + (first + i * total) / {rows}] FROM generate_series(0, {rows - 1}) AS i)"
        return f"ARRAY[{', '.join(f'cells[1 + (first + {i} * total) / {rows}]' for i in range(rows))}]"

    def _fetch(self, statements: Sequence[str]) -> list[list[list[Any]]]:
        answers, connection = [], self.backend.con
        with connection.transaction(), connection.cursor() as cursor:
            # Counting writes nothing, and PostgreSQL is told so; all statements see the same rows.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for sql in statements:
                # A % in the text of a category is no placeholder, because no values are given.
                cursor.execute(sql)
                answers.append(transposed(cursor, len(cursor.description)))
        return answers


def open_url(source: str) -> Postgres:
    """Open ``postgresql://user@host/database::table`` or ``…::schema.table``."""
    address, mark, table = source.rpartition("::")
    if not mark or not table or "://" not in address:
        raise SourceError("say which table of the database, as in postgresql://host/database::table")
    need("psycopg", "postgres")
    schema, _, name = table.rpartition(".")
    try:
        backend = _connected(address)
    except Exception:
        raise SourceError(
            f"the database {shown(address)} cannot be reached; check host, name, user and password"
        ) from None
    try:
        found = backend.table(name, database=schema or None)
    except Exception:
        backend.con.close()
        raise SourceError(f"there is no table {table} in {shown(address)}") from None
    engine = Postgres(found)
    # Ours, and open as long as somebody has a question.
    weakref.finalize(engine, backend.con.close)
    return engine


def _connected(address: str) -> Any:
    psycopg, ibis = need("psycopg", "postgres"), need("ibis", "postgres")
    connection = psycopg.connect(address, autocommit=True)
    connection.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    return ibis.postgres.from_connection(connection)


def shown(address: str) -> str:
    """An address without its password or options."""
    scheme, _, rest = address.partition("://")
    place = rest.partition("?")[0]
    user, at, host = place.rpartition("@")
    return f"{scheme}://{user.partition(':')[0]}{at}{host}"
