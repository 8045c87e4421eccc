"""Records whose values were merged by public groups: behind the gate, and one step stays one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphist.errors import MechanismError
from dphist.model.coded import Axes, Countable
from dphist.model.domain import Domain, Ordinal
from dphist.private.held import Held
from dphist.private.questions import IntArray, Layout, own_array


@dataclass(frozen=True, eq=False)
class MergedRecords:
    """Tables of merged values: every table is counted as it is, and its cells are added up by group."""

    records: Countable
    domain: Domain
    groups: tuple[IntArray, ...]

    def tables(self, tables: Sequence[Axes]) -> list[IntArray]:
        """Count tables, and merge them axis by axis."""
        found = self.records.tables(tables)
        return [
            merge_axes(table, [self.groups[axis] for axis in axes])
            for axes, table in zip(tables, found, strict=True)
        ]


def merged(held: Any, layout: Layout, groups: Sequence[IntArray]) -> tuple[Any, Layout]:
    """Merge values of every attribute by public groups: what a right then holds, and its layout.

    Every record has one value in each attribute and every value one group, so a record lies in exactly one merged cell:
    one step in a cell is one step in the merged one. Groups are copied into memory that nobody else can write to.
    """
    if len(groups) != len(layout.shape) or layout.domain is None:
        raise MechanismError("groups: give one array for each attribute")
    owned = tuple(own_array(group) for group in groups)
    for group, size in zip(owned, layout.shape, strict=True):
        if group.shape != (size,) or not np.array_equal(np.unique(group), np.arange(int(group.max()) + 1)):
            raise MechanismError("groups: number the groups of an attribute's values from zero without gaps")
    names, sizes = layout.domain.names, [int(group.max()) + 1 for group in owned]
    domain = Domain([Ordinal(name, range(size)) for name, size in zip(names, sizes, strict=True)])
    coarse = Layout(domain.shape, None, 1, domain, None)
    if held is None:
        return None, coarse
    if isinstance(held, Held):
        return Held(MergedRecords(held.records, domain, owned)), coarse
    return merge_axes(held.reshape(layout.shape), owned).reshape(-1), coarse


def merge_axes(table: IntArray, groups: Sequence[IntArray]) -> IntArray:
    """Add up the cells of a table whose values share a group, axis by axis."""
    for axis, group in enumerate(groups):
        coarse = np.zeros((int(group.max()) + 1, *np.moveaxis(table, axis, 0).shape[1:]), dtype=np.int64)
        np.add.at(coarse, group, np.moveaxis(table, axis, 0))
        table = np.moveaxis(coarse, 0, axis)
    return np.ascontiguousarray(table)
