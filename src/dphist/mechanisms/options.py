"""Options that are not what a mechanism declares are refused by name, before anything is counted or paid for.

A mechanism checks what its options mean. That they are numbers, words or mechanisms at all is checked here, once for
all of them and by their own annotations: a text where a number belongs, or a float whose shares do not sum to
exactly one, might otherwise come to light halfway through, with the budget spent.
"""

from __future__ import annotations

import math
import types
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dphist.errors import MechanismError
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import to_json
from dphist.private.exact import exact


def fitted(mechanism: Any) -> Mechanism:
    """The mechanism with its shares as exact fractions; refused if an option is of the wrong kind."""
    known = isinstance(mechanism, Mechanism) and not isinstance(mechanism, type)
    if not known:
        raise MechanismError("mechanism must be a mechanism or its name; `dphist mechanisms` lists them")
    made: Any = mechanism
    if not is_dataclass(type(made)):
        return made  # type: ignore[no-any-return]
    try:
        hints = get_type_hints(type(mechanism))
    except Exception:
        # Somebody else's mechanism may be annotated with names that exist for type checkers only.
        hints = {}
    changed: dict[str, Any] = {}
    for option in fields(made):
        if not option.init or option.name not in hints:
            continue
        hint, value = hints[option.name], getattr(mechanism, option.name)
        if not _fits(value, hint):
            raise MechanismError(
                f"{type(mechanism).__name__}: the option {option.name} cannot be a {type(value).__name__} like this; "
                f"it takes {getattr(option.type, '__name__', option.type)}"
            )
        if isinstance(value, float) and Fraction in (hint, *get_args(hint)):
            changed[option.name] = exact(value, option.name)
        elif hint is Mechanism and (inner := fitted(value)) is not value:
            changed[option.name] = inner
    if changed:
        made = replace(made, **changed)
    # What cannot be written into the release must not be found out when it is saved.
    to_json(made)
    return made  # type: ignore[no-any-return]


def _fits(value: Any, hint: Any) -> bool:
    kind = get_origin(hint)
    if hint is Any:
        return True
    if kind is Literal:
        return isinstance(value, str | int) and value in get_args(hint)
    if kind in (Union, types.UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if kind is tuple:
        items = get_args(hint)
        if not isinstance(value, tuple):
            return False
        if len(items) == 2 and items[1] is Ellipsis:
            return all(_fits(item, items[0]) for item in value)
        return len(value) == len(items) and all(map(_fits, value, items))
    if hint in (Fraction, float):
        return isinstance(value, int | float | Fraction) and not isinstance(value, bool) and _is_finite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**62
    if isinstance(hint, type):
        return isinstance(value, hint) and not isinstance(value, type)
    return value is hint


def _is_finite(value: float | Fraction) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
