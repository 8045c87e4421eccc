"""What a record of a text file is, decided here before any engine sees it: a line of CSV, an object of JSON.

A reader that looks at several lines at once can be led astray by one of them. DuckDB's took the ends of all lines from
the first ones, and lost 90,000 of 100,000 when one of another kind came; quotes that are never closed swallow what
follows; samples of rows decide about types and names. No noise for one record covers that. So the files are cut into
records by us, and nothing that one record holds reaches another:

**Theorem.** *The table that is counted is a list of rows, and every row is a function of one record's bytes and
of public facts* (the declared columns, the header, the file's kind of line ends), *or the file is refused.*

*Proof.* A piece of a file is cut behind a line feed, and UTF-8 has no line feed inside another character, so every
piece is made of whole lines, however the pieces fall. `split_fields` starts every line in the same state, and
`split_objects` every object; both hand on nothing but where to write. What is dropped (lines with another number of
fields, text that is no UTF-8, an object that is no good JSON) is dropped by a test of that record alone. The rows go to
DuckDB as values of a table, and it computes keys of each row by functions of that row. ∎

*What is refused*, since it means different things to different readers, and a record could be one or many: a quoted
field that goes on past its line; something behind a closing quote; a carriage return that ends no line, and lines
that end in two ways (in a file of the other kind a bare line feed may stand inside a field); lines above 16 MB; a
JSON object that goes on past its line or is followed by something else. A refusal comes before anything is paid, and
says only which of these was found: neither where, nor how often, nor in which of several files. It depends on the
records, as every refusal of a damaged file does, and is for the holder of the file; see the threat model.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from dphist.errors import SourceError
from dphist.sources.duck.allowance import unreadable
from dphist.sources.duck.duck import Ask, Duck, table_of
from dphist.sources.engine import Tally
from dphist.sources.sql import literal

if TYPE_CHECKING:
    import duckdb

_PIECE = _HEADER = 1 << 22
LONGEST = 1 << 24
_MARK = b"\xef\xbb\xbf"

Made = TypeVar("Made")

REFUSALS = {
    "quote": "a quoted field does not end on its own line, or something follows its closing quote, and one record "
    "could take others with it; write the file as Parquet, or without line breaks inside fields",
    "carriage": "a carriage return stands inside a line, or lines end in two ways, and one record could be read as "
    "several; give all lines the same end (dos2unix does) or write the file as Parquet",
    "long": "a line is longer than 16 MB; write the file as Parquet",
    "object": "it is neither one JSON object a line nor one array of objects, and one record could take others with "
    "it; write every object on a line of its own, with nothing behind it",
    "deep": "an object has more than 60 lists and objects inside each other, deeper than is followed; write the fields "
    "that are counted on the first level, without the rest, or the file as Parquet",
    "floats": "an id is a number with a point or an exponent, of 2^53 or more, which may stand for several people's; "
    "write ids as whole numbers or as texts",
}


class Refused(Exception):  # noqa: N818 -- an outcome, never seen by a caller
    """A file whose records are not what they seem; the reason is a key of `REFUSALS`."""


def refusal(source: str, reason: str) -> SourceError:
    """The error that a refused file ends in."""
    return SourceError(f"{source}: {REFUSALS[reason]}")


def files(connection: Any, source: str) -> Generator[IO[bytes], None, None]:
    """The files that a path or glob names, opened and decompressed as their names say."""
    # A connection of its own: they are asked for while the other one is busy with a statement that reads them.
    connection = connection.cursor()
    if "://" in source:
        # Only DuckDB knows how to get there, and it hands over a file at a time.
        names = connection.execute(f"SELECT filename FROM read_blob({literal(source)})").fetchall()  # noqa: S608
        for (name,) in names:
            asked = f"SELECT content FROM read_blob({literal(name)})"  # noqa: S608 -- a quoted path
            ((content,),) = connection.execute(asked).fetchall()
            yield _decompressed(name, io.BytesIO(content))
        return
    for (name,) in connection.execute(f"SELECT file FROM glob({literal(source)})").fetchall():  # noqa: S608
        with Path(name).open("rb") as file:
            yield _decompressed(name, file)


def first_line(file: IO[bytes]) -> bytes:
    """The line that a file begins with, its end included; at most one piece of it."""
    start = file.read(_HEADER)
    line, end, _ = start.removeprefix(_MARK).partition(b"\n")
    return line + end


def pieces(file: IO[bytes]) -> Iterator[bytes]:
    """A file in pieces as they come, without the mark that may stand before the first."""
    first = True
    while piece := file.read(_PIECE):
        if first:
            # A stream may hand over less than was asked for.
            while len(piece) < len(_MARK) and (more := file.read(_PIECE)):
                piece += more
            piece, first = piece.removeprefix(_MARK), False
        yield piece


def whole_lines(taken: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces cut anew, so that each is made of whole lines; the last line of a file may lack its end."""
    left = b""
    for piece in taken:
        cut = piece.rfind(b"\n") + 1
        if cut:
            yield left + piece[:cut]
            left = piece[cut:]
        else:
            left += piece
        if len(left) > LONGEST:
            raise Refused("long")
    if left:
        yield left


def readable(piece: bytes) -> bytes:
    """The lines of a piece that are UTF-8.

    Bytes that are none are not replaced by a sign: two ids that differ in them would become one, and two people
    with it.
    """
    try:
        piece.decode()
    except UnicodeDecodeError:
        # Not splitlines(), which would cut at carriage returns too.
        return b"".join(line for line in re.findall(rb"[^\n]*\n|[^\n]+", piece) if is_text(line))
    return piece


def is_text(line: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def side_by_side(work: Callable[[bytes], Made], taken: Iterator[bytes]) -> Iterator[Made]:
    """Work on pieces on several cores, and give the outcomes in the order of the pieces."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = min(
        cores, int(threads) if (threads := os.environ.get("DPHIST_THREADS", "")).isdigit() else cores
    )
    begun: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(max(1, wanted)) as pool:
        for piece in taken:
            begun.append(pool.submit(work, piece))
            if len(begun) > wanted:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def _decompressed(name: str, file: IO[bytes]) -> IO[bytes]:
    suffix = Path(name).suffix.lower()
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]  # it reads bytes, which is all we ask
    if suffix == ".zst":
        import pyarrow

        return pyarrow.CompressedInputStream(file, "zstd")  # type: ignore[no-any-return]
    return file


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
