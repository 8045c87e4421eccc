"""The command line as one object, and what several commands take; commands put themselves on it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Annotated

import typer

from dphist.cli.budgets import ledger_app
from dphist.cli.schemas import schema_app

app = typer.Typer(
    help="Publish histograms and data cubes with differential privacy: records in, one private release out.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(schema_app, name="schema")
app.add_typer(ledger_app, name="ledger")


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


ReleaseFile = Annotated[Path, typer.Argument(metavar="OUT", help="A release file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]
Confidence = Annotated[float, typer.Option(help="How often the interval should hold the true count.")]

WorkloadText = typer.Option(
    help="What the release will be asked: cells, prefixes, ranges, marginals, marginals:2 (every table of two "
    "attributes), marginals:age,sex;sex,region (those tables) or a mixture with weights: 3 cells + marginals:2."
)
