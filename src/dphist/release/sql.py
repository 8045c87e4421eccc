"""A release asked in SQL: DuckDB over the released numbers, with no way out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dphist.errors import QueryError

if TYPE_CHECKING:
    import pyarrow

# Set once the table is inside. The configuration is then locked, so a query cannot undo it.
_CONFINE = (
    "SET temp_directory = ''",  # nothing is spilled to disk
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET allow_community_extensions = false",
    "SET python_enable_replacements = false",
    "SET lock_configuration = true",
)


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows a query gave, with the names of their columns."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def records(self) -> list[dict[str, Any]]:
        """Give each row as a mapping from column to value."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def select(table: pyarrow.Table, query: str, rows: int | None, parameters: Sequence[Any]) -> Rows:
    """Run one SELECT over a table called ``release``: it sees no files, network, extensions or Python objects."""
    import duckdb

    if rows is not None and rows < 0:
        raise QueryError("rows: how many rows to give at most, from 0 on")
    connection = duckdb.connect(":memory:")
    try:
        connection.register("incoming", table)
        connection.execute("CREATE TABLE release AS SELECT * FROM incoming")
        connection.unregister("incoming")
        for setting in _CONFINE:
            connection.execute(setting)
        # Not before: merely reading `IMPORT DATABASE` opens the files it names.
        kinds = _kinds(query, connection)
        if kinds != [duckdb.StatementType.SELECT]:
            raise QueryError("give one SELECT statement over the table release")
        try:
            result = connection.execute(query, list(parameters))
            found = result.fetchall() if rows is None else result.fetchmany(rows)
        except duckdb.Error as error:
            raise QueryError(f"DuckDB refuses the query: {_first_line(error)}") from None
        return Rows(tuple(column[0] for column in result.description or ()), found)
    finally:
        connection.close()


def _kinds(query: str, connection: Any) -> list[Any]:
    import duckdb

    try:
        return [statement.type for statement in connection.extract_statements(query)]
    except duckdb.Error as error:
        raise QueryError(f"DuckDB cannot read the query: {_first_line(error)}") from None
    except (TypeError, UnicodeError):
        raise QueryError("the query holds characters that are no text") from None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
