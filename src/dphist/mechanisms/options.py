"""Mechanisms as values: their options, read the same from Python, from text and from a file, and written there.

A mechanism checks what its options mean (a share lies between 0 and 1). That they are numbers, words or mechanisms at
all is checked here, once for all of them and by their own annotations: what converts exactly is converted (the text
"0.5" and the float 0.5 to the fraction 1/2, 16.0 to 16, a name to the mechanism), the rest is refused by name.
`checked` does so when a mechanism is built; `fitted` at the front door, for mechanisms from outside, before anything is
counted or paid for. ``name(option=value)`` is the text form, and the same value comes out of `parse` and `from_json`.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, wraps
from inspect import signature
from numbers import Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dphist.errors import EpsilonError, MechanismError
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.registry import BUILDABLE, build, home_of
from dphist.model.exact import exact, fraction

Class = TypeVar("Class", bound=type)


_LARGEST = 2**62


@dataclass(frozen=True)
class Bounds:
    """The least and the largest number that an option takes, themselves included unless it lies ``between`` them.

    Every whole number of a mechanism says one: a release's file may come from anybody, and a replay takes as many
    steps as it says.

    Example:
        >>> from dphist.mechanisms import MWEM
        >>> MWEM(rounds=10**12)
        Traceback (most recent call last):
            ...
        dphist.errors.MechanismError: mwem: rounds must be a whole number from 1 to 1,000
    """

    least: int = -_LARGEST
    most: int = _LARGEST
    between: bool = False

    def hold(self, value: Any) -> bool:
        """Whether an option takes a number."""
        return bool(self.least < value < self.most if self.between else self.least <= value <= self.most)

    def __str__(self) -> str:
        if self.between and self.most < _LARGEST:
            return f" between {self.least} and {self.most}"
        if self.most < _LARGEST:
            return f" from {self.least:,} to {self.most:,}"
        if self.least == -_LARGEST:
            return ""
        return f" {'above' if self.between else 'of at least'} {self.least}"


Large = Annotated[int, Bounds()]
"""A place, or a number of records, cells or tables: however large, nothing takes longer for it."""
Count = Annotated[int, Bounds(1)]
Share = Annotated[Fraction, Bounds(0, 1, between=True)]
"""A part of the budget that leaves another."""


class _Misfit(Exception):  # noqa: N818 -- never leaves this module
    """The value is not of this kind, and nothing that converts exactly to it."""


def checked(cls: Class) -> Class:
    """Let a mechanism's dataclass read its options by their annotations when it is built.

    What converts exactly is converted, the rest is refused by a `MechanismError`.

    Example:
        >>> from dphist.mechanisms import DPCube, Tree
        >>> DPCube(cells_share="0.5").cells_share, Tree(fanout=16.0).fanout
        (Fraction(1, 2), 16)
        >>> Tree(fanout="many")
        Traceback (most recent call last):
            ...
        dphist.errors.MechanismError: tree: fanout must be a whole number from 2 to 1,048,576, 'hb' or 'auto'
    """
    changed: Any = cls
    build: Callable[..., None] = changed.__init__
    taken = signature(build)

    @wraps(build)
    def construct(self: object, *given: Any, **options: Any) -> None:
        try:
            arguments = taken.bind(self, *given, **options).arguments
        except TypeError:
            # Python's own words for too many arguments, and for what it does not know.
            return build(self, *given, **options)
        hints = _hints(cls)
        return build(
            **{
                name: _option(cls, name, value, hints[name]) if name in hints else value
                for name, value in arguments.items()
            }
        )

    changed.__init__ = construct
    return cls


def fitted(mechanism: Any) -> Mechanism:
    """Give the mechanism with its options read by their annotations, at the front door.

    Raises:
        MechanismError: if it is no mechanism, an option is of the wrong kind, or it could not be written into a file.
    """
    if not isinstance(mechanism, Mechanism) or isinstance(mechanism, type):
        raise MechanismError("mechanism must be a mechanism or its name; `dphist mechanisms` lists them")
    made: Any = mechanism
    if not is_dataclass(type(made)):
        return made  # type: ignore[no-any-return]
    kind: Any = type(made)
    hints = _hints(kind)
    known = [option.name for option in fields(made) if option.init and option.name in hints]
    read = {name: _option(kind, name, getattr(made, name), hints[name]) for name in known}
    changed = {name: value for name, value in read.items() if value is not getattr(made, name)}
    if changed:
        made = replace(made, **changed)
    # What cannot be written into the release must not be found out when it is saved.
    to_json(made)
    return made  # type: ignore[no-any-return]


@cache
def _hints(cls: type) -> dict[str, Any]:
    try:
        return get_type_hints(cls, include_extras=True)
    except Exception:
        # Somebody else's mechanism may be annotated with names that exist for type checkers only.
        return {}


def _option(cls: type, option: str, value: Any, hint: Any) -> Any:
    try:
        return _read(value, hint)
    except _Misfit:
        raise MechanismError(f"{cls.__name__.lower()}: {option} must be {_takes(hint)}") from None


def _read(value: Any, hint: Any) -> Any:
    """Give the value as the hint has it, unchanged if it fits already."""
    if hint is Any:
        return value
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        read = _read(value, parts[0])
        if not all(each.hold(read) for each in parts[1:] if isinstance(each, Bounds)):
            raise _Misfit
        return read
    if kind in (Union, types.UnionType):
        return _read_one_of(value, parts)
    if kind is Literal:
        if isinstance(value, str | int) and not isinstance(value, bool) and value in parts:
            return value
        raise _Misfit
    if kind is tuple:
        return _read_tuple(value, parts)
    if hint in _PLAIN:
        return _PLAIN[hint][0](value)
    if not isinstance(hint, type):
        if value is hint:
            return value
        raise _Misfit
    if isinstance(value, str) and not issubclass(hint, str):
        # An ingredient by its name, as the text form writes one with nothing changed.
        value = _by_name(value)
    if not isinstance(value, hint) or isinstance(value, type):
        raise _Misfit
    return value


def _read_one_of(value: Any, hints: tuple[Any, ...]) -> Any:
    """Take the first that the value fits as it is; failing that, the first it converts to."""
    converted: list[Any] = []
    for hint in hints:
        with suppress(_Misfit):
            converted.append(_read(value, hint))
            if converted[-1] is value:
                return value
    if not converted:
        raise _Misfit
    return converted[0]


def _read_tuple(value: Any, items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise _Misfit
    if len(items) == 2 and items[1] is Ellipsis:
        items = items[:1] * len(value)
    if len(value) != len(items):
        raise _Misfit
    read = tuple(map(_read, value, items))
    same = isinstance(value, tuple) and all(new is old for new, old in zip(read, value, strict=True))
    return value if same and isinstance(value, tuple) else read


def _mechanism(value: Any) -> Mechanism:
    if isinstance(value, str):
        value = _by_name(value)
    if not isinstance(value, Mechanism) or isinstance(value, type):
        raise _Misfit
    return fitted(value)


def _by_name(text: str) -> Any:
    try:
        return named(text)
    except MechanismError:
        raise _Misfit from None


def _fraction(value: Any) -> Fraction:
    try:
        read = value if isinstance(value, Fraction) else exact(value, "option")
    except EpsilonError:
        raise _Misfit from None
    # What is too large overflows on the way, with the budget spent.
    if abs(read) > _LARGEST:
        raise _Misfit
    return read


def _float(value: Any) -> float:
    if type(value) is not float:
        return float(_fraction(value))
    # Its square must be a number too.
    if not abs(value) <= _LARGEST:
        raise _Misfit
    return value


def _int(value: Any) -> int:
    if type(value) is int and abs(value) <= _LARGEST:
        return value
    if isinstance(value, bool) or not isinstance(value, Real | Decimal | str):
        raise _Misfit
    # The fraction is exact, so nothing is rounded on the way.
    read = _fraction(value)
    if read.denominator != 1:
        raise _Misfit
    return read.numerator


def _bool(value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise _Misfit
    return value


def _none(value: Any) -> None:
    if value is not None and not (isinstance(value, str) and value.lower() == "none"):
        raise _Misfit


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Misfit
    return value


# How values of a kind are read, and what it is called in words.
_PLAIN: dict[Any, tuple[Callable[[Any], Any], str]] = {
    Fraction: (_fraction, "a number"),
    float: (_float, "a number"),
    int: (_int, "a whole number"),
    bool: (_bool, "True or False"),
    str: (_text, "text"),
    type(None): (_none, "None"),
    Mechanism: (_mechanism, "a mechanism"),
}


def _takes(hint: Any) -> str:
    """Say in words what an option takes."""
    *some, last = _alternatives(hint)
    return f"{', '.join(some)} or {last}" if some else last


def _alternatives(hint: Any) -> list[str]:
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return [_takes(parts[0]) + "".join(str(each) for each in parts[1:] if isinstance(each, Bounds))]
    if kind in (Union, types.UnionType):
        return [word for each in parts for word in _alternatives(each)]
    if kind is Literal:
        return [repr(each) for each in parts]
    if kind is tuple:
        return ["a tuple"]
    return [_PLAIN[hint][1] if hint in _PLAIN else f"a {getattr(hint, '__name__', hint)}"]


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
