"""`dphist bench`: list, run and report experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dphist.cli import screen

if TYPE_CHECKING:
    from dphist_bench.cases import Case

app = typer.Typer(
    help="Run the papers' experiments and our own measurements again, on public or made-up data.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Folder = Annotated[Path, typer.Option("--results", help="Where readings are kept between runs.")]
_KEPT = Path("bench-results")


@app.command("list")
def list_() -> None:
    """Name every experiment and measurement."""
    from dphist_bench.catalogue import GROUPS, ROOMS, group

    rows = [(name, found.title) for one in GROUPS for name, found in group(one).items()]
    screen.table(["experiment", "what it shows"], rows)
    for room, measurements in ROOMS.items():
        screen.line("")
        screen.table([f"measurement of {room}", "what it shows"], sorted(measurements.items()))


# A measurement has options of its own, and its own help about them.
@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
)
def run(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="An experiment, a paper, a measurement, or all.")] = "--help",
    trials: Annotated[
        int | None, typer.Option(min=1, help="Runs of each case (each has its own default).")
    ] = None,
    quick: Annotated[bool, typer.Option(help="Small data, one trial: seconds.")] = False,
    files: Annotated[
        Path | None, typer.Option(help="A folder with the real files, used where they fit.")
    ] = None,
    results: Folder = _KEPT,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one a core).")] = None,
    fresh: Annotated[bool, typer.Option(help="Forget earlier readings.")] = False,
) -> None:
    """Measure what is missing of an experiment; stop it at any time and run it again to go on.

    A measurement takes its own options: `dphist bench run coverage --help`.
    """
    from dphist.errors import InputError
    from dphist_bench import catalogue, runner
    from dphist_bench.cases import Setting

    if name in catalogue.MEASUREMENTS:
        shared = {"--trials": trials, "--files": files, "--workers": workers}
        given = [
            str(word) for option, value in shared.items() if value is not None for word in (option, value)
        ]
        quickly = ["--quick"] if quick else []
        raise typer.Exit(catalogue.measure(name, [*quickly, *given, *context.args], results))
    if "--help" in (name, *context.args):
        screen.line(context.get_help())
        return
    if context.args:
        raise InputError(f"{context.args[0]} is not an option of `dphist bench run`; see --help")
    setting = Setting(quick=quick, files=files)
    for one in catalogue.chosen(name):
        experiment = catalogue.load(one)
        with _progress(one) as step:
            try:
                found = runner.run(
                    experiment,
                    results,
                    trials=trials,
                    setting=setting,
                    workers=workers,
                    fresh=fresh,
                    progress=step,
                )
            except KeyboardInterrupt:
                screen.line(f"{one}: stopped; what is finished is kept, the same command goes on")
                raise typer.Exit(130) from None
        screen.line(f"{one}: {len(found.rows):,} readings in {runner.path_of(results, one, setting)}")


@app.command()
def report(
    results: Folder = _KEPT,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the pages go.")] = Path("results"),
    name: Annotated[str, typer.Argument(help="An experiment, a paper, or all.")] = "all",
    quick: Annotated[bool, typer.Option(help="Report the readings of quick runs.")] = False,
) -> None:
    """Turn readings into pages: tables, pictures, and the papers' claims confirmed or refuted."""
    from dphist.errors import InputError
    from dphist.extras import need
    from dphist_bench import catalogue, pages

    need("altair", "report")
    found = pages.read(results, catalogue.chosen(name), quick)
    if not found:
        raise InputError(f"{results} holds no readings of {name}; `dphist bench run {name}` makes them")
    for page in pages.write(found, output):
        screen.line(str(page))


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int, int, Case], None]]:
    """Show what is done and the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)

        def show(done: int, whole: int, case: Case) -> None:
            bar.update(task, completed=done, total=whole, description=f"{name} {case.data} {case.method}")

        yield show
