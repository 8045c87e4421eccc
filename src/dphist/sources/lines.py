"""One record, one line: refusing CSV files in which a record could take others with it.

A quoted field may hold line breaks, by the rules of the format. Then a quote that is never closed is
the beginning of a field that holds the next records, up to the next quote: one record moves any number of
counts, and no noise for one record covers that. The other reading, in which every line is a record, is no better: a
field that was rightly quoted, line breaks and all, would be as many records as whoever wrote it liked. Nothing in the
file tells the two apart, so a file with a quoted field that goes on past its line is refused, and what remains has one
meaning: a record is a line, and a line that does not fit is dropped by itself.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from dphist.errors import SourceError
from dphist.sources.machine import unreadable
from dphist.sources.sql import literal

_PIECE = 1 << 22


def first_line(connection: Any, source: str) -> str:
    """The line of column names of the first file; no other line is looked at."""
    line = ""
    # Decompressors and engines raise errors of their own kinds, whose words may quote the file.
    with suppress(Exception):
        files = _files(connection, source)
        start = next(files).read(_PIECE)
        files.close()
        line = start.replace(b"\r", b"\n").partition(b"\n")[0].decode("utf-8-sig")
    if not line:
        raise unreadable(source, "does it begin with a line of column names")
    return line


def check_lines(connection: Any, source: str, separator: str) -> None:
    """Refuse CSV files with a quoted field that does not end on its line.

    The refusal depends on the records, as every refusal of a damaged file does. It says only that there is such a
    field: neither where, nor how many, nor in which file.
    """
    try:
        whole = all(_ends_in_lines(file, separator.encode()) for file in _files(connection, source))
    except Exception:
        raise unreadable(source) from None
    if not whole:
        raise SourceError(
            f"{source}: a quoted field does not end on its own line, or something follows its closing quote, and "
            "one record could take others with it; write the file as Parquet, or without line breaks inside fields"
        )


def _ends_in_lines(file: IO[bytes], separator: bytes) -> bool:
    from dphist.kernels.quotes import LOST, PLAIN, QUOTED, START, follow

    state = START
    while piece := file.read(_PIECE):
        if state in (START, PLAIN) and b'"' not in piece:
            # Without quotes only the last field matters: a quote may follow it in the next piece.
            piece = piece[max(piece.rfind(separator), piece.rfind(b"\n"), 0) :]
        state = follow(np.frombuffer(piece, dtype=np.uint8), state, separator[0])
        if state == LOST:
            return False
    return state != QUOTED


def _files(connection: Any, source: str) -> Generator[IO[bytes], None, None]:
    """The files that a path or glob names, opened and decompressed as DuckDB would."""
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


def _decompressed(name: str, file: IO[bytes]) -> IO[bytes]:
    suffix = Path(name).suffix.lower()
    if suffix == ".gz":
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]  # it reads bytes, which is all we ask
    if suffix == ".zst":
        import pyarrow

        return pyarrow.CompressedInputStream(file, "zstd")  # type: ignore[no-any-return]
    return file
