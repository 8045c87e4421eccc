"""The commands that programs call again and again, read without the library that reads all others.

That takes longer to load than a release takes to answer. Only what is plain is read here: whatever else stands on the
line (a wish for help, a mistake, a completion) goes to `dphist.cli.commands`, which says everything there is to say. A
test holds the two against each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

Reader = Callable[[str], Any]


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value) or "_" in text:
        raise ValueError("not a plain number")
    return value


def _bins(text: str) -> str:
    if text not in ("whole", "spread"):
        raise ValueError("no such word")
    return text


@dataclass(frozen=True, kw_only=True)
class Line:
    """What a command takes: a release, perhaps more words, options with a value, and flags."""

    run: Callable[..., None]
    words: str | None = None
    """The parameter that takes all further words."""
    values: Mapping[str, tuple[str, Reader]] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)


def _version() -> None:
    from dphist.cli import screen
    from dphist.version import __version__

    screen.line(f"dphist {__version__}")


def _query(**given: Any) -> None:
    from dphist.cli.reading import query_release

    query_release(**given)


def _show(**given: Any) -> None:
    from dphist.cli.showing import show_release

    show_release(**given)


def _verify(**given: Any) -> None:
    from dphist.cli.reading import verify_release

    verify_release(**given)


def _report(**given: Any) -> None:
    from dphist.cli.reading import write_report

    write_report(**given)


_JSON = {"--json": "as_json"}
COMMANDS: Mapping[str, Line] = {
    "query": Line(
        run=_query,
        words="question",
        values={"--confidence": ("confidence", _number), "--bins": ("bins", _bins)},
        flags={"--guaranteed": "guaranteed", "--simultaneous": "simultaneous", **_JSON},
    ),
    "show": Line(run=_show, flags=_JSON),
    "verify": Line(
        run=_verify,
        values={"--ledger": ("ledger", str)},
        flags={"--choice": "choice", "--exact": "exact", **_JSON},
    ),
    "report": Line(
        run=_report,
        values={"--output": ("output", Path), "-o": ("output", Path), "--title": ("title", str)},
    ),
}


def plain_command(arguments: Sequence[str]) -> Callable[[], None] | None:
    """What a line asks for, ready to run, or None where it is not plain enough to be read here."""
    if list(arguments) == ["--version"]:
        return _version
    line = COMMANDS.get(arguments[0]) if arguments else None
    if line is None or "_DPHIST_COMPLETE" in os.environ:
        return None
    given = read(line, arguments[1:])
    if given is None:
        return None
    return lambda: line.run(**given)


def read(line: Line, arguments: Sequence[str]) -> dict[str, Any] | None:
    """The parameters that a line gives, or None."""
    given: dict[str, Any] = {}
    words: list[str] = []
    rest = iter(arguments)
    for each in rest:
        if not each.startswith("-"):
            words.append(each)
        elif each in line.flags:
            given[line.flags[each]] = True
        elif each in line.values:
            name, reader = line.values[each]
            value = next(rest, "")
            if not value or value.startswith("-"):
                return None
            try:
                given[name] = reader(value)
            except ValueError:
                return None
        else:
            return None
    if not words or not words[0] or (line.words is None and len(words) > 1):
        return None
    given["release"] = Path(words[0])
    if line.words is not None and len(words) > 1:
        given[line.words] = words[1:]
    return given
