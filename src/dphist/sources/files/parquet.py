"""Parquet files: each is read by its own types, and a text that is no UTF-8 is none in its row.

A column of texts is declared to be UTF-8, and nothing checks that when it is written. DuckDB gives a whole file up for
one such value. So if it did, the texts of the files that have one are read here, by Arrow, and joined to the rows by
their place in the file; every other column stays DuckDB's to read. A text is the same bytes to both, and both hold the
same bytes for UTF-8, so nobody else's row is read differently. It takes longer, and that may be seen.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names go through quote() and paths through literal()

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.sources.duck.duck import Ask, Duck, checked_texts, known_texts, table_of
from dphist.sources.engine import Bound, Key
from dphist.sources.sql import literal, microseconds, quote

if TYPE_CHECKING:
    import duckdb

_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT")
_FLOATS = ("FLOAT", "DOUBLE")
_TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
_ROWS = "records"


@dataclass(frozen=True, slots=True)
class Files:
    """Parquet files, and how DuckDB reads them.

    ``whole`` reads them all at once where they agree on types, and then ``common`` says nothing new; ``folders`` are
    columns that stand in names of folders, ``kinds`` the types of the needed columns file by file.
    """

    whole: str
    how: str = ""
    folders: set[str] = field(default_factory=set)
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    common: Mapping[str, str] = field(default_factory=dict)

    def texts(self) -> dict[str, list[str]]:
        """The needed columns of texts, file by file."""
        return {
            file: [name for name, kind in kinds.items() if kind == "VARCHAR"]
            for file, kinds in self.kinds.items()
        }

    def relation(self, elsewhere: Mapping[str, str] | None = None) -> str:
        """What to select from: each file by its own types.

        Of files ``elsewhere`` texts are not DuckDB's to read, but in a table: their ``place`` in the file, and t0, t1 …
        for those of `texts`.
        """
        elsewhere = elsewhere or {}
        distinct = {tuple(sorted(found.items())) for found in self.kinds.values()}
        if len(distinct) <= 1 and not elsewhere:
            return self.whole
        selects = []
        for found in sorted(distinct):
            alike = [file for file in sorted(self.kinds) if tuple(sorted(self.kinds[file].items())) == found]
            casts = ", ".join(
                _cast(name, dict(found).get(name, ""), kind) for name, kind in self.common.items()
            )
            if plain := [file for file in alike if file not in elsewhere]:
                selects.append(
                    f"SELECT {casts} FROM read_parquet([{', '.join(map(_exactly, plain))}]{self.how})"
                )
            for file in alike:
                if file in elsewhere:
                    selects.append(f"SELECT {casts} FROM ({self._beside(file, elsewhere[file])}) AS mended")
        return f"({' UNION ALL '.join(selects)}) AS records"

    def _beside(self, file: str, table: str) -> str:
        """The columns of one file, its texts from a table beside it."""
        texts = self.texts()[file]
        columns = [
            f"t.t{texts.index(name)} AS {quote(name)}" if name in texts else f"r.{quote(name)}"
            for name in self.common
        ]
        rows = f"read_parquet([{_exactly(file)}]{self.how}, file_row_number = true) AS r"
        return (
            f"SELECT {', '.join(columns)} FROM {rows} JOIN {quote(table)} AS t ON r.file_row_number = t.place"
        )


def _exactly(file: str) -> str:
    """A file's name as SQL; marks of a pattern in it are its own."""
    return literal("".join(f"[{mark}]" if mark in "*?[" else mark for mark in file))


