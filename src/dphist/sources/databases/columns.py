"""The columns of Ibis tables, in words of our own."""

from __future__ import annotations

from typing import Any

from dphist.sources.engine import Column, Family


def ibis_columns(table: Any) -> tuple[Column, ...]:
    """The columns of an Ibis table."""
    return tuple(Column(name, ibis_type(kind), ibis_family(kind)) for name, kind in table.schema().items())


def ibis_family(kind: Any) -> Family:
    """What kind of values an Ibis type holds."""
    if kind.is_timestamp():
        return "time" if kind.timezone is None else "zoned time"
    tests: list[tuple[bool, Family]] = [
        (kind.is_null(), "undeclared"),
        (kind.is_integer(), "integer"),
        (kind.is_floating() or kind.is_decimal(), "real"),
        (kind.is_string(), "text"),
        (kind.is_boolean(), "truth"),
        (kind.is_date(), "date"),
    ]
    return next((family for fits, family in tests if fits), "something else")


def ibis_type(kind: Any) -> str:
    """The name of an Ibis type, without what stands in brackets."""
    return str(kind).split("(")[0].split("<")[0]


def backend_of(table: Any) -> Any:
    """The engine a table belongs to; a table made in memory belongs to none yet."""
    from ibis.common.exceptions import IbisError

    try:
        return table.get_backend()
    except IbisError:
        return None
