"""How far a shrunk cube may be off: what is left to doubt once tables were moved towards what smaller ones suggest.

Least squares over tables (`dphist.inference.tables.residuals`) knows its noise exactly, and where only the cube itself
says anything that noise is large. What is published is better: `dphist.inference.tables.posterior` keeps of a departure
only what noise does not explain. So the error of a published sum over a box has two parts.

**Smaller tables.** Residuals of few attributes are published about as least squares has them: their variances add up
box by box in closed form, and are exact.

**Departures beyond them.** Every block of cells, on every level from coarse to fine, has a posterior variance under the
mixture of departures that the cells themselves chose. A box takes of each block at most the part w that its sides
allow, so it has w² of its variance; and of what it takes only the part that smaller tables do not hold, which for a
product of intervals with shares f is 1 − Σ over small S of Π over S of (1 − f) · Π over the others of f.

Both hold if the mixture is right, which the transcript can check: with l least squares' sum, of noise variance V_LS,
p the published one and V what is said above, E(l − p)² = V_LS − 2·cov(l, p) + E(p − truth)², and cov(l, p) is V
(the slope of a posterior mean is its variance over the noise's). So the mean of (l − p)² − V_LS + 2V over many boxes
is unbiased for the squared error of p. It is as noisy as least squares is; how many times V the error is, is therefore
an average over a prior, each multiple weighed by how well it explains that mean for boxes of every size. Nothing here
reads a count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.measured import MeasuredTables
from dphist.inference.tables.residuals import Axes
from dphist.kernels.summed_area import running_sums, sums_between
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How many times the variance that the mixture says an error may have, how likely at first, and the least.
_TIMES = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
_LIKELY = np.array([0.05, 0.25, 0.25, 0.20, 0.15, 0.07, 0.03])
# Tables of which only the cube speaks have few cells with many records: they were further off on made-up cubes.
_LIKELY_TABLE = np.array([0.02, 0.10, 0.15, 0.20, 0.23, 0.17, 0.13])
_LEAST = 1.21
_WORTH = 16.0
# What is learned is a mean over the cube: places differ.
_RESERVE = 1.44
# Sizes of boxes, in powers of two, are told apart by threes; of fewer boxes, or of so large ones, nothing is learned.
_APART, _FEWEST, _ROOM = 3, 20, 4.0
# Squares of a sum of noise scatter by this many times their squared mean (2 if normal, 5 for one Laplace draw); boxes
# of different sizes overlap, and count half.
_SCATTER, _OVERLAP = 2.5, 0.5
# 1,000 boxes tell it of a table, 4,000 of the cube; each is halved at most five times.
_TOLD_BY, _HALVINGS = 1000, 6


@dataclass(frozen=True, eq=False)
class Departures:
    """Posterior variances of the blocks of one shrunk table, level by level, the finest first.

    Args:
        shape: The shape of the table.
        sums: Running sums of the variances on each level.
        lengths: How many cells a block of each level has along every axis.
    """

    shape: tuple[int, ...]
    sums: tuple[FloatArray, ...]
    lengths: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, levels: list[FloatArray]) -> Departures:
        """Keep the levels that shrinking went through, coarse ones first."""
        finest = levels[::-1]
        lengths = [(1,) * finest[0].ndim]
        for below, above in pairwise(finest):
            halved = (a < b for a, b in zip(above.shape, below.shape, strict=True))
            lengths.append(tuple(2 * n if half else n for n, half in zip(lengths[-1], halved, strict=True)))
        return cls(finest[0].shape, tuple(running_sums(each) for each in finest), tuple(lengths))

    def blocks(self) -> list[tuple[FloatArray, tuple[int, ...]]]:
        """On each level the variance of every block, and how many cells a block has along every axis."""
        found = []
        for sums, length in zip(self.sums, self.lengths, strict=True):
            each = sums
            for axis in range(each.ndim):
                each = np.diff(each, axis=axis)
            found.append((np.maximum(each, 0.0), length))
        return found

    def variances(self, low: IntArray, high: IntArray, order: int) -> FloatArray:
        """What boxes have of it beyond the tables of at most ``order`` attributes."""
        sides = _once((high - low).astype(np.float64))
        found = np.zeros(len(low))
        for sums, length in zip(self.sums, self.lengths, strict=True):
            step = np.array(length, dtype=np.int64)
            part = np.prod(np.minimum(sides / step, 1.0), axis=1)
            found += part**2 * np.maximum(sums_between(sums, low // step, -(-high // step)), 0.0)
        share, smaller = sides / np.array(self.shape), np.zeros(len(sides))
        for inside, others in _subsets(len(self.shape), order):
            smaller += np.prod(1.0 - share[:, inside], axis=1) * np.prod(share[:, others], axis=1)
        return np.asarray(found * np.maximum(1.0 - smaller, 0.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Shrunk:
    """What is left to doubt of a shrunk cube.

    Args:
        measured: The tables that were measured, the cube among them.
        counts: The published cube.
        order: Tables of at most ``order`` attributes were settled before the cube.
        tables: What shrinking left to doubt of each table and of the cube, by their attributes.
        ordered: For every attribute whether its values have neighbours; all of them unless told.
        times: How many times those variances published sums are off by, for tables of which only the cube speaks;
            learned when first asked for if not given.
    """

    measured: MeasuredTables
    counts: FloatArray
    order: int
    tables: Mapping[Axes, Departures]
    ordered: tuple[bool, ...] | None = None
    times: Mapping[Axes, float] | None = None

    @property
    def settled(self) -> Shrunk:
        """The same with all that is learned at hand: what a file holds."""
        return replace(self, times=self._times)

    def squares(self, low: IntArray, high: IntArray) -> FloatArray:
        """The squared error that every box's published sum seems to have."""
        exact, shrunk, plain = self._parts(low, high)
        found = _LEAST * exact
        for axes, each in shrunk.items():
            found += self._times[axes] * each if self._worth(axes) else _LEAST * plain[axes]
        return found

    def _worth(self, axes: Axes) -> bool:
        """Whether shrinking left a table a quarter of its noise's deviation; else the gain is not worth the doubt."""
        if axes == self.measured.everything:
            return True
        mean = self.tables[axes].sums[0].flat[-1] / self.measured.cells_in(axes)
        return bool(_WORTH * self._times[axes] * mean < self.measured.cell_variance(axes))

    def doubted(self) -> tuple[dict[Axes, float], dict[Axes, tuple[Departures, float]]]:
        """What `squares` adds up: variances of residuals of small tables; of others what is left, and how often."""
        plain: dict[Axes, float] = {}
        for inside, _ in _subsets(len(self.measured.shape), self.order):
            axes = tuple(inside)
            if axes not in self._alone or not self._worth(axes):
                plain[axes] = _LEAST / self.measured.precision(axes)
        beyond = {axes: (each, self._times[axes]) for axes, each in self.tables.items() if axes not in plain}
        return plain, {axes: each for axes, each in beyond.items() if axes in self._alone}

    @cached_property
    def _alone(self) -> list[Axes]:
        """Tables that were shrunk and of which only the cube speaks, and the cube."""
        return [axes for axes in self.tables if axes not in self.measured.residuals]

    def _parts(
        self, low: IntArray, high: IntArray
    ) -> tuple[FloatArray, dict[Axes, FloatArray], dict[Axes, FloatArray]]:
        """Variances of what least squares says; of every table that was shrunk, by its mixture; and its plain noise."""
        sizes = np.array(self.measured.shape, dtype=np.float64)
        sides = _once(np.maximum(high - low, 0).astype(np.float64))
        share = sides / sizes
        left = np.maximum(sides - sides * share, 0.0)
        exact, shrunk, plain = np.zeros(len(sides)), {}, {}
        for inside, others in _subsets(sizes.size, self.order):
            axes = tuple(inside)
            outer = np.prod(share[:, others], axis=1) ** 2
            noise = np.prod(left[:, inside], axis=1) * outer / self.measured.precision(axes)
            if axes in self._alone:
                each = self.tables[axes].variances(low[:, inside], high[:, inside], len(axes) - 1)
                shrunk[axes], plain[axes] = outer * each, np.broadcast_to(noise, len(low))
            else:
                exact += noise
        every = self.measured.everything
        shrunk[every] = self.tables[every].variances(low, high, self.order)
        plain[every] = np.full(len(low), np.inf)
        return np.broadcast_to(exact, len(low)), shrunk, plain

    @cached_property
    def _times(self) -> dict[Axes, float]:
        """How many times these variances published sums are off by: tables first, which the cube's boxes need."""
        if self.times is not None:
            return dict(self.times)
        found: dict[Axes, float] = {}
        for axes in sorted(self._alone, key=len):
            found[axes] = self._learned(axes, found)
        return found

    def _learned(self, axes: Axes, known: Mapping[Axes, float]) -> float:
        """What boxes of all sizes inside a table tell of it."""
        others = tuple(axis for axis in self.measured.everything if axis not in axes)
        boxes = boxes_of_all_sizes(
            [self.measured.shape[axis] for axis in axes],
            _TOLD_BY if others else 4 * _TOLD_BY,
            None if self.ordered is None else [self.ordered[axis] for axis in axes],
        )
        low = np.zeros((len(boxes), len(self.measured.shape)), dtype=np.int64)
        high = np.tile(np.array(self.measured.shape, dtype=np.int64), (len(boxes), 1))
        low[:, axes], high[:, axes] = boxes.low, boxes.high
        published = self.counts.reshape(self.measured.shape).sum(axis=others)
        apart = np.asarray(boxes.answer(self.measured.table(axes) - published), dtype=np.float64)
        noise = self.measured.spread(low, high)[0]
        exact, shrunk, plain = self._parts(low, high)
        own = shrunk[axes]
        rest = exact + sum(np.minimum(known[other] * shrunk[other], plain[other]) for other in known)
        error = apart**2 - noise + 2.0 * (exact + sum(shrunk.values()))
        kind = np.rint(np.log2(np.maximum(boxes.cells_in_each, 1.0))).astype(np.int64) // _APART
        log = np.log(_LIKELY_TABLE if others else _LIKELY)
        for number in np.unique(kind):
            here = kind == number
            # No more boxes are independent than lie beside each other.
            apart_from = min(float(here.sum()), self.measured.cells_in(axes) / 2.0 ** (_APART * number + 1))
            if here.sum() < _FEWEST or apart_from < _ROOM:
                continue
            wanted = float(rest[here].mean()) + _TIMES * float(own[here].mean())
            scatter = math.sqrt(_SCATTER / apart_from) * (float(noise[here].mean()) + wanted)
            off = (float(error[here].mean()) - wanted) / scatter
            log -= _OVERLAP * (np.log(scatter) + 0.5 * off**2)
        chance = np.exp(log - log.max())
        return _RESERVE * max(1.0, float(chance @ _TIMES / chance.sum()))


