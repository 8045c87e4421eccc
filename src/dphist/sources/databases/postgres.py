"""PostgreSQL: one read-only GROUP BY where the rows are."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from dphist.errors import SourceError
from dphist.extras import need
from dphist.sources.engine import Column, Family, ibis_columns
from dphist.sources.people import DIGITS, SALT
from dphist.sources.sql import Sql

SCHEMES = ("postgresql://", "postgres://")


class Postgres(Sql):
    """An Ibis table on PostgreSQL."""

    string = "TEXT"

    def __init__(self, table: Any) -> None:
        self.backend = table.get_backend()
        self.columns = ibis_columns(table)
        self._decimals = {name for name, kind in table.schema().items() if kind.is_decimal()}
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

    def tables(self, statements: Sequence[str]) -> list[Any]:
        """The answers to queries, all of the same rows."""
        import pyarrow

        connection = self.backend.con
        try:
            answers = []
            with connection.transaction(), connection.cursor() as cursor:
                # Counting writes nothing, and PostgreSQL is told so; all statements see the same rows.
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                for sql in statements:
                    # A % in the text of a category is no placeholder, because no values are given.
                    cursor.execute(sql)
                    names = [column.name for column in cursor.description]
                    columns = list(zip(*cursor, strict=True)) or [()] * len(names)
                    answers.append(pyarrow.table([pyarrow.array(each) for each in columns], names))
            return answers
        except Exception:
            # Its own words may quote a record.
            raise SourceError("PostgreSQL could not count the table") from None


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
