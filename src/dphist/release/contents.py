"""Nothing in the file but the release: what else it holds would be published under the release's good name.

`Release.verify` shows that the counts follow from answers that were paid for. A column, a remark or a stretch of bytes
beside them is paid for by nobody, and another tool may read the labels, which dphist computes anew. So a file is taken
only if it holds what the writer would have written: these columns in this order, every label where it belongs, no key
of the description that means nothing, no metadata of others, and no bytes between the parts that Parquet knows of.
(Free text stays free: whose budget paid, and which program wrote the file.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphist.errors import ReleaseError
from dphist.model.domain import Domain

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

_MAGIC = 4
_TAIL = 8


def check_schema(file: pyarrow.parquet.ParquetFile, expected: pyarrow.Schema, key: bytes) -> None:
    """Refuse other columns than the release's, and metadata of others."""
    found = file.schema_arrow
    plain = [(field.name, _plain(field.type)) for field in found]
    if plain != [(field.name, _plain(field.type)) for field in expected]:
        raise ReleaseError("it has other columns than a release has")
    keys = set(found.metadata or {}) | set(file.metadata.metadata or {})
    if keys - {key, b"ARROW:schema"}:
        raise ReleaseError("it carries metadata that no release has")
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


def check_labels(file: pyarrow.parquet.ParquetFile, domain: Domain, labels: Sequence[pyarrow.Array]) -> None:
    """Refuse a label that is not its cell's: dphist reads cells by their place, everybody else by their labels."""
    import pyarrow.compute as pc

    strides = np.append(np.cumprod(domain.shape[::-1])[::-1][1:], 1)
    begin = 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=list(domain.names))
        places = np.arange(begin, begin + table.num_rows, dtype=np.int64)
        begin += table.num_rows
        for name, size, stride, known in zip(domain.names, domain.shape, strides, labels, strict=True):
            wanted, done = places // stride % size, 0
            for chunk in table.column(name).chunks:
                here = wanted[done : done + len(chunk)]
                done += len(chunk)
                if not hasattr(chunk, "dictionary"):
                    right = chunk.equals(known.take(here))
                else:
                    # Each value is looked up once, however many rows have it. What is missing fits nowhere.
                    code = pc.fill_null(pc.index_in(chunk.dictionary, known), -1).to_numpy(
                        zero_copy_only=False
                    )
                    index = pc.fill_null(chunk.indices, len(code)).to_numpy(zero_copy_only=False)
                    right = np.array_equal(np.append(code, -1)[index], here)
                if not right:
                    raise ReleaseError("a label does not belong to its cell")


def _plain(kind: Any) -> Any:
    """The type of the values: Parquet keeps dictionaries of numbers as plain numbers."""
    return getattr(kind, "value_type", kind)
