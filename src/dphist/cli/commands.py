"""Every command, with what it takes. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dphist.cli import handing, plugins, screen
from dphist.cli.budgets import ledger_app

app = typer.Typer(
    help="Publish histograms and data cubes with differential privacy: records in, one private release out.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
schema_app = typer.Typer(
    help="Draft and check schemas: what is public about the records.", no_args_is_help=True
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
def publish(
    source: Annotated[
        str,
        typer.Argument(
            help="CSV, Parquet or JSON file or glob, file.duckdb::table, or postgresql://…::table."
        ),
    ],
    schema: Annotated[
        Path, typer.Option(help="The public domain, as TOML (`dphist schema new` drafts one).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the release goes.")],
    epsilon: Annotated[
        str | None, typer.Option(help="The privacy loss to spend, for example 1, 0.1 or 1/3.")
    ] = None,
    rho: Annotated[str | None, typer.Option(help="Or the loss in ρ (zCDP), for example 1/100.")] = None,
    delta: Annotated[
        str | None, typer.Option(help="With --epsilon: the δ of (ε, δ), such as 1e-9; buys the largest ρ.")
    ] = None,
    mechanism: Annotated[str | None, typer.Option(help="A name, or name(option=value, …).")] = None,
    workload: Annotated[str | None, WorkloadText] = None,
    marginals: Annotated[
        list[str] | None,
        typer.Option(help="A table that will be looked up, such as age,sex; may be given several times."),
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(help="A public attribute: one run for each of its values, each with the whole budget."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to add up beside the counts: cost:0:5000 or cost:0:5000:0.01 (name, bounds, step), or the "
            "name of one of the schema's; all of these unless told."
        ),
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="The budget's file or postgresql:// address.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Which budget in the ledger pays.")] = None,
    rows: Annotated[
        int | None, typer.Option(help="How many rows one person may own; 1, or as the schema says.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option("--id", help="The column that names the person; keeps at most --rows rows of each."),
    ] = None,
    cells: Annotated[
        int | None, typer.Option(help="In how many cells a person may have rows; instead of --rows.")
    ] = None,
    per_cell: Annotated[
        int | None, typer.Option(help="How many rows a person may have in each cell.")
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Protect against replacing a record, not only adding or removing one."
        ),
    ] = False,
    allow_dropped: Annotated[
        float,
        typer.Option(help="Which share of the rows may have no cell; more stop it before anything is paid."),
    ] = 0.1,
    unattended: Annotated[
        bool,
        typer.Option(
            "--unattended", help="Others see whether this succeeds: no stop that hangs on the records."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a release that is there.")] = False,
    nonnegative: Annotated[
        bool, typer.Option("--nonnegative", help="No count below zero (costs no budget, biases).")
    ] = False,
    integer: Annotated[bool, typer.Option("--integer", help="Whole numbers only (costs no budget).")] = False,
    title: handing.Title = None,
    publisher: handing.Publisher = None,
    licence: handing.Licence = None,
    contact: handing.Contact = None,
    purpose: handing.Purpose = None,
    release_version: handing.Version = None,
) -> None:
    """Turn records into one private release."""
    from dphist.cli.publishing import publish_file

    with screen.progress("counting records") as say:
        release = publish_file(
            source, schema, epsilon, output, rho=rho, delta=delta,
            mechanism=mechanism, workload=workload, marginals=marginals,
            partition_by=partition_by, ledger=ledger, dataset=dataset, rows=rows, person=person, replace=replace,
            cells=cells, per_cell=per_cell,
            nonnegative=nonnegative, integer=integer, allow_dropped=allow_dropped, unattended=unattended, force=force,
            say=say, measures=measure, about={
                "title": title, "publisher": publisher, "licence": licence, "contact": contact,
                "purpose": purpose, "version": release_version,
            },
        )  # fmt: skip
    screen.line(f"{output}: {release!r}")


@app.command()
def query(
    release: ReleaseFile,
    question: Annotated[
        list[str] | None,
        typer.Argument(
            help='For example: "age between 30 and 40 and sex = \'F\'", or "mean cost where age < 30"; several if '
            "you like."
        ),
    ] = None,
    confidence: Confidence = 0.95,
    guaranteed: Annotated[
        bool, typer.Option("--guaranteed", help="An interval that is a theorem for any data; wider.")
    ] = False,
    simultaneous: Annotated[
        bool, typer.Option("--simultaneous", help="The intervals of all questions hold together; wider.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Count the records in a range, or in several, or ask for a measure of them, each with an honest interval."""
    from dphist.cli.asking import show_answers

    show_answers(
        release, question or [""], confidence=confidence, guaranteed=guaranteed, simultaneous=simultaneous,
        as_json=as_json,
    )  # fmt: skip


