"""DuckDB in its own words: files, data frames and DuckDB databases.

Loading Ibis takes more processor time than DuckDB needs for millions of rows; so what runs on this machine is
said to DuckDB directly.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.sources.engine import Bound, Column, Family, Groups, Key
from dphist.sources.machine import count_by_position, rows_at_once, shown_progress, unreadable
from dphist.sources.sql import Sql

if TYPE_CHECKING:
    import duckdb

_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE", "DECIMAL"), "real"),
    **dict.fromkeys(("VARCHAR", "ENUM"), "text"),
    "BOOLEAN": "truth",
    "DATE": "date",
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"), "time"),
    "TIMESTAMP WITH TIME ZONE": "zoned time",
}


class Duck(Sql):
    """A relation that a DuckDB connection can name, and the SQL text to count its rows."""

    double = "DOUBLE"

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        relation: str,
        what: str,
        *,
        undeclared: Callable[[str], bool] = lambda _: False,
        sized: bool = False,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.connection = connection
        self.relation = relation
        self.what = what
        # Whether the number of rows is known without reading them.
        self.sized = sized
        self.check = check
        described = self._run(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        self.columns = tuple(
            Column(str(name), "undeclared values", "undeclared")
            if undeclared(str(name))
            else _described(str(name), str(kind))
            for name, kind, *_ in described
        )

    def _run(self, sql: str) -> Any:
        import duckdb

        try:
            return self.connection.execute(sql)
        except duckdb.OutOfMemoryException:
            raise SourceError(
                f"counting {self.what} ran out of memory; set DPHIST_SPILL to a folder on a large disk"
            ) from None
        except duckdb.Error:
            raise unreadable(self.what) from None

    def divide(self, value: str, step: int) -> str:
        """A non-negative integer divided, without its remainder."""
        return f"{value} // {step}"

    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1.

        A function of one column is computed once per entry of a dictionary-encoded column; a CASE is not.
        """
        return f"list_position([{', '.join(map(self.literal, choices))}], {value})"

    def hash(self, columns: Sequence[Column]) -> str:
        """A 64-bit hash of some columns."""
        return f"hash({', '.join(map(self.column, columns))})"

    def group(self, keys: Sequence[Key], bound: Bound | None) -> Groups:
        """Count the rows by their keys, after bounding.

        Ranking holds whole partitions of the window in memory and dies on tens of millions of rows. People are
        therefore taken in K groups by a hash of the id, each group ranked by itself, and the counts added: a
        person lies in one group, so the rows that are kept are the same whatever K is.
        """
        self.check()
        names = [f"k{place}" for place in range(len(keys))]
        parts: list[str | None] = [None]
        rows = 0
        if bound is not None or self.sized:
            ((rows,),) = self._run(f"SELECT count(*) FROM {self.relation}").fetchall()
        if self.sized:
            count_by_position(self.connection, int(rows))
        if bound is not None:
            count = -(-int(rows) // rows_at_once(self.connection))
            person = self.hash((bound.id,))
            parts = [None] if count <= 1 else [f"{person} % {count} = {part}" for part in range(count)]
        answers = []
        with shown_progress(self.connection, len(parts)) as done:
            for part in parts:
                answers.append(self._run(self.statement(keys, bound, part)).fetchnumpy())
                done()
        found = [[_unmasked(answer[name]) for answer in answers] for name in names]
        return Groups(
            keys=[np.concatenate([values for values, _ in each]) for each in found],
            missing=[np.concatenate([missing for _, missing in each]) for each in found],
            rows=np.concatenate([np.asarray(answer["n"], dtype=np.int64) for answer in answers]),
        )


def _unmasked(column: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Values, and which of them are NULL. Plain arrays have none, and spare us the loading of masked ones."""
    if type(column) is np.ndarray:
        return column, np.zeros(len(column), dtype=bool)
    return np.ma.getdata(column), np.ma.getmaskarray(column)


def _described(name: str, kind: str) -> Column:
    if kind.endswith("]"):
        return Column(name, "a list", "something else")
    # Without what stands in brackets: an ENUM made from a data frame lists the frame's values.
    plain = kind.split("(")[0].strip()
    return Column(name, plain, _FAMILIES.get(plain, "something else"))
