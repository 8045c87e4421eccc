"""Commands that hand a release on: to a spreadsheet, to a disclosure board. `commands` adds them to the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dphist.cli import screen


def export(
    release: Annotated[Path, typer.Argument(metavar="OUT", help="A release file.", show_default=False)],
    output: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .tsv or .xlsx file.", show_default=False)
    ],
    confidence: Annotated[
        float, typer.Option(help="How often each interval should hold the true count.")
    ] = 0.95,
) -> None:
    """Write a release's table for programs that do not read Parquet: labels, estimate, low and high."""
    from dphist.release import load
    from dphist.uses.exporting import export as write

    with screen.progress("writing the table"):
        written = write(load(release), output, confidence=confidence)
    for path in written:
        screen.line(str(path))
