"""A note beside the ledger of how far it had come, so that an older ledger put back in its place is noticed.

The witness is a text file that only grows: a line ``number hash`` for every line of the ledger, added *after*
that line is durable. It is therefore never ahead of an honest ledger, whatever crashes when, and needs no
lock: several processes append whole lines and the largest number counts.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from dphist import errors
from dphist.private.ledger.lines import START, Head

_NOTE = re.compile(r"(\d{1,18}) ([0-9a-f]{64})", re.ASCII)

# What notes are made of, cut short or lost to a crash as they may be.
_BEGINNING = re.compile(rb"[0-9a-f \n\0]*")

# Writers may be reordered by as many notes as there are processes, so the largest is near the end.
_TAIL = 1 << 20


class Witness:
    """Remembers the last line of a ledger outside the ledger."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def head(self) -> Head:
        """Return the furthest line seen, or the start when there is no witness yet."""
        try:
            with self.path.open("rb") as notes:
                foreign = not _BEGINNING.fullmatch(notes.read(128))
                size = notes.seek(0, os.SEEK_END)
                notes.seek(max(0, size - _TAIL))
                text = notes.read().decode("ascii", errors="replace")
        except FileNotFoundError:
            return START
        except OSError as error:
            raise errors.LedgerError(
                f"the ledger's witness {self.path} cannot be read ({error.strerror}); make it a readable "
                "file, or name another place with witness=…"
            ) from error
        if foreign:
            # In a database, the ledger's own too, what is appended is written over sooner or later.
            raise errors.LedgerError(
                f"{self.path} is no witness: it holds something else, which notes would spoil; name another place with "
                "witness=…"
            )
        heads = [Head(int(match[1]), match[2]) for match in map(_NOTE.fullmatch, text.splitlines()) if match]
        return max(heads, default=START)

    def note(self, head: Head) -> None:
        """Add a note; the ledger's line must already be durable."""
        # A newline first, so that a note cut short by a crash cannot run into this one.
        text = f"\n{head.number} {head.hash}\n".encode("ascii")
        try:
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(file, text)
            finally:
                os.close(file)
        except OSError as error:
            raise errors.LedgerError(
                f"line {head.number} is in the ledger, and what it spends stays spent, but the witness "
                f"{self.path} cannot be written ({error.strerror}); make it writable, or open the ledger "
                "with witness=…"
            ) from error
