"""DuckDB in its own words: files, data frames and DuckDB databases, and what it answers, as Arrow.

Loading Ibis takes more processor time than DuckDB needs for millions of rows; so what runs on this machine is
said to DuckDB directly.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.model.coded import code_type
from dphist.sources.duck.allowance import shown_progress, unreadable
from dphist.sources.engine import Bound, Column, Family, Key, Tally
from dphist.sources.people import DIGITS, SALT, is_decimal
from dphist.sources.sql import Sql, literal, microseconds, quote

if TYPE_CHECKING:
    import duckdb

Ask = Callable[[Any, str], Any]

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
# Whole numbers that need not fit in 64 bits with a sign: as ids they are told apart as texts.
_WIDE = ("HUGEINT", "UBIGINT", "UHUGEINT")
# The types of codes.
_CODES: dict[Any, str] = {np.uint8: "UTINYINT", np.uint16: "USMALLINT", np.int32: "INTEGER"}
_WIDTHS = (("SMALLINT", 2**15), ("INTEGER", 2**31))


def table_of(connection: Any, sql: str) -> Any:
    """All of an answer as one table, by a relation: of what `execute` is asked, DuckDB 2 keeps all rows beside it."""
    return connection.sql(sql).to_arrow_table()


def batches_of(connection: Any, sql: str) -> Any:
    """An answer as a reader of batches, which come while DuckDB computes."""
    # How many rows are handed over at a time.
    return connection.sql(sql).to_arrow_reader(1 << 18)


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
        inferred: bool = False,
        checked: bool = True,
    ) -> None:
        self.connection = connection
        self.relation = self._records = relation
        self.what = what
        # Whether its texts are known to be UTF-8.
        self.checked = checked
        self._joined = 0
        described = self.listed(f"DESCRIBE SELECT * FROM {relation}")
        self.columns = tuple(
            Column(str(name), "undeclared values", "undeclared", inferred)
            if undeclared(str(name))
            else replace(_described(str(name), str(kind)), inferred=inferred)
            for name, kind, *_ in described
        )

    def _run(self, sql: str, ask: Ask = table_of) -> Any:
        import duckdb

        try:
            return ask(self.connection, sql)
        except duckdb.OutOfMemoryException:
            raise SourceError(
                f"counting {self.what} ran out of memory; set DPHIST_SPILL to a folder on a large disk"
            ) from None
        except duckdb.ConversionException:
            raise SourceError(
                f"{self.what} cannot be read: a value lies beyond what its column is read as, such as a time in "
                "milliseconds after the year 294,246; take it out"
            ) from None
        except duckdb.InterruptException:
            raise KeyboardInterrupt from None
        except duckdb.Error:
            raise unreadable(self.what) from None
        except RuntimeError as error:
            # So DuckDB says Ctrl+C, and nothing else.
            if "interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise

    def listed(self, sql: str) -> list[tuple[Any, ...]]:
        """What a short answer says, row by row."""
        found = self._run(sql)
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def tables(self, statements: Sequence[str]) -> list[Any]:
        """The answers to queries, as Arrow tables."""
        with shown_progress(self.connection, len(statements)) as done:
            found = []
            for sql in statements:
                found.append(self._run(sql))
                done()
        return found

    def watch(self, tally: Tally) -> None:
        """Say how many rows there are, whatever stands beside them by now."""
        ((tally.rows,),) = self.listed(f"SELECT count(*) FROM {self._records}")

    def bin(self, value: str, edges: Sequence[Any]) -> str:
        """The bin of a value known to lie between many edges: that of the last edge not above it.

        The last bin is closed, so its upper edge begins none; of bins that begin at one edge the last has the values.
        """
        kind = "BIGINT" if all(isinstance(edge, int) for edge in edges) else "DOUBLE"
        begins = {edge: place for place, edge in enumerate(edges[:-1])}
        return self._beside("ASOF LEFT JOIN", f"TRY_CAST({value} AS {kind}) >=", begins)

    def look_up(self, value: str, places: Mapping[Any, int]) -> str:
        """The place of a value in a long list."""
        return self._beside("LEFT JOIN", f"{value} =", places)

    def _beside(self, join: str, compared: str, places: Mapping[Any, int]) -> str:
        """A column beside every row, by what a value of it is compared with.

        A block of random values would take every branch of a long CASE, one after the other.
        """
        place, key = (quote(f"dphist {what} {self._joined}") for what in ("place", "key"))
        self._joined += 1
        keys, numbers = (", ".join(map(self.literal, each)) for each in (places, places.values()))
        table = f"(SELECT unnest([{keys}]) AS {key}, unnest([{numbers}]) AS {place}) AS listed"
        self.relation = f"(SELECT * FROM {self.relation} {join} {table} ON {compared} {key}) AS joined"
        return place

    def literal(self, value: Any) -> str:
        """A public value; a NUL would end the statement."""
        said = literal(value)
        return "(" + said.replace("\0", "' || chr(0) || '") + ")" if "\0" in said else said

    def divide(self, value: str, step: int | str) -> str:
        """A non-negative integer divided, without its remainder."""
        return f"{value} // {step}"

    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1.

        A function of one column is computed once per entry of a dictionary-encoded column; a CASE is not.
        """
        return f"list_position([{', '.join(map(self.literal, choices))}], {value})"

    def column(self, column: Column) -> str:
        """The column's value, without what other rows may have done to its type.

        The scale of a frame's decimals is that of the finest of them; as text a number is rounded to the same float
        whatever zeros follow it. Times of nanoseconds cannot be compared with far years, those of microseconds can;
        times of seconds reach further than these, and DuckDB would give the table up for one beyond.
        """
        value = self.number(column)
        if column.inferred and is_decimal(column):
            return f"CAST({value} AS VARCHAR)"
        if column.type in ("TIMESTAMP_S", "TIMESTAMP_MS"):
            reach = f"{column.type} '-290000-01-01' AND {column.type} '290000-01-01'"
            return f"CASE WHEN {value} BETWEEN {reach} THEN CAST({value} AS TIMESTAMP) END"
        return microseconds(value) if column.type == "TIMESTAMP_NS" else value

    def parse(self, value: str, family: Family) -> str:
        """An undeclared value as a real number, truth value or time.

        DuckDB would leave an offset out, and takes one behind a time that has seconds alone. What an offset does not
        say, the connection's own zone never does either.
        """
        said = super().parse(value, family)
        if family not in ("time", "zoned time"):
            return said
        offset = f"strlen({value}) > 10 AND regexp_matches({value}, ':[0-9:.]* *(Z|z|UTC|[+-][0-9:]+) *$')"
        if family == "time":
            return f"CASE WHEN {offset} THEN NULL ELSE {said} END"
        whole = (
            f"regexp_replace(regexp_replace(upper({value}), ' *(Z|UTC|[+-][0-9:]+) *$', '\\1'), "
            "'([T ][0-9]+:[0-9]+)(Z|UTC|[+-])', '\\1:00\\2')"
        )
        return f"CASE WHEN {offset} THEN coalesce({said}, TRY_CAST({whole} AS TIMESTAMPTZ)) END"

    def distinct_text(self, column: Column) -> str:
        """A column's value as text, and NULL for bytes that are no UTF-8.

        DuckDB refuses such bytes in files and tables, but not in frames, and sorts them and what stands beside them
        wrongly.
        """
        text = super().distinct_text(column)
        if not self.checked and column.family == "text":
            return f'(try(decode(encode({text}))) COLLATE "C")'
        return text

    def number(self, column: Column) -> str:
        """The column's value, and NULL for a NaN.

        The least and the largest value that a Parquet file states of its columns leave NaN out, and DuckDB answers
        comparisons by them without a look at the rows: whether everybody's NaN is below 10 would depend on whether
        anybody has an 11. It is asked for by name before anything is compared, so that what is compared has none.
        """
        value = self.quote(column.name)
        return (
            f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END"
            if column.type in ("FLOAT", "DOUBLE")
            else value
        )

    def floor(self, value: str) -> str:
        """The largest 64-bit integer that is not above the value; NULL where there is none.

        DuckDB tests the conditions of a row in any order, so this may be asked of a NaN, and must not fail for it.
        """
        return f"TRY_CAST(floor({value}) AS BIGINT)"

    def integer(self, value: str) -> str:
        """As a 64-bit integer; NULL where it is none."""
        return f"TRY_CAST({value} AS BIGINT)"

    def start(self, person: str) -> str:
        """The first 60 bits of the hash of an id."""
        return f"CAST('0x' || substr(md5('{SALT}' || CAST({person} AS VARCHAR)), 1, {DIGITS}) AS BIGINT)"

    def flat(self, cells: Sequence[Key], sizes: Sequence[int]) -> str:
        """The number of a cell, in the narrowest type that holds all of the domain's: rows are sorted by it."""
        width = next((kind for kind, top in _WIDTHS if math.prod(sizes) <= top), "BIGINT")
        return f"TRY_CAST({super().flat(cells, sizes)} AS {width})"

    def code(self, key: Key, size: int) -> str:
        """The number of an attribute's cell in the narrowest type; NULL for a row that has none there."""
        value = key.value if key.inside is None else self.when(key.inside, key.value, None)
        return f"TRY_CAST({self._sql(value)} AS {_CODES[code_type(size)]})"

    def coded_blocks(
        self, cells: Sequence[Key], sizes: Sequence[int], bound: Bound | None
    ) -> Iterator[list[npt.NDArray[Any]]]:
        """The codes of the rows that count, block by block: an array for every attribute, in no order."""
        import duckdb

        if bound is not None:
            self.asked([], bound.id)
        with shown_progress(self.connection, 1) as done:
            reader = self._run(self.codes(cells, sizes, bound), batches_of)
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                except (duckdb.Error, OSError, ValueError):
                    raise unreadable(self.what) from None
                yield [np.array(column.to_numpy(zero_copy_only=False)) for column in batch.columns]
            done()

    def person(self, column: Column) -> str:
        """The id as a 64-bit number or as bytes of text, NULL for nobody."""
        if column.family == "text":
            return self.distinct_text(column)
        person = super().person(column)
        return f"CAST({person} AS VARCHAR)" if column.type in _WIDE else person


def checked_texts(column: Any) -> Any:
    """Bytes as texts; None if one of them is none."""
    import pyarrow as pa

    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        return None


def known_texts(column: Any) -> Any:
    """Bytes as texts, NULL for those that are none."""
    import pyarrow as pa

    texts = checked_texts(column)
    if texts is not None:
        return texts
    return pa.array([_text(value) for value in column.to_pylist()], pa.large_string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _described(name: str, kind: str) -> Column:
    if kind.endswith("]"):
        return Column(name, "a list", "something else")
    # Without what stands in brackets: an ENUM made from a data frame lists the frame's values.
    plain = kind.split("(")[0].strip()
    return Column(name, plain, _FAMILIES.get(plain, "something else"))
