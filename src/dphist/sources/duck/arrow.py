"""What DuckDB answers, as Arrow; and bytes as texts, for what it takes.

Arrow by relations: of what `execute` is asked, DuckDB 2 keeps all rows before it gives the first as Arrow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ask = Callable[[Any, str], Any]


def table_of(connection: Any, sql: str) -> Any:
    """All of an answer as one table."""
    return connection.sql(sql).to_arrow_table()


def batches_of(connection: Any, sql: str) -> Any:
    """An answer as a reader of batches, which come while DuckDB computes."""
    # How many rows are handed over at a time.
    return connection.sql(sql).to_arrow_reader(1 << 18)


def checked_texts(column: Any) -> Any:
    """Bytes as texts; None if one of them is none."""
    import pyarrow as pa

    try:
        return column.cast(pa.large_string())
    except pa.ArrowInvalid:
        return None


def known_texts(column: Any) -> Any:
    """Bytes as texts, NULL for those that are none."""
    import pyarrow as pa

    texts = checked_texts(column)
    if texts is not None:
        return texts
    return pa.array([_text(value) for value in column.to_pylist()], pa.large_string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
