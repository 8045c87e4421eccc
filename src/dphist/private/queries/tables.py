"""Tables of a few attributes: what is asked of records whose cells nobody can write out.

As they are, or by what they say beyond smaller ones, and by contrasts of a tree where ranges are asked; and how far
pairs of attributes are from independence.

All tables of one question are counted in one pass over the records. Every table has a share of the question's budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dphist.errors import MechanismError
from dphist.model.coded import Axes
from dphist.model.contrasts import Contrasts, contrasts_of
from dphist.private.held import LARGEST_SUM, check_axes, count_tables, table_shapes
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


@proven
@dataclass(frozen=True)
class RangedTables:
    """Some tables, asked along some axes by the contrasts of a tree over their values (`dphist.model.contrasts`).

    Along an axis with a tree a step in one value moves only contrasts of nodes that contain it: at each depth at most
    one, by r or by l, so by at most the *reach* M of that depth. Depth d has a share w_d, Σ w_d ≤ 1. Scales of
    M ÷ w_d keep Σ |Δ| ÷ scale ≤ Σ w_d ≤ 1, and variances of M² ÷ w_d keep Σ Δ² ÷ variance ≤ Σ w_d ≤ 1. Along any
    other axis of n values either the values themselves are asked (one moves, by one: scale and variance 1), or, if
    ``centred``, the *residual* n·x less its sum, (nI − J)x with J all ones. A step moves its own entry by n − 1 and the
    n − 1 others by −1: in L1 by 2(n − 1), and in squared L2 by (n − 1)² + (n − 1) = n(n − 1). These are its scale and
    its variance.

    An answer of a table is the product of such maps, so it moves by the product of moves; a sum of products over all
    answers is the product of sums over the axes. With scales (variances) that are products over the axes, divided by
    the table's share, every table keeps Σ |Δ| ÷ scale (Σ Δ² ÷ variance) at its share at most, and all together at
    Σ shares ≤ 1. Counts are cut at a public ceiling first, so that nothing overflows: min(x, c) moves by at most one
    when x does.

    A table of residuals alone costs, in its own units (answers divided by Π n), Π(1 − 1/n) ÷ 2v for Gaussian noise of
    variance v a cell: what a residual costs by the literature (c_S; Xiao et al. 2023), here with independent noise on
    integers. Noise on the table itself, centred afterwards, would cost 1 ÷ 2v.

    Args:
        tables: The axes of each, ascending.
        shares: Of the question's budget, one a table, above zero; together at most one.
        trees: The axes that are asked by contrasts wherever a table has them, each with the shares of its depths.
        centred: Whether other axes are asked as residuals.
    """

    tables: tuple[Axes, ...]
    shares: tuple[Fraction, ...]
    trees: tuple[tuple[int, tuple[Fraction, ...]], ...] = ()
    centred: bool = False

    def __post_init__(self) -> None:
        check_axes(self.tables)
        check_shares(self.shares, len(self.tables))
        if len({axis for axis, _ in self.trees}) != len(self.trees):
            raise MechanismError("trees: name every axis once")
        for _, weights in self.trees:
            check_shares(weights, len(weights))

    @property
    def moves(self) -> Moves:
        """Contrasts have weights of both signs."""
        return "any"

    def _trees(self, layout: Layout) -> dict[int, tuple[Contrasts, tuple[Fraction, ...]]]:
        found = {}
        for axis, weights in self.trees:
            if layout.domain is None or not 0 <= axis < len(layout.shape) or layout.shape[axis] < 2:
                raise MechanismError("trees: each must be of an axis of the domain with two values or more")
            tree = contrasts_of(layout.domain.attributes[axis])
            if tree.size != layout.shape[axis] or len(tree.reach) != len(weights):
                raise MechanismError("trees: give a share for every depth of the attribute's tree")
            found[axis] = (tree, weights)
        return found

    def answer(self, counts: IntArray, layout: Layout) -> IntArray:
        """Count every table, and take contrasts and residuals along its axes, in integers."""
        shapes, trees = table_shapes(layout, self.tables), self._trees(layout)
        answers = []
        for axes, shape, table in zip(
            self.tables, shapes, count_tables(counts, layout, self.tables), strict=True
        ):
            # |r·left − l·right| ≤ l·r·c, and |n·x − sum| ≤ 2n·c, for counts of at most c.
            grows = math.prod(
                int((trees[axis][0].left * trees[axis][0].right).max()) if axis in trees else 2 * size
                for axis, size in zip(axes, shape, strict=True)
            )
            found = np.minimum(table, LARGEST_SUM // max(grows, 1))
            for place, (axis, size) in enumerate(zip(axes, shape, strict=True)):
                if axis in trees:
                    found = trees[axis][0].of(found, place)
                elif self.centred:
                    found = size * found - found.sum(axis=place, keepdims=True)
            answers.append(np.asarray(found, dtype=np.int64).reshape(-1))
        return np.concatenate(answers)

    def scales(self, layout: Layout) -> Scales:
        """The product of the axes' scales over each table's share."""
        return self._sizes(layout, 1)

    def variances(self, layout: Layout) -> Scales:
        """The product of the axes' variances over each table's share."""
        return self._sizes(layout, 2)

    def _sizes(self, layout: Layout, power: int) -> Scales:
        shapes, trees = table_shapes(layout, self.tables), self._trees(layout)
        known: dict[Fraction, int] = {}
        index = []
        for axes, shape, share in zip(self.tables, shapes, self.shares, strict=True):
            values, place = [1 / share], np.zeros((), dtype=np.intp)
            for axis, size in zip(axes, shape, strict=True):
                if axis in trees:
                    tree, weights = trees[axis]
                    each = [
                        Fraction(reach) ** power / weight
                        for reach, weight in zip(tree.reach, weights, strict=True)
                    ]
                    along = tree.depth
                else:
                    if self.centred and size < 2:
                        raise MechanismError("tables: an attribute of one value has no residual")
                    moved = (size * (size - 1) if power == 2 else 2 * (size - 1)) if self.centred else 1
                    each, along = [Fraction(moved)], np.zeros(size, dtype=np.int64)
                values = [value * more for value in values for more in each]
                place = place[..., None] * len(each) + along.astype(np.intp)
            numbers = np.array([known.setdefault(value, len(known)) for value in values], dtype=np.intp)
            index.append(numbers[place.reshape(-1)])
        return Scales(tuple(known), np.concatenate(index))


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
