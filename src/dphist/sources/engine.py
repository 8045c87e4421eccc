"""What counting is made of: columns, keys, values, bounds, and a tally of how many rows there were and counted.

A tally holds facts about the records as much as any count. They are taken along while the records are counted, by
another pass only where an engine has no other way, and end at the custodian: in a rehearsal, or in a stop before
anything is paid. No release, ledger line or log may hold them; the threat model says what a visible stop tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

# What kind of values a column holds. A CSV or JSON field, or a column of nothing but NULL, is undeclared:
# it is read as what the domain declares.
Family = Literal[
    "integer", "real", "text", "truth", "date", "time", "zoned time", "undeclared", "something else"
]
Expression = Any
Integers = npt.NDArray[np.int64]
# A cell's sum is cut here: a record still moves it by no more than its own value, and nothing that is added overflows.
LARGEST_SUM = 2**60
# Above this share of rows that do not count a release is more likely a mistake than meant.
ALLOWED = 0.1


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, its type in the engine's words, and the kind of values it holds.

    The types of a database or a Parquet file are declared. Those of a data frame are ``inferred``: one odd value
    in one row may have given them to everybody's.
    """

    name: str
    type: str
    family: Family
    inferred: bool = False


def ibis_columns(table: Any) -> tuple[Column, ...]:
    """The columns of an Ibis table; a type without what stands in brackets."""
    return tuple(
        Column(name, str(kind).split("(")[0].split("<")[0], _ibis_family(kind))
        for name, kind in table.schema().items()
    )


def _ibis_family(kind: Any) -> Family:
    if kind.is_timestamp():
        return "time" if kind.timezone is None else "zoned time"
    tests: list[tuple[bool, Family]] = [
        (kind.is_null(), "undeclared"),
        (kind.is_integer(), "integer"),
        (kind.is_floating() or kind.is_decimal(), "real"),
        (kind.is_string(), "text"),
        (kind.is_boolean(), "truth"),
        (kind.is_date(), "date"),
    ]
    return next((family for fits, family in tests if fits), "something else")


@dataclass(frozen=True, slots=True)
class Bound:
    """At most ``rows`` rows for each value of the column ``id``; ``per_cell`` in each of ``cells`` cells, if said."""

    id: Column
    rows: int
    cells: int | None = None
    per_cell: int = 1


@dataclass(frozen=True, slots=True)
class Key:
    """The number of a row's cell on an attribute.

    ``value`` is evaluated only where ``inside`` holds (None: everywhere), and is NULL for rows that have no cell.
    """

    inside: Expression | None
    value: Expression


@dataclass(frozen=True, slots=True)
class Value:
    """What a row adds to its cell for a measure, in whole steps; NULL for a row that is in no cell.

    ``limit`` is what the rows of one person may add up to, in absolute values, where people are told apart.
    """

    amount: Expression
    limit: int | None = None


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
