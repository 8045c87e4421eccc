"""Published tables as rows of a file: a row per cell of each table.

The first column says which table a row belongs to, by its attributes' names; the labels of attributes that a table does
not keep are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError
from dphist.model.domain import Domain
from dphist.release.cells import TableCells
from dphist.release.file.nothing_else import check_stated

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

# Rows of one group of the file: a block of labels has a column for each of perhaps a hundred attributes.
ROWS = 1 << 16


def described(cells: TableCells) -> dict[str, Any]:
    """What the description says of the tables, in the order of their rows."""
    return {"form": cells.form, "tables": [list(axes) for axes in cells.order], "table": cells.table_column()}


def read_tables(domain: Domain, tables: Any) -> list[tuple[int, ...]]:
    """The axes of each table that a description names; the file may come from anybody."""
    if not isinstance(tables, Sequence) or isinstance(tables, str):
        raise ReleaseError("its tables cannot be read")
    found: dict[tuple[int, ...], None] = {}
    for axes in tables:
        whole = isinstance(axes, list) and all(type(a) is int and 0 <= a < len(domain.shape) for a in axes)
        if not whole or axes != sorted(set(axes)) or tuple(axes) in found:
            raise ReleaseError("its tables cannot be read")
        found[tuple(axes)] = None
    if () not in found:
        raise ReleaseError("its tables cannot be read")
    return list(found)


def rows(domain: Domain, tables: Sequence[tuple[int, ...]]) -> int:
    """How many rows the cells of all tables take."""
    return sum(prod(domain.shape[axis] for axis in axes) for axes in tables)


def read_cells(domain: Domain, numbers: NDArray[Any], tables: Sequence[tuple[int, ...]]) -> TableCells:
    """Take the numbers of a file apart into its tables."""
    found, begin = {}, 0
    for axes in tables:
        shape = [domain.shape[axis] for axis in axes]
        end = begin + prod(shape)
        table = np.array(numbers[begin:end], dtype=np.float64).reshape(shape)
        table.setflags(write=False)
        found[axes] = table
        begin = end
    cells = TableCells(domain, found)
    if list(cells.order) != list(found):
        raise ReleaseError("its tables stand in another order than a release's do")
    return cells


def fields(cells: TableCells) -> list[pyarrow.Field]:
    """The label columns, the table's first, with their types."""
    import pyarrow as pa

    return [pa.field(name, column.type) for name, column in cells.label_rows(0, 0).items()]


def check_rows(file: pyarrow.parquet.ParquetFile, cells: TableCells) -> None:
    """Refuse a label that is not its cell's: dphist reads cells by their place, everybody else by their labels."""
    names = [field.name for field in fields(cells)]
    begin = 0
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=names)
        check_stated(file, group, table)
        end = begin + table.num_rows
        for name, wanted in cells.label_rows(begin, end).items():
            kind = getattr(wanted.type, "value_type", wanted.type)
            if not table.column(name).combine_chunks().cast(kind).equals(wanted.cast(kind)):
                raise ReleaseError("a label does not belong to its cell")
        begin = end
