"""One page about a release."""

from __future__ import annotations

from pathlib import Path

from dphist.cli import screen
from dphist.cli.files import check_copy
from dphist.errors import OutputError
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
