"""CSV files: a header that names the columns, and a record on every other line."""

from __future__ import annotations

import csv
import weakref
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dphist.errors import SourceError
from dphist.sources.duck.allowance import unreadable
from dphist.sources.files.lines import (
    LONGEST,
    Refused,
    Rows,
    Text,
    files,
    first_line,
    pieces,
    readable,
    side_by_side,
    whole_lines,
)
from dphist.sources.sql import quote

_VERDICTS = {1: "quote", 2: "carriage", 3: "long"}


def open_csv(connection: Any, source: str, needed: Sequence[str] | None) -> Text:
    """Open CSV files: by the header line alone, every field as text, of the ``needed`` columns (None: all).

    The separator, the names and how lines end are those of the first line of the first file; nothing is guessed from
    rows. All files must begin with the same line: fields go by their place, and another order of columns would be
    read as other values.
    """
    heads = []
    try:
        for file in files(connection, source):
            heads.append(first_line(file))
    except Exception:
        raise unreadable(source) from None
    # Decided outside of the handler, so that nothing of the file hangs on to an error.
    head = heads[0] if heads else b""
    same = len({each.rstrip(b"\r\n") for each in heads}) <= 1
    names, separator = _header(head, source)
    del head
    if not same:
        raise SourceError(f"{source}: the files do not begin with the same line of column names")
    wanted = [name for name in names if needed is None or name in needed] or names[:1]
    places = np.array([wanted.index(name) if name in wanted else -1 for name in names], dtype=np.int64)

    # Weakly: DuckDB keeps the rows as long as the connection lives.
    link = weakref.proxy(connection)

    def batches() -> Iterator[Any]:
        for file in files(link, source):
            yield from _batches(file, separator, places, wanted)

    def warm() -> None:
        _batch(b"", ord(separator), False, places, wanted)

    described = ", ".join(quote(name) for name in wanted)
    lines = f"(SELECT {described} FROM records) AS lines"  # noqa: S608 -- names are quoted
    return Text(connection, lines, Rows(wanted, batches), source, warm=warm)


def _header(line: bytes, source: str) -> tuple[list[str], str]:
    hint = "does it begin with a line of column names"
    try:
        text = line.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text or "\0" in text or "\r" in text:
        raise unreadable(source, hint + ", in UTF-8")
    separators = "\t" if ".tsv" in Path(source.lower()).suffixes else ",;\t|"
    separator = max(separators, key=text.count)
    try:
        (fields,) = csv.reader([text], delimiter=separator, skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        fields = []
    if not fields:
        raise unreadable(source, hint)
    names = [name.strip() or f"column{place}" for place, name in enumerate(fields)]
    if len({name.lower() for name in names}) != len(names):
        raise SourceError(f"{source} has two columns of one name")
    return names, separator


def _batches(file: Any, separator: str, places: Any, names: list[str]) -> Iterator[Any]:
    lines = whole_lines(pieces(file))
    first = next(lines, b"")
    head, end, rest = first.partition(b"\n")
    if not end:
        return
    returns = head.endswith(b"\r")

    def all_lines() -> Iterator[bytes]:
        yield rest
        yield from lines

    yield from side_by_side(
        partial(_batch, separator=ord(separator), returns=returns, places=places, names=names), all_lines()
    )


def _batch(
    piece: bytes, separator: int, returns: bool, places: Any, names: list[str]
) -> tuple[Any, int, int]:
    """The rows that some lines make, as an Arrow batch, and how many lines are no UTF-8 or have other fields."""
    import pyarrow

    if not piece.endswith(b"\n"):
        # The last line of a file may end with it.
        piece += b"\r\n" if returns else b"\n"
    made = _split(piece, separator, returns, places, len(names))
    lines = piece.count(b"\n")
    if (kept := readable(piece)) is not piece:
        # Only now that quotes and line ends were judged on every line.
        made = _split(kept, separator, returns, places, len(names))
    rows, data, ends, missing = made
    left = kept.count(b"\n")
    # Empty lines make no row and are nobody's.
    empty = sum(not line.strip(b"\r") for line in kept.split(b"\n")[:-1]) if rows < left else 0
    columns = len(names)
    arrays = []
    for column in range(columns):
        known = np.packbits(~missing[column, :rows], bitorder="little")
        buffers = [
            pyarrow.py_buffer(known),
            pyarrow.py_buffer(ends[column, : rows + 1]),
            pyarrow.py_buffer(data[column]),
        ]
        arrays.append(pyarrow.StringArray.from_buffers(rows, buffers[1], buffers[2], buffers[0], -1))
    return pyarrow.record_batch(arrays, names=names), lines - left, left - rows - empty


def _split(
    piece: bytes, separator: int, returns: bool, places: Any, columns: int
) -> tuple[int, Any, Any, Any]:
    from dphist.kernels.delimited import FINE, split_fields

    text = np.frombuffer(piece, dtype=np.uint8)
    lines = int(np.count_nonzero(text == 10))
    data = np.empty((columns, text.size), dtype=np.uint8)
    ends = np.empty((columns, lines + 1), dtype=np.int32)
    missing = np.empty((columns, lines), dtype=np.bool_)
    rows, found = split_fields(text, separator, returns, LONGEST, places, data, ends, missing)
    if found != FINE:
        raise Refused(_VERDICTS[found])
    return rows, data, ends, missing