@app.command()
def show(release: ReleaseFile, as_json: Json = False) -> None:
    """Say what a release holds, what was protected and what was spent; draw its first attribute."""
    from dphist.cli.showing import describe, draw
    from dphist.release import load

    loaded = load(release)
    if as_json:
        screen.line(json.dumps(describe(loaded), ensure_ascii=False))
        return
    for key, value in describe(loaded).items():
        screen.line(
            f"{key:>12}  {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        )
    draw(loaded)


@app.command()
def report(
    release: ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the page goes.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option(help="The page's heading; the file's name if not given.")
    ] = None,
) -> None:
    """Write one page about a release: figures, promise, price, accuracy. It works offline."""
    from dphist.cli.seeing import write_report

    write_report(release, output, title)


@app.command()
def plot(
    release: ReleaseFile,
    attributes: Annotated[
        list[str] | None, typer.Argument(help="One attribute, or two for a heat map.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="A .png or .svg file.")] = Path("plot.png"),
    confidence: Confidence = 0.95,
    dark: Annotated[bool, typer.Option("--dark", help="Light on dark.")] = False,
) -> None:
    """Draw one or two attributes of a release as a picture."""
    from dphist.cli.seeing import write_plot

    write_plot(release, output, attributes or [], confidence, dark)


@app.command()
def explore(
    releases: Annotated[
        list[Path], typer.Argument(metavar="OUT…", help="Release files; give two to compare them.")
    ],
    host: Annotated[str, typer.Option(help="Where to listen; anything but this machine needs the token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="0 picks a free one.")] = 8321,
    name: Annotated[
        list[str] | None, typer.Option(help="Another host name the explorer may be asked for by.")
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser.")] = True,
) -> None:
    """Ask releases questions in the browser: pick, drag, roll up and down, compare, download."""
    from dphist.cli.seeing import explore_releases

    explore_releases(releases, host, port, name or [], browser)


@app.command()
def records(
    release: ReleaseFile,
    count: Annotated[int | None, typer.Argument(help="How many; the released total if not given.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A CSV or Parquet file; the screen if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides roundings; public.")] = 0,
) -> None:
    """Make synthetic records that follow a release."""
    from dphist.cli.publishing import write_records
    from dphist.release import load

    write_records(load(release), count, seed, output)


app.command()(handing.export)
app.command()(handing.dossier)


@app.command()
def verify(
    release: ReleaseFile,
    ledger: Annotated[
        str | None, typer.Option(help="The ledger that paid: is this the file it paid for?")
    ] = None,
    as_json: Json = False,
) -> None:
    """Replay the mechanism with no data and check that it gives the very same release."""
    from contextlib import nullcontext

    from dphist.private.ledger import Ledger
    from dphist.publishing.checking import verify_file

    with Ledger.open(ledger) if ledger else nullcontext() as book:
        loaded = verify_file(release, book)
    budget, spent = loaded.budget, str(loaded.spent)
    facts = {"verified": True, budget.currency: str(budget.amount), "spent": spent}
    if as_json:
        screen.line(json.dumps(facts))
    else:
        paid = f"{len(loaded.transcript)} paid answers, spent {spent} of {budget.amount}"
        screen.line(f"verified: {paid}, and nothing else")


@app.command()
def mechanisms(
    everything: Annotated[
        bool, typer.Option("--all", help="Every one, by family, with its options.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List mechanisms: the default and the recommended first, then families."""
    from dphist.cli.showing import mechanism_rows, show_mechanisms

    if as_json:
        screen.line(json.dumps(mechanism_rows(), ensure_ascii=False))
    else:
        show_mechanisms(everything)


@app.command()
def audit(
    mechanism: Annotated[
        str | None, typer.Argument(help="A mechanism's name or name(option=value, …).")
    ] = None,
    epsilon: Annotated[str, typer.Option(help="The claim to attack.")] = "1",
    runs: Annotated[int, typer.Option(help="How often to run the mechanism on each side.", min=30)] = 20_000,
    all_of_them: Annotated[bool, typer.Option("--all", help="Attack every mechanism, for --hours.")] = False,
    hours: Annotated[float, typer.Option(help="With --all: how long.", min=0)] = 1.0,
    results: Annotated[
        Path, typer.Option(help="With --all: where trials are kept; a campaign goes on from it.")
    ] = Path("audit.jsonl"),
    page: Annotated[Path | None, typer.Option(help="With --all: also write the results as Markdown.")] = None,
    as_json: Json = False,
) -> None:
    """Attack a mechanism's privacy claim by statistics; exit code 1 if the claim is refuted."""
    if (mechanism is None) != all_of_them:
        raise typer.BadParameter("name one mechanism, or give --all")
    if mechanism is None:
        attack_all = plugins.load("audit", "the audit of all mechanisms")
        with screen.progress("attacking every mechanism") as say:
            fallen = attack_all(results, hours, page, say)
        if fallen:
            raise typer.Exit(1)
        return
    from dphist.audit import audit as attack
    from dphist.mechanisms.spec import parse

    with screen.progress("running the mechanism on neighbouring data") as say:
        report = attack(parse(mechanism), epsilon=epsilon, runs=runs, progress=say)
    screen.line(json.dumps(report.to_json(), ensure_ascii=False) if as_json else str(report))
    if not report.passed:
        raise typer.Exit(1)


@app.command(
    "bench",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def bench(context: typer.Context) -> None:
    """Run the papers' experiments and our measurements again (needs dphist-bench)."""
    command = typer.main.get_command(plugins.load("bench", "`dphist bench`"))
    command(context.args, prog_name="dphist bench")


@app.command()
def plan(
    schema: Annotated[Path | None, typer.Option(help="The public domain, as TOML.")] = None,
    epsilon: Annotated[str, typer.Option(help="The privacy loss you may spend.")] = "1",
    workload: Annotated[str, WorkloadText] = "ranges",
    mechanism: Annotated[
        list[str] | None, typer.Option(help="Only these; may be given several times.")
    ] = None,
    records: Annotated[
        int, typer.Option(help="A public guess at the number of records, for simulations.")
    ] = 100_000,
    error: Annotated[float | None, typer.Option(help="Also find the ε that this error needs.")] = None,
    rows: Annotated[int, typer.Option(help="How many rows one person may own.")] = 1,
    replace: Annotated[bool, typer.Option("--replace", help="Protect against replacing a record.")] = False,
    web: Annotated[bool, typer.Option("--web", help="Plan in the browser, with a slider for ε.")] = False,
    port: Annotated[int, typer.Option(help="With --web; 0 picks a free one.")] = 8321,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="With --web, open a browser.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Forecast each mechanism's error before spending anything: no data are read."""
    if web:
        from dphist.cli.seeing import plan_on_the_web

        plan_on_the_web(schema, epsilon, port, browser)
        return
    from dphist.cli.uses import show_plan
    from dphist.errors import InputError

    if schema is None:
        raise InputError("--schema is missing: the public domain, as TOML (`dphist schema new` drafts one)")
    show_plan(
        schema, epsilon, workload, mechanisms=mechanism, records=records, error=error, rows=rows,
        replace=replace, as_json=as_json,
    )  # fmt: skip


@app.command()
def sql(
    release: ReleaseFile,
    query: Annotated[
        str, typer.Argument(help='For example: "select sex, sum(estimate) from release group by sex"')
    ],
    as_json: Json = False,
) -> None:
    """Ask a release in SQL (DuckDB, confined to the table `release`)."""
    from dphist.cli.uses import show_sql

    show_sql(release, query, as_json=as_json)


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")] = Path("dphist-demo"),
    rows: Annotated[int, typer.Option(help="How many records to make up.")] = 1_000_000,
) -> None:
    """Make a million realistic records, publish, query, verify and draw them."""
    from dphist.cli.demo import run_demo

    run_demo(folder, rows)


@app.command()
def compare(
    source: Annotated[str, typer.Argument(help="Public or made-up records, as for `publish`.")],
    schema: Annotated[Path, typer.Option(help="The public domain, as TOML.")],
    epsilon: Annotated[str, typer.Option(help="The privacy loss to compare at.")] = "1",
    workload: Annotated[str, WorkloadText] = "ranges",
    mechanism: Annotated[
        list[str] | None, typer.Option(help="One to compare; may be repeated; all if not given.")
    ] = None,
    trials: Annotated[int, typer.Option(help="Runs of each.")] = 3,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw error against time on this HTML page.")
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Say that the records are public or made up, and do not ask.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run every mechanism on public or made-up records and compare error and time."""
    from dphist.cli.comparing import WARNING, show_comparison

    if not public:
        typer.confirm(f"{WARNING}. Are they", abort=True, err=True)
    with screen.progress("reading the schema") as say:
        show_comparison(
            source, schema, epsilon, workload=workload, names=mechanism, trials=trials, output=output,
            as_json=as_json, say=say,
        )  # fmt: skip


@schema_app.command("new")
def schema_new(
    source: Annotated[Path, typer.Argument(help="A data file; only column names and types are read.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The screen if not given.")] = None,
) -> None:
    """Draft a schema from column names and types; bounds are for you to fill in, because bounds from data leak."""
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
    ledger: Annotated[str | None, typer.Option(help="The budget's file or postgresql:// address.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Which budget in the ledger pays.")] = None,
    person: Annotated[
        str | None,
        typer.Option("--id", help="The column that names the person: learns rows per person, too."),
    ] = None,
    rows: Annotated[int, typer.Option(help="How many rows of one person are looked at for the bounds.")] = 1,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new file for the draft.")] = None,
) -> None:
    """Learn bounds, bins, a step and rows per person privately, and draft them with their price and reason."""
    from dphist.cli.publishing import write_text
    from dphist.model.unit import Unit
    from dphist.publishing.suggest import suggest

    with screen.progress("counting records"):
        found = suggest(
            source, column, epsilon, unit=Unit(rows=rows, id=person), ledger=ledger, dataset=dataset
        )
    write_text(found.to_toml(), output)


@schema_app.command("check")
def schema_check(
    schema: Annotated[Path, typer.Argument(help="A schema file.")], as_json: Json = False
) -> None:
    """Check a schema and say how large its cube is."""
    from dphist.cli.publishing import read_schema

    domain = read_schema(schema)
    facts: dict[str, Any] = {
        "attributes": dict(zip(domain.names, domain.shape, strict=True)),
        "cells": domain.size,
    }
    if as_json:
        screen.line(json.dumps(facts, ensure_ascii=False))
    else:
        screen.line(
            f"{' × '.join(f'{name} {size}' for name, size in facts['attributes'].items())} = {domain.size:,} cells"
        )
