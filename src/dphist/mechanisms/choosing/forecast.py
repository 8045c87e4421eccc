"""How far off each candidate is expected to be on what will be asked: closed forms of public sizes and a noisy total.

Three families can measure a cube of several attributes: every cell by itself, a tree of boxes, and tables of few
attributes with the cube among them. All are weighted least squares, so the expected squared error of any box is known
before anything is measured: for tables it is a sum over residuals (`dphist.inference.tables.residuals`), for trees one
over levels (`dphist.mechanisms.trees.shares`). Shares are searched for as if noise were continuous; what they leave is
reckoned with the whole numbers that are drawn, which at a large budget are mostly 0. What is not there need not be
measured: with a noisy total at hand, a residual of few records is reckoned with the smaller of its noise and of what it
can hold, as inference shrinks it.

Nothing here asks anything, and no count is read but a noisy total that was paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.inference.tables.residuals import Axes, subsets
from dphist.kernels.trees.shares import best_shares
from dphist.mechanisms.choosing.asked import Asked
from dphist.mechanisms.trees.planning import CHANCES, DENSITIES, FIRST_GUESS, SMOOTHER, WASTE
from dphist.mechanisms.trees.shares import halvings, level_gains, volumes
from dphist.model.law import NoiseLaw

# Tables of more than 3 attributes are read off the cube unless they were announced, and at most 700 are looked at.
_HIGHEST, _MOST_TABLES = 3, 700
# Tables times cells that are counted and raked at most: about a second.
_MOST_WORK = 4e8
# Shares are whole thousandths, and a table with fewer than 4 of them is left out: what a platform rounds otherwise must
# not change a share.
_GRID, _LEAST = 1000, 4
# A cube that questions may need has at least this share: intervals of what only the cube tells stand on it, and are as
# much wider as it is less. On drawn cubes 100 to 125 (`dphist_bench.data.drawn`, two draws) those of cells and boxes
# have half the width that a share of 0.05 gives, and no kind of question is off by more than 1.01 of what it was; with
# 0.3 they have a third, and boxes are off by 1.06.
_CUBE = 0.15
# How uneven a residual is taken to be, as a part of its mean.
_UNEVEN = SMOOTHER * FIRST_GUESS
# Steps of the search; the error is flat near its least: where it was tried, 80 came within a thousandth of it.
_STEPS = 80


def mixed(precision: FloatArray, held: FloatArray, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The squared error of what is measured with a precision and shrunk, and how fast that falls with the precision.

    ``held`` has a row for each thing that may be so, ``chances`` how likely each is.

    The better mix of a measurement and of nothing has error h / (1 + h·precision), where h is what is there; a part of
    the noise stays wherever the same mix serves all of them.
    """
    parts = np.append((1.0 - WASTE) * chances, WASTE)[:, None]
    one = np.vstack([held, chances @ held])
    mix = one / (1.0 + one * precision[..., None, :])
    return (parts * mix).sum(axis=-2), (parts * mix**2).sum(axis=-2)


