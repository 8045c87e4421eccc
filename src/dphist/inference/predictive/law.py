"""A binary tree of totals, what is known of each of its splits, and the law of any sum of cells that follows.

Two laws are asked side by side: one that believes what was learned of how totals divide, and plain least squares, which
knows nothing of it. How far the first is to be trusted, `dphist.inference.predictive.engine` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.alike import alike_part
from dphist.inference.predictive.unevenness import inner_unevenness
from dphist.kernels.compile import only_read
from dphist.kernels.paint import paint_boxes
from dphist.kernels.predictive.cells import Cells, found_leaves, painted_leaves, path_variances
from dphist.kernels.predictive.halvings import Halvings
from dphist.kernels.predictive.splits import infer_root, infer_splits, learn_ways, least_squares_splits
from dphist.kernels.predictive.visits import ask_boxes, infer_for_boxes
from dphist.kernels.predictive.ways import NEAR, WAYS, size_classes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# How much of what leaves have alike adds up. Of `adaptivetree` on 26 drawn cubes (6 draws) 3 of 78 cases fell below
# 0.93 with a half, least 0.90; on 12 of them (8 draws) none with all of it, 7 of 36 without, least 0.40. And on planes,
# which questions cut less often at one place.
_ALIKE, _ALIKE_ON_PLANES = 0.65, 0.4
# Up to so many nodes all splits are worked out at once; of more, those that are asked about, where there are so many
# nodes for each box.
_ALL_AT_ONCE = 1 << 14
# Up to so many nodes both laws are kept side by side as well, so that questions walk down the tree once.
_MOST_STACKED = 1 << 22
# From so many cells on, or half of all, the leaf of every cell is written down, where there are not too many.
_PAINTED_FROM, _LARGEST_PAINTED = 1 << 16, 1 << 26
_NODES_A_BOX = 16


@dataclass(frozen=True, eq=False)
class Law:
    """A binary tree of totals with what is known of each split, asked by `ask`."""

    shape: tuple[int, ...]
    left: IntArray
    low: ShortArray
    high: ShortArray
    size: FloatArray
    best: FloatArray
    spread: FloatArray
    wary: bool = field(default=False, kw_only=True)
    """Whether measured splits count by what they tell of the inside of leaves, not by how many there are."""

    @property
    def deviations(self) -> float:
        """How many deviations of its noise the whole is: how much there was to learn from."""
        return deviations_of(self.best, self.spread)

    # ---- what is known of each split ----

    @cached_property
    def ways(self) -> FloatArray:
        """How often each way to divide occurs, by size class."""
        return np.asarray(learn_ways(self.left, self.size, self.best, self.spread), dtype=np.float64)

    @cached_property
    def _posterior(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Every split worked out: mean, slope, rest, variance, unevenness."""
        mean, variance, slope, rest = infer_splits(self.left, self.size, self.best, self.spread, self.ways)
        return mean, slope, rest, variance, self._unevenness

    @cached_property
    def _begun(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """The same with nothing worked out yet but the whole."""
        mean, slope, rest, variance = (np.zeros(self.left.size) for _ in range(4))
        mean[0], variance[0] = infer_root(self.best[0], self.spread[0])
        return mean, slope, rest, variance, self._unevenness

    @cached_property
    def _asked(self) -> list[int]:
        """How many boxes were asked about, each time."""
        return []

    @cached_property
    def _ready(self) -> NDArray[np.bool_]:
        return np.zeros(self.left.size, dtype=bool)

    def _law_for(
        self, low: IntArray, high: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """The law as far as these boxes need it: of a very large tree, the splits that they cut."""
        # Who asks again and again is told of all splits at last: to look for those that are not ready takes time, too.
        self._asked.append(len(low))
        most = max(_ALL_AT_ONCE * len(self._asked), _NODES_A_BOX * sum(self._asked))
        if "_posterior" in self.__dict__ or self.left.size <= most:
            return self._posterior
        mean, slope, rest, variance, _ = self._begun
        infer_for_boxes(
            *(self.left, self.low, self.high, self.size, self.best, self.spread, self.ways),
            *(mean, variance, slope, rest, self._ready),
            np.ascontiguousarray(low, dtype=np.int64),
            np.ascontiguousarray(high, dtype=np.int64),
        )
        return self._begun

    @cached_property
    def _unevenness(self) -> FloatArray:
        """What c² is to be expected of splits that were not measured, by size class."""
        return inner_unevenness(
            *(self.left, self.size, self.best, self.spread, self.ways @ np.array(WAYS), self.deviations),
            line=len(self.shape) == 1,
            wary=self.wary,
        )

    @property
    def one_sided(self) -> float:
        """How likely a measured split has all, or nearly all, on one side: on average over splits."""
        of_size = self.ways[:, NEAR + 1 :].sum(axis=1)
        splits = self.left >= 0
        return float(of_size[size_classes(self.size[splits])].mean()) if splits.any() else 1.0

    @property
    def counts(self) -> FloatArray:
        """The law's mean of every cell: what it expects of each leaf, spread evenly."""
        out = np.zeros(math.prod(self.shape))
        strides = np.array([math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))])
        low, high = (np.ascontiguousarray(each, dtype=np.int64) for each in (self.low, self.high))
        paint_boxes(np.flatnonzero(self.left < 0), low, high, self._posterior[0] / self.size, strides, out)
        return out.reshape(self.shape)

    @property
    def node_variances(self) -> FloatArray:
        """What is left unknown of every node's total."""
        return self._posterior[3]

    @cached_property
    def alike(self) -> float:
        """Which part of what is unknown inside leaves is taken to be the same in all of them.

        Less than what the splits show, as what lies inside leaves counts twice anyway (see `Engine.caution`).
        """
        part = _ALIKE_ON_PLANES if len(self.shape) == 2 else _ALIKE
        return part * alike_part(self.left, self.low, self.high, self.size, self.best, self.spread)

    @cached_property
    def _plain(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        mean, slope, rest = least_squares_splits(self.left, self.best, self.spread)
        return mean, slope, rest, self.spread, np.empty(0)

    # ---- asking ----

    def ask(
        self, low: IntArray, high: IntArray, weight: FloatArray | None = None, starts: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Give the predictive law of weighted sums of boxes.

        Args:
            low: Where each box begins, a row for each.
            high: One past where it ends.
            weight: Of each box; 1 if not given.
            starts: Question j has the boxes ``starts[j]`` up to ``starts[j + 1]``; one box each if not given.

        Returns:
            Means; variances from the totals that were measured; and what stays unknown inside blocks that were
            measured as a whole, which adds to the variance.
        """
        return self._ask(self._law_for(low, high), low, high, weight, starts)

    def least_squares(
        self, low: IntArray, high: IntArray, weight: FloatArray | None = None, starts: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """The same from plain least squares: means and variances, but for leaves that a box cuts."""
        return self._ask(self._plain, low, high, weight, starts)[:2]

    def ask_both(
        self, low: IntArray, high: IntArray, starts: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """What `ask` and `least_squares` give, in one walk down the tree where that is to be had.

        Args:
            low: Where each box begins, a row for each.
            high: One past where it ends.
            starts: Question j has the boxes ``starts[j]`` up to ``starts[j + 1]``; one box each if not given.

        Returns:
            Mean, variance and inner part of the law; mean and variance of plain least squares.
        """
        law = self._law_for(low, high)
        begun = "_begun" in self.__dict__ and law is self._begun
        if not begun and starts is None and _single(low, high):
            cells = self._cells(low)
            return *self._ask_cells(law, cells), *self._ask_cells(self._plain, cells)[:2]
        if begun or self.left.size > _MOST_STACKED:
            plain = self._ask(self._plain, low, high, None, starts)
            return *self._ask(law, low, high, None, starts), *plain[:2]
        means, variances, inner = self._walk(self._stacked, law, low, high, None, starts)
        return means[:, 0], variances[:, 0], inner, means[:, 1], variances[:, 1]

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Means, slopes, rests and the roots' variances of both laws, side by side."""
        both = [np.stack(pair, axis=1) for pair in zip(self._posterior[:3], self._plain[:3], strict=True)]
        return both[0], both[1], both[2], np.array([self._posterior[3][0], self._plain[3][0]])

    def _ask(
        self,
        law: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
        low: IntArray,
        high: IntArray,
        weight: FloatArray | None,
        starts: IntArray | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        begun = "_begun" in self.__dict__ and law is self._begun
        if weight is None and starts is None and not begun and _single(low, high):
            return self._ask_cells(law, self._cells(low))
        mean, slope, rest, variance, _ = law
        alone = mean[:, None], slope[:, None], rest[:, None], variance[:1]
        means, variances, inner = self._walk(alone, law, low, high, weight, starts)
        return means[:, 0], variances[:, 0], inner

    def _walk(
        self,
        laws: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
        first: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray],
        low: IntArray,
        high: IntArray,
        weight: FloatArray | None,
        starts: IntArray | None,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        means, variances, inner = ask_boxes(
            *(
                self.left,
                self.low,
                self.high,
                *laws,
                first[3],
                first[4],
                self.alike if first[4].size else 0.0,
            ),
            only_read(np.asarray(low, dtype=np.int64)),
            only_read(np.asarray(high, dtype=np.int64)),
            only_read(np.ones(len(low)) if weight is None else np.asarray(weight, dtype=np.float64)),
            only_read(np.arange(len(low) + 1) if starts is None else starts),
        )
        return means, variances, inner

    def _ask_cells(
        self, law: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray], cells: Cells
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        mean, _, _, variance, unevenness = law
        return cells.ask(mean, self._path(law), variance, unevenness)

    def ask_run(self, begin: int, end: int) -> tuple[FloatArray, ...] | None:
        """What `ask_both` gives for a long run of cells in C order: every number of a leaf is worked out once.

        Args:
            begin: The first cell.
            end: One past the last.

        Returns:
            As of `ask_both`; None where the run is too short for it, or the tree too large.
        """
        known = "_posterior" in self.__dict__ or self.left.size <= _NODES_A_BOX * (end - begin)
        if end - begin < _PAINTED_FROM or math.prod(self.shape) > _LARGEST_PAINTED or not known:
            return None
        if self._of_leaves is None or int(self.painted[begin:end].min()) < 0:
            return None
        halvings, mean, known_part, plain, noise = self._of_leaves
        at = self.painted[begin:end]
        inner = halvings.inside(at, begin, self.shape)
        return mean[at], known_part[at], inner, plain[at], noise[at]

    @cached_property
    def _of_leaves(self) -> tuple[Halvings, FloatArray, FloatArray, FloatArray, FloatArray] | None:
        """Of a cell of every leaf what is the same for all its cells: mean and variance by both laws."""
        mean, _, _, variance, unevenness = self._posterior
        if not unevenness.size:
            return None
        halvings = Halvings.of(self.left, self.low, self.high, mean, variance, unevenness)
        if halvings is None:
            return None
        share = np.ones(self.left.size)
        for axis in range(len(self.shape)):
            share /= self.high[:, axis] - self.low[:, axis]
        both = [
            each
            for law in (self._posterior, self._plain)
            for each in (share * law[0], share * share * self._path(law))
        ]
        return halvings, both[0], both[1], both[2], both[3]

    def _path(self, law: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]) -> FloatArray:
        """What each node's slope adds to a variance."""
        along = self._along.get(id(law))
        if along is None:
            along = self._along[id(law)] = path_variances(self.left, law[1], law[2], float(law[3][0]))
        return along

    def _cells(self, low: IntArray) -> Cells:
        """Cells with their leaves."""
        cells = np.ascontiguousarray(low, dtype=np.int64)
        return Cells(self.low, self.high, cells, self._leaves(cells))

    def _leaves(self, cells: IntArray) -> IntArray:
        """The leaf of every cell."""
        size = math.prod(self.shape)
        if size <= _LARGEST_PAINTED and len(cells) >= min(size // 2, _PAINTED_FROM):
            at: IntArray = self.painted[np.ravel_multi_index(tuple(cells.T), self.shape)]
            if not at.size or int(at.min()) >= 0:
                return at
        return found_leaves(self.left, self.low, self.high, cells)

    @cached_property
    def painted(self) -> ShortArray:
        """The leaf of every cell, flat; −1 where none is."""
        return painted_leaves(self.left, self.low, self.high)

    @cached_property
    def _along(self) -> dict[int, FloatArray]:
        """What each node's slope adds to a variance, for either law; both are kept as long as the engine."""
        return {}


def _single(low: IntArray, high: IntArray) -> bool:
    """Whether every box is one cell."""
    return bool((np.asarray(high) - low == 1).all())


def deviations_of(best: FloatArray, spread: FloatArray) -> float:
    """How many deviations of its noise the total of a tree is, one at least."""
    known = bool(best.size) and float(spread[0]) > 0.0
    return max(1.0, float(best[0]) / math.sqrt(float(spread[0]))) if known else math.inf
