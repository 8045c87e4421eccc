"""What repeats inside blocks that were never divided, and what it adds to intervals.

Blocks of 4 × 4 cells of a plane whose every fourth row has all records are as full as those of an even plane: no total
of a block tells them apart, but how far what is published is from the truth does
(`dphist.inference.predictive.apart`). What errs in most questions is what goes along with a whole row or column, across
blocks.

Only released values are read here, so nothing is spent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.apart import Distances, strengths_of_parts
from dphist.inference.predictive.engine import Engine

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How likely it is beforehand that anything repeats; and by how much what is found is taken for more, since teeth reach
# further than a normal law of their variance. On planes of 64 × 64 cells and 1,000 noise scales of records (lattices,
# stripes, half stripes, six draws) the least kind of question then holds in 0.91, in 0.12 without a look; lattices of 3
# and 6 in 0.84. Tables of six ordinary planes are 1.12 times as wide, rectangles 1.06. With 0.6 it is 0.92, and 1.3.
_LIKELY = 0.25
_TEETH = 2.0
# What is believed where there are too few records to tell: with 100 and 500 noise scales of them, none of 32 such cases
# then holds in less than 0.93, six without it, the least in 0.65.
_UNTOLD = 1.5
# Blocks of so many cells may hide all that they hold in one place that matters. From such a strength on, that of half
# of the records in the wrong place, it is allowed for in full, below as the strength is. On lines of 512 cells with
# bursts beside borders (3 records each, ρ = 1/200, 16 draws) ranges of 2 to 16 cells then hold in 0.90 instead of 0.76;
# on 19 made-up shapes of 512 and 1,000 cells in both currencies they are 1.006 times as wide, combs of 2 up to 1.28.
_SMALL, _IN_FULL = 20.0, _TEETH


@dataclass(frozen=True, eq=False)
class Inside:
    """How far questions that cut blocks are off, as far as whole values of an attribute are fuller than others there.

    With m what a block is published to hold, a cell of it is taken for m/size·(1 + Σ_a ρ_a), where ρ_a goes with its
    value of attribute a and has a variance of its own, the attribute's *strength*; less what it comes to on average
    over the block, which was measured. Strengths follow from distances. Where all cells were asked about there is one
    more, of cells that are each fuller or emptier by themselves: no less than that is allowed for.
    """

    engine: Engine
    counts: FloatArray
    """What is published."""
    distances: Distances
    """What was asked; of nothing where there are too few records to tell."""
    told: FloatArray | None = None
    """What a file says the strengths are."""

    @cached_property
    def strengths(self) -> FloatArray:
        """The expected variance of ρ for each attribute, and perhaps of what a cell has of its own.

        Either nothing repeats, or each attribute's values do as likely as not: so what is seen of one tells of others.
        """
        axes = len(self.engine.shape)
        if self.told is not None and self.told.shape == (self.distances.sums.size or axes,):
            return self.told
        if not self.distances.sums.size:
            return np.full(axes, _UNTOLD)
        strengths, logs = strengths_of_parts(), self.distances.logs(self.engine, self.counts, self._mass)
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

    def lumps(
        self, low: IntArray, high: IntArray, starts: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """How far truths of a line may lie below what is published, and above, if blocks have all in one place.

        A normal law of their variance allows for about half of what such a place holds, which misses every question
        that has it and few others; and where those of two blocks lie beside their border, they add up. Of blocks so
        small that one question in twenty has that place this is allowed for in full, if strengths are: of what a block
        holds nothing may be in the part that is asked for, or everything. Single cells are left to the variance, since
        most have nothing.

        Args:
            low: Where each box begins, a row for each.
            high: One past where it ends.
            starts: Question j has the boxes ``starts[j]`` up to ``starts[j + 1]``; one box each if not given.

        Returns:
            Two numbers for each question; nothing in several dimensions.
        """
        below, above = np.zeros(len(low)), np.zeros(len(low))
        if len(self.engine.shape) == 1 and len(low):
            begin, end = low[:, 0], high[:, 0]
            first = self._leaf[np.minimum(begin, self._leaf.size - 1)]
            last = self._leaf[np.maximum(end - 1, 0)]
            for block, sums in ((first, end - begin > 1), (last, (end - begin > 1) & (first != last))):
                starting, ending = self.engine.low[block, 0], self.engine.high[block, 0]
                part = (np.minimum(end, ending) - np.maximum(begin, starting)) / self.engine.size[block]
                cut = sums & (part < 1.0) & (self.engine.size[block] <= _SMALL)
                held = np.where(cut, np.maximum(self._mass[block], 0.0), 0.0)
                below += held * part
                above += held * (1.0 - part)
        allowed = min(float(self.strengths[0]) / _IN_FULL, 1.0)
        if starts is not None:
            below, above = (np.sqrt(np.add.reduceat(each * each, starts[:-1])) for each in (below, above))
        return allowed * below, allowed * above

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
