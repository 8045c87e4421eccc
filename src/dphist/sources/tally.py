"""How many rows there were, and how many of them counted: told to the custodian, and to nobody else.

These are facts about the records as much as any count. They are taken along while the records are counted, by another
pass only where an engine has no other way, and end at the custodian: in a rehearsal, or in a stop before anything is
paid. No release, ledger line or log may hold them; the threat model says what a visible stop tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Above this share of rows that do not count a release is more likely a mistake than meant.
ALLOWED = 0.1


@dataclass(eq=False)
class Tally:
    """What was seen of a source while it was counted; None as long as nobody counted.

    ``rows`` counts what stands in the source, lines of a text file that make no row included, and ``placed`` the rows
    that count: those that have a cell and, under an id, are among those that are kept of a person. ``elsewhere`` are
    those of them whose cell is one for everything else (``other=True``), on any attribute. ``encoding`` and
    ``ragged`` are lines of a text file that are no UTF-8 and lines with another number of fields than the header.
    """

    rows: int | None = None
    placed: int | None = None
    elsewhere: int = 0
    encoding: int = 0
    ragged: int = 0

    @property
    def dropped(self) -> int | None:
        """Rows that were not counted: without a cell, or beyond what is kept of a person."""
        return None if self.rows is None or self.placed is None else max(0, self.rows - self.placed)


@dataclass(frozen=True, eq=False)
class Tallied:
    """A source, and where to write what was seen of it."""

    source: Any
    tally: Tally = field(default_factory=Tally)


def tally_of(source: Any) -> Tally | None:
    """Where to write what is seen of a source; None where nobody asked."""
    return source.tally if isinstance(source, Tallied) else None
