"""Text files as a table of DuckDB's: the rows are cut by us, and DuckDB computes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dphist.errors import SourceError
from dphist.sources.duck.allowance import unreadable
from dphist.sources.duck.arrow import Ask, table_of
from dphist.sources.duck.duck import Duck
from dphist.sources.files.lines import Refused, refusal
from dphist.sources.tally import Tally

if TYPE_CHECKING:
    import duckdb


class Rows:
    """Batches of rows that DuckDB may ask for as often as it likes; a file is read anew each time."""

    def __init__(self, names: Sequence[str], batches: Callable[[], Iterator[tuple[Any, int, int]]]) -> None:
        self.names = list(names)
        self.batches = batches
        self.reason: str | None = None
        # Of the last reading: lines that made a row, that are no UTF-8, that have other fields than the header.
        self.seen = [0, 0, 0]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows, by the protocol that Arrow's users share."""
        import pyarrow

        schema = pyarrow.schema([(name, pyarrow.string()) for name in self.names])
        reader = pyarrow.RecordBatchReader.from_batches(schema, self._watched())
        return reader.__arrow_c_stream__(requested_schema)

    def _watched(self) -> Iterator[Any]:
        self.seen = seen = [0, 0, 0]
        try:
            for batch, unreadable_lines, ragged in self.batches():
                for place, lines in enumerate((batch.num_rows, unreadable_lines, ragged)):
                    seen[place] += lines
                yield batch
        except Refused as refused:
            self.reason = refused.args[0]
        except Exception:
            # Decompressors and disks raise errors of many kinds, whose words may quote the file.
            self.reason = "unreadable"
        if self.reason is not None:
            # Outside of the handler, and without a word: DuckDB repeats what it is told, and what is in the frames.
            raise StopReading


class StopReading(Exception):  # noqa: N818 -- an outcome, never seen by a caller
    """Ends a statement of DuckDB's from within."""


class Text(Duck):
    """A table over rows that we read ourselves.

    ``warm`` does with no rows what is done with rows later, so that whatever it takes is loaded now, by the thread
    that is told of Ctrl+C. If modules were loaded while DuckDB computes, it might be DuckDB's own loading that is
    interrupted: it drops the interrupt, Python's lock of imports may stay held, and the threads that read the file
    would wait for it for ever.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        relation: str,
        rows: Rows,
        what: str,
        *,
        warm: Callable[[], None],
        undeclared: Callable[[str], bool] = lambda _: True,
    ) -> None:
        import pyarrow.dataset  # noqa: F401 -- DuckDB takes streams of batches by it

        warm()
        connection.register("records", rows)
        self.rows = rows
        super().__init__(connection, relation, what, undeclared=undeclared)

    def watch(self, tally: Tally) -> None:
        """Say what was seen in the last reading."""
        _, tally.encoding, tally.ragged = self.rows.seen
        tally.rows = sum(self.rows.seen)

    def _run(self, sql: str, ask: Ask = table_of) -> Any:
        self.rows.reason = None
        try:
            return super()._run(sql, ask)
        except SourceError as error:
            failed = error
        reason = self.rows.reason
        if reason is None:
            raise failed
        raise unreadable(self.what) if reason == "unreadable" else refusal(self.what, reason)
