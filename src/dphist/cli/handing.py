"""Commands that hand a release on: to readers, a spreadsheet, a disclosure board, or the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from dphist.cli import options, screen
from dphist.cli.application import app
from dphist.errors import InputError, OutputError


@app.command()
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
    from dphist.release import load
    from dphist.release.exporting import export as write

    _check_copy(output, release, force)
    with screen.progress("writing the table"):
        written = write(load(release), output, confidence=confidence, guesses=guesses, replicates=replicates)
    for path in written:
        screen.line(str(path))


@app.command()
def dossier(
    release: options.ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder the papers go to.")] = Path(
        "dossier"
    ),
    ledger: Annotated[str | None, typer.Option(help="The ledger that paid, for the budget memo.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over papers that were edited.")] = False,
) -> None:
    """Write the papers that go with a release: registry record, self-assessment, budget memo, catalogues."""
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
    from dphist.release import load
    from dphist.release.atomic import atomic, check_page_name
    from dphist.report.page import report_page

    _check_copy(output, release, force=True)
    # A page is made anew as often as one likes; what is no page is somebody's, and stays.
    if not _is_page(output):
        raise OutputError(f"{output} exists already and is no page; choose another name")
    check_page_name(output)
    loaded = load(release)
    page = report_page(loaded, title=title or loaded.about.title or release.stem, file=release.name)
    with atomic(output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    screen.line(f"{output}: open it in any browser; it needs no network")


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
    from dphist.release import load
    from dphist.release.atomic import atomic

    kind = output.suffix.lower() if output is not None else ""
    if output is not None:
        if kind not in (".csv", ".parquet"):
            raise InputError(f"--output {output}: the name must end in .csv or .parquet")
        _check_copy(output, release, force)
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
    from dphist.release import load
    from dphist.release.atomic import atomic
    from dphist.report import figure, picture

    kind = output.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise InputError("--output must end in .png or .svg")
    _check_copy(output, release, force)
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


def _is_page(path: Path) -> bool:
    """Whether what is there, if anything, is a page that may be written over."""
    try:
        if not path.is_file():
            return True
        with path.open("rb") as file:
            return file.read(15).lower() in (b"", b"<!doctype html>")
    except OSError:
        # Nothing is there, or nothing that can be read: who writes will say what is wrong.
        return True


def _check_copy(output: Path, release: Path, force: bool) -> None:
    """Refuse to write over the release that is read, which nobody could pay for again, or over what else is there.

    A table of a release, or synthetic records, would naturally go by the name that the true records have.
    """
    if not output.exists():
        return
    if release.exists() and output.samefile(release):
        raise OutputError(f"{output} is the release itself, which was paid for; choose another name")
    if not force:
        raise OutputError(f"{output} exists already; choose another name, or say --force")
