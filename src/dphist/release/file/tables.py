"""Published tables as rows of a file: a row per cell of each table.

The first column says which table a row belongs to, by its attributes' names; the labels of attributes that a table does
not keep are empty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import ReleaseError
from dphist.model.domain import Domain
from dphist.release.cells import TableCells


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
