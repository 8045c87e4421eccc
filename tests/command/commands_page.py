"""The command line as a page: every command, what it takes and what it does, from the commands themselves.

``python tests/command/commands_page.py > docs/commands.md`` writes the page again; a test holds it to the commands.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from typing import Any

_HEAD = """\
# Command line

Every command with its arguments and options, written by `python tests/command/commands_page.py` from the commands
themselves. `dphist COMMAND --help` shows the same. Exit codes: 0 done, 2 wrong use or bad input, 3 budget refused, 130
stopped by Ctrl+C, 143 by SIGTERM, 129 by SIGHUP, 1 anything else. A reader who leaves the pipe (`| head`) stops no
command. `dphist --version` prints the version. Options of several commands:
"""
# What this many commands take in the same words is said once.
_SHARED = 2


def reference() -> str:
    """The text of ``docs/commands.md``."""
    import typer

    from dphist.cli.commands import app

    commands = list(_commands(typer.main.get_command(app), "dphist"))
    times = Counter(row for _, command in commands for row in _rows(command))
    common = [row for row, count in times.most_common() if count >= _SHARED and row[0].startswith("-")]
    # One text for one name: the one that most commands have.
    shared = list(dict(reversed(common)).items())[::-1]
    return "\n".join(
        [_HEAD, *_table(shared), *(line for each in commands for line in _command(*each, shared))]
    )


def _commands(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, inner in group.commands.items():
        if inner.hidden:
            continue
        if hasattr(inner, "commands"):
            yield from _commands(inner, f"{path} {name}")
        else:
            yield f"{path} {name}", inner


def _arguments(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "argument"]


def _options(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "option" and not each.hidden]


def _rows(command: Any) -> list[tuple[str, str]]:
    """What a command takes, as (name, words): arguments first."""
    named = [(_metavar(each), each) for each in _arguments(command)]
    named += [(", ".join((*each.opts, *each.secondary_opts)), each) for each in _options(command)]
    return [(name, _plain(each.help) + _default(each)) for name, each in named]


def _command(path: str, command: Any, shared: Container[tuple[str, str]]) -> Iterator[str]:
    shown = " ".join(_metavar(each) for each in _arguments(command))
    yield f"## {path}\n"
    yield f"    {' '.join(part for part in (path, shown, '[OPTIONS]' if _options(command) else '') if part)}\n"
    yield f"{_plain(command.help)}\n"
    yield from _table(row for row in _rows(command) if row not in shared)
    also = [f"`{name}`" for name, words in _rows(command) if (name, words) in shared]
    if also:
        yield f"As above: {', '.join(also)}.\n"


def _table(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    lines = [f"| `{name}` | {words} |" for name, words in rows]
    if lines:
        yield from ("| | |", "|---|---|", *lines, "")


def _metavar(argument: Any) -> str:
    name = argument.metavar or str(argument.name).upper()
    name = name.strip("[]") + ("…" if argument.nargs == -1 and not name.endswith("…") else "")
    return name if argument.required else f"[{name}]"


def _default(parameter: Any) -> str:
    value = parameter.default
    if parameter.required or value is None or value is False or value in ("", (), []):
        return " Required." if parameter.required and parameter.param_type_name == "option" else ""
    return f" Default: `{'on' if value is True else value}`."


def _plain(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(reference())
