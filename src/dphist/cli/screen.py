"""What goes to the screen: answers to standard output, progress to standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


def line(text: str) -> None:
    """Print one line for people or programs to read."""
    sys.stdout.write(text + "\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table as wide as the screen allows."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(*head, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    Console().print(grid)


@contextmanager
def progress(first: str) -> Iterator[Callable[[str], None]]:
    """Show one line that says what is being done, and clear it when it is done.

    It names the step only. (A count that takes long also shows DuckDB's bar, on the terminal of whoever holds the
    records and nowhere else; see `dphist.sources.allowance`.)
    """
    from dphist.kernels.compile import announce_compilation

    announce_compilation(_compiling)
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(first) as status:
        yield lambda text: status.update(text)


def _compiling(folder: str | None) -> None:
    kept = f"once, then kept in {folder}" if folder else "each time: no folder to keep them in may be written"
    sys.stderr.write(f"compiling kernels for this machine ({kept}) …\n")
