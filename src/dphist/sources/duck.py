"""DuckDB in its own words: files, data frames and DuckDB databases.

Ibis says the same for other engines, but loading it takes more processor time than DuckDB needs for
millions of rows; so what runs on this machine is said to DuckDB directly.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.errors import SourceError
from dphist.sources.engine import Bound, Column, Family, Groups, Key

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
_PARSED = {"real": "DOUBLE", "truth": "BOOLEAN", "time": "TIMESTAMP"}


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
        return f"CAST('{value!r}' AS DOUBLE)"
    return str(value)


class Duck:
    """A relation that a DuckDB connection can name, and the SQL text to count its rows."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        relation: str,
        what: str,
        *,
        undeclared: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.connection = connection
        self.relation = relation
        self.what = what
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
            raise SourceError(f"counting {self.what} ran out of memory") from None
        except duckdb.Error:
            # The engine's own words may quote a record.
            raise SourceError(
                f"{self.what} cannot be read: is it complete, and of the kind its name says?"
            ) from None

    def column(self, column: Column) -> str:
        """The column's value."""
        return quote(column.name)

    def parse(self, value: str, family: Family) -> str:
        """An undeclared value as a real number, truth value or time; NULL where it is none."""
        return f"TRY_CAST({value} AS {_PARSED[family]})"

    def real(self, value: str) -> str:
        """As a 64-bit float."""
        return f"CAST({value} AS DOUBLE)"

    def integer(self, value: str) -> str:
        """As a 64-bit integer."""
        return f"CAST({value} AS BIGINT)"

    def floor(self, value: str) -> str:
        """The largest 64-bit integer that is not above the value."""
        return f"CAST(floor({value}) AS BIGINT)"

    def text(self, value: str) -> str:
        """As text."""
        return f"CAST({value} AS VARCHAR)"

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
        """Whether low ≤ value ≤ high; DuckDB holds NaN above every number."""
        return f"({value} BETWEEN {literal(low)} AND {literal(high)})"

    def before(self, value: str, bound: Any) -> str:
        """Whether value < bound."""
        return f"({value} < {bound if isinstance(bound, str) else literal(bound)})"

    def same(self, value: str, other: str) -> str:
        """Whether two values are equal."""
        return f"({value} = {other})"

    def is_multiple(self, value: str, first: int, step: int) -> str:
        """Whether an integer is some steps away from the first."""
        return f"(({value} - {first}) % {step} = 0)"

    def steps(self, value: str, first: int, step: int) -> str:
        """How many whole steps an integer is above the first."""
        return f"(({value} - {first}) // {step})" if step > 1 else f"({value} - {first})"

    def one_of(self, value: str, choices: Sequence[Any]) -> str:
        """Whether the value is one of a list."""
        return f"({value} IN ({', '.join(map(literal, choices))}))"

    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1.

        A function of one column is computed once per entry of a dictionary-encoded column; a CASE is not.
        """
        return f"list_position([{', '.join(map(literal, choices))}], {value})"

    def when(self, condition: str, value: Any, otherwise: Any) -> str:
        """One value where a condition is true, another (or NULL) elsewhere."""
        value, otherwise = _sql(value), "NULL" if otherwise is None else _sql(otherwise)
        return f"CASE WHEN {condition} THEN {value} ELSE {otherwise} END"

    def group(self, keys: Sequence[Key], bound: Bound | None) -> Groups:
        """Count the rows by their keys, after bounding."""
        filters = [f"({key.inside})" for key in keys if key.inside is not None and not key.other]
        values = [
            self.when(key.inside, key.value, None) if key.other and key.inside is not None else key.value
            for key in keys
        ]
        names = [f"k{place}" for place in range(len(keys))]
        named = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        if bound is None:
            sql = f"SELECT {named}, count(*) AS n FROM {self.relation}{_where(filters)} GROUP BY ALL"
        else:
            sql = self._bounded(named, names, keys, filters, bound)
        answer = self._run(sql).fetchnumpy()
        found = [np.ma.asarray(answer[name]) for name in names]
        return Groups(
            keys=[np.ma.getdata(key) for key in found],
            missing=[np.ma.getmaskarray(key) for key in found],
            rows=np.asarray(answer["n"], dtype=np.int64),
        )

    def _bounded(
        self, named: str, names: Sequence[str], keys: Sequence[Key], filters: list[str], bound: Bound
    ) -> str:
        """See `dphist.sources.count` for why this protects a person."""
        person = quote(bound.id.name)
        known = [f"{person} IS NOT NULL"]
        if bound.id.family == "real":
            known.append(f"NOT isnan({self.real(person)})")
        row = ", ".join(quote(column.name) for column in self.columns)
        listed = ", ".join(names)
        cells = [f"{name} IS NOT NULL" for name, key in zip(names, keys, strict=True) if not key.other]
        inner = f"SELECT {person} AS person, hash({person}, {row}) AS place, {named} FROM {self.relation}"
        ranked = (
            f"SELECT {listed}, row_number() OVER (PARTITION BY person ORDER BY place, {listed}) AS rank "
            f"FROM ({inner}{_where(known + filters)}){_where(cells)}"
        )
        return f"SELECT {listed}, count(*) AS n FROM ({ranked}) WHERE rank <= {bound.rows} GROUP BY ALL"


def _described(name: str, kind: str) -> Column:
    if kind.endswith("]"):
        return Column(name, "a list", "something else")
    # Without what stands in brackets: an ENUM made from a data frame lists the frame's values.
    plain = kind.split("(")[0].strip()
    return Column(name, plain, _FAMILIES.get(plain, "something else"))


def _sql(value: Any) -> str:
    return value if isinstance(value, str) else literal(value)


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
