"""The command line as one object, and what several commands take; commands put themselves on it."""

from __future__ import annotations

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

ReleaseFile = Annotated[Path, typer.Argument(metavar="OUT", help="A release file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]
Confidence = Annotated[float, typer.Option(help="How often the interval should hold the true count.")]

WorkloadText = typer.Option(
    help="What the release will be asked: cells, prefixes, ranges, marginals, marginals:2 (every table of two "
    "attributes) or marginals:age,sex;sex,region (those tables)."
)
