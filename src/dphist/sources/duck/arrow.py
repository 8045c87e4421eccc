"""What DuckDB answers, as rows and as Arrow.

Arrow by relations: of what `execute` is asked, DuckDB 2 keeps all rows before it gives the first as Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ask = Callable[[Any, str], Any]

# How many rows are handed over at a time.
_BATCH = 1 << 18


def rows_of(connection: Any, sql: str) -> Any:
    """An answer to fetch rows from."""
    return connection.execute(sql)


def table_of(connection: Any, sql: str) -> Any:
    """All of an answer as one table."""
    return connection.sql(sql).to_arrow_table()


def batches_of(connection: Any, sql: str) -> Any:
    """An answer as a reader of batches, which come while DuckDB computes."""
    return connection.sql(sql).to_arrow_reader(_BATCH)
