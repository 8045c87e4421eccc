"""What can be made of records before the gate: cells, sums of values, tables of coded columns, keys nobody declared.

Each door turns a source into exact numbers, town by town, and says how far one protected unit may move them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.coded import coded
from dphist.sources.count import count_and_sum, keys_of
from dphist_bench.records.people import DOMAIN

IntArray = NDArray[np.int64]
#: By part and label: a row of numbers for each town. What has no label on one side is zero there.
Found = dict[tuple[str, str], IntArray]

_COST = Measure("cost", -10, 40, squares=True, clipped=True)
_LIMITED = Measure("limited", 0, 50, per_person=60, column="cost")
_QUANTITIES = {
    "sum": Quantity(_COST, centre=15),
    "squares": Quantity(_COST, squared=True, centre=Quantity(_COST, squared=True).middle),
    "clipped": Quantity(_COST, clipped=True),
    "limited": Quantity(_LIMITED),
}
# Tables of the coded columns; the first axis is the town.
_TABLES = ((0,), (0, 1), (0, 2), (0, 3), (0, 1, 2))


def in_towns(towns: range) -> Domain:
    """What is counted, by town."""
    return Domain([Ordinal("town", towns), *DOMAIN.attributes])


@dataclass(frozen=True)
class Door:
    """One way from records to numbers."""

    name: str
    read: Callable[[Any, range, Unit], Found]
    promise: Callable[[str, Unit], int]

    def ratio(self, before: Found, after: Found, unit: Unit, towns: int) -> NDArray[np.float64]:
        """For each town how far it moved, over what a unit may move: the largest over parts and norms."""
        worst = np.zeros(towns)
        for part in {part for part, _ in (*before, *after)}:
            moved, squared = np.zeros(towns), np.zeros(towns)
            for key in {key for key in (*before, *after) if key[0] == part}:
                change = np.abs(_of(after, key, towns) - _of(before, key, towns))
                moved += change.sum(axis=1)
                squared += np.square(change.astype(np.float64)).sum(axis=1)
            np.maximum(worst, moved / self.promise(part, unit), out=worst)
            if part == "cells":
                # Counts promise a finer L2 norm to units of few rows in a cell.
                np.maximum(worst, squared / unit.squared, out=worst)
        return worst


def _of(found: Found, key: tuple[str, str], towns: int) -> IntArray:
    return found.get(key, np.zeros((towns, 1), dtype=np.int64))


def _flat(tables: Iterable[tuple[str, str, IntArray]]) -> Found:
    return {(part, label): table.reshape(len(table), -1) for part, label, table in tables}


def _cells(source: Any, towns: range, unit: Unit) -> Found:
    return _flat([("cells", "", count(source, in_towns(towns), unit).counts)])


def _sums(source: Any, towns: range, unit: Unit) -> Found:
    made, totals = count_and_sum(source, in_towns(towns), unit, list(_QUANTITIES.values()))
    found = [("cells", "", made.counts)]
    found += [(name, "", total) for name, total in zip(_QUANTITIES, totals, strict=True)]
    return _flat(found)


def _tables(source: Any, towns: range, unit: Unit) -> Found:
    found = coded(source, in_towns(towns), unit).tables(_TABLES)
    return _flat((f"table {axes}", "", table) for axes, table in zip(_TABLES, found, strict=True))


def _keys(source: Any, towns: range, unit: Unit) -> Found:
    domain = Domain([Nominal("sex", discover=True), Ordinal("town", towns)])
    keys, counts = keys_of(source, domain, unit)
    texts = keys.take(np.arange(len(counts))).to_pylist()
    return {("keys", str(key)): row.reshape(-1, 1) for key, row in zip(texts, counts, strict=True)}


def _promise(part: str, unit: Unit) -> int:
    return _QUANTITIES[part].in_steps(unit).steps if part in _QUANTITIES else unit.steps


DOORS = (
    Door("cells", _cells, _promise),
    Door("sums", _sums, _promise),
    Door("tables", _tables, _promise),
    Door("keys", _keys, _promise),
)
