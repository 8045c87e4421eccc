"""What the commands that show do: one page, one picture, the explorer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from dphist.cli import screen
from dphist.cli.files import check_copy
from dphist.errors import InputError, OutputError
from dphist.release import load
from dphist.release.atomic import atomic, check_page_name


def write_report(release: Path, output: Path = Path("report.html"), title: str | None = None) -> None:
    """Write the page of a release."""
    from dphist.report import report_page

    check_copy(output, release, force=True)
    # A page is made anew as often as one likes; what is no page is somebody's, and stays.
    if not _is_page(output):
        raise OutputError(f"{output} exists already and is no page; choose another name")
    check_page_name(output)
    loaded = load(release)
    page = report_page(loaded, title=title or loaded.about.title or release.stem, file=release.name)
    with atomic(output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    screen.line(f"{output}: open it in any browser; it needs no network")


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


def write_plot(
    source: Path,
    output: Path,
    names: Sequence[str],
    confidence: float,
    dark: bool,
    uncertainty: bool,
    force: bool,
) -> None:
    """Write a figure of a release as a picture."""
    from dphist.report import figure, picture

    kind = output.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise InputError("--output must end in .png or .svg")
    check_copy(output, source, force)
    chart = figure(
        load(source),
        list(names) or None,
        confidence=confidence,
        colour="uncertainty" if uncertainty else "estimate",
    )
    drawn = picture(chart, "png" if kind == "png" else "svg", dark=dark)
    with atomic(output) as temporary:
        temporary.write_bytes(drawn)
    screen.line(str(output))


def explore_releases(
    sources: Sequence[Path], host: str, port: int, names: Sequence[str], browser: bool
) -> None:
    """Serve releases until interrupted."""
    from dphist.web import serve

    if len({source.resolve() for source in sources}) < len(sources):
        raise InputError("the same release is named twice")
    releases = {}
    for source in sources:
        with screen.progress(f"reading {source}"):
            title = source.stem if source.stem not in releases else str(source)
            releases[title] = load(source)
    serve(releases, host=host, port=port, names=names, say=_say, browser=browser)


def plan_on_the_web(schema: Path | None, epsilon: str, port: int, browser: bool) -> None:
    """Serve the planner alone; it reads no records and no release."""
    from dphist.cli.publishing import read_schema
    from dphist.web import serve

    begin = {"epsilon": epsilon}
    if schema is not None:
        read_schema(schema)
        begin |= {"schema": schema.read_text(encoding="utf-8"), "question": ""}
    serve({}, port=port, say=_say, browser=browser, begin=begin)


def start_on_the_web(source: str, folder: Path, port: int, browser: bool) -> None:
    """Serve the guided start of one file, to whoever has the address alone."""
    from dphist.planning.starting import columns
    from dphist.web.start import serve_start

    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}")
    # Refused here, in the terminal, rather than on the page.
    columns(source)
    serve_start(source, folder, port=port, say=_say, browser=browser)


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
