"""Nothing in the file but the release: what else it holds would be published under the release's good name.

`Release.verify` shows that the counts follow from answers that were paid for. A column, a remark or a stretch of bytes
beside them is paid for by nobody, and another tool may read the labels, which dphist computes anew. So a file is taken
only if it holds what the writer would have written: these columns in this order, every label where it belongs, no key
of the description that means nothing, no metadata of others, words that say what the description says, least and
largest values as they are (by which tools pass rows over), and no bytes between the parts that Parquet knows of. Bounds
are checked by `Release.verify`, which knows the errors. (Free text stays free: what the custodian says of the release,
whose budget paid, and which program wrote the file.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError
from dphist.model.domain import Domain
from dphist.release.columns import along, axis_strides, is_plain, plain_numbers
from dphist.release.file.description import insist_on_room
from dphist.release.file.readable import check_words

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

IntArray = NDArray[np.int64]

_MAGIC = 4
_TAIL = 8
# Values of a column that are looked up one by one.
_FEW = 1 << 14


def check_size(file: pyarrow.parquet.ParquetFile, least: int, most: int) -> None:
    """Refuse other rows than the description has cells, or more than memory holds, before any of them is read.

    A few bytes of a file can stand for billions of equal numbers.
    """
    told = file.metadata
    found = sum(told.row_group(group).num_rows for group in range(told.num_row_groups))
    if told.num_rows != found or not least <= found <= most:
        raise ReleaseError("it has other rows than its description has cells")
    insist_on_room(found * 8)


def check_schema(
    file: pyarrow.parquet.ParquetFile, expected: pyarrow.Schema, key: bytes, words: Mapping[bytes, bytes]
) -> None:
    """Refuse other columns than the release's, and metadata of others."""
    found = file.schema_arrow
    plain = [(field.name, _plain(field.type)) for field in found]
    if plain != [(field.name, _plain(field.type)) for field in expected]:
        raise ReleaseError("it has other columns than a release has")
    told = {**(file.metadata.metadata or {}), **(found.metadata or {})}
    check_words({name: text for name, text in told.items() if name not in (key, b"ARROW:schema")}, words)
    for field in found:
        if set(field.metadata or {}) - {b"PARQUET:field_id"}:
            raise ReleaseError("a column carries metadata that no release has")


def check_bytes(file: pyarrow.parquet.ParquetFile, path: Path) -> None:
    """Refuse a file with room between its parts: the columns must lie back to back, and the footer right behind."""
    described = file.metadata
    chunks = []
    for group in range(described.num_row_groups):
        for number in range(described.num_columns):
            column = described.row_group(group).column(number)
            start = column.data_page_offset
            if column.has_dictionary_page and column.dictionary_page_offset is not None:
                start = min(start, column.dictionary_page_offset)
            chunks.append((start, start + column.total_compressed_size))
    place = _MAGIC
    for start, stop in sorted(chunks):
        if start != place:
            raise ReleaseError("it holds bytes that belong to nothing")
        place = stop
    if path.stat().st_size - place != described.serialized_size + _TAIL:
        raise ReleaseError("it holds bytes that belong to nothing")


def check_statistics(file: pyarrow.parquet.ParquetFile) -> None:
    """Refuse a footer that says of a column's values what is not so: other tools pass rows over by it, unread."""
    for group in range(file.num_row_groups):
        for name in file.schema_arrow.names:
            check_stated(file, group, file.read_row_group(group, columns=[name]))


def check_stated(file: pyarrow.parquet.ParquetFile, group: int, table: pyarrow.Table) -> None:
    """The same of some columns of a group of rows that were read."""
    places = {name: place for place, name in enumerate(file.schema_arrow.names)}
    described = file.metadata.row_group(group)
    for name, column in zip(table.column_names, table.columns, strict=True):
        told = described.column(places[name]).statistics
        if told is None:
            continue
        so = not told.has_null_count or told.null_count == column.null_count
        if so and told.has_min_max and column.null_count < len(column):
            low, high = _ends(column)
            # Of texts Arrow may count one that no row has: whoever goes by that reads a row too many, none too few.
            wide = _texts(column.type)
            so = told.min <= low and told.max >= high if wide else (told.min, told.max) == (low, high)
        if not so:
            raise ReleaseError("what it says of a column's values is not so")


def _texts(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(_plain(kind)))


def _ends(column: pyarrow.ChunkedArray) -> tuple[Any, Any]:
    """The least and the largest value of a column that has one."""
    if is_plain(column):
        numbers = plain_numbers(column)
        # Parquet leaves out what is no number.
        return np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    values: set[Any] = set()
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            # One more at the end: what is missing is none of them.
            listed = [*chunk.dictionary.to_pylist(), None]
            often = np.bincount(_filled(chunk.indices, len(listed) - 1), minlength=len(listed))
            values.update(listed[place] for place in np.flatnonzero(often))
        else:
            values.update((chunk if len(chunk) <= _FEW else chunk.unique()).to_pylist())
    known = [value for value in values if value is not None and value == value]
    return min(known), max(known)


