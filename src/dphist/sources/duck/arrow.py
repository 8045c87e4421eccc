"""What DuckDB answers, as Arrow: by the names that its versions have for it."""

from __future__ import annotations

from typing import Any

# How many rows are handed over at a time.
_BATCH = 1 << 18


def table_of(answer: Any) -> Any:
    """All of an answer as one table."""
    return answer.to_arrow_table() if hasattr(answer, "to_arrow_table") else answer.fetch_arrow_table()


def batches_of(answer: Any) -> Any:
    """An answer as a reader of batches, which come while DuckDB computes."""
    read = answer.to_arrow_reader if hasattr(answer, "to_arrow_reader") else answer.fetch_record_batch
    return read(_BATCH)
