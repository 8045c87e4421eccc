"""Whether a table of a DuckDB declares its types, or they were guessed from everybody's values."""

# ruff: noqa: S608 -- the relation was written by Ibis or went through quote()

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dphist.errors import SourceError

# What a table or a view may read in the end: DuckDB's own tables, Parquet files, and values that a view's text says.
_DECLARED = (
    *("SEQ_SCAN", "READ_PARQUET", "PARQUET_SCAN", "CTE_SCAN", "DELIM_SCAN"),
    *("COLUMN_DATA_SCAN", "DUMMY_SCAN", "EXPRESSION_SCAN", "EMPTY_RESULT", "RANGE", "GENERATE_SERIES"),
)


def refuse_inferred(connection: Any, relation: str, what: str) -> None:
    """Refuse a table or view over frames, CSV, JSON or anything else whose types depend on its values.

    Args:
        connection: DuckDB's.
        relation: What stands behind FROM.
        what: How messages call it.

    Raises:
        SourceError: if it reads anything else than declared tables and Parquet files.

    Example:
        >>> import duckdb
        >>> connection = duckdb.connect()
        >>> _ = connection.execute("CREATE TABLE t (x DECIMAL(6, 2)); CREATE VIEW v AS SELECT x + 1 AS x FROM t")
        >>> refuse_inferred(connection, "v", "v")
    """
    import duckdb

    try:
        plans = connection.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {relation}").fetchall()
        found = {
            name for kind, plan in plans if kind == "physical_plan" for name in _leaves(json.loads(plan))
        }
    except (duckdb.Error, ValueError, KeyError, TypeError):
        raise SourceError(f"{what} cannot be read: DuckDB does not say what it is made of") from None
    for name in sorted(found - {*_DECLARED}) or ([] if found else ["nothing"]):
        raise SourceError(
            f"{what} reads {name}, whose types may be guessed from everybody's values; hand over that frame or file "
            "itself, or make a table that declares its types of it"
        )


def _leaves(steps: list[Any]) -> Iterator[str]:
    """The names of the steps that read no other step."""
    for step in steps:
        yield from _leaves(step["children"]) if step["children"] else [step["name"].strip()]
