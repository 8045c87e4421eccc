"""The command line as a page: every command, what it takes and what it does, from the commands themselves.

``python -m dphist.cli.reference > docs/commands.md`` writes the page again; a test holds it to the commands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

_HEAD = """\
# Command line

Every command with its arguments and options, written by `python -m dphist.cli.reference` from the commands themselves.
`dphist COMMAND --help` shows the same. Exit codes: 0 done, 2 wrong use or bad input, 3 budget refused, 130 stopped by
Ctrl+C, 143 by SIGTERM, 129 by SIGHUP, 1 anything else. A reader who leaves the pipe (`| head`) stops no command.
`dphist --version` prints the version. `--json` is there wherever a program may read the answer.
"""


def reference() -> str:
    """The page, as Markdown.

    Returns:
        The text of ``docs/commands.md``.
    """
    import typer

    from dphist.cli.commands import app

    return "\n".join([_HEAD, *_group(typer.main.get_command(app), "dphist")])


def _group(command: Any, path: str) -> Iterator[str]:
    for name, inner in command.commands.items():
        if inner.hidden:
            continue
        if hasattr(inner, "commands"):
            yield from _group(inner, f"{path} {name}")
        else:
            yield from _command(inner, f"{path} {name}")


def _command(command: Any, path: str) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    shown = " ".join(_metavar(each) for each in arguments)
    yield f"## {path}\n"
    yield f"    {' '.join(part for part in (path, shown, '[OPTIONS]' if options else '') if part)}\n"
    yield f"{_plain(command.help)}\n"
    if not arguments and not options:
        return
    yield "| | | default |"
    yield "|---|---|---|"
    for each in (*arguments, *options):
        name = _metavar(each) if each in arguments else ", ".join((*each.opts, *each.secondary_opts))
        default = "required" if each.required else _default(each)
        yield f"| `{name}` | {_plain(each.help)} | {default} |"
    yield ""


def _metavar(argument: Any) -> str:
    name = argument.metavar or str(argument.name).upper()
    name = name.strip("[]") + ("…" if argument.nargs == -1 and not name.endswith("…") else "")
    return name if argument.required else f"[{name}]"


def _default(parameter: Any) -> str:
    value = parameter.default
    if value is None or value is False or value in ("", (), []):
        return ""
    return f"`{'on' if value is True else value}`"


def _plain(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(reference())
