"""Columns of records that a user hands in: a data frame, or a mapping from names to values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dphist.errors import InputError


def column_names(records: Any) -> list[str]:
    """The names of all columns."""
    columns = getattr(records, "column_names", getattr(records, "columns", None))
    names = records if isinstance(records, Mapping) else columns
    if names is None:
        raise InputError("records must be a data frame or a mapping of columns")
    return [str(name) for name in names]


def column(records: Any, name: str) -> list[Any]:
    """The values of one column."""
    if name not in column_names(records):
        raise InputError(f"the records have no column {name}")
    try:
        values = list(records[name])
    except Exception:
        # What a frame of any maker, or a mapping to anything, may raise cannot be listed.
        raise InputError(f"the column {name} of the records cannot be read as a list of values") from None
    return [value.as_py() if hasattr(value, "as_py") else value for value in values]
