"""The words of counting in SQL: names, values, conditions, cells and ids, as DuckDB, PostgreSQL and Spark all say them.

Ibis says the same for other engines. These three are spoken to directly, because what a row means must not
depend on how a translator happens to divide, cast or hash.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import datetime as dt
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from dphist.sources.engine import Column, Family, Key
from dphist.sources.people import exact_below, is_decimal, refuse_type


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


def microseconds(value: str) -> str:
    """DuckDB's time of nanoseconds as the microsecond that it lies in.

    DuckDB cuts towards zero, by which the last moments of a day before 1970 would lie in the next, and the cell of a
    row would depend on whether its column came as such times or as texts: in a frame that is up to other rows.
    """
    cut = f"CAST({value} AS TIMESTAMP)"
    return (
        f"CASE WHEN CAST({cut} AS TIMESTAMP_NS) > {value} THEN {cut} - INTERVAL 1 MICROSECOND ELSE {cut} END"
    )


class SqlWords(ABC):
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
        return self.number(column)

    def number(self, column: Column) -> str:
        """The column as it stands, or what an engine must say to compare its numbers."""
        return self.quote(column.name)

    def parse(self, value: str, family: Family) -> str:
        """An undeclared value as a real number, truth value or time; NULL where it is none.

        A text with an offset is a zoned time and no other, one without is a time and no zoned one.
        """
        return f"TRY_CAST({value} AS {self.kind(family)})"

    def kind(self, family: Family) -> str:
        """What the engine calls such values."""
        return {
            "real": self.double, "truth": "BOOLEAN", "time": "TIMESTAMP", "zoned time": "TIMESTAMPTZ"
        }[family]  # fmt: skip

    def real(self, value: str) -> str:
        """As a 64-bit float."""
        return f"CAST({value} AS {self.double})"

    def integer(self, value: str) -> str:
        """As a 64-bit integer; only asked where the value is one."""
        return f"CAST({value} AS BIGINT)"

    def truth(self, value: str) -> str:
        """A truth value as 0 or 1."""
        return f"CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END"

    def floor(self, value: str) -> str:
        """The largest 64-bit integer that is not above the value; only asked where it fits."""
        return f"CAST(floor({value}) AS BIGINT)"

    def text(self, value: str) -> str:
        """As text that is compared byte by byte, whatever collation the column has."""
        return f'(CAST({value} AS {self.string}) COLLATE "C")'

    def distinct_text(self, column: Column) -> str:
        """A column's value as text by which rows are told apart; NULL where there is none."""
        return self.text(self.column(column))

    def days(self, value: str, family: Family, ahead: str | None = None) -> str:
        """Days since 1970-01-01: of a time by its calendar day, of a zoned time by the day of clocks ``ahead`` of UTC.

        Ahead by that many seconds; NULL gives NULL, None is UTC.
        """
        if family == "zoned time":
            value = f"timezone('UTC', {value})"
        if ahead is not None:
            value = f"({value} + ({self._sql(ahead)}) * INTERVAL '1 second')"
        return f"(CAST({value} AS DATE) - DATE '1970-01-01')"

    def day(self, day: dt.date, family: Family) -> str:
        """The first moment of a day."""
        if family == "zoned time":
            return self.moment(dt.datetime(day.year, day.month, day.day))
        return f"DATE '{day.isoformat()}'" if family == "date" else f"TIMESTAMP '{day.isoformat()} 00:00:00'"

    def moment(self, at: dt.datetime) -> str:
        """A moment in UTC."""
        return f"TIMESTAMPTZ '{at.isoformat(' ')}+00'"

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

    @abstractmethod
    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1; NULL where it is not in it."""

    def bin(self, value: str, edges: Sequence[Any]) -> str | None:
        """The bin of a value known to lie between many edges, if the engine has a way of its own; else None."""
        return None

    def look_up(self, value: str, places: Mapping[Any, int]) -> str | None:
        """The place of a value in a long list, if the engine has a way of its own; else None."""
        return None

    def when(self, condition: str, value: Any, otherwise: Any) -> str:
        """One value where a condition is true, another (or NULL) elsewhere; only that one is evaluated."""
        values = ("NULL" if each is None else self._sql(each) for each in (value, otherwise))
        return f"CASE WHEN {condition} THEN {next(values)} ELSE {next(values)} END"

    def otherwise(self, value: Any, instead: Any) -> str:
        """The value, or another where it is NULL."""
        return f"coalesce({self._sql(value)}, {self._sql(instead)})"

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
            value, below = self.real(self.number(column)), self.literal(float(exact_below(column)))
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
        """The first 60 bits of the hash of an id, as a number that can be divided."""

    def too_large(self, column: Column) -> str | None:
        """A query for the number of ids that are floats beyond what tells people apart; None where none can be."""
        if column.family != "real" or is_decimal(column):
            return None
        value, below = self.real(self.number(column)), self.literal(float(exact_below(column)))
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

    def _sql(self, value: Any) -> str:
        return value if isinstance(value, str) else self.literal(value)
