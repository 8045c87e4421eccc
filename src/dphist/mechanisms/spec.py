"""Mechanisms as text and JSON: ``name(option=value)`` in, the same value out."""

from __future__ import annotations

import ast
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from inspect import getdoc
from typing import Any

from dphist.errors import MechanismError
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.registry import BUILDABLE, OWN, build, entry_of, home_of
from dphist.model.exact import fraction


def parse(text: str) -> Mechanism:
    """Read ``name`` or ``name(option=value, …)``; values may be numbers, 'text', tuples or mechanisms."""
    built = named(text)
    if not isinstance(built, Mechanism):
        raise MechanismError(f"{text.split('(')[0]!r} is an ingredient of mechanisms, not a mechanism")
    return built


def to_json(value: object) -> dict[str, Any]:
    """Write a mechanism as its name and options."""
    home = home_of(value)
    # A mechanism from outside names its own home; loading imports nothing by itself.
    own = f"{type(value).__module__}:{type(value).__qualname__}"
    name = next((name for name, target in BUILDABLE.items() if target == home), own)
    return {"name": name, "options": {f.name: _encode(getattr(value, f.name)) for f in _options(value)}}


def from_json(described: dict[str, Any]) -> Mechanism:
    """Build the mechanism that was written down."""
    built = _decode(described)
    if not isinstance(built, Mechanism):
        raise MechanismError("the description does not name a mechanism")
    return built


def show(value: object, *, filled: bool = False) -> str:
    """Print a mechanism as one line: its name and whatever differs from the default.

    With ``filled`` what a release has filled in, too: `parse` reads the line back as who measured.
    """
    described = to_json(value)
    changed = []
    for option in _options(value):
        given = getattr(value, option.name)
        # What two equal mechanisms may differ in was filled in; what is text of that is a remark.
        shown = option.compare or (filled and not isinstance(given, str))
        if shown and (option.default is MISSING or given != option.default):
            changed.append(f"{option.name}={_show(given, filled)}")
    return str(described["name"]) + (f"({', '.join(changed)})" if changed else "")


def in_words(mechanism: object) -> dict[str, str]:
    """Say who a mechanism is, for people who have not read the code.

    Gives its ``name`` with the options that were given, the same with all that it has ``chosen`` (empty if nothing
    was), what it does in plain ``words``, and a ``reference`` to who thought of it.
    """
    paragraphs = (getdoc(type(mechanism)) or "").split("\n\n")
    name, filled = show(mechanism), show(mechanism, filled=True)
    return {
        "name": name,
        "chosen": "" if filled == name else filled,
        "words": " ".join(" ".join(paragraphs[:2]).split()).replace("``", "").replace("`", ""),
        "reference": _reference(mechanism),
    }


def _reference(mechanism: object) -> str:
    """Who thought of a mechanism, and of what it chose."""
    entry = entry_of(mechanism)
    if entry is None:
        return ""
    own = (
        f"{OWN}; the idea and the proof are in its documentation."
        if entry.paper is None
        else entry.paper.cited
    )
    chosen = entry_of(getattr(mechanism, "chosen", None) or getattr(mechanism, "inner", None))
    if chosen is None or chosen.paper is None or chosen.paper == entry.paper:
        return own
    return f"{own} It runs {chosen.name}: {chosen.paper.cited}"


def _options(value: object) -> list[Any]:
    return [f for f in fields(value) if f.init] if is_dataclass(value) else []


def _show(value: object, filled: bool) -> str:
    if is_dataclass(value) and not isinstance(value, type):
        return show(value, filled=filled)
    if isinstance(value, Fraction):
        return f"'{value}'"
    if isinstance(value, tuple):
        return "(" + ", ".join(_show(item, filled) for item in value) + ("," if len(value) == 1 else "") + ")"
    return repr(value)


def named(text: str) -> Any:
    """Read a mechanism or an ingredient of one, such as a `Sort`."""
    name, bracket, rest = text.strip().partition("(")
    if not bracket:
        return build(name, {})
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise MechanismError(f"cannot read the options of {name!r}: write name(option=value, …)") from None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise MechanismError(f"cannot read the options of {name!r}: write name(option=value, …)")
    return build(name, _arguments(name, call))


def _arguments(name: str, call: ast.Call) -> dict[str, Any]:
    if call.args or any(word.arg is None for word in call.keywords):
        raise MechanismError(f"options of {name!r} must be written option=value")
    if len({word.arg for word in call.keywords}) != len(call.keywords):
        raise MechanismError(f"an option of {name!r} is written twice")
    return {str(word.arg): _value(word.value) for word in call.keywords}


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return build(node.func.id, _arguments(node.func.id, node))
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(item) for item in node.elts)
    if isinstance(node, ast.Name):
        return node.id
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise MechanismError("an option's value must be a number, 'text', a tuple or a mechanism") from None


def _encode(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(value)
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise MechanismError(f"a mechanism's option cannot be a {type(value).__name__}")


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if "fraction" in value:
            return fraction(value["fraction"])
        if "tuple" in value:
            if not isinstance(value["tuple"], list):
                raise MechanismError("a mechanism's tuple must be written as a list")
            return tuple(_decode(item) for item in value["tuple"])
        if set(value) == {"name", "options"}:
            if not isinstance(value["name"], str) or not isinstance(value["options"], dict):
                raise MechanismError("a mechanism's description must be a name and its options")
            told = {key: _decode(item) for key, item in value["options"].items()}
            return build(value["name"], told)
        raise MechanismError("a mechanism's description has an unknown part")
    if isinstance(value, list):
        raise MechanismError("a mechanism's option cannot be a list")
    return value
