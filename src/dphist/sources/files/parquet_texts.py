"""Parquet files in which some text is no UTF-8: that row has no text there, and all others are read as ever.

A column of texts is declared to be UTF-8, and nothing checks that when it is written. DuckDB gives a whole file up for
one such value. So if it did, the texts of the files that have one are read here, by Arrow, and joined to the rows by
their place in the file; every other column stays DuckDB's to read. A text is the same bytes to both, and both hold the
same bytes for UTF-8, so nobody else's row is read differently. It takes longer, and that may be seen.
"""

# ruff: noqa: S608 -- SQL is what this file writes; the relation is made of quoted names and public values

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dphist.errors import SourceError
from dphist.sources.duck.arrow import Ask, checked_texts, known_texts, table_of
from dphist.sources.duck.duck import Duck
from dphist.sources.engine import Bound, Key
from dphist.sources.files.parquet import Files

if TYPE_CHECKING:
    import duckdb

_ROWS = "records"


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
