"""A small Parquet file of whole numbers, counted without an engine: loading one takes longer than counting the rows.

Only files that leave nothing to interpret are taken: one file on this machine, columns of whole numbers that a signed
one of 64 bits holds, without a missing value, attributes that list whole numbers. An engine would read the same numbers
and find the same cells (`tests/door/test_few.py` holds it against DuckDB). Whatever else it is, and whatever goes
wrong, is for the engine, so errors are the engine's as well.

Which way was gone depends on how many rows there are, and changes nothing but the time that it takes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.domain.scales import IntArray, Integers
from dphist.model.unit import Unit
from dphist.sources.tally import Tallied, tally_of

MOST_ROWS = 1 << 20
"""Of more rows an engine counts faster, on all processors."""
# Counting into all cells takes a pass over them, sorting one over the rows for each bit of their number.
_CELLS_A_ROW = 8
_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_WITHIN = 1 << 62


def count_few(source: Any, domain: Domain, unit: Unit) -> tuple[IntArray, IntArray] | None:
    """The flat cells that hold rows, in order, and how many; None where an engine has to be asked."""
    path = source.source if isinstance(source, Tallied) else source
    if unit.id is not None or not isinstance(path, str | Path) or not _plain_path(str(path)):
        return None
    ranges = [values for each in domain.attributes if (values := _whole_numbers(each)) is not None]
    if not ranges or len(ranges) < len(domain.attributes):
        return None
    columns = _columns(str(path), domain.names)
    if columns is None:
        return None
    flat = np.zeros(columns[0].size, dtype=np.int64)
    kept = np.ones(flat.size, dtype=bool)
    for values, found in zip(ranges, columns, strict=True):
        kept &= (found >= values[0]) & (found <= values[-1])
        away = found - values.start
        if values.step > 1:
            kept &= away % values.step == 0
        flat = flat * len(values) + np.where(kept, away // values.step, 0)
    tally = tally_of(source)
    if tally is not None:
        tally.rows, tally.placed = flat.size, int(kept.sum())
    if not kept.all():
        flat = flat[kept]
    if math.prod(len(values) for values in ranges) <= _CELLS_A_ROW * flat.size:
        counts = np.bincount(flat)
        cells = np.flatnonzero(counts)
        return cells, counts[cells]
    # As np.unique gives them, which would load masked arrays.
    cells = np.sort(flat)
    opens = np.flatnonzero(np.diff(cells, prepend=-1))
    return cells[opens], np.diff(np.append(opens, cells.size))


def _plain_path(path: str) -> bool:
    """Whether it names one Parquet file on this machine; a folder's name may hold a column's value."""
    return (
        path.lower().endswith(".parquet")
        and not any(mark in path for mark in "*?[{=:")
        and Path(path).is_file()
    )


def _whole_numbers(attribute: Any) -> range | None:
    if not isinstance(attribute, Ordinal) or not isinstance(attribute.scale, Integers):
        return None
    values = attribute.scale.values
    fits = len(values) > 0 and values.step > 0 and -_WITHIN < values[0] <= values[-1] < _WITHIN
    return values if fits and attribute.other_cell is None else None


def _columns(path: str, names: tuple[str, ...]) -> list[IntArray] | None:
    """The columns by name, as 64-bit integers; None where they are not as plain as that."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        # Engines do not tell capitals apart, and a dot would be read as a part of a part.
        lower = [name.lower() for name in schema.names]
        if file.metadata.num_rows > MOST_ROWS or len(set(lower)) < len(lower):
            return None
        if any(name not in schema.names or "." in name for name in names):
            return None
        if any(str(schema.field(name).type) not in _TYPES for name in names):
            return None
        table = file.read(columns=list(names))
        if any(table.column(name).null_count for name in names):
            return None
        return [
            np.concatenate(
                [np.zeros(0, np.int64), *(np.from_dlpack(chunk) for chunk in table.column(name).chunks)],
                dtype=np.int64,
            )
            for name in names
        ]
    except (pa.ArrowException, OSError, ValueError, TypeError, BufferError):
        return None
