"""Commands for whoever holds the records: a rehearsal before paying, a guided start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dphist.cli import screen
from dphist.cli.application import AllowDropped, Force, Unattended, WorkloadText, app
from dphist.cli.budgets import PayingBudget, PayingLedger
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
    port: Annotated[int, typer.Option(help="With --web; 0 picks a free one.")] = 8321,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the report, or with --web the page.")
    ] = True,
) -> None:
    """Be guided from a file to a release: each step is explained, and printed as a plain command."""
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
    source: Annotated[str, typer.Argument(help="The records, as for `publish`.")],
    schema: Annotated[Path, typer.Option(help="A TOML file that says what is public about the columns.")],
    epsilon: Annotated[str, typer.Option(help="What the forecasts of error are for.")] = "1",
    delta: Annotated[
        str | None,
        typer.Option(help="Where names are discovered: the probability that one person's own is shown."),
    ] = None,
    workload: Annotated[str | None, WorkloadText] = None,
    records: Annotated[
        int, typer.Option(help="A public guess at the number of records, for forecasts.")
    ] = 100_000,
    rows: Annotated[int | None, typer.Option(help="How many rows one person may own.")] = None,
    person: Annotated[str | None, typer.Option("--id", help="The column that names the person.")] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Protect a changed row, too, not only one that is added or removed."),
    ] = False,
    measure: Annotated[list[str] | None, typer.Option(help="What is added up, as for `publish`.")] = None,
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
    source: Annotated[str, typer.Argument(help="The records, as for `publish`.")],
    schema: Annotated[Path, typer.Option(help="The schema of the release that the number belongs to.")],
    epsilon: Annotated[str, typer.Option(help="The privacy loss to spend on this number, such as 0.1.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the number goes: a release of one count.")
    ],
    ledger: PayingLedger = None,
    dataset: PayingBudget = None,
    rows: Annotated[int | None, typer.Option(help="How many rows one person may own.")] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Protect a changed row, too, not only one that is added or removed."),
    ] = False,
    measure: Annotated[
        list[str] | None, typer.Option(help="What that release adds up, as for `publish`.")
    ] = None,
    unattended: Annotated[bool, typer.Option("--unattended", help="No reminders.")] = False,
    force: Force = False,
) -> None:
    """Publish a noisy number of the rows that a release does not count, for its readers."""
    from dphist.cli.publishing import added_up, opened, read_declared, unit_of
    from dphist.publishing.checking import save_noted
    from dphist.publishing.output import claimed
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
    release: Annotated[
        Path, typer.Argument(metavar="RELEASE", help="A release of tables.", show_default=False)
    ],
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
    ledger: Annotated[str | None, typer.Option(help="The ledger that paid for the release.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Which budget in it: the one that paid before.")] = None,
    allow_dropped: AllowDropped = 0.1,
    unattended: Unattended = False,
    force: Force = False,
) -> None:
    """Measure further tables of the records that a release is about, and publish all together."""
    from dphist.cli.publishing import check_payer, opened
    from dphist.publishing.adding import add_tables
    from dphist.publishing.checking import save_noted
    from dphist.publishing.output import claimed
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
