"""What counting is made of: columns, keys, values, bounds, and the groups that an engine gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dphist.model.unit import Unit

# What kind of values a column holds. A CSV or JSON field, or a column of nothing but NULL, is undeclared:
# it is read as what the domain declares.
Family = Literal[
    "integer", "real", "text", "truth", "date", "time", "zoned time", "undeclared", "something else"
]
Expression = Any
Integers = npt.NDArray[np.int64]


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


@dataclass(frozen=True, slots=True)
class Bound:
    """At most ``rows`` rows for each value of the column ``id``; ``per_cell`` in each of ``cells`` cells, if said."""

    id: Column
    rows: int
    cells: int | None = None
    per_cell: int = 1

    @staticmethod
    def of(person: Column, unit: Unit) -> Bound:
        """How a unit bounds what a person adds."""
        return Bound(person, unit.rows, unit.cells, unit.per_cell or 1)


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


# A cell's sum is cut here: a record still moves it by no more than its own value, and nothing that is added overflows.
LARGEST_SUM = 2**60
