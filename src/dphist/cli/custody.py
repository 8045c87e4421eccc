"""Commands for whoever holds the records: a rehearsal before paying, a guided start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dphist.cli import screen
from dphist.cli.commands import WorkloadText, app


@app.command()
def rehearse(
    source: Annotated[str, typer.Argument(help="The records, as for `publish`.")],
    schema: Annotated[Path, typer.Option(help="The public domain, as TOML.")],
    epsilon: Annotated[str, typer.Option(help="What the forecasts of error are for.")] = "1",
    workload: Annotated[str | None, WorkloadText] = None,
    records: Annotated[
        int, typer.Option(help="A public guess at the number of records, for forecasts.")
    ] = 100_000,
    rows: Annotated[int | None, typer.Option(help="How many rows one person may own.")] = None,
    person: Annotated[str | None, typer.Option("--id", help="The column that names the person.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Protect against replacing a record.")] = False,
) -> None:
    """Say what publishing would do with the records: for your eyes only, and nothing is spent."""
    from dphist.cli.publishing import asked_of, read_declared, unit_of
    from dphist.planning.rehearsal import rehearse as rehearsed

    declared = read_declared(schema)
    unit = unit_of(declared, rows, replace, person)
    with screen.progress("reading the records once"):
        told = rehearsed(
            source, declared.domain, unit, epsilon=epsilon, workload=asked_of(declared, workload, None),
            records=records,
        )  # fmt: skip
    screen.line(str(told))
