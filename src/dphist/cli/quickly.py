"""The commands that programs call again and again, read without the library that reads all others.

That takes longer to load than a release takes to answer (0.2 of 0.5 CPU seconds). What a command takes is read off the
function that does it. Only what is plain is read here: whatever else stands on the line (a wish for help, a mistake, a
completion) goes to `dphist.cli.commands`, which says everything there is to say. A test holds the two against each
other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import Any

COMMANDS = ("query", "show", "verify", "report")


def plain_command(arguments: Sequence[str]) -> Callable[[], None] | None:
    """What a line asks for, ready to run, or None where it is not plain enough to be read here."""
    if list(arguments) == ["--version"]:
        return _version
    if not arguments or arguments[0] not in COMMANDS or "_DPHIST_COMPLETE" in os.environ:
        return None
    if {"-h", "--help"} & set(arguments):
        return None
    command = runs(arguments[0])
    given = read(command, arguments[1:])
    return None if given is None else partial(command, **given)


def runs(name: str) -> Callable[..., None]:
    """The function that does what a command says."""
    from dphist.cli import reading, showing

    commands: dict[str, Callable[..., None]] = {
        "query": reading.query_release,
        "show": showing.show_release,
        "verify": reading.verify_release,
        "report": reading.write_report,
    }
    return commands[name]


def read(command: Callable[..., None], arguments: Sequence[str]) -> dict[str, Any] | None:
    """The parameters that a line gives, or None: a release, perhaps questions, flags, and options with a value."""
    defaults = {name: each.default for name, each in signature(command).parameters.items()}
    names = {
        f"--{name.removeprefix('as_')}": name for name in defaults if name not in ("release", "question")
    }
    if "output" in defaults:
        names["-o"] = "output"
    given: dict[str, Any] = {}
    words: list[str] = []
    rest = iter(arguments)
    for each in rest:
        if not each.startswith("-"):
            words.append(each)
        elif each not in names:
            return None
        elif defaults[names[each]] is False:
            given[names[each]] = True
        else:
            value = _value(next(rest, ""), defaults[names[each]])
            if value is None:
                return None
            given[names[each]] = value
    if not words or not words[0] or (len(words) > 1 and "question" not in defaults):
        return None
    return given | {"release": Path(words[0])} | ({"question": words[1:]} if len(words) > 1 else {})


def _value(text: str, default: Any) -> Any:
    """A text as what its parameter has by default: a number, a place or a text; None where that is not plain."""
    if not text or text.startswith("-"):
        return None
    if not isinstance(default, float):
        return Path(text) if isinstance(default, Path) else text
    try:
        return float(text) if isfinite(float(text)) and "_" not in text else None
    except ValueError:
        return None


def _version() -> None:
    from dphist.cli import screen
    from dphist.version import __version__

    screen.line(f"dphist {__version__}")
