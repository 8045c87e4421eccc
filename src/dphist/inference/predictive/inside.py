"""What repeats inside blocks that were never divided: seen by sums with public signs, and what it adds to intervals.

Blocks of 4 × 4 cells of a plane whose every fourth row has all records are as full as those of an even plane: no total
of a block tells them apart. A sum of all cells with random signs does (the tug-of-war sketch of Alon, Matias and
Szegedy): its square is the sum of the squares of what is published wrongly, whatever the pattern, and the noise of one
number. What errs in most questions is what goes along with a whole row or column, across blocks. So signs are those of
values of one attribute, the same for all cells that have it, one sketch for each group of values.

Only released values are read here, so nothing is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.apart import Distances, strengths_of_parts
from dphist.inference.predictive.engine import Engine

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Strengths to reckon with: values are off by so many times their mean, squared. A row in k that has all has k − 1.
_STRENGTHS = np.exp(np.linspace(math.log(0.03), math.log(12.0), 24))
# How likely it is beforehand that anything repeats; and by how much what is found is taken for more, since teeth reach
# further than a normal law of their variance. On planes of 64 × 64 cells and 1,000 noise scales of records (lattices,
# stripes, half stripes, six draws) the least kind of question then holds in 0.91, in 0.12 without a look; lattices of 3
# and 6 in 0.84. Tables of six ordinary planes are 1.12 times as wide, rectangles 1.06. With 0.6 it is 0.92, and 1.3.
_LIKELY = 0.25
_TEETH = 2.0
# What is believed where there are too few records to tell: with 100 and 500 noise scales of them, none of 32 such cases
# then holds in less than 0.93, six without it, the least in 0.65.
_UNTOLD = 1.5


def value_signs(axis: int, values: int) -> IntArray:
    """A public sign for each value of an attribute: 1 or −1, by a fixed hash.

    Example:
        >>> sorted(set(value_signs(0, 64).tolist()))
        [-1, 1]
    """
    return np.where(_hashed(axis, values) & np.uint64(1), 1, -1).astype(np.int64)


def value_groups(axis: int, values: int, groups: int) -> IntArray:
    """A public group for each value of an attribute: as many in each as can be, by a fixed hash.

    Example:
        >>> np.bincount(value_groups(0, 64, 4)).tolist()
        [16, 16, 16, 16]
    """
    order = np.argsort(_hashed(axis, values) >> np.uint64(1), kind="stable")
    group = np.empty(values, dtype=np.int64)
    group[order] = np.arange(values) % groups
    return group


def _hashed(axis: int, values: int) -> NDArray[np.uint64]:
    """Steele, Lea and Flood's SplitMix64 of a value's place."""
    bits = (np.arange(values, dtype=np.uint64) + np.uint64((axis + 1) << 40)) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)), dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Sketches:
    """What was measured: sums with signs, of every group of every attribute's values."""

    groups: tuple[int, ...]
    """How many there are, for each attribute; none where nothing could be told."""
    sums: FloatArray
    variance: float
    """Of the noise in each."""
    gaussian: bool = False
    """Whether that is Gaussian; Laplace noise if not."""


