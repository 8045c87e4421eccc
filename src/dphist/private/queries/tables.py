"""Tables of a few attributes: what is asked of records whose cells nobody can write out.

All tables of one question are counted in one pass over the records. Every table has a share of the question's budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.errors import MechanismError
from dphist.model.coded import Axes
from dphist.private.held import check_axes, count_tables, table_shapes
from dphist.private.questions import IntArray, Layout, Moves, Scales, proven


@proven
@dataclass(frozen=True)
class TableTotals:
    """The cells of some tables, one table after the other; along ``differences`` the first value less the second.

    A table's cells are disjoint, so one step moves one cell of each table, by one. Along an axis of two values the
    difference of the two stands for both: still every cell counts in exactly one answer, with the weight 1 or −1. So
    one step moves exactly one answer of each table, by at most one. With noise of scale 1 ÷ share for each table
    Σ |Δ| ÷ scale = Σ shares ≤ 1, and with the variance 1 ÷ share Σ Δ² ÷ variance = Σ shares ≤ 1.

    Without differences all weights are zero or one, so a person's rows never cancel in an answer.

    Args:
        tables: The axes that each table keeps, ascending.
        shares: Of the question's budget, one a table, above zero; together at most one.
        differences: For each table those of its axes, of two values, that are asked by difference; none if left out.
    """

    tables: tuple[Axes, ...]
    shares: tuple[Fraction, ...]
    differences: tuple[Axes, ...] = ()

    def __post_init__(self) -> None:
        check_axes(self.tables)
        check_shares(self.shares, len(self.tables))
        if self.differences:
            if len(self.differences) != len(self.tables):
                raise MechanismError("differences: give the axes of each table, or none at all")
            for axes, chosen in zip(self.tables, self.differences, strict=True):
                if not set(chosen) <= set(axes) or len(set(chosen)) != len(chosen):
                    raise MechanismError("differences: must be axes of their table")

    @property
    def moves(self) -> Moves:
        """Whether a person's cells meet with weights of one sign."""
        return "any" if any(self.differences) else "nonnegative"

    def _chosen(self) -> tuple[Axes, ...]:
        return self.differences or ((),) * len(self.tables)

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Count every table, and take the differences."""
        table_shapes(layout, self.tables)
        answers = []
        for axes, chosen, table in zip(
            self.tables, self._chosen(), count_tables(counts, layout, self.tables), strict=True
        ):
            for axis in chosen:
                one, other = np.split(table, 2, axis=axes.index(axis))
                table = one - other
            answers.append(table.reshape(-1))
        return np.concatenate(answers)

    def scales(self, layout: Layout) -> Scales:
        """One over each table's share."""
        sizes = []
        for shape, axes, chosen in zip(
            table_shapes(layout, self.tables), self.tables, self._chosen(), strict=True
        ):
            if any(layout.shape[axis] != 2 for axis in chosen):
                raise MechanismError("differences: only along axes of two values")
            sizes.append(math.prod(shape) >> sum(axis in chosen for axis in axes))
        return each_table([1 / share for share in self.shares], sizes)

    def variances(self, layout: Layout) -> Scales:
        """One over each table's share, again: the one answer that moves, moves by one."""
        return self.scales(layout)


def check_shares(shares: Sequence[Fraction], tables: int) -> None:
    """Insist on a share for each table, of which all together are at most the whole."""
    if len(shares) != tables or any(not isinstance(share, Fraction) or share <= 0 for share in shares):
        raise MechanismError("shares: give each table a fraction above zero")
    if sum(shares) > 1:
        raise MechanismError("shares: together they must not be above 1")


def each_table(values: Sequence[Fraction], sizes: Sequence[int]) -> Scales:
    """One value for all answers of a table; tables with equal ones share it."""
    known: dict[Fraction, int] = {}
    places = [known.setdefault(value, len(known)) for value in values]
    return Scales(tuple(known), np.repeat(np.array(places, dtype=np.intp), sizes))
