"""The predictive law of any sum of cells, as plain numbers: what a file holds, and what answers are read off.

Two laws are asked side by side: one that believes what was learned of how totals divide, and plain least squares, which
knows nothing of it. How the first is learned, and how far it is to be trusted, `dphist.inference.predictive.learning`
says; nothing of that is needed to ask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.kernels.predictive.boxes import ask_boxes, shared_inside
from dphist.kernels.predictive.halving import (
    best_totals,
    halve_cells,
    halve_families,
    least_squares_splits,
    levels,
    path_variances,
)
from dphist.kernels.trees.passes import painted

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# From 65,536 asked cells on, or half of all, the leaf of every cell is written down.
_PAINTED_FROM = 1 << 16
# Cells whose leaves are looked into together.
_BLOCK = 1 << 18
# Bits of a fraction that are not kept: the law is a guess, and a file need not hold its noise.
_DROPPED = 12


@dataclass(frozen=True, eq=False)
class BinaryTree:
    """Node i's children are ``left[i]`` and the next (−1 for a leaf); ``low`` to ``high`` is the hull of its cells.

    Args:
        shape: Of the cells.
        left: The left child of every node.
        low: Where its hull begins.
        high: One past where it ends.
        size: How many cells it has.
        value: What was measured of it.
        variance: With what variance; infinite where nothing was.
    """

    shape: tuple[int, ...]
    left: IntArray
    low: ShortArray
    high: ShortArray
    size: FloatArray
    value: FloatArray
    variance: FloatArray

    @classmethod
    def of_tree(cls, tree: MeasuredTree) -> BinaryTree:
        """Halve the families of a measured tree."""
        nodes = halve_families(
            *(tree.first, tree.last, np.ascontiguousarray(tree.low), np.ascontiguousarray(tree.high)),
            *(tree.size, tree.value, tree.variance),
        )
        return cls(tuple(tree.shape), *nodes)

    @classmethod
    def of_cells(cls, noisy: NDArray[Any], variance: float) -> BinaryTree:
        """Halve a grid of noisy cells that all carry noise of the same variance."""
        left, low, high, cell = halve_cells(np.array(noisy.shape, dtype=np.int64))
        leaves = cell >= 0
        value = np.zeros(cell.size)
        value[leaves] = noisy.reshape(-1)[cell[leaves]]
        known = np.where(leaves, variance, np.inf)
        size = np.prod((high - low).astype(np.float64), axis=1)
        return cls(tuple(noisy.shape), left, low, high, size, value, known)

    @cached_property
    def splits(self) -> IntArray:
        """The nodes that have children, in order."""
        return np.flatnonzero(self.left >= 0)

    @cached_property
    def totals(self) -> tuple[FloatArray, FloatArray]:
        """Best linear total of every node from what was measured at it and below, and its variance."""
        return best_totals(self.left, self.value, self.variance)

    @cached_property
    def plain(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Plain least squares: every node's mean; of every split its left part's slope in the total, and the rest."""
        return least_squares_splits(self.left, *self.totals)

    @property
    def deviations(self) -> float:
        """How many deviations of its noise the whole is, one at least: how much there is to learn from."""
        best, spread = self.totals
        known = bool(best.size) and float(spread[0]) > 0.0
        return max(1.0, float(best[0]) / math.sqrt(float(spread[0]))) if known else math.inf


class Nodes(NamedTuple):
    """One law of a binary tree: of every node mean and variance, of every split its left part's slope and the rest."""

    mean: FloatArray
    slope: FloatArray
    rest: FloatArray
    variance: FloatArray


class Moments(NamedTuple):
    """What both laws say of some questions."""

    mean: FloatArray
    known: FloatArray
    """The variance from totals that were measured."""
    inner: FloatArray
    """What stays unknown inside blocks that were measured as a whole, which adds to the variance."""
    plain: FloatArray
    """The mean of plain least squares."""
    noise: FloatArray
    """Its variance, but for leaves that a question cuts."""


def size_classes_of(shape: tuple[int, ...]) -> int:
    """How many size classes the questions about a grid have."""
    cells = math.prod(shape)
    return math.ceil(math.log2(cells)) + 1 if cells > 1 else 1


