"""The command line as one object, and what several commands take; commands put themselves on it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from dphist.cli.budgets import ledger_app
from dphist.cli.schemas import schema_app

# The help lists commands in the order in which a custodian, then a reader, comes to need them.
PANELS = {
    "Begin": ("start", "demo"),
    "Before anything is spent": ("schema", "rehearse", "plan", "mechanisms", "compare"),
    "Spend and publish": ("ledger", "publish", "add", "uncounted"),
    "Ask a release": ("show", "query", "sql", "report", "plot", "explore"),
    "Hand it on": ("export", "records", "dossier"),
    "Check what is promised": ("verify", "audit", "bench"),
}


class Listed(TyperGroup):
    """Commands under headings, each with the whole of its first sentence."""

    panels: Mapping[str, Iterable[str]] | None = None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each heading and its commands."""
        for panel, names in (self.panels or {"Commands": self.list_commands(ctx)}).items():
            there = [(name, self.commands[name]) for name in names if name in self.commands]
            if there:
                with formatter.section(panel):
                    # Letters of a command's first sentence that the help shows: all of them.
                    formatter.write_dl([(name, each.get_short_help_str(200)) for name, each in there])


class Panels(Listed):
    """All commands, in the order and under the headings of `PANELS`."""

    panels = PANELS

    def __init__(self, *, commands: dict[str, Any] | None = None, **rest: Any) -> None:
        given = commands or {}
        listed = [name for names in PANELS.values() for name in names]
        order = [name for name in listed if name in given] + [name for name in given if name not in listed]
        super().__init__(commands={name: given[name] for name in order}, **rest)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of commands, as they are listed."""
        return list(self.commands)


app = typer.Typer(
    cls=Panels,
    help="Publish histograms and data cubes with differential privacy: records in, one private release out.",
    pretty_exceptions_enable=False,
    # Help in boxes and colours would take three times as long to load as all else that it takes to show it.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(schema_app, name="schema", cls=Listed)
app.add_typer(ledger_app, name="ledger", cls=Listed)


def asked_for(whole: typer.Typer, arguments: list[str]) -> typer.Typer:
    """The command line with nothing on it but the command that was asked for: building all of it takes a while.

    Whoever asks for help, for a completion, or for what is not there, is shown the whole.
    """
    name = arguments[0] if arguments else ""
    commands = [each for each in whole.registered_commands if _name(each) == name]
    groups = [each for each in whole.registered_groups if each.name == name]
    if len(commands) + len(groups) != 1:
        return whole
    narrow = copy.copy(whole)
    narrow.registered_commands, narrow.registered_groups = commands, groups
    return narrow


def _name(command: typer.models.CommandInfo) -> str:
    return command.name or (command.callback.__name__.replace("_", "-") if command.callback else "")
