"""Least squares over tables of few attributes of any number of columns: residual by residual, in closed form.

A table sums a cube over all attributes but a few. Tables that were measured with independent noise overlap: each says
something of every smaller table inside it. Taking the means out attribute by attribute splits a table into *residuals*
(main effects and interactions in the analysis of variance), one for each subset S of its attributes. The true residual
of S is the same whichever table it is read from, and noise of one variance a cell falls on different residuals
independently, since they are orthogonal. So weighted least squares over all that was measured is an average for each
residual by itself. What was measured may be a table, a table asked by difference along axes of two values, or a
residual by itself; each says something of some residuals, with a known precision (one over the variance):

    a table of the attributes A with differences along D speaks of every S with D ⊆ S ⊆ A, with precision
        2^|D| ÷ (variance · Π over A∖S of n);
    a residual of A, in units of its table, speaks of A alone, with precision 1 ÷ variance.

A table B whose residuals were all measured is *covered*: it is Σ over S ⊆ B of R_S ÷ Π over B∖S of n, unbiased, and the
variance of any box inside it is known exactly. What is not covered was not measured. Only subsets of the attributes
that a question bounds are looked at, so nothing here grows with the number of columns. Nothing here reads a count.

Along an axis with a *tree* (`AxisNoise`) contrasts of its nodes were measured instead of values, each with a variance
of its own: then the residual's noise along that axis is Σ over nodes of v · u uᵀ, u the unit contrast, in place of one
variance for all, and an interval I meets it with Σ v ⟨I, u⟩² in place of k − k²/n. Everything else is the same, since
whatever speaks of a residual asks the same contrasts along such an axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.hashing import Normals
from dphist.kernels.summed_area import running_sums, sums_between
from dphist.model.contrasts import Contrasts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Axes = tuple[int, ...]

# Intervals that meet a tree at a time.
_INTERVALS = 4096


@dataclass(frozen=True, eq=False)
class Measured:
    """One thing that was measured: a table (perhaps by differences), or a residual in units of its table.

    Args:
        axes: The attributes it keeps, ascending.
        values: Its noisy numbers; along a difference there is one for two values.
        variance: Of the noise in each.
        scale: The scale of that noise if it is Laplace's; 0 for Gaussian noise.
        differences: The axes along which the first value less the second was measured.
        residual: Whether only the residual was measured.
        about: The residuals that it is used for; all inside it by default.
    """

    axes: Axes
    values: FloatArray
    variance: float
    scale: float
    differences: Axes = ()
    residual: bool = False
    about: frozenset[Axes] | None = None


@dataclass(frozen=True, eq=False)
class AxisNoise:
    """How contrasts along an axis were measured.

    Args:
        tree: Whose contrasts.
        noise: For every depth, the variance of its contrasts, where the measurement's own would be 1.
        scale: The same of the scale of Laplace noise.
    """

    tree: Contrasts
    noise: FloatArray
    scale: FloatArray

    @cached_property
    def _variance(self) -> FloatArray:
        return np.asarray(self.noise[self.tree.depth] / self.tree.squares.astype(np.float64) ** 2)

    @cached_property
    def _heavy(self) -> FloatArray:
        return np.asarray(self.scale[self.tree.depth] / self.tree.squares)

    def meets(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """What intervals pick up: the variance, and the largest weight of one draw."""
        # Cells of a table have few intervals on an axis: each is met once.
        pairs, which = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
        squares, heaviest = np.empty(len(pairs)), np.empty(len(pairs))
        for begin in range(0, len(pairs), _INTERVALS):
            here = slice(begin, begin + _INTERVALS)
            found = self.tree.meets(pairs[here, 0], pairs[here, 1])
            squares[here] = found**2 @ self._variance
            heaviest[here] = (np.abs(found) * self._heavy).max(axis=1)
        return squares[which.reshape(-1)], heaviest[which.reshape(-1)]


@dataclass(frozen=True, eq=False)
class Residual:
    """One residual by least squares, every mean taken out; its precision, and the heaviest Laplace draw in it."""

    values: FloatArray
    precision: float
    heaviest: float


class TableResiduals:
    """Everything that measured tables say, by residuals.

    Args:
        shape: How many values each attribute has.
        measured: What was measured.
        trees: For axes along which contrasts were measured, how.

    Example:
        >>> import numpy as np
        >>> noisy = Measured((0, 1), np.array([[3.0, 1.0], [2.0, 6.0]]), 2.0, 1.0)
        >>> tables = TableResiduals((2, 2) + (1000,) * 40, [noisy])
        >>> tables.table((0, 1)).tolist(), tables.table((1,)).tolist(), tables.cell_variance((1,))
        ([[3.0, 1.0], [2.0, 6.0]], [5.0, 7.0], 4.0)
    """

    def __init__(
        self,
        shape: Sequence[int],
        measured: Sequence[Measured],
        trees: Mapping[int, AxisNoise] | None = None,
    ) -> None:
        self.shape = tuple(shape)
        self.trees = dict(trees or {})
        self.measured = tuple(measured)
        self._sums: dict[Axes, FloatArray] = {}
        # Averaged before it is centred, which is linear: one centring a residual is enough.
        summed: dict[Axes, FloatArray] = {}
        precision: dict[Axes, float] = {}
        heaviest: dict[Axes, float] = {}
        for each in measured:
            for subset in subsets(each.axes):
                if each.about is not None and subset not in each.about:
                    continue
                asked = {*each.differences, *(axis for axis in each.axes if axis in self.trees)}
                if not asked <= set(subset) or (each.residual and subset != each.axes):
                    continue
                weight = speaks(self.shape, each.axes, each.differences, subset) / each.variance
                part = weight * self._part(each, subset)
                summed[subset] = summed[subset] + part if subset in summed else part
                precision[subset] = precision.get(subset, 0.0) + weight
                heaviest[subset] = max(heaviest.get(subset, 0.0), weight * each.scale)
        self.residuals = {
            subset: Residual(
                centred(summed[subset] / precision[subset]),
                precision[subset],
                heaviest[subset] / precision[subset],
            )
            for subset in sorted(summed, key=lambda s: (len(s), s))
        }

    def _part(self, each: Measured, subset: Axes) -> FloatArray:
        """What one measurement says of a residual, before it is centred."""
        part = sum_to(each.values, each.axes, subset)
        for place, axis in enumerate(subset):
            if axis in self.trees:
                part = self.trees[axis].tree.back(part, place)
            elif axis in each.differences:
                part = np.concatenate([part, -part], axis=place) / 2.0
        return part

    def again(self, normals: Normals) -> TableResiduals:
        """The same measured again, at what was measured: new normal noise in every residual, of the same variance."""
        found = copy(self)
        found.residuals = {
            axes: replace(each, values=each.values + self._noise(axes, normals))
            for axes, each in self.residuals.items()
        }
        return found

    def _noise(self, axes: Axes, normals: Normals) -> FloatArray:
        """The noise of a residual: of each contrast by itself along axes with a tree, without means along others."""
        sizes = [self.trees[a].tree.start.size if a in self.trees else self.shape[a] for a in axes]
        noise = normals(math.prod(sizes)).reshape(sizes) / math.sqrt(self.residuals[axes].precision)
        for place, axis in enumerate(axes):
            if axis in self.trees:
                asked = self.trees[axis]
                each = np.sqrt(asked.noise[asked.tree.depth])
                noise *= each.reshape([-1 if other == place else 1 for other in range(len(axes))])
                noise = asked.tree.back(noise, place)
        return centred(noise)

    @property
    def everything(self) -> Axes:
        """All attributes."""
        return tuple(range(len(self.shape)))

    def cells_in(self, axes: Sequence[int]) -> int:
        """How many cells a table of these attributes has."""
        return math.prod(self.shape[axis] for axis in axes)

    def kept(self, axes: Sequence[int]) -> Axes:
        """The attributes that matter: one of a single value says nothing."""
        return tuple(sorted(axis for axis in set(axes) if self.shape[axis] > 1))

    def covers(self, axes: Sequence[int]) -> bool:
        """Whether every residual of a table of these attributes was measured."""
        kept = self.kept(axes)
        # A measured table has residuals of all its attributes; a smaller one may be known by parts.
        return kept in self.residuals and all(subset in self.residuals for subset in subsets(kept))

    def inside(self, axes: Sequence[int]) -> list[Axes]:
        """The covered tables of some of these attributes."""
        return [subset for subset in self.residuals if set(subset) <= set(axes) and self.covers(subset)]

    def precision(self, axes: Axes) -> float:
        """Of a residual that was measured: one over the variance of a cell."""
        return self.residuals[axes].precision

    def table(self, axes: Sequence[int]) -> FloatArray:
        """Give a table by least squares, its axes ascending; residuals that were not measured count as zero."""
        return self._added(tuple(sorted(axes)), {})

    def _added(self, axes: Axes, instead: Mapping[Axes, FloatArray]) -> FloatArray:
        """Residuals added up to a table; ``instead`` has other values for some of them."""
        whole = np.zeros([self.shape[axis] for axis in axes])
        kept = self.kept(axes)
        few = subsets(kept) if 1 << len(kept) <= len(self.residuals) else self.residuals
        for subset in few:
            if subset in self.residuals and set(subset) <= set(kept):
                values = instead[subset] if subset in instead else self.residuals[subset].values
                whole += spread_out(values, subset, axes, self.shape)
        return whole

    def projected(self, cells: FloatArray) -> FloatArray:
        """What a cube has of the residuals that were measured."""
        own = {axes: centred(sum_to(cells, self.everything, axes)) for axes in self.residuals}
        return self._added(self.everything, own)

    def cell_variance(self, axes: Sequence[int]) -> float:
        """The variance of one cell of a covered table; their mean, where a tree makes them differ."""
        kept = self.kept(axes)
        if any(axis in self.trees for axis in kept):
            return float(self.cell_spread(kept)[0].mean())
        return sum(
            math.prod(1.0 - 1.0 / self.shape[axis] for axis in subset)
            / self.cells_in([axis for axis in kept if axis not in subset]) ** 2
            / self.residuals[subset].precision
            for subset in subsets(kept)
        )

    def cell_spread(self, axes: Axes) -> tuple[FloatArray, FloatArray]:
        """The variance of every cell of a covered table, and the heaviest draw in it, as `spread` has them."""
        sides = [self.shape[axis] for axis in axes]
        cells = np.stack(np.unravel_index(np.arange(math.prod(sides)), sides), axis=1)
        variance, largest = self._spread(axes, cells, cells + 1)
        return variance.reshape(sides), largest.reshape(sides)

    def _meets(self, axis: int, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of intervals on an axis: their share of it, the squares left without the mean, the largest weight left."""
        lengths = np.maximum(high - low, 0).astype(np.float64)
        share = lengths / self.shape[axis]
        if axis in self.trees:
            return share, *self.trees[axis].meets(low, high)
        left = np.maximum(lengths - lengths * share, 0.0)
        return share, left, np.maximum(share, 1.0 - share) * (left > 0.0)

    def answers(self, low: IntArray, high: IntArray) -> FloatArray:
        """Sum every box by least squares; not a number where a box was not measured."""
        out = np.full(len(low), np.nan)
        for axes, here in bounded_kinds(self.shape, low, high):
            if self.covers(axes):
                if axes not in self._sums:
                    # Kept: a release is asked again and again.
                    self._sums[axes] = running_sums(self.table(axes))
                out[here] = sums_between(self._sums[axes], low[here][:, axes], high[here][:, axes])
        return out

    def spread(self, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """The variance of every box's answer, and the largest |weight · scale| of one Laplace draw in it, at most.

        On an axis of n cells an interval of k has mean k/n, and k − k²/n is what is left of its squares once the mean
        is out. So the residual of S adds Π over S of (k − k²/n) · Π over the other bounded axes of (k/n)², over its
        precision. A draw's weight in it is at most its portion times Π max(k/n, 1 − k/n) · Π k/n; a draw may speak of
        several residuals, so these are added. Along an axis with a tree its contrasts take that place. Not a number
        where a box was not measured.
        """
        variance, largest = np.full(len(low), np.nan), np.full(len(low), np.nan)
        for axes, here in bounded_kinds(self.shape, low, high):
            if self.covers(axes):
                variance[here], largest[here] = self._spread(axes, low[here][:, axes], high[here][:, axes])
        return variance, largest

    def _spread(self, axes: Axes, low: IntArray, high: IntArray) -> tuple[FloatArray, FloatArray]:
        """The same of boxes on the attributes of a covered table."""
        parts = [self._meets(axis, low[:, place], high[:, place]) for place, axis in enumerate(axes)]
        variance, heavy = np.zeros(len(low)), np.zeros(len(low))
        for subset in subsets(self.kept(axes)):
            squares, sides = np.ones(len(low)), np.ones(len(low))
            for axis, (share, left, side) in zip(axes, parts, strict=True):
                squares *= left if axis in subset else share**2
                sides *= side if axis in subset else share
            variance += squares / self.residuals[subset].precision
            heavy += sides * self.residuals[subset].heaviest
        # One draw cannot carry more than the whole variance, whatever the bound says.
        return variance, np.minimum(heavy, np.sqrt(variance / 2.0))


def subsets(axes: Axes) -> Iterator[Axes]:
    """Every subset of some attributes, the empty one first."""
    for order in range(len(axes) + 1):
        yield from combinations(axes, order)


def centred(values: FloatArray) -> FloatArray:
    """Take the mean out along every axis."""
    for axis in range(values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


def sum_to(values: FloatArray, axes: Axes, kept: Axes) -> FloatArray:
    """Sum a table of some attributes to those that are kept."""
    others = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    return np.asarray(values.sum(axis=others), dtype=np.float64)


def spread_out(values: FloatArray, axes: Axes, over: Axes, shape: Sequence[int]) -> FloatArray:
    """A table's cells, each spread evenly over the values of further attributes, in a shape that fits theirs."""
    others = math.prod(shape[axis] for axis in over if axis not in axes)
    return values.reshape([shape[axis] if axis in axes else 1 for axis in over]) / others


def bounded_kinds(shape: Sequence[int], low: IntArray, high: IntArray) -> list[tuple[Axes, IntArray]]:
    """Boxes by the attributes they are bounded on: these, and which boxes."""
    return kinds_of(bounded_on(shape, low, high))


def bounded_on(shape: Sequence[int], low: IntArray, high: IntArray) -> BoolArray:
    """For every box, on which attributes it is bounded."""
    return np.asarray(~((low == 0) & (high == np.array(shape, dtype=np.int64))), dtype=np.bool_)


def kinds_of(bounded: BoolArray) -> list[tuple[Axes, IntArray]]:
    """Questions by the attributes they are about: these, and which questions."""
    if len(bounded) and bool((bounded == bounded[0]).all()):
        return [(_axes(bounded[0]), np.arange(len(bounded), dtype=np.int64))]
    rows, kind = np.unique(bounded, axis=0, return_inverse=True)
    flat = kind.reshape(-1)
    return [(_axes(row), np.flatnonzero(flat == number)) for number, row in enumerate(rows)]


def _axes(bounded: BoolArray) -> Axes:
    return tuple(int(axis) for axis in np.flatnonzero(bounded))


def speaks(shape: Sequence[int], axes: Axes, differences: Axes, subset: Axes) -> float:
    """The precision that a table of unit variance, with differences, has for a residual inside it."""
    return 2.0 ** len(differences) / math.prod(shape[axis] for axis in axes if axis not in subset)
