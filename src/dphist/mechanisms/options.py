"""The one validator of a mechanism's options: the same from Python, from the command line and from a saved file.

A mechanism checks what its options mean (a share lies between 0 and 1). That they are numbers, words or mechanisms at
all is checked here, once for all of them and by their own annotations: what converts exactly is converted (the text
"0.5" and the float 0.5 to the fraction 1/2, 16.0 to 16, a name to the mechanism), the rest is refused by name.
`checked` does so when a mechanism is built; `fitted` at the front door, for mechanisms from outside, before anything is
counted or paid for.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import cache, wraps
from inspect import signature
from numbers import Real
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from dphist.errors import EpsilonError, MechanismError
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import named, to_json
from dphist.model.exact import exact

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
    kind = get_origin(hint)
    if kind is Annotated:
        read = _read(value, get_args(hint)[0])
        if not all(each.hold(read) for each in hint.__metadata__ if isinstance(each, Bounds)):
            raise _Misfit
        return read
    if kind in (Union, types.UnionType):
        return _read_one_of(value, get_args(hint))
    if kind is Literal:
        if isinstance(value, str | int) and not isinstance(value, bool) and value in get_args(hint):
            return value
        raise _Misfit
    if kind is tuple:
        return _read_tuple(value, get_args(hint))
    if hint is Mechanism:
        return _read_mechanism(value)
    if hint in _READERS:
        return _READERS[hint](value)
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
        try:
            read = _read(value, hint)
        except _Misfit:
            continue
        if read is value:
            return value
        converted.append(read)
    if not converted:
        raise _Misfit
    return converted[0]


def _read_tuple(value: Any, items: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise _Misfit
    if len(items) == 2 and items[1] is Ellipsis:
        read = tuple(_read(item, items[0]) for item in value)
    elif len(value) == len(items):
        read = tuple(map(_read, value, items))
    else:
        raise _Misfit
    same = isinstance(value, tuple) and all(new is old for new, old in zip(read, value, strict=True))
    return value if same and isinstance(value, tuple) else read


def _read_mechanism(value: Any) -> Mechanism:
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


_READERS: dict[Any, Callable[[Any], Any]] = {
    Fraction: _fraction,
    float: _float,
    int: _int,
    bool: _bool,
    type(None): _none,
}


def _takes(hint: Any) -> str:
    """Say in words what an option takes."""
    kind = get_origin(hint)
    if kind is Annotated:
        hint, *said = get_args(hint)
        return _takes(hint) + "".join(str(each) for each in said if isinstance(each, Bounds))
    if kind in (Union, types.UnionType, Literal):
        listed = [
            word
            for each in get_args(hint)
            for word in ([_takes(each)] if kind is not Literal else [repr(each)])
        ]
        flat = ", ".join(listed).replace(" or ", ", ").split(", ") if kind is not Literal else listed
        return flat[0] if len(flat) == 1 else f"{', '.join(flat[:-1])} or {flat[-1]}"
    if kind is tuple:
        return "a tuple"
    if hint is Mechanism:
        return "a mechanism"
    known = {
        Fraction: "a number",
        float: "a number",
        int: "a whole number",
        bool: "True or False",
        str: "text",
    }
    if hint in known:
        return known[hint]
    return "None" if hint is type(None) else f"a {getattr(hint, '__name__', hint)}"
