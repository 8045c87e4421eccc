"""Errors that name the argument: what a call was given is looked at when the call has failed, and only then.

A function that is handed a number where a list of names belongs fails somewhere inside, with words about whatever it
was doing. `explained` lets it fail, then reads its annotations. If an argument is not of the kind that its annotation
asks for, the caller is told which one and what it should be. If all are, the failure is ours and passes as it is:
nothing that could be our mistake is put down to the caller. Whatever works without being of the kind that is asked for
goes on working, and a call that succeeds pays nothing. No value is quoted, only the name of its type.
"""

from __future__ import annotations

import ast
import difflib
import functools
import inspect
import math
import numbers
import typing
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import FunctionType
from typing import Any, TypeVar

from dphist.errors import ArgumentError, DphistError, InputError

Named = TypeVar("Named", bound=Callable[..., Any])

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def explained(thing: Named) -> Named:
    """Make errors of a function, or of a class's public methods, name the argument that is not what was asked for."""
    if not inspect.isclass(thing):
        return typing.cast("Named", _function(thing))
    for name, value in list(vars(thing).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(value, classmethod | staticmethod):
            setattr(thing, name, type(value)(_function(value.__func__)))
        elif isinstance(value, FunctionType):
            setattr(thing, name, _function(value))
    return thing


def _function(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except DphistError:
            raise
        except Exception:
            told = _unfit(function, given, named)
            if not told:
                raise
        del given, named
        raise InputError(told)

    return call


def _unfit(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str:
    """What is wrong with the arguments of a call that failed, or nothing."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*given, **named).arguments
    except TypeError:
        raise _unknown(function, given, tuple(named)) from None
    for name, value in bound.items():
        parameter = signature.parameters[name]
        note = parameter.annotation
        if not isinstance(note, str) or (
            parameter.default is not parameter.empty and value is parameter.default
        ):
            continue
        asked = ast.parse(note, mode="eval").body
        values: Sequence[Any] = [value]
        if parameter.kind in _VARIADIC:
            values = list(value.values() if parameter.kind is parameter.VAR_KEYWORD else value)
        for each in values:
            if not _fits(each, asked, getattr(function, "__globals__", {})):
                return f"{_name(function, given)}: {name} must be {note}, not {_kind(each)}"
    return ""


def _unknown(
    function: Callable[..., object], given: tuple[Any, ...], named: tuple[str, ...]
) -> ArgumentError:
    """Too many arguments, too few, or of other names: what there is, and what may have been meant."""
    parameters = inspect.signature(function).parameters
    method = next(iter(parameters), "") in ("self", "cls")
    known = [name for name in parameters if name not in ("self", "cls")]
    called = _name(function, given)
    for name in named:
        if name not in parameters:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            return ArgumentError(f"{called} has no argument {name}; {hint}")
    places = [
        name
        for name, each in parameters.items()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(given) > len(places):
        return ArgumentError(
            f"{called} takes {len(places) - method} arguments by their place; name the others: {', '.join(known)}"
        )
    missing = [
        name
        for place, (name, each) in enumerate(parameters.items())
        if each.default is each.empty and place >= len(given) and name not in named
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]  # fmt: skip
    what = f"needs {', '.join(missing)}" if missing else "was given an argument twice"
    return ArgumentError(f"{called} {what}; there are {', '.join(known)}")


def _name(function: Callable[..., Any], given: tuple[Any, ...]) -> str:
    """How the caller knows it: a method by the class of what it was called on, not by the part that defines it."""
    if given and next(iter(inspect.signature(function).parameters), "") in ("self", "cls"):
        owner = given[0] if inspect.isclass(given[0]) else type(given[0])
        return f"{owner.__name__}.{function.__name__}".removesuffix(".__init__")
    return function.__qualname__


def _kind(value: Any) -> str:
    """What kind of thing a value is, and the kinds of things that are in a list, without the things."""
    if isinstance(value, list | tuple) and value:
        return f"{type(value).__name__} of " + ", ".join(sorted({_kind(each) for each in value}))
    if isinstance(value, numbers.Integral) and abs(int(value)) >= 2**63:
        return "one of more than 64 bits"
    if isinstance(value, numbers.Real | Decimal) and not _number(value):
        return "one that is no finite number of 64 bits"
    return type(value).__name__


def _fits(value: Any, asked: ast.expr, scope: Mapping[str, Any]) -> bool:
    """Whether a value is of the kind that an annotation names; in doubt, it is."""
    match asked:
        case ast.BinOp(left=left, right=right):
            return _fits(value, left, scope) or _fits(value, right, scope)
        case ast.Constant(value=None):
            return value is None
        case ast.Subscript(value=outer, slice=inner):
            return _fits_inside(value, _last(outer), inner, scope)
        case ast.Name() | ast.Attribute():
            return _is(value, _last(asked), scope)
    return True


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _fits_inside(value: Any, outer: str, inner: ast.expr, scope: Mapping[str, Any]) -> bool:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    if outer == "Literal":
        return isinstance(value, str | int | None) and value in [ast.literal_eval(part) for part in parts]
    if not _is(value, outer, scope):
        return False
    if outer in ("Mapping", "dict"):
        return all(_fits(k, parts[0], scope) and _fits(v, parts[1], scope) for k, v in value.items())
    if outer in ("Sequence", "Iterable", "list") and (
        isinstance(value, list | tuple) or _is(value, "NDArray", {})
    ):
        return all(_fits(each, parts[0], scope) for each in value)
    if outer == "tuple" and isinstance(value, tuple | list):
        if len(parts) == 2 and isinstance(parts[1], ast.Constant):
            return all(_fits(each, parts[0], scope) for each in value)
        return len(value) == len(parts) and all(map(_fits, value, parts, [scope] * len(parts)))
    return True


def _iterable(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return False
    try:
        iter(value)
    except TypeError:
        return False
    return True


def _number(value: Any) -> bool:
    try:
        return isinstance(value, numbers.Real | Decimal) and math.isfinite(float(value))
    except (OverflowError, ValueError):
        return False


def _class(*names: str) -> Callable[[Any], bool]:
    # By name, since annotations may name what only type checkers import.
    return lambda value: any(each.__name__ in names for each in type(value).__mro__)


_OURS = (
    "Domain", "Histogram", "Release", "Workload", "Unit", "Ledger", "Ordinal", "Nominal", "Measure", "Pair",
    "Reservation",
)  # fmt: skip
_KINDS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: isinstance(value, numbers.Integral) and abs(int(value)) < 2**63,
    "float": _number,
    "bool": _class("bool", "bool_"),
    "Number": lambda value: isinstance(value, numbers.Real | Decimal | str),
    "Fraction": lambda value: isinstance(value, numbers.Rational),
    **dict.fromkeys(("Path", "PathLike"), lambda value: hasattr(value, "__fspath__")),
    "Sequence": lambda value: _iterable(value) and hasattr(value, "__len__") and hasattr(value, "__getitem__"),
    "Iterable": _iterable,
    "tuple": _class("tuple", "list"),
    "Mapping": lambda value: isinstance(value, Mapping),
    "Callable": callable,
    **dict.fromkeys(("NDArray", "IntArray", "FloatArray", "BoolArray"), _class("ndarray")),
    "Attribute": _class("Ordinal", "Nominal"),
    "Mechanism": lambda value: callable(getattr(value, "estimate", None)) and not inspect.isclass(value),
    **{name: _class(name) for name in ("list", "dict", "range", *_OURS)},
}  # fmt: skip


def _is(value: Any, name: str, scope: Mapping[str, Any]) -> bool:
    if name in _KINDS:
        return _KINDS[name](value)
    alias = scope.get(name)
    if typing.get_origin(alias) is typing.Literal:
        return isinstance(value, str | int | None) and value in typing.get_args(alias)
    return True
