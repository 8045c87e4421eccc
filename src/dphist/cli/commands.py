"""Every command, with what it takes. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dphist.cli import custody, handing, options, screen, trying
from dphist.cli.application import app
from dphist.errors import InputError

__all__ = ["app", "custody", "trying"]


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    """Answer --version; every command has a help of its own."""
    if version:
        from dphist.version import __version__

        screen.line(f"dphist {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        screen.line(context.get_help())
        raise typer.Exit(2)


@app.command()
@handing.says
def publish(
    source: Annotated[
        str,
        typer.Argument(
            help="CSV, Parquet or JSON file or glob, file.duckdb::table, or postgresql://…::table."
        ),
    ],
    schema: options.SchemaFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the release goes.")],
    epsilon: Annotated[
        str | None, typer.Option(help="The privacy loss to spend, for example 1, 0.1 or 1/3.")
    ] = None,
    rho: Annotated[
        str | None, typer.Option(help="Instead of ε, the loss in ρ (zero-concentrated), for example 1/100.")
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option(help="With --epsilon: δ, the probability that the promise fails, such as 1e-9."),
    ] = None,
    mechanism: Annotated[str | None, typer.Option(help="A name, or name(option=value, …).")] = None,
    workload: options.WorkloadText = None,
    marginals: Annotated[
        list[str] | None,
        typer.Option(help="A table that will be asked for, such as age,sex; may be given several times."),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            help="A public attribute: treats each of its values (each region, say) separately. Does not cost more."
        ),
    ] = None,
    measure: options.AddedUp = None,
    ledger: options.PayingLedger = None,
    dataset: options.PayingBudget = None,
    rows: options.Rows = None,
    person: options.Person = None,
    cells: Annotated[
        int | None,
        typer.Option(help="In how many combinations of values a person may have rows; instead of --rows."),
    ] = None,
    per_cell: Annotated[
        int | None, typer.Option(help="How many rows a person may have in each of these.")
    ] = None,
    replace: options.Replace = False,
    allow_dropped: options.AllowDropped = 0.1,
    unattended: options.Unattended = False,
    force: options.Force = False,
    nonnegative: Annotated[
        bool,
        typer.Option(
            "--nonnegative", help="No count below zero (costs no budget; small counts come out too high)."
        ),
    ] = False,
    integer: Annotated[bool, typer.Option("--integer", help="Whole numbers only (costs no budget).")] = False,
    *,
    about: dict[str, str | None],
) -> None:
    """Turn records into one private release."""
    from dphist.cli.publishing import added_up, asked_of, check_payer, opened, read_declared, unit_of
    from dphist.cli.showing import describe
    from dphist.mechanisms.options import fitted
    from dphist.mechanisms.protocol import goes_wide
    from dphist.mechanisms.spec import parse
    from dphist.publishing import door
    from dphist.publishing.checking import save_noted
    from dphist.publishing.output import claimed

    with screen.progress("counting records") as say:
        declared = read_declared(schema)
        domain = declared.domain
        unit = unit_of(declared, rows, replace, person, cells, per_cell)
        check_payer(ledger, dataset)
        recipe = mechanism or door.DEFAULT_MECHANISM
        hint = asked_of(declared, workload, marginals)
        added = added_up(declared, measure)
        if integer and domain.undeclared is None and goes_wide(fitted(parse(recipe)), domain, hint):
            # Found out when the budget is gone, it would cost the release.
            raise InputError(
                "--integer: this domain is published as tables that agree with each other, which rounding would end; "
                "nothing was spent. Leave it out, and round what you show"
            )
        with claimed(output, force=force, kept=(source, schema, ledger)), opened(ledger) as book:
            release = door.publish(
                source, domain, epsilon, recipe, rho=rho, delta=delta, unit=unit, workload=hint,
                partition_by=partition_by, ledger=book, dataset=dataset, about=about, measures=added,
                allow_dropped=allow_dropped, unattended=unattended,
            )  # fmt: skip
            say("writing the release")
            release = release.polished(nonnegative=nonnegative, integer=integer)
            save_noted(release, output, book)
    screen.line(f"{output}: {release.describe()}")
    screen.line(f"intervals: {describe(release).get('intervals', 'not known here')}")


@app.command()
def query(
    release: options.ReleaseFile,
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help='For example: "age between 30 and 40 and sex = \'F\'", or "mean cost where age < 30"; several if '
            "you like."
        ),
    ] = None,
    confidence: options.Confidence = 0.95,
    guaranteed: Annotated[
        bool, typer.Option("--guaranteed", help="Wider intervals that are proven to hold for any data.")
    ] = False,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="Wider intervals that hold for all questions at once.")
    ] = False,
    bins: Annotated[
        Literal["whole", "spread"],
        typer.Option(
            "--bins",
            help="whole refuses a question that cuts a bin; spread answers it by a guess, with bounds.",
        ),
    ] = "whole",
    as_json: options.Json = False,
) -> None:
    """Count the records in a range, or in several, or ask for a measure of them, each with an interval."""
    from dphist.cli.reading import query_release

    query_release(
        release, question, confidence=confidence, guaranteed=guaranteed, simultaneous=simultaneous,
        bins=bins, as_json=as_json,
    )  # fmt: skip


@app.command()
def show(release: options.ReleaseFile, as_json: options.Json = False) -> None:
    """Say what a release holds, what was protected and what was spent; draw its first attribute."""
    from dphist.cli.showing import show_release

    show_release(release, as_json)


@app.command()
def report(
    release: options.ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the page goes.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option(help="The page's heading; the file's name if not given.")
    ] = None,
) -> None:
    """Write one page about a release: figures, promise, price, accuracy. It works offline."""
    from dphist.cli.reading import write_report

    write_report(release, output, title)


@app.command()
def plot(
    release: options.ReleaseFile,
    attributes: Annotated[
        list[str] | None, typer.Argument(help="One attribute, or two for a heat map.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png or .svg file.")] = Path("plot.png"),
    confidence: options.Confidence = 0.95,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
    uncertainty: Annotated[
        bool, typer.Option("--uncertainty", help="On a heat map: how far off each number may be.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Draw one or two attributes of a release as a picture."""
    from dphist.cli.reading import check_copy
    from dphist.release import load
    from dphist.release.atomic import atomic
    from dphist.report import figure, picture

    kind = output.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise InputError("--output must end in .png or .svg")
    check_copy(output, release, force)
    colour: Literal["uncertainty", "estimate"] = "uncertainty" if uncertainty else "estimate"
    chart = figure(load(release), attributes or None, confidence=confidence, colour=colour)
    drawn = picture(chart, "png" if kind == "png" else "svg", dark=dark)
    with atomic(output) as temporary:
        temporary.write_bytes(drawn)
    screen.line(str(output))


