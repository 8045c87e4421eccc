"""Domains in schema files: TOML, written and read."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dphist.errors import DomainError


def toml_tables(kind: str, tables: Iterable[Mapping[str, Any]]) -> str:
    """Write plain values as tables of a schema, such as ``[[measure]]``."""
    each = ("".join(f"{key} = {_toml(value)}\n" for key, value in table.items()) for table in tables)
    return "\n".join(f"[[{kind}]]\n{lines}" for lines in each)


def _toml(value: Any) -> str:
    """A value of a schema in TOML: nested ones inline, in time linear in their size."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quote(key)} = {_toml(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(value) if isinstance(value, str) else repr(value)


def quote(text: str) -> str:
    """A text in TOML, which writes texts as JSON does, except that it escapes one more control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# What a schema may say besides its attributes; `dphist.model.schema` reads these.
_MORE = ("workload", "unit", "measure")


def parsed(source: str | Path) -> dict[str, Any]:
    """A schema's TOML as plain values: its attributes, and what will be asked and who is protected if it says so."""
    import tomllib

    text = source if isinstance(source, str) and ("\n" in source or "=" in source) else None
    if text is None:
        try:
            text = Path(source).read_text(encoding="utf-8-sig")
        except (OSError, ValueError):
            raise DomainError(
                f"the schema {source} cannot be read as a text file; save it as UTF-8"
            ) from None
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise DomainError("the schema is nested too deeply") from None
    except ValueError as error:
        # Also numbers of thousands of digits, which Python refuses to read.
        raise DomainError(f"the schema is not valid TOML: {error}") from None
    unknown = set(found) - {"attribute", *_MORE}
    if unknown or not isinstance(found.get("attribute"), list):
        raise DomainError(
            "a schema is a list of [[attribute]] and perhaps [[measure]] tables; before them it may say workload = … "
            "and unit = …, nothing else"
        )
    plain: dict[str, Any] = _plain(found)
    return plain


def _plain(value: Any) -> Any:
    """TOML has dates of its own; a schema may write them with or without quotes."""
    if isinstance(value, dict):
        return {key: _plain(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if type(value) is dt.date else value
