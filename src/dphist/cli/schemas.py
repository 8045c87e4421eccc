"""The commands about schemas: draft and check what is public about the records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dphist.cli import options, screen
from dphist.model.phrases import counted

schema_app = typer.Typer(
    help="Draft and check schemas: what is public about the records.", no_args_is_help=True
)


@schema_app.command("new")
def schema_new(
    source: Annotated[Path, typer.Argument(help="A data file; only column names and types are read.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The screen if not given.")] = None,
) -> None:
    """Draft a schema from column names and types; you fill in bounds: those of the data would tell about somebody."""
    from dphist.cli.publishing import write_text
    from dphist.sources import draft_schema

    write_text(draft_schema(source), output)


@schema_app.command("suggest")
def schema_suggest(
    source: Annotated[str, typer.Argument(help="The records, as for `dphist publish`.")],
    column: Annotated[
        list[str], typer.Option(help="A numeric column to learn bounds of; may be given several times.")
    ],
    epsilon: Annotated[str, typer.Option(help="The privacy loss to spend on all of it, for example 1/20.")],
    ledger: options.PayingLedger = None,
    dataset: options.PayingBudget = None,
    person: Annotated[
        str | None,
        typer.Option("--id", help="The column that names the person: learns rows per person, too."),
    ] = None,
    rows: Annotated[int, typer.Option(help="How many rows of one person are looked at for the bounds.")] = 1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new file for the draft.")] = None,
) -> None:
    """Learn bounds, bins, a rounding and rows per person privately; draft them, each with its price and reason."""
    from contextlib import nullcontext

    from dphist.cli.publishing import write_text
    from dphist.model.unit import Unit
    from dphist.publishing.checking import claimed
    from dphist.publishing.suggest import suggest

    with nullcontext() if output is None else claimed(output, force=None, kept=(source, ledger)):
        with screen.progress("counting records"):
            found = suggest(
                source, column, epsilon, unit=Unit(rows=rows, id=person), ledger=ledger, dataset=dataset
            )
        write_text(found.to_toml(), output)


@schema_app.command("check")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="A schema file.")], as_json: options.Json = False
) -> None:
    """Check a schema and say how many counts it makes."""
    from dphist.cli.publishing import read_schema

    domain = read_schema(schema)
    # How many keys will be discovered is for the records to say, behind a threshold.
    unknown = domain.undeclared
    sizes = {each.name: None if each is unknown else each.size for each in domain.attributes}
    facts: dict[str, Any] = {"attributes": sizes, "cells": None if unknown else domain.size}
    if as_json:
        screen.data(facts)
        return
    listed = " × ".join(f"{name} {'?' if size is None else size}" for name, size in sizes.items())
    screen.line(
        f"{listed}: the names of {unknown.name} are found when they are published, for a --delta"
        if unknown
        else f"{listed} = {counted(domain.size, 'combination')}"
    )