@dataclass(frozen=True, eq=False)
class Sharing:
    """The problem of sharing a budget among tables: errors of each kind, and the shares with the least product."""

    speaks: FloatArray
    adds: FloatArray
    weights: FloatArray
    held: FloatArray
    chances: FloatArray
    power: int
    least: float
    """What the last table, the cube, must have."""
    cells: FloatArray
    orders: FloatArray
    """How many cells and attributes each residual has."""

    def precision(self, share: FloatArray) -> FloatArray:
        """How precisely every residual is known, for any number of rows of shares."""
        return np.asarray((self.speaks * share[..., None, :] ** self.power).sum(axis=-1), dtype=np.float64)

    def _each(self, share: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The squared error of every residual, and how fast it falls with its precision."""
        precision = self.precision(share)
        if not self.chances.size:
            precision = np.maximum(precision, 1e-100)
            return 1.0 / precision, 1.0 / precision**2
        return mixed(precision, self.held, self.chances)

    def errors(self, share: FloatArray) -> FloatArray:
        """The mean squared error of every kind of question."""
        return np.asarray(self._each(share)[0] @ self.adds.T, dtype=np.float64)

    def best(self, orders: Sequence[int], *, alone: bool = True) -> FloatArray:
        """Shares are scaled by a power of their gain until all gain alike; starts favour tables of every order.

        The last table may have it all by default.
        """
        order = np.array(orders)
        favoured = order == np.unique(order)[:, None]
        share = favoured / favoured.sum(axis=1, keepdims=True) + 0.5 / order.size
        share /= share.sum(axis=1, keepdims=True)
        for _ in range(_STEPS):
            error, slope = self._each(share)
            pull = (self.weights / np.maximum(error @ self.adds.T, 1e-300)) @ self.adds * slope
            gain = (pull @ self.speaks) * share ** (self.power - 1)
            share *= np.sqrt(gain / np.maximum(gain.max(axis=1, keepdims=True), 1e-300))
            share /= share.sum(axis=1, keepdims=True)
            low = share[:, -1] < self.least
            others = np.maximum(share[low, :-1].sum(axis=1, keepdims=True), 1e-300)
            share[low, :-1] *= (1.0 - self.least) / others
            share[low, -1] = self.least
        if alone:
            # Sharing may win nothing, which steps from the inside do not find.
            share = np.vstack([share, np.arange(order.size) == order.size - 1])
        scores = np.log(np.maximum(self.errors(share), 1e-300)) @ self.weights
        return np.asarray(share[int(np.argmin(scores))])


@dataclass(frozen=True, eq=False)
class Plan:
    """Tables by the attributes they keep and the share of each, with what they are expected to be off by and to know.

    Each residual that a question needs has an entry: how many cells and attributes it has, what it adds to every kind
    of question, and how precisely it is known. The last may stand for all that only the cube tells.
    """

    tables: tuple[Axes, ...]
    shares: tuple[Fraction, ...]
    score: float
    squares: FloatArray
    """The mean squared error of every kind of question."""
    cells: FloatArray
    orders: FloatArray
    adds: FloatArray
    precision: FloatArray


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Expected errors of candidates for one shape, one law of noise, some kinds of questions and a number of records.

    ``records`` is a noisy total, or None where nothing is known: then all that is measured is taken to be there. A
    score is the geometric mean of the errors of all kinds.
    """

    shape: tuple[int, ...]
    kinds: tuple[Asked, ...]
    law: NoiseLaw
    records: float | None = None

    @cached_property
    def _weights(self) -> FloatArray:
        return np.array([each.weight for each in self.kinds])

    def scores(self, squares: FloatArray) -> FloatArray:
        """Scores of rows of squared errors, a column a kind of question."""
        logs = 0.5 * np.log(np.maximum(squares, 1e-24))
        return np.asarray(np.exp(logs @ self._weights / self._weights.sum()))

    def cells(self) -> float:
        """The score of every cell by itself, as it is: the noise of as many draws as a box has cells."""
        sizes = [float((each.times * np.prod(each.high - each.low, axis=1)).sum()) for each in self.kinds]
        return float(self.scores(np.array(sizes) * self.law.drawn_variance))

    def tree(self) -> float:
        """The score of a tree of boxes with the best shares for all kinds together, as many times as they count."""
        sides = halvings(self.shape)
        sizes = volumes(self.shape, sides)
        weights = [level_gains(self.shape, sides, *each.some) for each in self.kinds]
        together = sum(
            (w / w.sum() * part for w, part in zip(weights, self._weights, strict=True)), np.zeros(len(sides))
        )
        nothing, law = np.zeros(0), (float(self.law.scale), 1.0, self.law.exponent)
        _, shares = best_shares(
            *(together, sizes, nothing, 1.0, 0, law[0], nothing, nothing, *law[1:]),
        )
        # A box of a level is known from it and from all finer ones; its total is as uneven as a table's cell.
        known = np.cumsum((self._precise(shares) * sizes)[::-1])[::-1] / float(self.law.variance)
        error = 1.0 / known
        if self.records is not None:
            held = np.stack([self._held(math.prod(self.shape) / size) / size for size in sizes], axis=1)
            error = mixed(known, held, self._chances)[0]
        return float(self.scores(np.array([float(each @ error) for each in weights])))

    def _precise(self, shares: FloatArray) -> FloatArray:
        """How precise what is drawn for every share is, beside continuous noise of the whole budget."""
        whole = float(self.law.variance)
        drawn = [self.law.of_share(float(each)).drawn_variance if each > 0.0 else math.inf for each in shares]
        return whole / np.maximum(drawn, 1e-12)

    @cached_property
    def _chances(self) -> FloatArray:
        return np.zeros(0) if self.records is None else np.array(CHANCES)

    def _held(self, cells: float) -> FloatArray:
        """Possible squares of what one of ``cells`` cells departs from what smaller tables say of it."""
        mean = np.array(DENSITIES) * (self.records or 0.0) / cells
        return np.asarray((_UNEVEN * mean) ** 2 + mean, dtype=np.float64)

    # ---- tables of few attributes ------------------------------------------------------------------------------

    def tables(self) -> Plan:
        """The best tables and shares: a search from several starts, each of sums and products alone."""
        some = self._tables_to_try()
        needed = {subset for axes in some if len(axes) < len(self.shape) for subset in subsets(axes)} | {()}
        problem = self._sharing(some, sorted(needed, key=lambda axes: (len(axes), axes)))
        orders = [len(axes) for axes in some]
        counts = self._counts(problem, orders)
        if not ((problem.speaks > 0.0) & (counts > 0)).any(axis=1).all():
            # With few records it pays to leave out what noise would hide; what is asked has an interval all the same.
            problem = replace(problem, least=_CUBE)
            counts = self._counts(problem, orders)
        return self._plan(some, counts, problem)

    def singles(self) -> Plan:
        """Tables of one attribute that share everything: what their noise alone is."""
        some: list[Axes] = [(axis,) for axis, size in enumerate(self.shape) if size > 1]
        problem = replace(self._sharing(some, [(), *some]), least=0.0)
        shares = problem.best([1] * len(some), alone=False)
        # Noise of a table counts by how even the others are: as if they were, and as if one value held nearly all.
        uneven = np.array([float(self.shape[axis]) for (axis,) in some]) ** (1.0 / 3.0)
        shares = (shares + uneven / uneven.sum()) / 2.0
        counts = np.maximum(np.floor(shares * _GRID), 1.0).astype(np.int64)
        counts[int(np.argmax(counts))] += _GRID - int(counts.sum())
        return self._plan(some, counts, problem)

    def _cells_of(self, tables: Sequence[Axes]) -> FloatArray:
        return np.array([float(math.prod(self.shape[axis] for axis in axes)) for axes in tables])

    def _sharing(self, some: list[Axes], about: list[Axes]) -> Sharing:
        """The problem of sharing a budget among tables that tell residuals."""
        cells, inside = self._cells_of(some), self._cells_of(about)
        # How precisely a table that spends everything knows a residual inside it.
        holds = np.array([[set(axes) <= set(table) for table in some] for axes in about])
        speaks = np.where(holds, inside[:, None], 0.0) / (cells * float(self.law.variance))
        adds, rest = self._needs(about, inside)
        orders = np.array([float(len(axes)) for axes in about])
        if some[-1] == tuple(range(len(self.shape))):
            # Residuals that only the cube holds are one more: `rest` of its cells' variance is left to them.
            only = np.zeros((1, len(some)))
            only[0, -1] = 1.0 / float(self.law.variance)
            speaks, inside = np.vstack([speaks, only]), np.append(inside, cells[-1])
            adds = np.hstack([adds, rest[:, None]])
            orders = np.append(orders, orders.max() + 1.0)
        # What no question needs has no say.
        used = adds.max(axis=0) > 0.0
        inside, least = inside[used], _CUBE if rest.max() > 0.0 else 0.0
        return Sharing(
            *(speaks[used], adds[:, used], self._weights, *self._priors(inside), self.law.exponent, least),
            *(inside, orders[used]),
        )

    def _plan(self, some: list[Axes], counts: IntArray, problem: Sharing) -> Plan:
        """Tables with their shares, by the whole numbers that are drawn."""
        kept, parts = np.flatnonzero(counts), counts / _GRID
        # The same problem with the precision that whole numbers have at these shares.
        plain = np.maximum(parts**self.law.exponent, 1e-100)
        drawn = replace(problem, speaks=problem.speaks * (self._precise(parts) / plain))
        squares = drawn.errors(parts)
        return Plan(
            tuple(some[place] for place in kept),
            tuple(Fraction(int(counts[place]), _GRID) for place in kept),
            *(float(self.scores(squares)), squares),
            *(problem.cells, problem.orders, problem.adds, drawn.precision(parts)),
        )

    def beyond(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What tables of one attribute do not hold: cells and orders of residuals, and what each adds to every kind."""
        every = range(len(self.shape))
        about = [axes for order in range(_HIGHEST + 1) for axes in combinations(every, order)]
        inside = self._cells_of(about)
        adds, rest = self._needs(about, inside)
        orders = np.array([float(len(axes)) for axes in about])
        larger = orders > 1.0
        return (
            np.append(inside[larger], float(math.prod(self.shape))),
            np.append(orders[larger], _HIGHEST + 1.0),
            np.hstack([adds[:, larger], rest[:, None]]),
        )

    def moved(self, plan: Plan, held: FloatArray) -> FloatArray:
        """Squared errors of tables that are moved towards smaller ones, by the mean squares that larger residuals hold.

        ``held`` has a row for each thing that may be so, and so has the answer; a column is a kind of question.
        """
        low = mixed(plan.precision, *self._priors(plan.cells))[0]
        larger = held / (1.0 + held * plan.precision)
        return np.asarray(np.where(plan.orders > 1.0, larger, low) @ plan.adds.T)

    def _counts(self, problem: Sharing, orders: Sequence[int]) -> IntArray:
        """The best shares in whole parts of `_GRID`, without those that are next to nothing."""
        shares = problem.best(orders)
        counts = np.floor(shares * _GRID).astype(np.int64)
        # A table that alone says something stays, where nothing is known of records.
        says = (problem.speaks > 0.0) & (shares * _GRID >= _LEAST)
        alone = ((problem.speaks > 0.0) & (says.sum(axis=1) == 0)[:, None]).any(axis=0)
        counts[(counts < _LEAST) & (~alone | (self.records is not None))] = 0
        counts[int(np.argmax(counts))] += _GRID - int(counts.sum())
        return counts

    def _tables_to_try(self) -> list[Axes]:
        """Tables of up to three attributes, those that were announced, and the cube, which comes last."""
        every = tuple(range(len(self.shape)))
        some = {
            tuple(int(axis) for axis in np.flatnonzero(row))
            for each in self.kinds
            if each.name == "tables"
            for row in np.unique(each.high < np.array(self.shape), axis=0)
        }
        room = min(_MOST_TABLES, int(_MOST_WORK / math.prod(self.shape) / 3))
        for order in range(1, min(_HIGHEST, len(every) - 1) + 1):
            if order == 1 or sum(math.comb(len(every), k) for k in range(1, order + 1)) <= room:
                some |= set(combinations(every, order))
        return sorted((some | {every}) - {()}, key=lambda axes: (len(axes), axes))

    def _needs(self, about: list[Axes], inside: FloatArray) -> tuple[FloatArray, FloatArray]:
        """How the variances of residuals add up to the squared error of each kind, and what only the cube can tell.

        On an axis of n values an interval of k has mean k/n, and k − k²/n is what is left of its squares.
        """
        sizes, whole = np.array(self.shape, dtype=np.float64), float(math.prod(self.shape))
        adds, rest = np.zeros((len(self.kinds), len(about))), np.zeros(len(self.kinds))
        for row, each in enumerate(self.kinds):
            length = (each.high - each.low).astype(np.float64)
            left, mean = np.maximum(length - length**2 / sizes, 0.0), (length / sizes) ** 2
            for place, axes in enumerate(about):
                others = [axis for axis in range(sizes.size) if axis not in axes]
                adds[row, place] = (
                    each.times * np.prod(left[:, list(axes)], axis=1) * np.prod(mean[:, others], axis=1)
                ).sum()
            volume = float((each.times * np.prod(length, axis=1)).sum())
            rest[row] = volume - float((adds[row] * whole / inside).sum())
            if rest[row] < 1e-9 * volume:
                rest[row] = 0.0
        return adds, rest

    def _priors(self, inside: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What a cell of every residual may hold, in squares, and how likely; nothing if that is not known."""
        if self.records is None:
            return np.zeros((0, inside.size)), np.zeros(0)
        return np.stack([self._held(float(cells)) for cells in inside], axis=1), self._chances
