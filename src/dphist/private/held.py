"""Records behind the gate, where nobody can write out the cells: tables of them are counted, and nothing else.

A table of forty columns spans more cells than any memory has, but each of its records is forty small numbers.
`dphist.private.gate.open_gate` fuses such records with a budget. What it gives is the same right over the very same
cells, most of which are never visited: one *step* is one cell changing by one, that is, one record more or less. So the
gate's proof is the proof here: `split` composes sequentially; `measure` and `choose` lose at most the budget by the
promises of their questions; a person of several rows is several steps; noise is priced where it is for cells, in both
currencies. Nothing is calibrated here.

What differs is what a right can do. The verbs that regroup cells would have to visit them, and are refused; so is,
before it is paid for, a question that is not about tables of few attributes. Use the questions that are made for
records: `TableTotals`, `RangedTables`, `TopDependence`, and the score `TableErrors`.

Nothing above the gate sees a code: mechanisms import neither sources nor `dphist.model.coded`'s columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from dphist.errors import MechanismError
from dphist.model.coded import Axes, Countable, check_tables
from dphist.model.histogram import sum_others
from dphist.private.questions import IntArray, Layout

# Weighted sums over the cells of a table stay below this, whatever the data: overflow must never depend on a count.
LARGEST_SUM = 2**61


@dataclass(frozen=True, eq=False)
class Held:
    """Records behind the gate. A question that is not about tables finds nothing here that it could read."""

    records: Countable

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise MechanismError(
            "this mechanism counts every combination, and the domain has too many for that: use residuals or mixture"
        )

    __array__ = __getitem__ = __len__ = __iter__ = reshape = sum = size = _refuse


def count_tables(counts: Any, layout: Layout, tables: Sequence[Axes]) -> list[IntArray]:
    """Count tables of whatever a right holds, records or cells, in one pass; each in its own shape.

    A count is cut at a public ceiling: min(x, c) moves by at most one when x does, so one step still moves one cell of
    each table by at most one.
    """
    if isinstance(counts, Held):
        found = counts.records.tables(tables)
    else:
        cube = counts.reshape(layout.shape)
        found = [sum_others(cube, axes) for axes in tables]
    return [np.minimum(table, ceiling(table.shape)) for table in found]


def ceiling(shape: Sequence[int]) -> int:
    """The largest count that a cell of a table of this shape may have: its residuals then fit in 64 bits."""
    return LARGEST_SUM // math.prod(2 * size for size in shape)


def table_shapes(layout: Layout, tables: Sequence[Axes]) -> list[tuple[int, ...]]:
    """The shapes of tables, refused by public facts where they do not fit the domain or memory."""
    if any(axis >= len(layout.shape) for axes in tables for axis in axes):
        raise MechanismError("tables: every axis must be one of the domain's")
    shapes = [tuple(layout.shape[axis] for axis in axes) for axes in tables]
    check_tables([math.prod(shape) for shape in shapes])
    return shapes


def check_axes(tables: Sequence[Axes]) -> None:
    """Insist on tables by their axes, each once and ascending."""
    for axes in tables:
        if any(type(axis) is not int or axis < 0 for axis in axes) or list(axes) != sorted(set(axes)):
            raise MechanismError("tables: name each by its axes, whole numbers in ascending order")
    if not tables:
        raise MechanismError("tables: name at least one")
