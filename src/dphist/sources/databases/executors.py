"""Tables counted by Spark's executors: every partition adds its rows up by itself, and only sums leave it.

GROUPING SETS make Spark copy every row once for each table. Here a partition's codes go through Arrow, some ten
thousand rows at a time, to a worker beside them that adds them to its own counts of all tables (`numpy.bincount`); at
the end of the partition it hands on the cells that hold rows. Spark adds the partitions up, so the driver gets one
whole number a cell, whatever the number of rows or partitions. Addition of whole numbers is exact in every order: the
counts are those of GROUP BY. Which of a person's rows are kept was decided before, in Spark's SQL.

The worker needs numpy and pyarrow, not dphist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

MOST_CELLS = 1 << 24
"""Cells that a worker counts in, of all tables together: eight bytes each, in every worker of an executor."""


def counted_on_executors(
    codes: Any, tables: Sequence[tuple[int, ...]], sizes: Sequence[int]
) -> list[tuple[IntArray, IntArray]]:
    """Count tables of a Spark data frame of codes, all in one pass.

    Args:
        codes: A data frame with a column c0, c1 … for each attribute, whole numbers below its size, none missing.
        tables: The attributes of each table.
        sizes: How many values each attribute has.

    Returns:
        For each table, the cells that hold rows, numbered in C order, and how many.
    """
    used = sorted({axis for axes in tables for axis in axes})
    ends = np.cumsum([math.prod(sizes[axis] for axis in axes) for axes in tables])
    placed = [[used.index(axis) for axis in axes] for axes in tables]
    count = adding(placed, [sizes[axis] for axis in used], [0, *ends.tolist()])
    # As few bytes as hold a code: what goes to the worker is most of the work.
    narrow = codes.selectExpr(*(f"CAST(c{axis} AS {_kind(sizes[axis])}) AS c{axis}" for axis in used))
    parts = narrow.mapInArrow(count, "cell bigint, n bigint")
    found = parts.groupBy("cell").agg({"n": "sum"}).toArrow()
    cells, rows = (found.column(place).to_numpy().astype(np.int64) for place in range(2))
    order = np.argsort(cells)
    cells, rows = cells[order], rows[order]
    edges = np.searchsorted(cells, [0, *ends])
    return [
        (cells[low:high] - begin, rows[low:high])
        for low, high, begin in zip(edges[:-1], edges[1:], [0, *ends[:-1]], strict=True)
    ]


def adding(
    tables: Sequence[Sequence[int]], sizes: Sequence[int], offsets: Sequence[int]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What a worker does with a partition: Arrow batches of codes in, one batch of cells and their rows out.

    Args:
        tables: Of each, the columns of a batch that it keeps.
        sizes: How many values each column has.
        offsets: Where each table's cells begin, and where the last one's end.

    Returns:
        A function of batches. It is sent by value, with what it names inside it alone: workers have no dphist.

    Example:
        >>> import pyarrow as pa
        >>> codes = pa.record_batch([pa.array([0, 1, 1]), pa.array([2, 0, 0])], ["c0", "c1"])
        >>> [batch.to_pydict() for batch in adding([(0,), (0, 1)], [2, 3], [0, 2, 8])(iter([codes, codes]))]
        [{'cell': [0, 1, 4, 5], 'n': [2, 4, 2, 4]}]
    """
    tables, sizes, offsets = [list(axes) for axes in tables], list(sizes), list(offsets)

    def count(batches: Iterator[Any]) -> Iterator[Any]:
        import numpy
        import pyarrow

        counts = numpy.zeros(offsets[-1], dtype=numpy.int64)
        for batch in batches:
            columns = [batch.column(place).to_numpy(zero_copy_only=False) for place in range(len(sizes))]
            wide = [column.astype(numpy.int64) for column in columns]
            for axes, begin, end in zip(tables, offsets[:-1], offsets[1:], strict=True):
                if not axes:
                    counts[begin] += batch.num_rows
                    continue
                cell = wide[axes[0]]
                for axis in axes[1:]:
                    cell = cell * sizes[axis] + wide[axis]
                counts[begin:end] += numpy.bincount(cell, minlength=end - begin)
        held = numpy.flatnonzero(counts)
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(held.astype(numpy.int64)), pyarrow.array(counts[held])], ["cell", "n"]
        )

    return count


def _kind(size: int) -> str:
    return "TINYINT" if size <= 1 << 7 else "SMALLINT" if size <= 1 << 15 else "BIGINT"