def parquet_files(connection: Any, source: str, needed: Sequence[str] | None) -> Files:
    """How to read Parquet files: a needed column's type is that of its own file, not that of the first.

    And which columns stand in the names of folders (``year=2024/``). Those are texts, each read by itself as the
    domain says: DuckDB would find a type that fits all folders, so that one more folder made texts of all numbers.

    DuckDB casts every file to the types of the first one, so whose file comes first would decide how others' values
    are rounded. Where files differ in whole and broken numbers, all are read as 64-bit floats, through their digits
    if they are decimals; a whole number below 2⁵³ stays the same. Other differences are refused: they are between
    files, which their schemas declare, and no value was looked at.
    """
    import duckdb

    path = literal(source)
    # Drafts show whoever holds the data what DuckDB makes of it.
    how = "" if needed is None else ", hive_types_autocast = false"
    whole = f"read_parquet({path}{how})"
    try:
        described = connection.execute(
            "SELECT file_name, name, duckdb_type, num_children, coalesce(precision, 0), coalesce(logical_type, '') "
            f"FROM parquet_schema({path})"
        ).fetchall()
        there = {name for name, *_ in connection.execute(f"DESCRIBE SELECT * FROM {whole}").fetchall()}
    except duckdb.Error:
        # Whatever is wrong with the files, reading them will say it.
        return Files(whole)
    kinds, columns = _declared([each[:4] for each in described], needed or ())
    lower = {file: [name.lower() for name in names] for file, names in columns.items()}
    if any(len(set(names)) < len(names) for names in lower.values()):
        # DuckDB calls the second x of a file x_1, and a column that has that name already something else.
        raise SourceError(
            f"{source} has two columns whose names differ in capitals alone, or not at all; rename one"
        )
    if needed is None:
        return Files(whole)
    for file, names in lower.items():
        folders = {part.partition("=")[0].lower() for part in PurePath(file).parts[:-1] if "=" in part}
        for name in needed:
            if name.lower() in folders and name.lower() in names:
                # DuckDB reads the folder's value, and skips rows by the least and the largest value of the file's.
                raise SourceError(
                    f"folders and files both have a column {name}; rename one, or move the files"
                )
    in_folders = there.difference(*columns.values())
    for _, name, _, _, digits, logical in described:
        # What a decimal of DuckDB's can have.
        if name in needed and digits > 38:
            # DuckDB reads the first bytes of such a number as if they were all of it.
            raise SourceError(
                f"the column {name} holds decimals of {digits} digits; make it one of 38 or fewer"
            )
        zoned = name in needed and "isAdjustedToUTC=1" in logical and "NANOS=NanoSeconds" in logical
        if zoned and not _after_1970(connection, path, name):
            # DuckDB cuts such times towards zero: the last moments of a day before 1970 would lie in the next.
            raise SourceError(
                f"the column {name} holds times of nanoseconds with a zone, and {source} does not say that all are "
                "later than the start of 1970, before which they cannot be read; write it in microseconds, or hand "
                "over an Arrow table"
            )
    # A column that no file has may be in their folders' names.
    names = [name for name in dict.fromkeys(needed) if name in there]
    common = {name: _common(name, {found.get(name, "") for found in kinds.values()}) for name in names}
    return Files(whole, how, in_folders, kinds, common)


def _declared(
    described: Sequence[tuple[str, str, str, int | None]], needed: Sequence[str]
) -> tuple[dict[str, dict[str, str]], dict[str, list[str]]]:
    """The types of the needed columns of each file, and the names of all of them.

    The schema of a file is a tree, listed from its root down.
    """
    kinds: dict[str, dict[str, str]] = {}
    columns: dict[str, list[str]] = {}
    open_nodes: list[int] = []
    for file, name, kind, children in described:
        if file not in kinds:
            kinds[file], columns[file], open_nodes = {}, [], [children or 0]
            continue
        if len(open_nodes) == 1:
            columns[file].append(name)
            if name in needed:
                kinds[file][name] = str(kind or "nested")
        open_nodes[-1] -= 1
        open_nodes.append(children or 0)
        while open_nodes and open_nodes[-1] == 0:
            open_nodes.pop()
    return kinds, columns


def _after_1970(connection: Any, path: str, name: str) -> bool:
    """Whether files state, of every block of a column, that nothing in it is before 1970 or at its very start."""
    ((open_questions,),) = connection.execute(
        f"SELECT count(*) FROM parquet_metadata({path}) WHERE path_in_schema = {literal(name)} "
        "AND coalesce(stats_null_count < num_values, true) AND num_values > 0 AND NOT coalesce("
        "TRY_CAST(coalesce(stats_min_value, stats_min) AS TIMESTAMPTZ) > TIMESTAMPTZ '1970-01-01 00:00:00+00', false)"
    ).fetchall()
    return not open_questions


def _common(name: str, kinds: set[str]) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if "" in kinds:
        raise SourceError(f"some of the files have no column {name}; write them with one schema")
    if kinds <= {*_INTEGERS}:
        return "HUGEINT"
    if all(kind in (*_INTEGERS, *_FLOATS) or kind.startswith("DECIMAL") for kind in kinds):
        return "DOUBLE"
    if kinds <= {*_TIMES}:
        return "TIMESTAMP"
    raise SourceError(f"the files disagree on the type of the column {name}; write them with one schema")