def check_description(story: Any, known: Any) -> None:
    """Refuse keys of the description that its writer does not know; what they mean is checked where they are read."""
    if isinstance(story, Mapping):
        if not isinstance(known, Mapping) or not set(story) <= set(known):
            raise ReleaseError("its description says more than a release does")
        for name, value in story.items():
            check_description(value, known[name])
    elif isinstance(story, Sequence) and not isinstance(story, str):
        if not isinstance(known, Sequence) or len(story) != len(known):
            raise ReleaseError("its description says more than a release does")
        for one, other in zip(story, known, strict=True):
            check_description(one, other)


def check_labels(
    file: pyarrow.parquet.ParquetFile, domain: Domain, columns: Sequence[tuple[str, int, pyarrow.Array]]
) -> None:
    """Refuse a label that is not its cell's: dphist reads cells by their place, everybody else by their labels.

    Each column comes with the axis it speaks of and its value for every cell of that axis.
    """
    strides = axis_strides(domain)
    coded = [(name, axis, known, _coded(known)) for name, axis, known in columns]
    begin = 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=[name for name, _, _ in columns])
        check_stated(file, group, table)
        end = begin + table.num_rows
        for name, axis, known, (values, codes) in coded:
            wanted, done = along(codes, strides[axis], begin, end), 0
            for chunk in table.column(name).chunks:
                here = wanted[done : done + len(chunk)]
                done += len(chunk)
                if not np.array_equal(_codes(chunk, values, known), here):
                    raise ReleaseError("a label does not belong to its cell")
        begin = end


def _coded(known: pyarrow.Array) -> tuple[pyarrow.Array | dict[Any, int] | None, NDArray[Any]]:
    """The different values of a column, and which of them each cell has; -1 where it has none.

    Numbers stand for themselves. Arrow's functions take a tenth of a second to load: few texts are looked up without.
    """
    if is_plain(known):
        return None, np.from_dlpack(known)
    if len(known) <= _FEW:
        values: dict[Any, int] = {}
        codes = [-1 if each is None else values.setdefault(each, len(values)) for each in known.to_pylist()]
        return values, np.array(codes, dtype=np.int64)
    encoded = known.dictionary_encode()
    return encoded.dictionary, _filled(encoded.indices, -1)


def _codes(
    chunk: pyarrow.Array, values: pyarrow.Array | dict[Any, int] | None, known: pyarrow.Array
) -> NDArray[Any]:
    """Which of the known values each row has: -1 where it has none, -2 for one that is not known."""
    if values is None:
        if hasattr(chunk, "dictionary") and is_plain(chunk.dictionary) and not chunk.null_count:
            return np.asarray(np.from_dlpack(chunk.dictionary)[_filled(chunk.indices, -1)])
        return np.asarray(np.from_dlpack(chunk)) if is_plain(chunk) else np.zeros(0)
    if isinstance(values, dict) and hasattr(chunk, "dictionary") and len(chunk.dictionary) <= _FEW:
        each = [-2 if value is None else values.get(value, -2) for value in chunk.dictionary.to_pylist()]
        return np.append(np.array(each, dtype=np.int64), -1)[_filled(chunk.indices, len(each))]
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, dict):
        # In the order they first come in, as in ``values``; a list made into an array would load pandas.
        listed = None if hasattr(known, "dictionary") else known.dictionary_encode().dictionary
        if listed is None or len(listed) != len(values) or listed.type != _plain(chunk.type):
            listed = pa.array(list(values), type=_plain(chunk.type))
        values = listed
    if not hasattr(chunk, "dictionary"):
        chunk = chunk.dictionary_encode()
    # Each value is looked up once, however many rows have it.
    code = _filled(pc.index_in(chunk.dictionary, values), -2)
    return np.append(code, -1)[_filled(chunk.indices, len(code))]


def _filled(indices: pyarrow.Array, missing: int) -> IntArray:
    """Codes with a number in place of what is missing; by their buffers, because Arrow's own way loads pandas."""
    valid, values = indices.buffers()
    place = slice(indices.offset, indices.offset + len(indices))
    codes: IntArray = np.zeros(0, np.int64)
    if len(indices):
        codes = np.frombuffer(values, dtype=indices.type.to_pandas_dtype())[place].astype(np.int64)
    if valid is None or not indices.null_count:
        return codes
    there = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")[place]
    return np.where(there, codes, missing)


def _plain(kind: Any) -> Any:
    """The type of the values: Parquet keeps dictionaries of numbers as plain numbers."""
    return getattr(kind, "value_type", kind)
