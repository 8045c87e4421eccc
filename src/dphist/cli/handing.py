"""Commands that hand a release on: to a spreadsheet, to a disclosure board. `commands` adds them to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dphist.cli import screen

# What the custodian says of a release when publishing it; it goes into the file as it is.
Title = Annotated[str | None, typer.Option(help="What the release is called, for its readers.")]
Publisher = Annotated[str | None, typer.Option(help="Who publishes it.")]
Licence = Annotated[str | None, typer.Option(help="Under which terms, such as CC-BY-4.0.")]
Contact = Annotated[str | None, typer.Option(help="Whom to ask: an address or a page.")]
Purpose = Annotated[str | None, typer.Option(help="What it is for; the ledger keeps it with the spend.")]
Version = Annotated[str | None, typer.Option("--release-version", help="Which version of the publication.")]


def export(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.", show_default=False)],
    output: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .tsv or .xlsx file.", show_default=False)
    ],
    confidence: Annotated[
        float, typer.Option(help="How often each interval should hold the true count.")
    ] = 0.95,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write a release's table for programs that do not read Parquet: labels, estimate, low and high."""
    from dphist.cli.files import check_copy
    from dphist.release import load
    from dphist.uses.exporting import export as write

    check_copy(output, release, force)
    with screen.progress("writing the table"):
        written = write(load(release), output, confidence=confidence)
    for path in written:
        screen.line(str(path))


def dossier(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.", show_default=False)],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder the papers go to.")] = Path(
        "dossier"
    ),
    ledger: Annotated[str | None, typer.Option(help="The ledger that paid, for the budget memo.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over papers that were edited.")] = False,
) -> None:
    """Write the papers that go with a release: registry record, self-assessment, budget memo, catalogues."""
    from dphist.errors import InputError
    from dphist.release import load
    from dphist.report import write_dossier

    facts = None
    if ledger is not None:
        from dphist.cli.budgets import ledger_facts

        receipt = load(release).receipt
        if receipt is None:
            raise InputError("--ledger: the release says of no ledger that it paid")
        (facts,) = ledger_facts(ledger, receipt[0])
    with screen.progress("writing the papers"):
        written = write_dossier(release, output, ledger=facts, force=force)
    for path in written:
        screen.line(str(path))
