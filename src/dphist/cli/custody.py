"""Commands for whoever holds the records: a rehearsal before paying, a guided start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dphist.cli import options, screen
from dphist.cli.application import app
from dphist.errors import InputError


@app.command()
def start(
    source: Annotated[
        str, typer.Argument(help="A data file; only names and types of its columns are taken over.")
    ],
    folder: Annotated[Path, typer.Option(help="Where schema, ledger, release and report go.")] = Path(),
    answers: Annotated[
        Path | None, typer.Option(help="A file with the answers, one a line, instead of asking for them.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="The same as a page in the browser.")] = False,
    port: options.Port = 8321,
    browser: options.Browser = True,
) -> None:
    """Be guided from a file to a release: every question is explained, every action printed as a command."""
    if web:
        from dphist.planning.starting import columns
        from dphist.web.start import serve_start

        if not folder.is_dir():
            raise InputError(f"there is no folder {folder}")
        # Refused here, in the terminal, rather than on the page.
        columns(source)
        serve_start(source, folder, port=port, say=screen.aside, browser=browser)
        return
    from dphist.cli.starting import guide

    guide(source, folder, answers, browser)


@app.command()
def rehearse(
    source: options.Records,
    schema: options.SchemaFile,
    epsilon: Annotated[str, typer.Option(help="What the forecasts of error are for.")] = "1",
    delta: Annotated[
        str | None,
        typer.Option(
            help="Where names are discovered: the probability that a name which only one person has is shown."
        ),
    ] = None,
    workload: options.WorkloadText = None,
    records: Annotated[
        int, typer.Option(help="A public guess at the number of records, for forecasts.")
    ] = 100_000,
    rows: options.Rows = None,
    person: options.Person = None,
    replace: options.Replace = False,
    measure: options.AddedUp = None,
) -> None:
    """Say what publishing would do with the records: for your eyes only, and nothing is spent."""
    from dphist.cli.publishing import added_up, asked_of, read_declared, unit_of
    from dphist.planning.rehearsal import rehearse as rehearsed

    declared = read_declared(schema)
    unit = unit_of(declared, rows, replace, person)
    with screen.progress("reading the records"):
        told = rehearsed(
            source, declared.domain, unit, epsilon=epsilon, delta=delta,
            workload=asked_of(declared, workload, None), records=records, measures=added_up(declared, measure),
        )  # fmt: skip
    screen.line(str(told))


@app.command()
def uncounted(
    source: options.Records,
    schema: Annotated[Path, typer.Option(help="The schema of the release that the number belongs to.")],
    epsilon: Annotated[str, typer.Option(help="The privacy loss to spend on this number, such as 0.1.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the number goes: a release of one count.")
    ],
    ledger: options.PayingLedger = None,
    dataset: options.PayingBudget = None,
    rows: options.Rows = None,
    replace: options.Replace = False,
    measure: options.AddedUp = None,
    unattended: options.Unattended = False,
    force: options.Force = False,
) -> None:
    """Publish a noisy number of the rows that a release does not count, for its readers."""
    from dphist.cli.publishing import added_up, opened, read_declared, unit_of
    from dphist.publishing.checking import claimed, save_noted
    from dphist.publishing.uncounted import publish_uncounted

    declared = read_declared(schema)
    unit = unit_of(declared, rows, replace, None)
    with (
        screen.progress("counting records"),
        claimed(output, force=force, kept=(source, schema, ledger)),
        opened(ledger) as book,
    ):
        release = publish_uncounted(
            source, declared.domain, epsilon, unit=unit, measures=added_up(declared, measure), ledger=book,
            dataset=dataset, unattended=unattended,
        )  # fmt: skip
        save_noted(release, output, book)
    screen.line(f"{output}: {release.answer()} rows were not counted")


@app.command()
def add(
    release: options.ReleaseFile,
    source: Annotated[str, typer.Argument(help="The same records again, as `publish` reads them.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the larger release goes.")],
    marginals: Annotated[
        list[str], typer.Option(help="A further table, such as age,sex; may be given several times.")
    ],
    epsilon: Annotated[str | None, typer.Option(help="What the further tables may cost.")] = None,
    rho: Annotated[str | None, typer.Option(help="Or in ρ, if the release was paid for in ρ.")] = None,
    delta: Annotated[
        str | None, typer.Option(help="With --epsilon: δ, the probability that the promise fails.")
    ] = None,
    ledger: options.PayingLedger = None,
    dataset: options.PayingBudget = None,
    allow_dropped: options.AllowDropped = 0.1,
    unattended: options.Unattended = False,
    force: options.Force = False,
) -> None:
    """Measure further tables of the records that a release is about, and publish all together."""
    from dphist.cli.publishing import check_payer, opened
    from dphist.publishing.adding import add_tables
    from dphist.publishing.checking import claimed, save_noted
    from dphist.release import load

    check_payer(ledger, dataset)
    with screen.progress("counting records") as say:
        before = load(release)
        with claimed(output, force=force, kept=(source, ledger)), opened(ledger) as book:
            made = add_tables(
                before, source, "marginals:" + ";".join(marginals), epsilon, rho=rho, delta=delta,
                ledger=book, dataset=dataset, allow_dropped=allow_dropped, unattended=unattended,
            )  # fmt: skip
            say("writing the release")
            save_noted(made, output, book)
    screen.line(f"{output}: {made.describe()}")
