"""Commands that try mechanisms out: list, audit, measure, forecast and compare them, and the demo."""

from __future__ import annotations

from dataclasses import replace as change
from pathlib import Path
from typing import Annotated, Any

import typer

from dphist.cli import options, screen
from dphist.cli.application import app
from dphist.errors import InputError


@app.command()
def mechanisms(
    everything: Annotated[
        bool, typer.Option("--all", help="Every one, by family, with its options.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List mechanisms: the default and the recommended first, then families."""
    from dphist.cli.listing import mechanism_rows, show_mechanisms

    if as_json:
        screen.data(mechanism_rows())
    else:
        show_mechanisms(everything)


@app.command()
def audit(
    mechanism: Annotated[
        str | None, typer.Argument(help="A mechanism's name or name(option=value, …).")
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="The claim to attack; 1 by default.")] = None,
    rho: Annotated[
        str | None,
        typer.Option(help="Or a claim of ρ (zero-concentrated), such as 1/2 (needs dphist-bench)."),
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="With --epsilon: a claim of (ε, δ). Claims around 0.01 can be tested.")
    ] = None,
    runs: Annotated[int, typer.Option(help="How often to run the mechanism on each side.", min=30)] = 20_000,
    all_of_them: Annotated[bool, typer.Option("--all", help="Attack every mechanism, for --hours.")] = False,
    hours: Annotated[float, typer.Option(help="With --all: how long.", min=0)] = 1.0,
    results: Annotated[
        Path, typer.Option(help="With --all: where trials are kept; a campaign goes on from it.")
    ] = Path("audit.jsonl"),
    page: Annotated[Path | None, typer.Option(help="With --all: also write the results as Markdown.")] = None,
    as_json: options.Json = False,
) -> None:
    """Attack a mechanism's privacy claim by statistics; exit code 1 if the claim is refuted."""
    if (mechanism is None) != all_of_them:
        raise typer.BadParameter("name one mechanism, or give --all")
    if mechanism is None:
        attack_all = _laboratory("audit", "the audit of all mechanisms")
        with screen.progress("attacking every mechanism") as say:
            fallen = attack_all(results, hours, page, say)
        if fallen:
            raise typer.Exit(1)
        return
    from dphist.audit import audit as attack
    from dphist.mechanisms.options import parse

    claim: dict[str, Any] = {"epsilon": epsilon or "1", "delta": delta or "0"}
    if rho is not None:
        attack = _laboratory("claim", "an attack on a claim of ρ")
        claim = {"epsilon": epsilon, "delta": delta, "rho": rho}
    with screen.progress("running the mechanism on neighbouring data") as say:
        report = attack(parse(mechanism), **claim, runs=runs, progress=say)
    if as_json:
        screen.data(report.to_json())
    else:
        screen.line(str(report))
    if not report.passed:
        raise typer.Exit(1)


@app.command(
    "bench",
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def bench(context: typer.Context) -> None:
    """Run the papers' experiments and our measurements again (needs dphist-bench)."""
    command = typer.main.get_command(_laboratory("bench", "`dphist bench`"))
    command(context.args, prog_name="dphist bench")


@app.command()
def plan(
    schema: Annotated[Path | None, options.SCHEMA] = None,
    epsilon: Annotated[str | None, typer.Option(help="The privacy loss you may spend; 1 by default.")] = None,
    rho: Annotated[
        str | None, typer.Option(help="The loss in the other currency, ρ; beside --epsilon, both are shown.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option(help="Show pure ε, (ε, δ) with this δ, and ρ side by side.")
    ] = None,
    workload: options.WorkloadText = None,
    mechanism: options.Only = None,
    records: Annotated[
        int, typer.Option(help="A public guess at the number of records, for simulations.")
    ] = 100_000,
    error: Annotated[float | None, typer.Option(help="Also find the ε that this error needs.")] = None,
    rows: options.Rows = None,
    replace: options.Replace = False,
    web: Annotated[bool, typer.Option("--web", help="Plan in the browser, with a slider for ε.")] = False,
    port: options.Port = 8321,
    browser: options.Browser = True,
    as_json: options.Json = False,
) -> None:
    """Forecast each mechanism's error before spending anything: no data are read."""
    if web:
        # The planner alone; it reads no records and no release.
        from dphist.cli.publishing import read_declared
        from dphist.web import serve

        begin = {"epsilon": epsilon or "1"}
        if schema is not None:
            read_declared(schema)
            begin |= {"schema": schema.read_text(encoding="utf-8"), "question": ""}
        serve({}, port=port, say=screen.aside, browser=browser, begin=begin)
        return
    if schema is None:
        raise InputError(
            "--schema is missing: what is public about the columns (`dphist schema new` drafts such a file)"
        )
    from dphist.cli.forecasts import error_of, facts, show_forecasts, show_quotes
    from dphist.cli.publishing import asked_of, read_declared, unit_of
    from dphist.model.budget import Budget
    from dphist.model.workload import Workload
    from dphist.planning.currencies import OF_RHO, currencies
    from dphist.planning.forecast import MECHANISMS
    from dphist.planning.forecast import plan as forecast

    declared = read_declared(schema)
    domain, measures = declared.domain, declared.measures
    unit = unit_of(declared, rows, replace, None)
    asked = asked_of(declared, workload, None) or Workload.parse(domain, "ranges")
    if delta is not None or (epsilon is not None and rho is not None):
        with screen.progress("running mechanisms on made-up data, in three currencies"):
            quotes = currencies(
                domain, epsilon or "1", asked, delta=delta or "1e-9", rho=rho, records=records, unit=unit,
                mechanisms=mechanism or [*MECHANISMS, *OF_RHO], measures=measures,
            )  # fmt: skip
        show_quotes(quotes, as_json)
        return
    budget = Budget.of(epsilon or (None if rho else "1"), rho=rho)
    with screen.progress("running mechanisms on made-up data"):
        forecasts = forecast(
            domain, budget, asked, mechanisms=mechanism or [*MECHANISMS, *(() if budget.pure else OF_RHO)],
            records=records, error=error, unit=unit, measures=measures,
        )  # fmt: skip
        if mechanism is None:
            # Whoever does not say what will be asked gets something else.
            silent = forecast(
                domain, budget, asked, mechanisms=["auto"], records=records, error=error, unit=unit,
                measures=measures, announced=False,
            )  # fmt: skip
            named = [change(each, mechanism="auto, nothing announced") for each in silent]
            forecasts = sorted([*forecasts, *named], key=error_of)
    if as_json:
        screen.data(facts(forecasts))
    else:
        show_forecasts(forecasts, budget, error, records, measures)


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
    schema: options.SchemaFile,
    epsilon: Annotated[str, typer.Option(help="The privacy loss to compare at.")] = "1",
    workload: Annotated[str, options.WORKLOAD] = "ranges",
    mechanism: options.Only = None,
    trials: Annotated[int, typer.Option(help="Runs of each.")] = 3,
    public: Annotated[
        bool, typer.Option("--public", help="Say that the records are public or made up, and do not ask.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Run every mechanism on public or made-up records and compare error and time."""
    from math import isfinite, isnan

    from dphist.cli.publishing import read_schema
    from dphist.model.workload import Workload
    from dphist.planning.compare import compare as compared
    from dphist.planning.compare import sampled, skyline
    from dphist.sources import count

    if not public:
        typer.confirm(
            "compare prints errors computed from the true counts, which is not private: public or made-up data only. "
            "Are they",
            abort=True,
            err=True,
        )
    domain = read_schema(schema)
    asked = Workload.parse(domain, workload)
    if trials < 1:
        raise InputError("trials must be at least 1")
    with screen.progress("counting records"):
        rows = compared(count(source, domain), epsilon, asked, mechanism or _comparable(), trials)
    measured = [row for row in rows if isfinite(row.error)]
    free = set(skyline((row.name, row.seconds, row.error) for row in measured))
    if as_json:
        screen.data([{**row.__dict__, "skyline": row.name in free} for row in measured])
        return
    screen.table(
        ("mechanism", "error", "over the best", "CPU seconds", "skyline"),
        [
            (
                row.name, f"{row.error:,.2f}", "" if isnan(row.ratio) else f"{row.ratio:.2f}", f"{row.seconds:.3f}",
                "●" * (row.name in free),
            )
            for row in measured
        ],
    )  # fmt: skip
    for row in rows:
        if row.why_not:
            screen.line(f"{row.name}: {row.why_not}")
    few = sampled(asked)
    part = "" if few is asked else f" (a sample of {len(few):,})"
    screen.line(
        f"error: root of the mean squared error over {workload}{part}, {trials} runs each; ●: none is faster and better"
    )


def _comparable() -> list[str]:
    """Every mechanism once that a dense release may be made by; `bypart` is what it holds inside."""
    from dphist.mechanisms import list_mechanisms

    return sorted(
        name
        for name, entry in list_mechanisms().items()
        if entry.status != "reference"
        and entry.alias_of is None
        and name not in ("sparselaplace", "bypart", "gaussian")
    )


def _laboratory(name: str, what: str) -> Any:
    """What dphist-bench registered under a name, loaded when it is used; or say what to install."""
    from importlib.metadata import entry_points

    for found in entry_points(group="dphist.commands", name=name):
        return found.load()
    raise InputError(
        f"{what} is part of dphist-bench, which is not installed: `pip install ./bench` from a clone"
    )
