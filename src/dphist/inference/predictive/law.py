"""The predictive law of any sum of cells, as plain numbers: what a file holds, and what answers are read off.

Two laws are asked side by side: one that believes what was learned of how totals divide, and plain least squares, which
knows nothing of it. How the first is learned, and how far it is to be trusted, `dphist.inference.predictive.learning`
says; nothing of that is needed to ask.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.binarytree import BinaryTree
from dphist.kernels.predictive.boxes import ask_boxes
from dphist.kernels.predictive.cells import Cells, found_leaves, painted_leaves
from dphist.kernels.predictive.passes import levels, path_variances
from dphist.kernels.summed_area import paint_boxes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# From 65,536 asked cells on, or half of all, the leaf of every cell is written down; never of more than 2²⁶ cells.
_PAINTED_FROM, _LARGEST_PAINTED = 1 << 16, 1 << 26
# Bits of a fraction that are not kept: the law is a guess, and a file need not hold its noise.
_DROPPED = 12


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
        mean, variance, slope, rest = (np.zeros(plain.size) for _ in range(4))
        lean = np.zeros(plain.size)
        lean[tree.splits], slope[tree.splits] = self.lean[1:], self.slope[1:]
        rest[tree.splits] = self.rest[1:]
        mean[0], variance[0] = plain[0] + self.lean[0], self.rest[0]
        for i in levels(tree.left):
            c = tree.left[i]
            mean[c] = plain[c] + lean[i]
            mean[c + 1] = mean[i] - mean[c]
            variance[c] = slope[i] ** 2 * variance[i] + rest[i]
            variance[c + 1] = (1.0 - slope[i]) ** 2 * variance[i] + rest[i]
        return Nodes(mean, slope, rest, variance)

    @cached_property
    def plain(self) -> Nodes:
        """Plain least squares, node by node."""
        return Nodes(*self.binary.plain, self.binary.totals[1])

    @property
    def counts(self) -> FloatArray:
        """The law's mean of every cell: what it expects of each leaf, spread evenly."""
        tree = self.binary
        out = np.zeros(math.prod(tree.shape))
        strides = np.array([math.prod(tree.shape[axis + 1 :]) for axis in range(len(tree.shape))])
        low, high = (np.ascontiguousarray(each, dtype=np.int64) for each in (tree.low, tree.high))
        paint_boxes(np.flatnonzero(tree.left < 0), low, high, self.posterior.mean / tree.size, strides, out)
        return out.reshape(tree.shape)

    # ---- asking ----

    def ask(self, low: IntArray, high: IntArray, starts: IntArray | None = None) -> Moments:
        """Ask both laws about boxes; question j has the boxes ``starts[j]`` up to ``starts[j + 1]``, or box j."""
        low, high = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
        if starts is None and bool((high - low == 1).all()):
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
        """Single cells, by the leaf of each."""
        cells = Cells(self.binary.low, self.binary.high, places, self._leaves(places))
        mean, known = cells.ask(self.posterior.mean, self._along[0])
        inner = cells.inside(self.posterior.mean, self.posterior.variance, self.uneven)
        return Moments(mean, known, inner, *cells.ask(self.plain.mean, self._along[1]))

    @cached_property
    def _along(self) -> list[FloatArray]:
        """What each node's slope adds to a variance, by either law."""
        left = self.binary.left
        return [
            path_variances(left, law.slope, law.rest, float(law.variance[0]))
            for law in (self.posterior, self.plain)
        ]

    def _leaves(self, cells: IntArray) -> NDArray[np.integer]:
        """The leaf of every cell."""
        size = math.prod(self.binary.shape)
        if size <= _LARGEST_PAINTED and len(cells) >= min(size // 2, _PAINTED_FROM):
            at: NDArray[np.integer] = self.painted[np.ravel_multi_index(tuple(cells.T), self.binary.shape)]
            if not at.size or int(at.min()) >= 0:
                return at
        return found_leaves(self.binary.left, self.binary.low, self.binary.high, cells)

    @cached_property
    def painted(self) -> ShortArray:
        """The leaf of every cell, flat; −1 where none is."""
        return painted_leaves(self.binary.left, self.binary.low, self.binary.high)


def _rounded(values: FloatArray) -> FloatArray:
    """The nearest numbers that a file holds: with eleven bits behind the first."""
    bits = values.astype(np.float32).view(np.int32)
    kept = ((bits + (1 << (_DROPPED - 1))) >> _DROPPED) << _DROPPED
    return kept.view(np.float32).astype(np.float64)