def boxes_of_all_sizes(shape: Sequence[int], some: int, ordered: Sequence[bool] | None = None) -> Workload:
    """Give boxes by which published sums are told from unbiased ones, the same every time.

    Args:
        shape: How many values each attribute has.
        some: How many boxes.
        ordered: For every attribute whether its values have neighbours: of one whose values do not, a box has one value
            or all, as people ask. All of them unless told.

    Returns:
        The boxes.

    Example:
        >>> boxes = boxes_of_all_sizes([50, 8], 20, [False, True])
        >>> sorted(set((boxes.high - boxes.low)[:, 0].tolist()))
        [1, 50]
    """
    has = [True] * len(shape) if ordered is None else list(ordered)
    domain = Domain(
        [
            Ordinal(f"axis {axis}", range(n))
            if has[axis]
            else Nominal(f"axis {axis}", [str(v) for v in range(n)])
            for axis, n in enumerate(shape)
        ]
    )
    drawn = Workload.random(domain, some)
    times = np.where(has, (np.arange(some) % _HALVINGS)[:, None], 0)
    halved = np.ceil((drawn.high - drawn.low) / 2.0**times)
    return Workload(domain, drawn.low, drawn.low + halved.astype(np.int64))


def _once(sides: FloatArray) -> FloatArray:
    """The sides of boxes, once where all are alike: every cell of a cube is asked for when its file is written."""
    return sides[:1] if len(sides) and bool((sides == sides[0]).all()) else sides


def _subsets(axes: int, order: int) -> list[tuple[list[int], list[int]]]:
    """Every subset of at most ``order`` attributes, and the others."""
    return [
        (list(inside), [axis for axis in range(axes) if axis not in inside])
        for size in range(order + 1)
        for inside in combinations(range(axes), size)
    ]
