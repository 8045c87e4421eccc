"""The labels of the rows of a file: of every cell, of the cells that passed a threshold, or of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain
from dphist.release.cells import Cells, SparseCells, TableCells
from dphist.release.columns import Column, along, as_arrow, axis_strides, is_plain, number_names

if TYPE_CHECKING:
    import pyarrow


def label_rows(
    domain: Domain, cells: Cells, labels: list[Column], begin: int, end: int
) -> dict[str, pyarrow.Array]:
    """The columns of labels for some rows, texts as a dictionary of those that come."""
    if isinstance(cells, TableCells):
        return cells.label_rows(begin, end)
    if isinstance(cells, SparseCells):
        flat = cells.flat[begin:end]
        placed = np.unravel_index(flat, domain.shape)
        found = {column.name: column.rows(placed[column.axis]) for column in labels}
        return found | {number_names(domain, "cell")["cell"]: as_arrow(flat)}
    strides = axis_strides(domain)
    return {column.name: _runs(column, strides[column.axis], begin, end) for column in labels}


def _runs(column: Column, stride: int, begin: int, end: int) -> pyarrow.Array:
    """The labels of cells in C order, a run of ``stride`` for each value: made once a run, or once a round of all."""
    import pyarrow as pa

    first, whole = begin // stride, column.size * stride <= end - begin
    runs = np.arange(column.size) if whole else np.arange(first, -(-end // stride)) % column.size

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        return along(values, stride, begin, end) if whole else along(values, stride, *inside)

    inside = (begin - first * stride, end - first * stride)
    found = column.rows(runs)
    if hasattr(found, "dictionary"):
        index = as_arrow(spread(np.from_dlpack(found.indices)))
        return pa.DictionaryArray.from_arrays(index, found.dictionary)
    if is_plain(found):
        # Arrow's own functions take longer to load than a small release to write.
        return as_arrow(spread(np.from_dlpack(found)))
    return found.take(as_arrow(spread(np.arange(runs.size, dtype=np.int32))))


def label_fields(domain: Domain, cells: Cells, labels: list[Column]) -> list[pyarrow.Field]:
    """The columns of labels with their types."""
    import pyarrow as pa

    return [pa.field(name, column.type) for name, column in label_rows(domain, cells, labels, 0, 0).items()]
