"""What several commands take, in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ReleaseFile = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.", show_default=False)]
Confidence = Annotated[float, typer.Option(help="How often the interval should hold the true count.")]
AllowDropped = Annotated[
    float,
    typer.Option(
        help="The largest share of the rows that may be left out, because the schema has no place for them or a person "
        "has more than are counted; if there are more, nothing is paid. For automatic runs give 1. Warning: it then "
        "does not stop if many rows are left out."
    ),
]
Unattended = Annotated[
    bool,
    typer.Option("--unattended", help="For automatic runs: no reminders, something else keeps the account."),
]
Force = Annotated[bool, typer.Option("--force", help="Write over a release that is there.")]
Records = Annotated[str, typer.Argument(metavar="SOURCE", help="The records, as for `publish`.")]
SCHEMA = typer.Option(help="A TOML file: what is public about the columns (`dphist schema new` drafts one).")
SchemaFile = Annotated[Path, SCHEMA]
Rows = Annotated[int | None, typer.Option(help="How many rows one person may own; 1, or as the schema says.")]
Person = Annotated[
    str | None,
    typer.Option("--id", help="The column that names the person; keeps at most --rows rows of each."),
]
Replace = Annotated[
    bool, typer.Option("--replace", help="Protect a changed row, too, not only one that is added or removed.")
]
AddedUp = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        help="A column to add up beside the counts: cost:0:5000 or cost:0:5000:0.01 (name, bounds, rounded to), or "
        "the name of one of the schema's; by default all of these.",
    ),
]
Only = Annotated[
    list[str] | None, typer.Option("--mechanism", help="Only these; may be given several times.")
]
Port = Annotated[int, typer.Option(help="Of the page in the browser; 0 picks a free one.")]
Browser = Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")]

WORKLOAD = typer.Option(
    help="What the release will be asked: cells (single counts), ranges, prefixes (running totals), marginals (every "
    "attribute by itself), marginals:2 (every table of two), marginals:age,sex;sex,region (those tables) or a mixture "
    "with weights: 3 cells + marginals:2."
)
WorkloadText = Annotated[str | None, WORKLOAD]
PayingLedger = Annotated[str | None, typer.Option(help="The budget's file or postgresql:// address.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs to read.")]
PayingBudget = Annotated[str | None, typer.Option(help="Which budget in the ledger pays.")]