@app.command()
def explore(
    releases: Annotated[
        list[Path], typer.Argument(metavar="RELEASE…", help="Release files; give two to compare them.")
    ],
    host: Annotated[
        str,
        typer.Option(
            help="Where to listen. Other machines need the address that is printed, with its token."
        ),
    ] = ("127.0.0.1"),
    port: options.Port = 8321,
    name: Annotated[
        list[str] | None, typer.Option(help="Another host name the explorer may be asked for by.")
    ] = None,
    browser: options.Browser = True,
) -> None:
    """Ask releases questions in the browser: pick, drag, roll up and down, compare, download."""
    from dphist.release import load
    from dphist.web import serve

    if len({source.resolve() for source in releases}) < len(releases):
        raise InputError("the same release is named twice")
    loaded = {}
    for source in releases:
        with screen.progress(f"reading {source}"):
            loaded[source.stem if source.stem not in loaded else str(source)] = load(source)
    serve(loaded, host=host, port=port, names=name or [], say=screen.aside, browser=browser)


@app.command()
def records(
    release: options.ReleaseFile,
    count: Annotated[int | None, typer.Argument(help="How many; the released total if not given.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A .csv or .parquet file; the screen if not given.")
    ] = None,
    seed: Annotated[
        int, typer.Option(help="A public number that decides how counts are rounded to records.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Make synthetic records that follow a release."""
    from dphist.cli.reading import check_copy
    from dphist.release import load
    from dphist.release.atomic import atomic

    kind = output.suffix.lower() if output is not None else ""
    if output is not None:
        if kind not in (".csv", ".parquet"):
            raise InputError(f"--output {output}: the name must end in .csv or .parquet")
        check_copy(output, release, force)
    made = load(release).records(count, seed=seed)
    if output is None:
        # As in a file, whatever the screen can show: a label must not change on its way.
        sys.stdout.flush()
        made.to_csv(sys.stdout.buffer, index=False, encoding="utf-8")
        return
    with atomic(output) as temporary:
        if kind == ".parquet":
            made.to_parquet(temporary, index=False)
        else:
            made.to_csv(temporary, index=False)


app.command()(handing.export)
app.command()(handing.dossier)


@app.command()
def verify(
    release: options.ReleaseFile,
    ledger: Annotated[
        str | None, typer.Option(help="The ledger that paid: is this the file it paid for?")
    ] = None,
    choice: Annotated[
        bool,
        typer.Option("--choice", help="Let `auto` choose again, too: would this version choose the same?"),
    ] = False,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Insist on the last digits, which another kind of processor rounds otherwise."
        ),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Run the mechanism again on the published noisy answers and check that it gives the same release."""
    from dphist.cli.reading import verify_release

    verify_release(release, ledger, as_json, choice, exact)


@app.command()
def sql(
    release: options.ReleaseFile,
    query: Annotated[
        str, typer.Argument(help='For example: "select sex, sum(estimate) from release group by sex"')
    ],
    as_json: options.Json = False,
) -> None:
    """Ask a release in SQL (DuckDB's, which can read the table `release` and nothing else)."""
    from dphist.release import load

    found = load(release).sql(query)
    if as_json:
        screen.data(found.records())
    else:
        screen.table(found.columns, [[_text(value) for value in row] for row in found.rows])


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    # Shares and means are small, and not whole.
    return f"{value:,.4g}" if abs(value) < 10 and not value.is_integer() else f"{value:,.1f}"
