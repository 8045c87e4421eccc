"""Bins of many edges, found here while the rows pass by on their way from a table to DuckDB's GROUP BY.

DuckDB takes a block of rows at a time, and a block of random values takes every branch of a long CASE. So rows are
handed out as batches, each value is searched in the edges by itself, and they go back with the bins beside them.
"""

# ruff: noqa: S608 -- SQL is what this file writes; names and public values went through quote() and literal()

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dphist.sources.duck.allowance import count_by_position
from dphist.sources.duck.arrow import Ask, batches_of
from dphist.sources.sql.words import quote

Edges = npt.NDArray[Any]
_STREAM = "dphist rows with bins"


def with_bins(
    connection: Any,
    sql: str,
    relation: str,
    columns: Sequence[str],
    bins: Mapping[str, tuple[str, Edges]],
    by_position: int,
    ask: Ask,
) -> Any:
    """Run a query on rows that have the bins of some values as columns of their own.

    Args:
        connection: DuckDB's.
        sql: The query, which names bins as columns and reads ``relation`` once: rows that passed by do not come again.
        relation: Where the rows are.
        columns: Which of its columns the query needs.
        bins: Names of bins, the SQL of the value that each is of, and its edges.
        by_position: As many rows are counted by position, or 0.
        ask: How a connection is asked.

    Returns:
        DuckDB's answer.
    """
    import pyarrow as pa

    asked = [quote(name) for name in columns]
    for name, (value, edges) in bins.items():
        kind = "BIGINT" if edges.dtype.kind == "i" else "DOUBLE"
        asked.append(f"TRY_CAST({value} AS {kind}) AS {quote(name)}")
    rows = batches_of(connection, f"SELECT {', '.join(asked)} FROM {relation}")
    schema = pa.schema(
        [*(rows.schema.field(name) for name in columns), *(pa.field(name, pa.int32()) for name in bins)]
    )

    def binned() -> Iterator[Any]:
        for batch in rows:
            found = [
                pa.array(_binned(batch.column(len(columns) + place), edges))
                for place, (_, edges) in enumerate(bins.values())
            ]
            yield pa.RecordBatch.from_arrays([*batch.columns[: len(columns)], *found], schema=schema)

    # On a cursor, which has names of its own.
    cursor = connection.cursor()
    if by_position:
        count_by_position(cursor, by_position)
    cursor.register(_STREAM, pa.RecordBatchReader.from_batches(schema, binned()))
    # Texts and names are passed over whole: a category may read like a part of a statement.
    parts = rf"""FROM {re.escape(relation)}|'(?:[^']|'')*'|"(?:[^"]|"")*\""""
    stream = f"FROM {quote(_STREAM)}"
    return ask(cursor, re.sub(parts, lambda part: stream if part[0].startswith("FROM") else part[0], sql))


def _binned(column: Any, edges: Edges) -> npt.NDArray[np.int32]:
    """The bins of some values; whatever stands where one is NULL is not looked at."""
    values = np.frombuffer(column.buffers()[1], dtype=edges.dtype)[
        column.offset : column.offset + len(column)
    ]
    found = np.searchsorted(edges, values, side="right") - 1
    return np.clip(found, 0, len(edges) - 2).astype(np.int32)
