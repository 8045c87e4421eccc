"""Which tables or residuals to measure for some wanted tables, and what each may cost: from public sizes alone.

The mean squared error of the wanted tables' cells is Σ over residuals S of v_S ÷ precision_S, with
v_S = c_S · Σ over wanted B ⊇ S of Π over B∖S of n⁻² and c_S = Π over S of (1 − 1/n)
(`dphist.inference.tables.residuals`).

*Under ρ* every residual is measured by itself and costs c_S · precision_S ÷ 2 (`dphist.private.queries.tables`). The
least error has shares ∝ √(c_S v_S) (Xiao et al. 2023), in closed form.

*Under ε* noise is in L1, in which a residual costs more than its table; so tables are measured, by differences along
axes of two values (which cost nothing more and double the precision). Precision grows with the square of a share, and
a table speaks of all residuals inside it; the best shares are found by scaling each by a power of its gain until all
gain alike: a fixed number of sums and products.

Where values are few, larger tables that hold many wanted ones are better still, and the same sums say which. One record
moves one cell of every table that is asked, so under ε T tables have noise of scale T each, whatever their size. A
block of k columns of n values holds k(k − 1)/2 pairs: a pair read off it has √(n^(k−2)) times the noise of a pair asked
by itself, of which k(k − 1)/2 times as many would have to be asked. That is less up to six columns of two values, four
of three or four, and two of ten; and single columns come with it. Covering designs of blocks are those of PriView
(Qardaji, Yang and Li, 2014). Under ρ residuals by themselves are the best there is, and blocks gain nothing.

Where kinds of tables were announced with weights, the weighted mean of the logarithms of their errors is least, as for
dense cubes (`dphist.mechanisms.choosing.forecast`): the same sums, each kind's tables counted by its weight over its
error, which a few rounds settle.

Where ranges of an attribute will be asked (`dphist.mechanisms.wide.ranges`), contrasts of its tree are measured along
that axis in both currencies: a table with such an axis speaks only of residuals that have it too, the axis costs 1
where a residual costs 1 − 1/n, and intervals pick up their mean squares in place of a cell's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.arrays import FloatArray
from dphist.inference.tables.residuals import Axes, speaks, subsets
from dphist.mechanisms.wide.ranges import AxisPlan
from dphist.model.law import NoiseLaw

Kinds = Sequence[tuple[float, Sequence[Axes]]]
"""Kinds of tables that were announced: the weight of each, and its tables."""

# Rounds in which kinds that were announced with weights settle.
_SETTLING = 6
# Steps of the search under ε; the error is flat near its least.
_STEPS = 80
# A table that adds less than this part to what others know of each of its residuals is left out.
_NEGLIGIBLE = 0.01
# Noise sizes have 8 binary digits: what a platform rounds otherwise changes no share. Different sizes of Gaussian noise
# cost a table each, so with more than 64 of them they have 4.
_DIGITS, _FEWER = 8, 4
_MANY = 64
# Most cells of a block: of two values six columns are best, of three and four four of them.
_BLOCK = (8, 16, 32, 64, 128, 256)
# Of more wanted tables the search would take longer than counting them.
_MANY_WANTED = 3_000


@dataclass(frozen=True)
class ResidualPlan:
    """What to measure: tables by their axes (under ρ their residuals alone), each with its share.

    Args:
        tables: The axes of each.
        shares: Of the budget, together at most 1.
        differences: Along which of its axes each is asked by difference.
        precision: What is then known of every residual, where one question with the whole budget has variance 1.
    """

    tables: tuple[Axes, ...]
    shares: tuple[Fraction, ...]
    differences: tuple[Axes, ...]
    precision: Mapping[Axes, float]


def wanted_tables(shape: Sequence[int], tables: Sequence[Sequence[int]]) -> tuple[Axes, ...]:
    """The tables that need measuring: none inside another, without attributes of one value.

    Example:
        >>> wanted_tables((3, 2, 1), [(0,), (0, 1), (1, 2)])
        ((0, 1),)
    """
    cut = {tuple(sorted(axis for axis in set(axes) if shape[axis] > 1)) for axes in tables}
    inside = {smaller for axes in cut for smaller in subsets(axes) if smaller != axes}
    return tuple(sorted(cut - inside)) or ((),)


def plan_tables(
    shape: Sequence[int],
    wanted: Sequence[Axes],
    trees: Mapping[int, AxisPlan] | None = None,
    kinds: Kinds = (),
    *,
    gaussian: bool,
    by_cells: bool = False,
) -> ResidualPlan:
    """The best residuals (under ρ) or tables (under ε) to measure for tables that will be asked for.

    ``trees`` has the axes that are asked by contrasts. Every cell counts alike ``by_cells``, else every table; where
    kinds do not count alike that says nothing.
    """
    trees = trees or {}
    value = _values(shape, wanted, trees, by_cells=by_cells)
    residuals = sorted(value, key=lambda axes: (len(axes), axes))
    wants = np.array([value[axes] for axes in residuals])
    # Contrasts cannot be asked beside differences in one question: an axis of two values is asked as it is there.
    twos = [
        tuple(axis for axis in axes if shape[axis] == 2 and not (trees or gaussian)) for axes in residuals
    ]
    asked = [_Asked(shape, residuals, list(zip(residuals, twos, strict=True)), trees, alone=gaussian)]
    if not trees and not gaussian:
        ones = [each for each in asked[0].tables if len(each[0]) < 2]
        held = ([(axes, ()) for axes in each] for each in _coverings(shape, wanted))
        asked += [_Asked(shape, residuals, [*ones, *each], trees) for each in held]
    found = [(each, each.best(wants)) for each in asked]
    chosen, share = min(found, key=lambda pair: float((wants / pair[0].precision(pair[1])).sum()))
    if kinds:
        wants = _settled(
            shape, wanted, trees, kinds, residuals, lambda values: chosen.precision(chosen.best(values))
        )
        share = chosen.best(wants)
    kept = chosen.worth(share)
    tables = [chosen.tables[place] for place in np.flatnonzero(kept).tolist()]
    moved, digits = [1] * len(tables), _DIGITS
    if gaussian:
        moved = [math.prod(shape[a] * (shape[a] - 1) for a in axes if a not in trees) for axes, _ in tables]
        different = len(set(zip(moved, wants.tolist(), strict=True)))
        digits = _DIGITS if different <= _MANY else _FEWER
    shares = _rounded(share[kept], moved, digits)
    whole = np.zeros(share.size)
    whole[kept] = np.array(shares, dtype=np.float64)
    known = dict(zip(residuals, chosen.precision(whole).tolist(), strict=True))
    return ResidualPlan(tuple(axes for axes, _ in tables), shares, tuple(by for _, by in tables), known)


class _Asked:
    """Tables that could be asked together, each perhaps by differences, and what they say of residuals.

    ``alone`` only their own residual is asked, which costs a part of the table: that is how it goes under ρ, where
    precision grows with the share and not with its square.
    """

    def __init__(
        self,
        shape: Sequence[int],
        residuals: Sequence[Axes],
        tables: Sequence[tuple[Axes, Axes]],
        trees: Mapping[int, AxisPlan],
        *,
        alone: bool = False,
    ) -> None:
        number = {axes: place for place, axes in enumerate(residuals)}
        table, about, weight = [], [], []
        for place, (axes, chosen) in enumerate(tables):
            asked = {*chosen, *(axis for axis in axes if axis in trees)}
            for subset in (axes,) if alone else subsets(axes):
                if subset in number and asked <= set(subset):
                    table.append(place)
                    about.append(number[subset])
                    weight.append(speaks(shape, axes, chosen, subset))
                    if alone:
                        weight[-1] /= math.prod(1.0 - 1.0 / shape[axis] for axis in axes if axis not in trees)
        self.tables, self.residuals, self.alone = tables, len(residuals), alone
        self.table, self.about, self.weight = np.array(table), np.array(about), np.array(weight)

    def _says(self, share: FloatArray) -> FloatArray:
        """What every table says of each residual that it speaks of."""
        each = share[self.table]
        return np.asarray(self.weight * (each if self.alone else each**2))

    def precision(self, share: FloatArray) -> FloatArray:
        """Of every residual, in units of the noise that the whole budget has."""
        return np.asarray(
            np.bincount(self.about, self._says(share), minlength=self.residuals), dtype=np.float64
        )

    def best(self, wants: FloatArray) -> FloatArray:
        """The shares of least error, if residuals count by ``wants``."""
        if self.alone:
            root = np.sqrt(wants / self.weight)
            return np.asarray(root / root.sum(), dtype=np.float64)
        share: FloatArray = np.full(len(self.tables), 1.0 / len(self.tables))
        for _ in range(_STEPS):
            slope = self.weight * (wants / self.precision(share) ** 2)[self.about]
            gain = np.bincount(self.table, slope, minlength=share.size)
            share = np.asarray(share * np.sqrt(gain * share), dtype=np.float64)
            share /= share.sum()
        return share

    def worth(self, share: FloatArray) -> NDArray[np.bool_]:
        """Which add something: one after the other, the smallest shares first, is left out if others know enough."""
        says, whole = self._says(share), self.precision(share)
        rest, kept = whole.copy(), np.ones(share.size, dtype=bool)
        starts = np.searchsorted(self.table, np.arange(share.size + 1))
        for place in np.argsort(share, kind="stable"):
            here = slice(starts[place], starts[place + 1])
            after = rest[self.about[here]] - says[here]
            if (after >= (1.0 - _NEGLIGIBLE) * whole[self.about[here]]).all():
                rest[self.about[here]] = after
                kept[place] = False
        return kept


def pair_weights(kinds: Kinds, pairs: Sequence[Axes]) -> FloatArray:
    """How much each pair counts by the kinds of tables that hold it; together one, all alike without kinds."""
    held = np.zeros(len(pairs))
    for weight, tables in kinds:
        inside = [sum(set(pair) <= set(axes) for axes in tables) for pair in pairs]
        held += weight * np.array(inside) / max(1, sum(inside))
    return np.asarray(held / held.sum() if held.any() else np.full(len(pairs), 1.0 / max(1, len(pairs))))


def planned_variances(
    law: NoiseLaw,
    shape: Sequence[int],
    wanted: Sequence[Axes],
    tables: Sequence[Axes],
    kinds: Kinds = (),
    *,
    by_cells: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """The variance of a cell of some tables if all wanted ones were measured by the best plan.

    Beside it what of that comes from smaller residuals.
    """
    plan = plan_tables(shape, wanted, kinds=kinds, gaussian=law.gaussian, by_cells=by_cells)
    parts = np.zeros((2, len(tables)))
    for place, table in enumerate(tables):
        for subset in subsets(table):
            left = math.prod(1.0 - 1.0 / shape[axis] for axis in subset)
            others = math.prod(shape[axis] for axis in table if axis not in subset)
            parts[int(subset == table), place] += left / others**2 / plan.precision[subset]
    variances = float(law.variance) * parts
    return variances.sum(axis=0), variances[0]


def residual_error(law: NoiseLaw, shape: Sequence[int], tables: Sequence[Axes]) -> float:
    """The root mean squared error of cells of announced tables, all cells alike, if residuals are measured."""
    every = [tuple(sorted(axis for axis in axes if shape[axis] > 1)) for axes in tables]
    variances, _ = planned_variances(law, shape, wanted_tables(shape, every), every, by_cells=True)
    cells = np.array([math.prod(shape[axis] for axis in axes) for axes in every], dtype=np.float64)
    return math.sqrt(float(variances @ cells / cells.sum()))


def _values(
    shape: Sequence[int], wanted: Sequence[Axes], trees: Mapping[int, AxisPlan], *, by_cells: bool = False
) -> dict[Axes, float]:
    """How much the variance of every residual counts in the mean squared error of wanted tables, or of their cells."""
    shares = {
        axis: trees[axis].shares if axis in trees else float(n) ** -2 for axis, n in enumerate(shape) if n
    }
    squares = {
        axis: trees[axis].squares if axis in trees else 1.0 - 1.0 / n for axis, n in enumerate(shape) if n
    }
    value: dict[Axes, float] = {}
    for axes in wanted:
        often = float(math.prod(shape[axis] for axis in axes)) if by_cells else 1.0
        for subset in subsets(axes):
            others = math.prod(shares[axis] for axis in axes if axis not in subset)
            left = math.prod(squares[axis] for axis in subset)
            value[subset] = value.get(subset, 0.0) + often * left * others
    return value


def _settled(
    shape: Sequence[int],
    wanted: Sequence[Axes],
    trees: Mapping[int, AxisPlan],
    kinds: Kinds,
    residuals: Sequence[Axes],
    precise: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """How much every residual counts if kinds have weights: Σ weight · log error has the slope of Σ weight ÷ error."""
    every = [
        (weight, [tuple(sorted(axis for axis in set(axes) if shape[axis] > 1)) for axes in tables])
        for weight, tables in kinds
    ]
    said = {axes for _, tables in every for axes in tables}
    if rest := [axes for axes in wanted if axes not in said]:
        # What has to be covered and nobody named counts as little as anything that was named.
        every.append((min(weight for weight, _ in every), rest))
    parts = []
    for _, tables in every:
        value = _values(shape, tables, trees)
        parts.append(np.array([value.get(axes, 0.0) for axes in residuals]) / len(tables))
    each, weights = np.stack(parts), np.array([weight for weight, _ in every])
    counted = weights / each.sum(axis=1)
    for _ in range(_SETTLING):
        counted = weights / (each @ (1.0 / precise(counted @ each)))
    return np.asarray(counted @ each / weights.sum(), dtype=np.float64)


def _rounded(best: FloatArray, moved: Sequence[int], digits: int) -> tuple[Fraction, ...]:
    """Shares near the best ones, together at most 1, whose noise (the move over the share) has few binary digits.

    Rounding takes a little from each; what is left over is handed to all and rounded again, as long as it fits.
    """
    share = best / best.sum()
    shares = [Fraction(move) / _up(move / each, digits) for move, each in zip(moved, share, strict=True)]
    for _ in range(3):
        share = share / float(sum(shares))
        more = [Fraction(move) / _up(move / each, digits) for move, each in zip(moved, share, strict=True)]
        if sum(more) > 1:
            break
        shares = more
    return tuple(shares)


def _up(size: float, digits: int) -> Fraction:
    """The next number up of ``digits`` binary digits."""
    mantissa, exponent = math.frexp(size)
    return Fraction(math.ceil(mantissa * (1 << digits))) * Fraction(2) ** (exponent - digits)


def _coverings(shape: Sequence[int], wanted: Sequence[Axes]) -> Iterator[tuple[Axes, ...]]:
    """Give some ways to hold all wanted tables in fewer, larger ones; none where there is nothing to gain."""
    if len(wanted) > _MANY_WANTED:
        return
    before = len(wanted)
    for most in _BLOCK:
        blocks = covering(shape, wanted, most)
        if len(blocks) < before:
            before = len(blocks)
            yield blocks


def covering(shape: Sequence[int], wanted: Sequence[Axes], most: int) -> tuple[Axes, ...]:
    """Hold all wanted tables in blocks of at most ``most`` cells, or in themselves if they have more.

    A block starts with the largest table that is left, and takes the attribute that brings most others with it for its
    size, again and again.
    """
    order = max((len(axes) for axes in wanted), default=0)
    left = dict.fromkeys(sorted(wanted, key=lambda axes: (-math.prod(shape[a] for a in axes), axes)))
    small = [axis for axis, size in enumerate(shape) if 1 < size <= most // 2]
    found = []
    while left:
        block = next(iter(left))
        del left[block]
        while len(block) > 1:
            room = most / math.prod(shape[axis] for axis in block)
            best, brings = 0.0, list[Axes]()
            for axis in small:
                if shape[axis] > room or axis in block:
                    continue
                new = [
                    axes
                    for size in range(order)
                    for part in combinations(block, size)
                    if (axes := tuple(sorted((*part, axis)))) in left
                ]
                # Rounded, so that what a platform rounds otherwise changes no block.
                gain = round(len(new) / math.log(shape[axis]), 9)
                if gain > best:
                    best, brings, larger = gain, new, tuple(sorted((*block, axis)))
            if not brings:
                break
            block = larger
            for axes in brings:
                del left[axes]
        found.append(block)
    return tuple(found)
