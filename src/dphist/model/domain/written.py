"""Attributes written down and read: as plain values, as JSON and as TOML."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dphist.errors import DomainError
from dphist.model.domain.hierarchy import write_tree
from dphist.model.domain.nominal import Nominal
from dphist.model.domain.ordinal import Ordinal
from dphist.model.domain.scales import Bins, Dates, Integers, Steps
from dphist.model.domain.zones import UTC

Attribute = Ordinal | Nominal

# Equally spaced edges beyond this many are written as from, to, width: a schema is read by people.
_LISTED_EDGES = 32


def attribute_to_json(attribute: Attribute, *, ordered: bool = True) -> dict[str, Any]:
    """One attribute as plain values."""
    written: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind}
    if isinstance(attribute, Nominal) and attribute.discover:
        written["discover"] = True
    elif isinstance(attribute, Nominal):
        written["categories"] = write_tree(attribute.tree, ordered=ordered)
    else:
        match attribute.scale:
            case Integers(values=values):
                written["range"] = [values.start, values.stop] + ([values.step] if values.step > 1 else [])
            case Bins(edges=range() as even) if len(even) > _LISTED_EDGES:
                written["edges"] = {"from": even[0], "to": even[-1], "width": even.step}
            case Bins(edges=edges):
                written["edges"] = list(edges)
            case Steps(categories=categories):
                written["categories"] = list(categories)
            case Dates(start=start, stop=stop, step=step, zone=zone):
                written["dates"] = [start.isoformat(), stop.isoformat(), step]
                if zone != UTC:
                    written["zone"] = zone
    if attribute.other:
        written["other"] = True
    return written


_FORMS = ("range", "edges", "categories", "dates")


def attribute_from_json(value: Any) -> Attribute:
    """Read one attribute."""
    if not isinstance(value, Mapping):
        raise DomainError("each attribute must be a table with a name, a kind and its values")
    name = value.get("name")
    if not isinstance(name, str):
        raise DomainError('an attribute has no name: add name = "the column it stands for"')
    unknown = set(value) - {"name", "kind", "other", "discover", "zone", *_FORMS}
    if unknown:
        known = ", ".join(("name", "kind", *_FORMS, "zone", "other", "discover"))
        key = sorted(map(str, unknown))[0]
        if key in ("workload", "unit"):
            raise DomainError(
                f"{name}: {key} does not belong to an attribute; write it before the first [[attribute]]"
            )
        raise DomainError(f"{name}: unknown setting {key}; an attribute has {known}")
    kind, other = value.get("kind"), value.get("other", False)
    if not isinstance(other, bool):
        raise DomainError(f"{name}: other must be true or false")
    given = [form for form in _FORMS if form in value]
    if "zone" in value and given != ["dates"]:
        raise DomainError(f"{name}: zone says whose calendar dates are of; leave it out")
    if (discover := value.get("discover", False)) is not False:
        if discover is not True or kind != "nominal" or given:
            raise DomainError(f"{name}: discover = true stands for the categories of a nominal attribute")
        return Nominal(name, other=other, discover=True)
    if len(given) != 1:
        raise DomainError(f"{name}: give exactly one of {', '.join(_FORMS)}")
    form, values = given[0], value[given[0]]
    if kind == "nominal":
        if form != "categories":
            raise DomainError(f"{name}: a nominal attribute takes categories, not {form}")
        return Nominal(name, values, other=other)
    if kind != "ordinal":
        raise DomainError(f'{name}: kind must be "ordinal" (the values have an order) or "nominal"')
    if form == "range":
        return Ordinal(name, _range(name, values), other=other)
    if form == "edges":
        return Ordinal(name, edges=_edges(name, values), other=other)
    if not isinstance(values, list | tuple):
        raise DomainError(f"{name}: {form} must be a list")
    if form == "dates":
        return Ordinal(name, dates=tuple(values), zone=value.get("zone", UTC), other=other)
    return Ordinal(name, values, other=other)


def _range(name: str, values: Any) -> range:
    listed = isinstance(values, list | tuple) and 2 <= len(values) <= 3
    if not listed or any(type(v) is not int for v in values) or (len(values) == 3 and values[2] < 1):
        raise DomainError(
            f"{name}: range must be [first, past the last] or [first, past the last, step], integers"
        )
    return range(*values)


def _edges(name: str, values: Any) -> Iterable[Any]:
    if not isinstance(values, Mapping):
        if not isinstance(values, list | tuple):
            raise DomainError(f"{name}: edges must be a list of numbers, or {{from, to, width}}")
        return values
    if set(values) != {"from", "to", "width"} or any(type(v) is not int for v in values.values()):
        raise DomainError(f"{name}: evenly spaced edges are {{from = …, to = …, width = …}}, integers")
    low, high, width = values["from"], values["to"], values["width"]
    if width < 1 or high <= low or (high - low) % width:
        raise DomainError(f"{name}: the width must divide the distance between from and to")
    return range(low, high + 1, width)


def to_toml(attributes: Iterable[Attribute]) -> str:
    """Write a schema file, each attribute one block."""
    return toml_tables("attribute", (attribute_to_json(each, ordered=False) for each in attributes))


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
