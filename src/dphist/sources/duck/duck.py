"""DuckDB in its own words: files, data frames and DuckDB databases.

Loading Ibis takes more processor time than DuckDB needs for millions of rows; so what runs on this machine is
said to DuckDB directly.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values go through quote() and literal()

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.kernels.pairs import side_by_side
from dphist.model.coded import code_type
from dphist.sources.duck.allowance import count_by_position, rows_at_once, shown_progress, unreadable
from dphist.sources.duck.arrow import Ask, batches_of, rows_of, table_of
from dphist.sources.duck.binning import with_bins
from dphist.sources.engine import Bound, Column, Family, Groups, Integers, Key, Value
from dphist.sources.people import DIGITS, SALT, counted, is_decimal, refuse_floats
from dphist.sources.sql.statements import Sql
from dphist.sources.sql.words import literal, microseconds, quote
from dphist.sources.tally import Tally

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
# Whole numbers that need not fit in 64 bits with a sign: as ids they are told apart as texts.
_WIDE = ("HUGEINT", "UBIGINT", "UHUGEINT")
# The types of codes.
_CODES: dict[Any, str] = {np.uint8: "UTINYINT", np.uint16: "USMALLINT", np.int32: "INTEGER"}
# Columns beside those of the records: numbers of keys that nobody declared, and of people whose ids are texts.
_KEY, _PERSON = "dphist key", "dphist person"
# Bits of a number that a cell and the values of a row may take together.
_WORD = 62
_WIDTHS = (("SMALLINT", 2**15), ("INTEGER", 2**31))


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
        sized: bool = False,
        checked: bool = True,
    ) -> None:
        self.connection = connection
        self.relation = relation
        self.what = what
        self.counts_by_position = 0
        # Whether the number of rows is known without reading them, and whether its texts are known to be UTF-8.
        self.sized, self.checked = sized, checked
        # Values that are searched in a list of edges on the way: the SQL that gives each, and its edges.
        self._bins: dict[str, tuple[str, npt.NDArray[Any]]] = {}
        described = self._run(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        self.columns = tuple(
            Column(str(name), "undeclared values", "undeclared", inferred)
            if undeclared(str(name))
            else replace(_described(str(name), str(kind)), inferred=inferred)
            for name, kind, *_ in described
        )

    def _run(self, sql: str, ask: Ask = rows_of) -> Any:
        import duckdb

        try:
            found = {name: asked for name, asked in self._bins.items() if self.quote(name) in sql}
            if not found:
                return ask(self.connection, sql)
            columns = [each.name for each in self.columns if self.quote(each.name) in sql]
            return with_bins(
                self.connection, sql, self.relation, columns, found, self.counts_by_position, ask
            )
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

    def bin(self, value: str, edges: Sequence[Any]) -> str | None:
        """The bin of a value known to lie between many edges: found here, while the rows pass by."""
        if any(column.type in ("HUGEINT", "UHUGEINT") for column in self.columns):
            # Numbers that Arrow has no type for would come back as others.
            return None
        whole = all(isinstance(edge, int) for edge in edges)
        name = f"dphist bin {len(self._bins)}"
        self._bins[name] = value, np.array(edges, dtype=np.int64 if whole else np.float64)
        return self.quote(name)

    def literal(self, value: Any) -> str:
        """A public value; a NUL would end the statement."""
        said = literal(value)
        return "(" + said.replace("\0", "' || chr(0) || '") + ")" if "\0" in said else said

    def watch(self, tally: Tally) -> None:
        """Say how many rows there are: what a table or a file's own description knows, no column is read for it."""
        ((rows,),) = self._run(f"SELECT count(*) FROM {self.relation}").fetchall()
        tally.rows = int(rows)

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
        """The first eight bytes of the hash of an id, the last of them first, as DuckDB has them at hand."""
        return f"CAST(md5_number('{SALT}' || CAST({person} AS VARCHAR)) & {2**64 - 1} AS UBIGINT)"

    def flat(self, cells: Sequence[Key], sizes: Sequence[int]) -> str:
        """The number of a cell, in the narrowest type that holds all of the domain's: rows are sorted by it."""
        width = next((kind for kind, top in _WIDTHS if math.prod(sizes) <= top), "BIGINT")
        return f"TRY_CAST({super().flat(cells, sizes)} AS {width})"

    def group(self, keys: Sequence[Key], values: Sequence[Value] = ()) -> Groups:
        """Count the rows by their keys, and add their values up."""
        if self.sized:
            ((rows,),) = self._run(f"SELECT count(*) FROM {self.relation}").fetchall()
            count_by_position(self.connection, int(rows))
            self.counts_by_position = int(rows)
        with shown_progress(self.connection, 1) as done:
            answer = self._run(self.statement(keys, values)).fetchnumpy()
            done()
        found = [_unmasked(answer[f"k{place}"]) for place in range(len(keys))]
        return Groups(
            keys=[values for values, _ in found],
            missing=[missing for _, missing in found],
            rows=np.asarray(answer["n"], dtype=np.int64),
            sums=[np.asarray(answer[f"s{place}"], dtype=np.int64) for place in range(len(values))],
        )

    def _refuse_large(self, person: Column) -> None:
        if (sql := self.too_large(person)) is not None and self._run(sql).fetchall() != [(0,)]:
            raise refuse_floats(person)

    def bounded(
        self, cell: str, bound: Bound, values: Sequence[Value] = ()
    ) -> tuple[Integers, Integers, Sequence[Integers]]:
        """Cells, how many rows of them are kept, and sums: DuckDB sorts the rows, and the places are taken here.

        The sorted rows are held in memory. People are therefore taken in K groups by a hash of the id, and the counts
        added: a person lies in one group, so the rows that are kept are the same whatever K is.
        """
        self._refuse_large(bound.id)
        ((rows,),) = self._run(f"SELECT count(*) FROM {self.relation}").fetchall()
        count = max(1, -(-int(rows) // rows_at_once(self.connection)))
        answers = []
        with shown_progress(self.connection, count) as done:
            for part in range(count):
                (people, cells, *amounts), starts = self._part(cell, bound, f"% {count} = {part}", values)
                limited = [(found, value.limit) for found, value in zip(amounts, values, strict=True)]
                answers.append(counted(people, cells, bound, starts, limited))
                done()
        cells, kept, *sums = (np.concatenate(found) for found in zip(*answers, strict=True))
        return cells, kept, sums

    def code(self, key: Key, size: int) -> str:
        """The number of an attribute's cell in the narrowest type; NULL for a row that has none there."""
        value = key.value if key.inside is None else self.when(key.inside, key.value, None)
        return f"TRY_CAST({self._sql(value)} AS {_CODES[code_type(size)]})"

    def table_of(self, sql: str) -> Any:
        """What a query gives, as an Arrow table."""
        with shown_progress(self.connection, 1) as done:
            found = self._run(sql, table_of)
            done()
        return found

    def first_bits(self, person: str) -> str:
        """The first 60 bits of the hash of an id."""
        return f"CAST('0x' || substr(md5('{SALT}' || CAST({person} AS VARCHAR)), 1, {DIGITS}) AS BIGINT)"

    def keys_kept(
        self, key: str, cell: str, bound: Bound, size: int
    ) -> tuple[Any, Integers, Integers, Integers]:
        """Keys that nobody declared, as texts; and the key, known cell and number of rows of all that is kept.

        Keys are numbered in the order of their texts, so that cells of numbers are in the order of (key, cell), and
        are bounded like any others.
        """
        with self._numbered(key, _KEY, order=" ORDER BY text ASC") as names:
            cells, kept, _ = self.bounded(f"{quote(_KEY)} * {size} + CAST({cell} AS BIGINT)", bound)
        return names, cells // size, cells % size, kept

    @contextmanager
    def _numbered(self, text: str, name: str, some: str = "TRUE", order: str = "") -> Iterator[Any]:
        """Give the different texts of a value; while they are at hand, rows have the number of theirs in a column.

        Numbers tell texts apart, and say which comes first where they have an order, and nothing else: whoever adds a
        text may move the numbers of others, and nothing that is made of them.
        """
        import pyarrow as pa

        rows, columns = self.relation, self.columns
        each = f"SELECT DISTINCT text FROM (SELECT {text} AS text FROM {rows}) AS texts"
        texts = self._run(f"{each} WHERE text IS NOT NULL AND {some}{order}", table_of).column("text")
        table, said = f"{name} of texts", f"{name} as text"
        self.connection.register(table, pa.table({said: texts, name: np.arange(len(texts))}))
        same = f'({text} COLLATE "C") = ({quote(said)} COLLATE "C")'
        try:
            self.relation = f"(SELECT * FROM {rows} LEFT JOIN {quote(table)} ON {same}) AS numbered"
            self.columns = (*columns, Column(name, "BIGINT", "integer"))
            yield texts.combine_chunks()
        finally:
            self.relation, self.columns = rows, columns
            self.connection.unregister(table)

    def coded_blocks(
        self, cells: Sequence[Key], sizes: Sequence[int], bound: Bound | None
    ) -> Iterator[list[npt.NDArray[Any]]]:
        """The codes of the rows that count, block by block: an array for every attribute, in no order."""
        import duckdb

        if bound is not None:
            self._refuse_large(bound.id)
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

    def rows_per_person(self, person: Column) -> tuple[Integers, Integers]:
        """Numbers of rows, and how many people have as many."""
        self._refuse_large(person)
        found = self._run(self.rows_per_person_statement(person)).fetchnumpy()
        return np.asarray(found["n"], dtype=np.int64), np.asarray(found["people"], dtype=np.int64)

    def numbers(self, column: Column) -> bool:
        """Whether people are told apart as 64-bit numbers, and not as texts."""
        if column.family == "real":
            return not is_decimal(column)
        return column.family == "integer" and column.type not in _WIDE

    def person(self, column: Column) -> str:
        """The id as a 64-bit number or as bytes of text, NULL for nobody."""
        if column.family == "text":
            return self.distinct_text(column)
        person = super().person(column)
        return f"CAST({person} AS VARCHAR)" if column.type in _WIDE else person

    def _part(
        self, cell: str, bound: Bound, part: str, values: Sequence[Value]
    ) -> tuple[tuple[Integers, ...], Callable[[Integers], Integers]]:
        """The rows of some people, each one's in order: people as numbers, cells and values; and how ids are hashed."""
        if self.numbers(bound.id):
            return self._sorted(cell, bound, f"hash(person) {part}", values), self.starts
        with self._numbered(self.person(bound.id), _PERSON, f"hash(text) {part}") as ids:
            known = replace(bound, id=Column(_PERSON, "BIGINT", "integer"))
            return self._sorted(cell, known, None, values), lambda people: self.starts(ids.take(people))

    def _sorted(
        self, cell: str, bound: Bound, part: str | None, values: Sequence[Value]
    ) -> tuple[Integers, ...]:
        found = self._run(self.placed(cell, bound, part, values)).fetchnumpy()
        names = ["person", "cell", *(f"v{place}" for place in range(len(values)))]
        # Arrays of our own, which the sort may write over.
        return _in_order(*(np.array(found.pop(name), dtype=np.int64, copy=None) for name in names))

    def starts(self, people: Any) -> Integers:
        """The hashes of some ids."""
        import duckdb
        import pyarrow

        # A cursor has names of its own: nothing is left behind on a connection that we were handed.
        with self.connection.cursor() as cursor:
            cursor.register("people", pyarrow.table({"person": people, "place": np.arange(len(people))}))
            sql = f"SELECT place, {self.start('person')} AS start FROM people"
            try:
                found = cursor.execute(sql).fetchnumpy()
            except duckdb.Error:
                raise unreadable(self.what) from None
        starts = np.empty(len(people), dtype=np.int64)
        starts[found["place"]] = found["start"].byteswap() >> np.uint64(64 - 4 * DIGITS)
        return starts


def _in_order(people: Integers, cells: Integers, *values: Integers) -> tuple[Integers, ...]:
    """Rows of a person side by side, in the order of their cells and then of their values.

    A row's cell and values become one number, whose leading bits are the cell: where the values lie decides how many
    bits they take, never the order.
    """
    if not values:
        return side_by_side(people, cells)
    if not len(cells):
        # Nobody's rows have least and largest values: that none has a cell is no reason to fail.
        return people, cells, *values
    least = [int(each.min()) for each in values]
    bits = [(int(each.max()) - low).bit_length() for each, low in zip(values, least, strict=True)]
    if int(cells.max()).bit_length() + sum(bits) > _WORD:
        order = np.lexsort((*reversed(values), cells, people))
        return tuple(each[order] for each in (people, cells, *values))
    for each, low, width in zip(values, least, bits, strict=True):
        cells = (cells << width) | (each - low)
    people, cells = side_by_side(people, cells)
    found = []
    for low, width in zip(reversed(least), reversed(bits), strict=True):
        found.append((cells & ((1 << width) - 1)) + low)
        cells = cells >> width
    return people, cells, *reversed(found)


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
