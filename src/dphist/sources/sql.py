"""The words of counting in SQL: what DuckDB, PostgreSQL and Spark share, and the one statement they all run.

Ibis says the same for other engines. These three are spoken to directly, because what a row means must not
hang on how a translator happens to divide, cast or hash.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from dphist.sources.engine import Bound, Column, Family, Key


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


class Sql:
    """Expressions as SQL text. Each engine overrides the words that it says differently."""

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
        """As text."""
        return f"CAST({value} AS {self.string})"

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

    def divide(self, value: str, step: int) -> str:
        """A non-negative integer divided, without its remainder."""
        return f"{value} / {step}"

    def one_of(self, value: str, choices: Sequence[Any]) -> str:
        """Whether the value is one of a list."""
        return f"({value} IN ({', '.join(map(self.literal, choices))}))"

    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1."""
        raise NotImplementedError

    def bin(self, value: str, edges: Sequence[Any]) -> str | None:
        """The bin of a value known to lie between many edges, if the engine can search a list; else None."""
        return None

    def when(self, condition: str, value: Any, otherwise: Any) -> str:
        """One value where a condition is true, another (or NULL) elsewhere."""
        value, otherwise = self._sql(value), "NULL" if otherwise is None else self._sql(otherwise)
        return f"CASE WHEN {condition} THEN {value} ELSE {otherwise} END"

    def hash(self, columns: Sequence[Column]) -> str:
        """A 64-bit hash of some columns, the same wherever the row lies."""
        raise NotImplementedError

    def is_number(self, column: Column) -> str:
        """Whether a real column holds something else than NaN."""
        return f"NOT isnan({self.real(self.column(column))})"

    def statement(self, keys: Sequence[Key], bound: Bound | None, part: str | None = None) -> str:
        """The GROUP BY; ``part`` is a further condition on the person, where rows are bounded in parts.

        See `dphist.sources.count` for why the bounding protects a person.
        """
        filters = [f"({key.inside})" for key in keys if key.inside is not None and not key.other]
        values = [
            self.when(key.inside, key.value, None) if key.other and key.inside is not None else key.value
            for key in keys
        ]
        names = [f"k{place}" for place in range(len(keys))]
        listed = ", ".join(names)
        named = ", ".join(f"{self._sql(value)} AS {name}" for value, name in zip(values, names, strict=True))
        if bound is None:
            # Keys by name from a subquery: an expression repeated in GROUP BY need not be computed once.
            inner = f"SELECT {named} FROM {self.relation}{where(filters)}"
            return f"SELECT {listed}, count(*) AS n FROM ({inner}) AS keyed GROUP BY {listed}"
        person = self.column(bound.id)
        known = [f"{person} IS NOT NULL", *([part] if part else [])]
        if bound.id.family == "real":
            known.append(self.is_number(bound.id))
        cells = [f"{name} IS NOT NULL" for name, key in zip(names, keys, strict=True) if not key.other]
        place = self.hash((bound.id, *self.columns))
        inner = f"SELECT {person} AS person, {place} AS place, {named} FROM {self.relation}{where(known + filters)}"
        ranked = (
            f"SELECT {listed}, row_number() OVER (PARTITION BY person ORDER BY place, {listed}) AS place_of "
            f"FROM ({inner}) AS placed{where(cells)}"
        )
        kept = f"SELECT {listed} FROM ({ranked}) AS ranked WHERE place_of <= {bound.rows}"
        return f"SELECT {listed}, count(*) AS n FROM ({kept}) AS kept GROUP BY {listed}"

    def _sql(self, value: Any) -> str:
        return value if isinstance(value, str) else self.literal(value)


def where(conditions: Sequence[str]) -> str:
    """The WHERE clause of some conditions, or nothing."""
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
