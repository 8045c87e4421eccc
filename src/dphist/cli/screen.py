"""What goes to the screen: answers to standard output, progress to standard error."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dphist.model.phrases import visible

if TYPE_CHECKING:
    from rich.status import Status

# How wide the names of facts are, with the space behind them.
_NAMES = 14


def line(text: str) -> None:
    """Print one line for people or programs to read."""
    sys.stdout.write(visible(text, lines=True) + "\n")


def data(value: Any) -> None:
    """Print JSON for programs, with the letters themselves where the screen has all of them."""
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    line(json.dumps(value, ensure_ascii=not unicode, default=str))


def aside(text: str) -> None:
    """Say something that is no answer, at once."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def fact(name: str, text: str) -> None:
    """Print what there is to say under a name: folded on a terminal, a line for programs that read it."""
    text = visible(text)
    if sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns, 2 * _NAMES)
        text = textwrap.fill(
            text, width, initial_indent=" " * _NAMES, subsequent_indent=" " * _NAMES, break_on_hyphens=False
        )[_NAMES:]
    line(f"{name:>{_NAMES - 2}}  {text}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as wide as the screen allows."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        # Text, since names may hold what Rich would take for its own marks.
        grid.add_column(Text(visible(name)))
    for row in rows:
        grid.add_row(*(Text(visible(cell)) for cell in row))
    Console().print(grid)


@contextmanager
def progress(first: str = "") -> Iterator[Callable[[str], None]]:
    """Show one line that says what is being done, and clear it when it is done.

    Without a ``first`` word the line is only begun if there is long work: most answers come at once. It names the step
    only. (A count that takes long also shows DuckDB's bar, on the terminal of whoever holds the records and nowhere
    else; see `dphist.sources.duck.allowance`.)
    """
    from dphist.kernels.compile import announce_compilation
    from dphist.waiting import listening

    announce_compilation(_compiling)
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    shown: list[Status] = []

    def show(text: str) -> None:
        if not shown:
            from rich.console import Console

            shown.append(Console(stderr=True).status(text))
            shown[0].start()
        shown[0].update(text)

    try:
        with listening(show):
            if first:
                show(first)
            yield show
    finally:
        for status in shown:
            status.stop()


def _compiling(folder: str | None) -> None:
    kept = f"once, then kept in {folder}" if folder else "each time: no folder to keep them in may be written"
    sys.stderr.write(f"compiling kernels for this machine ({kept}) …\n")