@dataclass(frozen=True, eq=False)
class Law:
    """A predictive law of every sum of cells.

    Args:
        binary: The tree and what was measured.
        lean: Of the whole, then of every split's left part: its mean, beyond that of plain least squares.
        slope: Of every split's left part, in the total (1 for the whole).
        rest: What is unknown of it, given the total (for the whole, its variance).
        uneven: What c² is to be expected of splits that were not measured, by size class.
        alike: Which part of what is unknown inside leaves is the same in all of them.
        caution: By how much squared errors exceed the law's variances, by size class of questions.
        doubt: How much of what the law claims to know beyond plain least squares is not believed.
        doubted_from: Questions about more cells than this are hedged so.
        overlap: Squared errors are scaled by this.
    """

    binary: BinaryTree
    lean: FloatArray
    slope: FloatArray
    rest: FloatArray
    uneven: FloatArray
    alike: float
    caution: FloatArray
    doubt: float
    doubted_from: float
    overlap: float

    @classmethod
    def of(
        cls,
        binary: BinaryTree,
        inferred: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        uneven: FloatArray,
        alike: float,
        *,
        doubt: float = 0.0,
        doubted_from: float = 0.0,
        overlap: float = 1.0,
    ) -> Law:
        """Keep what was inferred of every split: mean, variance, slope and rest."""
        mean, variance, slope, rest = inferred
        splits = binary.splits
        first = binary.left[splits]
        beyond = mean - binary.plain[0]
        lean = _rounded(np.concatenate([beyond[:1], beyond[first]]))
        slope = _rounded(np.concatenate([np.ones(1), slope[splits]]))
        rest = _rounded(np.concatenate([variance[:1], rest[splits]]))
        classes = np.ones(size_classes_of(binary.shape))
        return cls(binary, lean, slope, rest, uneven, alike, classes, doubt, doubted_from, overlap)

    @cached_property
    def posterior(self) -> Nodes:
        """The law, node by node."""
        tree, plain = self.binary, self.binary.plain[0]
        mean, slope, rest = (np.zeros(plain.size) for _ in range(3))
        first = tree.left[tree.splits]
        slope[tree.splits], rest[tree.splits] = self.slope[1:], self.rest[1:]
        mean[0], mean[first] = plain[0] + self.lean[0], plain[first] + self.lean[1:]
        for i in levels(tree.left):
            mean[tree.left[i] + 1] = mean[i] - mean[tree.left[i]]
        return Nodes(mean, slope, rest, path_variances(tree.left, slope, rest, float(self.rest[0])))

    @cached_property
    def plain(self) -> Nodes:
        """Plain least squares, node by node."""
        mean, slope, rest = self.binary.plain
        top = float(self.binary.totals[1][0])
        return Nodes(mean, slope, rest, path_variances(self.binary.left, slope, rest, top))

    @property
    def counts(self) -> FloatArray:
        """The law's mean of every cell: what it expects of each leaf, spread evenly."""
        return self._painted(self.posterior.mean / self.binary.size).reshape(self.binary.shape)

    def _painted(self, values: NDArray[Any]) -> NDArray[Any]:
        """A value of every leaf, cell by cell."""
        tree = self.binary
        return painted(np.flatnonzero(tree.left < 0), tree.low, tree.high, values, tree.shape)

    # ---- asking ----

    def ask(self, low: IntArray, high: IntArray, starts: IntArray | None = None) -> Moments:
        """Ask both laws about boxes; question j has the boxes ``starts[j]`` up to ``starts[j + 1]``, or box j."""
        low, high = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
        many = len(low) >= min(math.prod(self.binary.shape) // 2, _PAINTED_FROM)
        if many and starts is None and bool((high - low == 1).all()):
            return self._of_cells(low)
        (mean, slope, rest), tops = self._stacked
        means, variances, inner = ask_boxes(
            *(self.binary.left, self.binary.low, self.binary.high),
            *(mean, slope, rest, tops),
            *(self.posterior.variance, self.uneven),
            self.alike,
            *(low, high, np.arange(len(low) + 1) if starts is None else starts),
        )
        return Moments(means[:, 0], variances[:, 0], inner, means[:, 1], variances[:, 1])

    def hedged(self, known: FloatArray, noise: FloatArray, cells: FloatArray | IntArray) -> FloatArray:
        """The law's variances, with a part of what it claims to know beyond plain least squares taken back."""
        doubt: FloatArray = np.where(cells > self.doubted_from, self.doubt, 0.0)
        wider: FloatArray = known + doubt * np.maximum(noise - known, 0.0)
        return wider

    def caution_of(self, cells: FloatArray | IntArray) -> FloatArray:
        """The caution for questions about ``cells`` cells."""
        number = np.ceil(np.log2(np.maximum(cells, 1.0) / 1.5)).astype(np.int64)
        return np.asarray(self.caution[np.clip(number, 0, self.caution.size - 1)], dtype=np.float64)

    @cached_property
    def _stacked(self) -> tuple[list[FloatArray], FloatArray]:
        """Means, slopes and rests of both laws side by side, and the roots' variances."""
        both = [np.stack(pair, axis=1) for pair in zip(self.posterior[:3], self.plain[:3], strict=True)]
        return both, np.array([self.posterior.variance[0], self.plain.variance[0]])

    def _of_cells(self, places: IntArray) -> Moments:
        """Many single cells, by the leaf of each: above it only one side of every split has a slope."""
        tree, law, plain = self.binary, self.posterior, self.plain
        at = self._leaf[np.ravel_multi_index(tuple(places.T), tree.shape)]
        share, inner = 1.0 / tree.size[at], np.zeros(len(places))
        cut = np.flatnonzero(share < 1.0)
        for start in range(0, cut.size, _BLOCK):
            some = cut[start : start + _BLOCK]
            box = [(places[some], places[some] + 1)]
            inside = shared_inside(at[some], tree.low, tree.high, box, law.mean, law.variance, self.uneven)
            inner[some] = np.maximum(inside, 0.0)
        said, known = (share * law.mean[at], share * share * law.variance[at])
        return Moments(said, known, inner, share * plain.mean[at], share * share * plain.variance[at])

    @cached_property
    def _leaf(self) -> IntArray:
        """The leaf of every cell, flat."""
        return self._painted(np.arange(self.binary.left.size))


def _rounded(values: FloatArray) -> FloatArray:
    """The nearest numbers that a file holds: with eleven bits behind the first."""
    bits = values.astype(np.float32).view(np.int32)
    kept = ((bits + (1 << (_DROPPED - 1))) >> _DROPPED) << _DROPPED
    return kept.view(np.float32).astype(np.float64)
