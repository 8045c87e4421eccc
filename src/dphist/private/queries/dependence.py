"""How far the most dependent pairs of attributes are from independence: one number for all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dphist.errors import MechanismError
from dphist.model.coded import Axes
from dphist.private.held import check_axes, count_tables, table_shapes
from dphist.private.questions import IntArray, Layout, proven


@proven
@dataclass(frozen=True)
class TopDependence:
    """How far the most dependent pairs of attributes are from independence: Σ |x − x_a x_b ÷ n| of each, added up.

    One step adds a record at (i, j). Write d = x − x_a x_b ÷ n and Q = (n − x_i)(n − x_j) ÷ (n(n + 1)), with counts
    from before. Then d grows by Q in the cell (i, j); in the rest of row i and in the rest of column j it falls by Q in
    total; elsewhere it grows by Q in total. So Σ|d| moves by at most 4Q < 4, and taking a record away is the same
    backwards (from one record to none, 0 to 0). Rounding down moves a number that moves by less than 4 by at most 4.

    The sum of the k largest of these is the largest of all sums of k of them; each of those moves by at most 4k, so
    their largest does, whichever pairs it is of: the scale is 4k, the variance 16k². Which pairs they are is not said.

    That x_i and x_j lie between 0 and n, and Q with them between 0 and 1, is so of counts. Of sums, which may be
    negative and add up to nearly nothing, it is not: there one step moves this any distance, and the gate refuses it.

    All is computed in whole numbers of any size, Σ |n x − x_a x_b| divided by n at the end, so nothing overflows.

    Where few pairs depend on each other this shows more than all pairs do at the same price: a mean over a tenth of the
    pairs is moved by one record as far as a mean over all of them.

    Args:
        tables: The pairs, each by its two axes, ascending.
        top: How many of them are added up.
    """

    tables: tuple[Axes, ...]
    top: int
    of_counts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_axes(self.tables)
        if any(len(axes) != 2 for axes in self.tables):
            raise MechanismError("tables: dependence is asked of pairs of attributes")
        if not 1 <= self.top <= len(self.tables):
            raise MechanismError("top: give a number of pairs, at least one and not more than there are")

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Count every pair, compare it with the product of its margins, and add up the largest distances."""
        found = sorted(_apart(counts, layout, self.tables), reverse=True)
        return _cut(sum(found[: self.top]))

    def scales(self, layout: Layout) -> Fraction:
        """Four for each pair that is added up; tables that are none are refused before they are paid for."""
        table_shapes(layout, self.tables)
        return Fraction(4 * self.top)

    def variances(self, layout: Layout) -> Fraction:
        """The same, squared: there is one answer."""
        return self.scales(layout) ** 2


def _cut(answer: int) -> IntArray:
    """One answer that 64 bits hold with its noise, whatever the data: cutting moves it by no more than it moved."""
    return np.array([min(max(answer, -(2**61)), 2**61)], dtype=np.int64)


def _apart(counts: IntArray, layout: Layout, tables: tuple[Axes, ...]) -> list[int]:
    """Of every pair Σ |x − x_a x_b ÷ n|, rounded down; nothing where there are no records."""
    table_shapes(layout, tables)
    found = []
    for table in count_tables(counts, layout, tables):
        total = sum(int(row) for row in table.sum(axis=1))
        # Σ |n x − x_a x_b| is at most 2n²: the same number by machine words where those hold it.
        exact = table if total < 1 << 30 else table.astype(object)
        apart = total * exact - np.multiply.outer(exact.sum(axis=1), exact.sum(axis=0))
        found.append(int(np.abs(apart).sum()) // total if total else 0)
    return found
