"""Every command, with what it takes. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dphist.cli import custody, handing, options, screen, trying
from dphist.cli.application import app
from dphist.errors import DphistError, InputError, QueryError
from dphist.model.about import FACTS
from dphist.model.phrases import counted

if TYPE_CHECKING:
    from dphist.release import Answer, Answers

__all__ = ["app", "custody", "handing", "trying"]


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


def _says(command: Callable[..., None]) -> Callable[..., None]:
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


@app.command()
@_says
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
    from dphist.mechanisms.options import fitted, parse
    from dphist.mechanisms.protocol import goes_wide
    from dphist.publishing import door
    from dphist.publishing.checking import claimed, save_noted

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
    from dphist.release import Answer, load
    from dphist.release.asking import read_questions, read_request

    questions = question or [""]
    loaded = load(release)
    kind: Literal["guaranteed", "calibrated"] = "guaranteed" if guaranteed else "calibrated"
    answers: Answers | list[Answer | DphistError]
    if simultaneous:
        if bins != "whole" or any(read_request(each) is not None for each in questions):
            raise QueryError(
                "--simultaneous: intervals of measures, and bounds of cut bins, hold each by itself"
            )
        answers = loaded.answer(
            read_questions(questions, loaded.domain), confidence=confidence, interval=kind, simultaneous=True
        )
    else:
        answers = []
        for each in questions:
            try:
                answers.append(loaded.query(each, confidence=confidence, interval=kind, bins=bins))
            except DphistError as error:
                # The others are answered all the same.
                answers.append(error)
    told = [answers[i] for i in range(len(questions))]
    refused = [each for each in told if isinstance(each, DphistError)]
    if len(refused) == len(told):
        raise refused[0]
    if as_json:
        found = [_facts(each) for each in told]
        screen.data(found[0] if len(found) == 1 else found)
    else:
        for asked, one in zip(questions, told, strict=True):
            said = f"not answered: {one}" if isinstance(one, DphistError) else str(one)
            screen.line(f"{asked}: {said}" if len(questions) > 1 else said)
        for method in dict.fromkeys(each.method for each in told if isinstance(each, Answer)):
            screen.line(f"interval: {method}")
    if refused:
        raise QueryError(f"{len(refused)} of {counted(len(told), 'question')} not answered: {refused[0]}")


@app.command()
def show(release: options.ReleaseFile, as_json: options.Json = False) -> None:
    """Say what a release holds, what was protected and what was spent; draw its first attribute."""
    from dphist.cli.showing import CALLED, describe, draw
    from dphist.release import load

    loaded = load(release)
    facts = describe(loaded)
    if as_json:
        screen.data(facts)
        return
    for name, value in facts.items():
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        screen.fact(CALLED.get(name, name), said)
    draw(loaded)


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
    from dphist.cli.publishing import opened
    from dphist.model.exact import shown
    from dphist.publishing.checking import verify_file

    with opened(ledger) as book, screen.progress():
        loaded = verify_file(release, book, choice=choice, exact=exact)
    budget, spent = loaded.budget, loaded.spent
    facts = {"verified": True, budget.currency: str(budget.amount), "spent": str(spent)}
    if as_json:
        screen.data(facts)
    else:
        paid = f"{counted(loaded.questions, 'paid answer')}, spent {shown(spent)} of {shown(budget.amount)} "
        paid += budget.symbol
        screen.line(f"verified: {paid}; run again without the data, they give the same release")


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


def _facts(answer: Answer | DphistError) -> dict[str, Any]:
    if isinstance(answer, DphistError):
        return {"error": str(answer)}
    # JSON has no word for "not a number": what nothing can be said of has no bounds.
    facts = {
        key: each if isfinite(each := getattr(answer, key)) else None for key in ("value", "low", "high")
    }
    return facts | {key: getattr(answer, key) for key in ("confidence", "measured", "method", "details")}