def _cast(name: str, kind: str, common: str) -> str:
    value = quote(name)
    if kind == common:
        return value
    if kind.startswith("DECIMAL"):
        value = f"CAST({value} AS VARCHAR)"
    if kind == "TIMESTAMP_NS":
        value = microseconds(value)
    return f"CAST({value} AS {common}) AS {quote(name)}"


class Parquet(Duck):
    """Parquet files, by a name that can come to mean their rows with other texts."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, files: Files, what: str) -> None:
        import duckdb

        self.files = files
        # Files elsewhere are DuckDB's to find, and so is what has no text.
        self._tried = "://" in what or not any(files.texts().values())
        try:
            connection.execute(f"CREATE TEMP VIEW {_ROWS} AS SELECT * FROM {files.relation()}")
            relation = _ROWS
        except duckdb.Error:
            # Whatever is wrong with the files, reading them will say it.
            relation = files.relation()
        super().__init__(connection, relation, what, undeclared=files.folders.__contains__)

    def _run(self, sql: str, ask: Ask = table_of) -> Any:
        try:
            return super()._run(sql, ask)
        except SourceError:
            if not self._mended():
                raise
        return super()._run(sql, ask)

    def coded_blocks(
        self, cells: Sequence[Key], sizes: Sequence[int], bound: Bound | None
    ) -> Iterator[list[npt.NDArray[Any]]]:
        """The codes of the rows that count, block by block: nobody takes a block back, so texts are looked at first."""
        if not self._tried:
            names = sorted({name for texts in self.files.texts().values() for name in texts})
            self._run(
                f"SELECT {', '.join(f'max(strlen({self.quote(name)}))' for name in names)} FROM {_ROWS}"
            )
        return super().coded_blocks(cells, sizes, bound)

    def _mended(self) -> bool:
        """Read the texts of files that have one which is none; whether there are such files."""
        if self._tried:
            return False
        self._tried = True
        try:
            odd = [file for file, names in self.files.texts().items() if names and _has_odd(file, names)]
            elsewhere = {file: f"dphist texts {place}" for place, file in enumerate(odd)}
            for file, table in elsewhere.items():
                self.connection.register(table, _Texts(file, self.files.texts()[file]))
            if odd:
                rows = f"SELECT * FROM {self.files.relation(elsewhere)}"
                self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {_ROWS} AS {rows}")
        except Exception:
            # Damaged files raise errors of many kinds, whose words may quote them; DuckDB's refusal stands.
            return False
        return bool(odd)


class _Texts:
    """The texts of a file and the places of their rows, as a stream that DuckDB may ask for as often as it likes."""

    def __init__(self, file: str, names: Sequence[str]) -> None:
        self.file, self.names = file, list(names)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows, by the protocol that Arrow's users share."""
        import pyarrow as pa

        columns = [pa.field(f"t{number}", pa.large_string()) for number in range(len(self.names))]
        schema = pa.schema([pa.field("place", pa.int64()), *columns])

        def rows() -> Iterator[Any]:
            begin = 0
            for batch in _batches(self.file, self.names):
                places = pa.array(np.arange(begin, begin + batch.num_rows))
                begin += batch.num_rows
                yield pa.record_batch(
                    [places, *(known_texts(_bytes(each)) for each in batch.columns)], schema=schema
                )

        return pa.RecordBatchReader.from_batches(schema, rows()).__arrow_c_stream__(requested_schema)


def _batches(file: str, names: Sequence[str]) -> Iterator[Any]:
    """Columns of a file, batch by batch, in the order of its rows."""
    import pyarrow.dataset

    wanted = {f"t{number}": pyarrow.dataset.field(name) for number, name in enumerate(names)}
    found: Iterator[Any] = pyarrow.dataset.dataset(file, format="parquet").to_batches(columns=wanted)
    return found


def _has_odd(file: str, names: Sequence[str]) -> bool:
    """Whether a file has a text that is no UTF-8."""
    return any(
        checked_texts(_bytes(column)) is None for batch in _batches(file, names) for column in batch.columns
    )


def _bytes(column: Any) -> Any:
    import pyarrow as pa

    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    return plain.cast(pa.large_binary())
