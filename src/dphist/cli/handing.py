"""Commands that hand a release on: to a spreadsheet, to a disclosure board. `commands` adds them to the others."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from dphist.cli import options, screen
from dphist.model.about import FACTS


def says(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each thing that may be said of a release, handed to it as ``about``."""

    @wraps(command)
    def run(**given: Any) -> None:
        about = {name: given.pop(name) for name in FACTS}
        command(**given, about=about)

    own = signature(command, eval_str=True)
    options = [
        Parameter(
            fact.name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, typer.Option(help=fact.help)],
        )
        for fact in FACTS.values()
    ]
    kept = [
        each.replace(kind=Parameter.KEYWORD_ONLY) for each in own.parameters.values() if each.name != "about"
    ]
    run.__signature__ = own.replace(parameters=[*kept, *options])  # type: ignore[attr-defined]
    return run


def export(
    release: options.ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .csv, .tsv, .parquet or .xlsx file.")],
    confidence: options.Confidence = 0.95,
    guesses: Annotated[
        bool, typer.Option("--guesses", help="Write what was not measured, too: guesses, marked as such.")
    ] = False,
    replicates: Annotated[
        int | None,
        typer.Option(
            help="How many columns r1, r2, … to add, such as 80: the spread of a statistic over them is its error."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write what a release measured as a spreadsheet or a plain table: labels, estimate, low and high."""
    from dphist.cli.reading import check_copy
    from dphist.release import load
    from dphist.release.exporting import export as write

    check_copy(output, release, force)
    with screen.progress("writing the table"):
        written = write(load(release), output, confidence=confidence, guesses=guesses, replicates=replicates)
    for path in written:
        screen.line(str(path))


def dossier(
    release: options.ReleaseFile,
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
