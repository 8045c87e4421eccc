"""What DuckDB may take of this machine, and how far it has come.

    DPHIST_MEMORY    how much memory DuckDB may take, such as 2GB; the rest is spilled to disk
    DPHIST_SPILL     the folder it spills to (a temporary one by default, removed afterwards)
    DPHIST_THREADS   how many threads count
    DPHIST_PROGRESS  1: show progress on standard error; 0: do not; by default only to a person at a terminal
    DPHIST_INSTALL   1: let DuckDB fetch the extension that a network address needs; by default it fetches nothing

They are settings of the machine, not of the release: none of them changes a count.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dphist.errors import InputError, SourceError

# Whatever is counted sooner than this needs no bar.
_PATIENCE = 2.0


def configure(connection: Any) -> None:
    """Hold a DuckDB connection to the machine's limits."""
    import duckdb

    # By itself DuckDB would fetch code for a function or a file that it does not know, and run it beside the records.
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET autoload_known_extensions = false")
    # Counting needs no order, and keeping one costs memory.
    connection.execute("SET preserve_insertion_order = false")
    # DuckDB counts its progress, but would print it to standard output, which belongs to the caller.
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    for variable, setting in (
        ("DPHIST_MEMORY", "memory_limit"),
        ("DPHIST_SPILL", "temp_directory"),
        ("DPHIST_THREADS", "threads"),
    ):
        value = os.environ.get(variable)
        if value:
            try:
                connection.execute(f"SET {setting} = '{value.replace(chr(39), chr(39) * 2)}'")
            except duckdb.Error:
                raise InputError(f"{variable}: {value!r} is not understood; try 2GB, a folder or 4") from None
    # Counted by position cells take two fifths of the time that a hash takes. Each thread has positions of its own, of
    # about 16 bytes: 256 MiB in all at most.
    ((threads,),) = connection.execute("SELECT current_setting('threads')").fetchall()
    connection.execute(f"SET perfect_ht_threshold = {max(12, min(22, 24 - (int(threads) - 1).bit_length()))}")


def reach_network(connection: Any) -> None:
    """Let DuckDB load what an address such as ``s3://…`` needs; naming the address is how a user asks for it.

    Fetching the code for it is another matter, and has to be asked for once more.
    """
    connection.execute("SET autoload_known_extensions = true")
    if os.environ.get("DPHIST_INSTALL") == "1":
        connection.execute("SET autoinstall_known_extensions = true")


def unreadable(what: str, hint: str = "of the kind its name says") -> SourceError:
    """The error for a source that an engine gave up on; the engine's own words may quote a record."""
    need = "; its address may need an extension of DuckDB (httpfs): DPHIST_INSTALL=1 has it fetched once"
    return SourceError(f"{what} cannot be read: is it complete, and {hint}?{need * ('://' in what)}")


@contextmanager
def shown_progress(connection: Any, parts: int) -> Iterator[Callable[[], None]]:
    """Show how much is read, to a person who waits; hands out what to call after each part."""
    wanted = os.environ.get("DPHIST_PROGRESS", "")
    finished, over = 0, threading.Event()

    def done() -> None:
        nonlocal finished
        finished += 1

    if wanted == "0" or not (wanted or sys.stderr.isatty()):
        yield done
        return

    def watch() -> None:
        wrote = False
        while not over.wait(_PATIENCE if not wrote else 0.5):
            share = max(0.0, float(connection.query_progress())) / 100
            sys.stderr.write(f"\rcounting: {min(1.0, (finished + share) / parts):4.0%}")
            sys.stderr.flush()
            wrote = True
        if wrote:
            sys.stderr.write("\rcounting: done\n")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield done
    finally:
        over.set()
        watcher.join()
