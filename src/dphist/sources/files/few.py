"""A Parquet file of whole numbers that is not large, counted without an engine: loading one takes as long.

Only files that leave nothing to interpret are taken: one file on this machine, columns of whole numbers that a signed
one of 64 bits holds, without a missing value, attributes that list whole numbers. An engine would read the same numbers
and find the same cells (`tests/sources/test_few.py` holds it against DuckDB). Whatever else it is, and whatever goes
wrong, is for the engine, so errors are the engine's as well.

Which way was gone depends on how many rows there are, and changes nothing but the time that it takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.domain.scales import IntArray, Integers
from dphist.model.unit import Unit
from dphist.sources.tally import Tallied, tally_of

MOST_ROWS = 1 << 24
"""Of more rows an engine counts faster, on all processors."""
# Counting into all cells takes a pass over them, sorting one over the rows for each bit of their number; so many rows
# are sorted at most, as they are held at once.
_CELLS_A_ROW = 8
_MOST_CELLS, _MOST_SORTED = 1 << 24, 1 << 20
# Rows that a file's writer put together, and that are held at once, at most: writers put a million together, or fewer.
_MOST_TOGETHER = 1 << 22
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
    blocks = _blocks(str(path), domain.names)
    size = math.prod(len(values) for values in ranges)
    if blocks is None:
        return None
    in_place = size <= min(_CELLS_A_ROW * blocks.rows, _MOST_CELLS)
    if not in_place and blocks.rows > _MOST_SORTED:
        return None
    counts, listed, placed = np.zeros(size if in_place else 0, dtype=np.int64), [np.zeros(0, np.int64)], 0
    for number in range(blocks.file.num_row_groups):
        columns = blocks.read(number)
        if columns is None:
            return None
        flat = _flat(columns, ranges)
        placed += flat.size
        if not in_place:
            listed.append(flat)
        elif size < flat.size // 2:
            counts += np.bincount(flat, minlength=size)
        else:
            # Many cells and few rows at a time: only those that they are in.
            np.add.at(counts, flat, 1)
    tally = tally_of(source)
    if tally is not None:
        tally.rows, tally.placed = blocks.rows, placed
    if in_place:
        cells = np.flatnonzero(counts)
        return cells, counts[cells]
    # As np.unique gives them, which would load masked arrays.
    cells = np.sort(np.concatenate(listed))
    opens = np.flatnonzero(np.diff(cells, prepend=-1))
    return cells[opens], np.diff(np.append(opens, cells.size))


def _flat(columns: list[IntArray], ranges: list[range]) -> IntArray:
    """The cells of the rows that have one."""
    kept: Any = None
    flat: Any = None
    for values, found in zip(ranges, columns, strict=True):
        # Modulo 2⁶⁴ what is below the first lies beyond the last.
        away = found - values.start if values.start else found
        inside = away.view(np.uint64) <= np.uint64(values[-1] - values.start)
        if values.step > 1:
            inside &= away % values.step == 0
            away = away // values.step
        if not inside.all():
            kept = inside if kept is None else kept & inside
            away = np.where(inside, away, 0)
        flat = away if flat is None else flat * len(values) + away
    return np.asarray(flat if kept is None else flat[kept], dtype=np.int64)


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


@dataclass(frozen=True, eq=False)
class _Blocks:
    """The columns of a file, a group of its rows at a time."""

    file: Any
    names: tuple[str, ...]
    rows: int

    def read(self, number: int) -> list[IntArray] | None:
        """The columns by name, as 64-bit integers; None where they are not as plain as that."""
        import pyarrow as pa

        try:
            table = self.file.read_row_group(number, columns=list(self.names))
            if any(table.column(name).null_count for name in self.names):
                return None
            return [
                np.concatenate(
                    [np.zeros(0, np.int64), *(np.from_dlpack(chunk) for chunk in table.column(name).chunks)],
                    dtype=np.int64,
                )
                for name in self.names
            ]
        except (pa.ArrowException, OSError, ValueError, TypeError, BufferError):
            return None


def _blocks(path: str, names: tuple[str, ...]) -> _Blocks | None:
    """The rows of a file that is plain as far as its schema says; None otherwise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        # Engines do not tell capitals apart, and a dot would be read as a part of a part.
        lower = [name.lower() for name in schema.names]
        if file.metadata.num_rows > MOST_ROWS or len(set(lower)) < len(lower):
            return None
        groups = range(file.metadata.num_row_groups)
        if any(file.metadata.row_group(each).num_rows > _MOST_TOGETHER for each in groups):
            return None
        if any(name not in schema.names or "." in name for name in names):
            return None
        if any(str(schema.field(name).type) not in _TYPES for name in names):
            return None
        return _Blocks(file, names, int(file.metadata.num_rows))
    except (pa.ArrowException, OSError, ValueError, TypeError, BufferError):
        return None
