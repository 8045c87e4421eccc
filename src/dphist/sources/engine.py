"""What an engine must be able to say, for an attribute's cells to be computed where the rows are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from dphist.model.unit import Unit
from dphist.sources.tally import Tally

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
    """At most ``rows`` rows for each value of the column ``id``; ``per_cell`` in each of ``cells`` cells, if said.

    ``size`` is how many cells there are in all, where they are numbered.
    """

    id: Column
    rows: int
    cells: int | None = None
    per_cell: int = 1
    size: int | None = None

    @staticmethod
    def of(person: Column, unit: Unit, size: int | None = None) -> Bound:
        """How a unit bounds what a person adds."""
        return Bound(person, unit.rows, unit.cells, unit.per_cell or 1, size)


@dataclass(frozen=True, slots=True)
class Key:
    """How to group rows by one attribute.

    ``value`` is evaluated only where ``inside`` holds (None: everywhere), and is NULL for rows that have no
    cell. ``other`` says that rows without a cell are kept, with a NULL key, rather than dropped.
    """

    inside: Expression | None
    value: Expression
    other: bool


@dataclass(frozen=True, slots=True)
class Value:
    """What a row adds to its cell for a measure, in whole steps; NULL for a row that is in no cell.

    ``limit`` is what the rows of one person may add up to, in absolute values, where people are told apart. ``bounds``
    are the least and the largest amount that there can be, as everybody knows.
    """

    amount: Expression
    bounds: tuple[int, int]
    limit: int | None = None


# A cell's sum is cut here: a record still moves it by no more than its own value, and nothing that is added overflows.
LARGEST_SUM = 2**60


@dataclass(frozen=True, slots=True)
class Groups:
    """The answer to the GROUP BY: each key's values and where they are NULL, numbers of rows, and sums of values."""

    keys: list[npt.NDArray[Any]]
    missing: list[npt.NDArray[np.bool_]]
    rows: npt.NDArray[np.int64]
    sums: Sequence[Integers] = ()


class Engine(Protocol):
    """A table somewhere, and the words to count its rows."""

    columns: tuple[Column, ...]
    watching: bool
    """Whether somebody wants to know how many rows there were."""

    def watch(self, tally: Tally) -> None:
        """Say how many rows there were in all, after counting."""

    def column(self, column: Column) -> Expression:
        """The column's value."""

    def parse(self, value: Expression, family: Family) -> Expression:
        """An undeclared value as a real number, truth value or time; NULL where it is none.

        A text with an offset is a zoned time and no other, one without is a time and no zoned one.
        """

    def real(self, value: Expression) -> Expression:
        """As a 64-bit float."""

    def integer(self, value: Expression) -> Expression:
        """As a 64-bit integer; only asked where the value is one."""

    def truth(self, value: Expression) -> Expression:
        """A truth value as 0 or 1."""

    def floor(self, value: Expression) -> Expression:
        """The largest 64-bit integer that is not above the value; only asked where it fits."""

    def text(self, value: Expression) -> Expression:
        """As text."""

    def distinct_text(self, column: Column) -> Expression:
        """A column's value as text by which rows are told apart; NULL where there is none."""

    def days(self, value: Expression, family: Family, ahead: Expression | None = None) -> Expression:
        """Days since 1970-01-01: of a time by its calendar day, of a zoned time by the day of clocks ``ahead`` of UTC.

        Ahead by that many seconds; NULL gives NULL, None is UTC.
        """

    def day(self, day: dt.date, family: Family) -> Expression:
        """The first moment of a day, to be compared with a column."""

    def moment(self, at: dt.datetime) -> Expression:
        """A moment in UTC, to be compared with a zoned time."""

    def between(self, value: Expression, low: Expression, high: Expression) -> Expression:
        """Whether low ≤ value ≤ high; not true for NULL and NaN."""

    def before(self, value: Expression, bound: Expression) -> Expression:
        """Whether value < bound."""

    def same(self, value: Expression, other: Expression) -> Expression:
        """Whether two values are equal."""

    def is_multiple(self, value: Expression, first: int, step: int) -> Expression:
        """Whether an integer is some steps away from the first."""

    def steps(self, value: Expression, first: int, step: int) -> Expression:
        """How many whole steps an integer is above the first."""

    def one_of(self, value: Expression, choices: Sequence[Any]) -> Expression:
        """Whether the value is one of a list."""

    def position(self, value: Expression, choices: Sequence[str]) -> Expression:
        """The place of a text in a short list, counted from 1; NULL where it is not in it."""

    def when(self, condition: Expression, value: Expression, otherwise: Expression | None) -> Expression:
        """One value where a condition is true, another (or NULL) elsewhere; only that one is evaluated."""

    def literal(self, value: Any) -> Expression:
        """A public value."""

    def otherwise(self, value: Expression, instead: Expression) -> Expression:
        """The value, or another where it is NULL."""

    def flat(self, cells: Sequence[Key], sizes: Sequence[int]) -> Expression:
        """The number of a cell of the whole domain; NULL for a row in no cell."""

    def times(self, value: Expression, factor: Expression) -> Expression:
        """A product."""

    def plus(self, value: Expression, more: Expression) -> Expression:
        """A sum."""

    def rows_per_person(self, person: Column) -> tuple[Integers, Integers]:
        """Numbers of rows, and how many people have as many, whatever the rows hold."""

    def group(self, keys: Sequence[Key], values: Sequence[Value] = ()) -> Groups:
        """Count the rows by their keys, and add their values up."""

    def bounded(
        self, cell: Expression, bound: Bound, values: Sequence[Value] = ()
    ) -> tuple[Integers, Integers, Sequence[Integers]]:
        """Cells, how many rows are kept, and sums: at most ``bound.rows`` of a person; see `dphist.sources.people`."""