@dataclass(frozen=True, eq=False)
class Inside:
    """How far questions that cut blocks are off, as far as whole values of an attribute are fuller than others there.

    With m what a block is published to hold, a cell of it is taken for m/size·(1 + Σ_a ρ_a), where ρ_a goes with its
    value of attribute a and has a variance of its own, the attribute's *strength*; less what it comes to on average
    over the block, which was measured. Strengths follow from sketches. Where all cells were asked about there is one
    more, of cells that are each fuller or emptier by themselves: no less than that is allowed for.
    """

    engine: Engine
    counts: FloatArray
    """What is published."""
    sketches: Sketches | Distances
    told: FloatArray | None = None
    """What a file says the strengths are."""

    @cached_property
    def strengths(self) -> FloatArray:
        """The expected variance of ρ for each attribute, and perhaps of what a cell has of its own.

        Either nothing repeats, or each attribute's values do as likely as not: so what is seen of one tells of others.
        """
        axes = len(self.engine.shape)
        asked = self.sketches.sums.size if isinstance(self.sketches, Distances) else axes
        if self.told is not None and self.told.shape == (asked,):
            return self.told
        if not self.sketches.sums.size:
            return np.full(axes, _UNTOLD)
        if isinstance(self.sketches, Distances):
            strengths, logs = strengths_of_parts(), self.sketches.logs(self.engine, self.counts, self._mass)
        else:
            begins = np.cumsum([0, *self.sketches.groups])
            strengths = _STRENGTHS
            logs = np.array(
                [
                    self._logs(axis, self.sketches.sums[begins[axis] : begins[axis + 1]])
                    for axis in range(axes)
                ]
            )
        # Of every attribute how much likelier each strength makes what was seen than none does.
        ratios = np.exp(np.minimum(logs[:, 1:] - logs[:, :1], 200.0))
        found = ratios.mean(axis=1)
        repeats = _LIKELY * float(np.prod(0.5 + 0.5 * found[:axes]))
        mine = found / (1.0 + found) * repeats / (1.0 - _LIKELY + repeats)
        # Cells may be full or empty where no attribute's values are, as likely beforehand as one attribute's.
        own = 0.5 * _LIKELY * found[axes:]
        mine[axes:] = own / (1.0 - 0.5 * _LIKELY + own)
        return np.asarray(_TEETH * mine * (ratios @ strengths) / ratios.sum(axis=1), dtype=np.float64)

    @cached_property
    def _leaf(self) -> IntArray:
        """The leaf of every cell."""
        return np.asarray(self.engine.painted.reshape(self.engine.shape), dtype=np.int64)

    @cached_property
    def _mass(self) -> FloatArray:
        """What every leaf is published to hold."""
        return np.bincount(
            self._leaf.reshape(-1), self.counts.reshape(-1), minlength=self.engine.left.size
        ).astype(np.float64)

    def _logs(self, axis: int, sums: FloatArray) -> FloatArray:
        """Logarithms of how likely the sketches of an attribute are: with nothing there, and with every strength."""
        engine, groups = self.engine, sums.size
        n = engine.shape[axis]
        signed = np.zeros((n, groups))
        signed[np.arange(n), value_groups(axis, n, groups)] = value_signs(axis, n)
        others = tuple(each for each in range(len(engine.shape)) if each != axis)
        departs = sums - self.counts.reshape(engine.shape).sum(axis=others) @ signed
        leaf = np.flatnonzero(engine.left < 0)
        low, high = engine.low[leaf, axis].astype(np.int64), engine.high[leaf, axis].astype(np.int64)
        length = (high - low).astype(np.float64)
        run, squares = (
            np.concatenate([np.zeros((1, groups)), np.cumsum(each, axis=0)]) for each in (signed, signed**2)
        )
        mean = (run[high] - run[low]) / length[:, None]
        mass = np.maximum(self._mass[leaf], 0.0)
        # Of every value: what would be its own if all blocks had the same ρ there.
        a = (mass / length)[:, None]
        taken = np.zeros((n + 1, groups))
        np.add.at(taken, low, a * mean)
        np.subtract.at(taken, high, a * mean)
        whole = np.zeros(n + 1)
        np.add.at(whole, low, a[:, 0])
        np.subtract.at(whole, high, a[:, 0])
        own = signed * np.cumsum(whole)[:n, None] - np.cumsum(taken, axis=0)[:n]
        reach = (own**2).sum(axis=0)
        scatter = mass @ ((squares[high] - squares[low]) / length[:, None] - mean**2)
        noise = engine.node_variances[leaf] @ mean**2 + scatter
        return self._likelihoods(departs, noise[:, None] + reach[:, None] * np.append(0.0, _STRENGTHS))

    def _likelihoods(self, departs: FloatArray, variance: FloatArray) -> FloatArray:
        """Logarithms of how likely departures are by normal laws of some variances (a column each) beside the noise.

        Laplace noise is normal noise whose variance is drawn by an exponential law; a quadrature sums over it.
        """
        nodes, weights = (
            (np.ones(1), np.ones(1)) if self.sketches.gaussian else np.polynomial.laguerre.laggauss(16)
        )
        whole = variance[..., None] + self.sketches.variance * nodes
        density = weights * np.exp(-0.5 * departs[:, None, None] ** 2 / whole) / np.sqrt(whole)
        return np.asarray(np.log(density.sum(axis=-1) + 1e-300).sum(axis=0), dtype=np.float64)

    def variance(self, low: IntArray, high: IntArray, starts: IntArray | None = None) -> FloatArray:
        """What patterns inside blocks add to the variance of questions.

        Args:
            low: Where each box begins, a row for each.
            high: One past where it ends.
            starts: Question j has the boxes ``starts[j]`` up to ``starts[j + 1]``; one box each if not given.

        Returns:
            A number for each question.
        """
        added, axes = np.zeros(len(low)), len(self.engine.shape)
        for axis, strength in enumerate(self.strengths[:axes]):
            if strength > 0.0:
                added += strength * self._reach(axis, low, high)
        for strength in self.strengths[axes:]:
            added = np.maximum(added, strength * self._scattered(low, high))
        return added if starts is None else np.add.reduceat(added, starts[:-1])

    def _reach(self, axis: int, low: IntArray, high: IntArray) -> FloatArray:
        """Of boxes, what the variance is for each unit of strength: at both ends, and no more than all of its cells."""
        ends, mass = self._sums[axis]
        first, last = low.copy(), high.copy()
        squares = np.zeros(len(low))
        for place in (low[:, axis], high[:, axis]):
            first[:, axis], last[:, axis] = place, place + 1
            squares += _box(ends, first, last) ** 2
        length = np.maximum(high[:, axis] - low[:, axis], 1)
        return np.asarray(np.minimum(squares, _box(mass, low, high) ** 2 / length), dtype=np.float64)

    def _scattered(self, low: IntArray, high: IntArray) -> FloatArray:
        """The same for cells by themselves: along all faces of boxes, and no more than all of their cells."""
        faces, cells = self._squares
        squares = np.zeros(len(low))
        for axis, ends in enumerate(faces):
            first, last = low.copy(), high.copy()
            for place in (low[:, axis], high[:, axis]):
                first[:, axis], last[:, axis] = place, place + 1
                squares += _box(ends, first, last)
        return np.asarray(np.minimum(squares, _box(cells, low, high)), dtype=np.float64)

    @cached_property
    def _squares(self) -> tuple[list[FloatArray], FloatArray]:
        """Summed-area tables: of what cutting at a place reaches, for every attribute, and of all cells in blocks."""
        density = np.maximum(self._mass, 0.0) / self.engine.size
        own = density**2 * (1.0 - 1.0 / self.engine.size)
        return [_summed(self._ends(axis) ** 2) for axis in range(self._leaf.ndim)], _summed(own[self._leaf])

    @cached_property
    def _sums(self) -> list[tuple[FloatArray, FloatArray]]:
        """Summed-area tables for every attribute: of what cutting at a place reaches, and of what lies in blocks."""
        found = []
        for axis in range(self._leaf.ndim):
            longer = self.engine.high[:, axis] - self.engine.low[:, axis] > 1
            density = np.where(longer, np.maximum(self._mass, 0.0) / self.engine.size, 0.0)
            found.append((_summed(self._ends(axis)), _summed(density[self._leaf])))
        return found

    def _ends(self, axis: int) -> FloatArray:
        """What every cell's block adds to the deviation of a question that begins or ends there."""
        engine, leaf = self.engine, np.moveaxis(self._leaf, axis, 0)
        density = np.maximum(self._mass, 0.0) / engine.size
        begin, end = engine.low[:, axis].astype(np.float64), engine.high[:, axis].astype(np.float64)
        before, after = leaf[:-1], leaf[1:]
        place = np.arange(1, len(leaf)).reshape(-1, *(1,) * (leaf.ndim - 1))
        # Of a block of length h a part f is taken, k values of it: their ρ, less k times the mean, has k(1 − f).
        taken = place - begin[after]
        part = density[after] * np.sqrt(taken * (1.0 - taken / (end - begin)[after]).clip(0.0))
        ends = np.zeros((len(leaf) + 1, *before.shape[1:]))
        ends[1:-1] = np.where(before == after, part, 0.0)
        return np.moveaxis(ends, 0, axis)


def _summed(values: FloatArray) -> FloatArray:
    """A summed-area table, with a border of zeros."""
    table = np.zeros([n + 1 for n in values.shape])
    inner = values
    for axis in range(values.ndim):
        inner = np.cumsum(inner, axis=axis)
    table[(slice(1, None),) * values.ndim] = inner
    return table


def _box(table: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    """Sums of boxes from a summed-area table."""
    total = np.zeros(len(low))
    for corner in product((0, 1), repeat=table.ndim):
        at = tuple((high if up else low)[:, axis] for axis, up in enumerate(corner))
        total += (-1) ** (table.ndim - sum(corner)) * table[at]
    return total
