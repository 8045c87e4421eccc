"""The predictive law of any sum of cells, given everything that was measured as a tree.

No budget is spent: only released values are read. Given a prior of how totals divide, which parts of a tree were
measured, and why, drops out of the posterior; so the law holds whatever rule grew the tree, as far as the prior does.
The prior is learned from the measured splits themselves (see `dphist.kernels.predictive.splits`), and how far that
was too smooth is checked against plain least squares, whose errors are known (`Engine.caution`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.alike import alike_part
from dphist.inference.predictive.sparse import sparse_unevenness
from dphist.inference.predictive.trials import size_classes as count_classes
from dphist.inference.predictive.trials import trial_boxes
from dphist.kernels.paint import paint_boxes
from dphist.kernels.predictive.cells import ask_cells, found_leaves, painted_leaves, path_variances
from dphist.kernels.predictive.halving import halve_cells, halve_families
from dphist.kernels.predictive.splits import (
    best_totals,
    infer_root,
    infer_splits,
    learn_ways,
    least_squares_splits,
)
from dphist.kernels.predictive.visits import ask_boxes, infer_for_boxes
from dphist.kernels.predictive.ways import CARRIED, FIRST, NEAR, WAYS, size_classes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# Variances are never below so many times what the prior says: what it gets wrong on average.
LEAST_CAUTION = 1.1
# A tree that stopped early taught the prior little: the least caution grows with one over the root of how many
# deviations of its noise the total is.
_LITTLE_LEARNED = 1.5
# The same where cells were measured one by one, and a total beside them.
_TOLD_OF_FEW = 3.0
# How much of what the law claims to know beyond plain least squares is not believed, on a line. Errors of a learned
# prior are shared by all splits it was applied to, so they add up over long ranges, which no variance of splits
# shows. On 23 made-up lines (92 cases, 12 draws) 1 then fell below 0.93 for ranges and none for lists; 2 and 4 before.
_DOUBT = 0.25
# The same in a tree, whose counts have since been averaged with the law's means: on drawn lines 300 to 344 (6 draws) 1
# of 43 cases of each kind falls below 0.93 with 0.25 as with 0.1, and means go from 0.983 to 0.980.
_DOUBT_OF_TREES = 0.2
# Where every cell was measured, sums of more cells than this are hedged. On 13 made-up lines (52 cases, 8 draws) lists
# and long ranges then hold in 0.95 of each case at least; in 0.92 without.
_LONG_SUM = 32.0
# At sizes that were never measured, what was learned from larger ones may be wrong: so much of what is believed before
# anything was seen is added, fading as splits of that size are seen. Hidden combs and teeth need it.
_UNSEEN = 0.4
# And so many times more, over the root of how many deviations of its noise the total is: what taught little may hide
# much. Of 160 cases on 40 drawn planes (`dphist_bench.drawn_data`, 8 draws) one then holds in less than 0.93, four
# without it; of those on 40 drawn lines none, three without it.
_HIDDEN = 12.0
# How much of what leaves have alike adds up. Of `adaptivetree` on 26 drawn cubes (6 draws) 3 of 78 cases fell below
# 0.93 with a half, least 0.90; on 12 of them (8 draws) none with all of it, 7 of 36 without, least 0.40.
_ALIKE = 0.65
# The same on planes, which questions cut less often at one place; and what all squared errors are then scaled by, as
# what is added for leaves, for caution and for the distance from the law's mean overlaps. Of 62 made-up and drawn ones
# (100 to 129, 3 draws) 2 of 248 cases then fall below 0.93 (0.92), as before; rectangles on average hold in 0.98.
_ALIKE_ON_PLANES = 0.4
_OVERLAP_ON_PLANES = 0.9
# A plane that was looked at step by step has larger blocks where records are few, and what lies inside is the larger
# part of what is unknown: squared errors are larger by so much over the root of how many deviations of its noise the
# total is. Of made-up planes with 10,000 records the least, a diagonal at ε = 0.1, then holds in 0.94 (24 draws); in
# 0.91 without it (12 draws), and in 0.95 where it was not looked at step by step.
_STEP_BY_STEP = 2.2
# Up to so many nodes all splits are worked out at once; of more, those that are asked about, where there are so many
# nodes for each box.
_ALL_AT_ONCE = 1 << 14
# Up to so many nodes both laws are kept side by side as well, so that questions walk down the tree once.
_MOST_STACKED = 1 << 22
# From so many cells on, or half of all, the leaf of every cell is written down, where there are not too many.
_PAINTED_FROM, _LARGEST_PAINTED = 1 << 16, 1 << 26
_NODES_A_BOX = 16


@dataclass(frozen=True, eq=False)
class Engine:
    """A binary tree of totals with what is known of each split; made by `of_tree` or `of_cells`, asked by `ask`."""

    shape: tuple[int, ...]
    left: IntArray
    low: ShortArray
    high: ShortArray
    size: FloatArray
    best: FloatArray
    spread: FloatArray
    least_caution: float = LEAST_CAUTION
    doubt: float = 0.0
    doubted_from: float = 0.0
    """Questions about more cells than this are hedged."""
    overlap: float = 1.0
    """Squared errors are scaled by this."""

    @classmethod
    def of_tree(cls, tree: MeasuredTree, *, near: bool = False) -> Engine:
        """Read a measured tree: boxes with noisy totals, siblings side by side; perhaps one grown step by step."""
        left, low, high, size, value, variance = halve_families(
            tree.first,
            tree.last,
            np.ascontiguousarray(tree.low, dtype=np.int64),
            np.ascontiguousarray(tree.high, dtype=np.int64),
            np.ascontiguousarray(tree.size, dtype=np.float64),
            tree.value,
            tree.variance,
        )
        best, spread = best_totals(left, value, variance)
        seen = math.sqrt(_deviations(best, spread))
        least = LEAST_CAUTION * (1.0 + _LITTLE_LEARNED / seen)
        doubt = _DOUBT_OF_TREES if len(tree.shape) == 1 else 0.0
        overlap = _OVERLAP_ON_PLANES if len(tree.shape) == 2 else 1.0
        overlap *= 1.0 + _STEP_BY_STEP / seen if near else 1.0
        return cls(*(tuple(tree.shape), left, low, high, size, best, spread, least, doubt), overlap=overlap)

    @classmethod
    def of_cells(
        cls, noisy: NDArray[Any], variance: float, total: tuple[float, float] | None = None
    ) -> Engine:
        """Read noisy cells that all carry noise of the same variance, and perhaps a total with its own."""
        left, low, high, cell = halve_cells(np.array(noisy.shape, dtype=np.int64))
        leaves = cell >= 0
        value = np.zeros(cell.size)
        value[leaves] = noisy.reshape(-1)[cell[leaves]]
        known = np.where(leaves, variance, np.inf)
        if total is not None:
            value[0], known[0] = total
        best, spread = best_totals(left, value, known)
        size = np.prod((high - low).astype(np.float64), axis=1)
        # A total is asked for where there are few records: cells then teach little of how it divides.
        little = 0.0 if total is None else _TOLD_OF_FEW / math.sqrt(_deviations(best, spread))
        return cls(
            *(tuple(noisy.shape), left, low, high, size, best, spread, LEAST_CAUTION * (1.0 + little)),
            *(_DOUBT, _LONG_SUM),
        )

    def believe(self, told: Mapping[str, FloatArray]) -> None:
        """Take from a file what would be learned otherwise, as far as it fits this tree."""
        classes = int(size_classes(self.size[:1])[0]) + 1 if self.size.size else 0
        fits = {"ways": (classes, len(WAYS)), "alike": (1,), "caution": (count_classes(self.shape),)}
        if any(name not in told or told[name].shape != shape for name, shape in fits.items()):
            return
        self.__dict__["ways"] = told["ways"]
        self.__dict__["alike"] = float(told["alike"][0])
        self.__dict__["_cautions"] = dict(enumerate(told["caution"].tolist()))

    @property
    def learned(self) -> dict[str, FloatArray]:
        """What was learned from everything that was measured, in few numbers."""
        return {"ways": self.ways, "alike": np.array([self.alike]), "caution": self.caution}

    @property
    def deviations(self) -> float:
        """How many deviations of its noise the whole is: how much there was to learn from."""
        return _deviations(self.best, self.spread)

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
        classes = len(self.ways)
        learned: FloatArray = self.ways @ np.array(WAYS)
        seen = np.bincount(size_classes(self.size[self.left >= 0]), minlength=classes)[:classes]
        before = float(np.dot(FIRST, WAYS)) / sum(FIRST)
        unseen = _UNSEEN * (1.0 + _HIDDEN / math.sqrt(self.deviations))
        expected = learned + unseen * before * CARRIED / (CARRIED + seen)
        if len(self.shape) == 1:
            # What was not divided is sparse, and is as uneven as sparse totals were seen to be.
            expected = np.maximum(expected, sparse_unevenness(self.left, self.size, self.best, self.spread))
        return np.minimum(expected, 1.0)

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

    @cached_property
    def alike(self) -> float:
        """Which part of what is unknown inside leaves is taken to be the same in all of them.

        Less than what the splits show, as what lies inside leaves counts twice anyway (see `_caution`).
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
        if begun or self.left.size > _MOST_STACKED or (starts is None and _single(low, high)):
            return *self._ask(law, low, high, None, starts), *self._ask(self._plain, low, high, None, starts)[
                :2
            ]
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
            return self._ask_cells(law, np.ascontiguousarray(low, dtype=np.int64))
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
            np.ascontiguousarray(low, dtype=np.int64),
            np.ascontiguousarray(high, dtype=np.int64),
            np.ones(len(low)) if weight is None else np.ascontiguousarray(weight, dtype=np.float64),
            np.arange(len(low) + 1) if starts is None else starts,
        )
        return means, variances, inner

    def departures(self, cells: NDArray[Any], inside: float = 0.0) -> FloatArray:
        """How far other cells' sums are from the noisy ones: mean squares over noise, for boxes of 1, 2, 4 … cells.

        What is unknown inside leaves counts ``inside`` times as noise.
        """
        from dphist.kernels.summed_area import box_sums

        low, high, ends = self.trials
        sums = box_sums(np.ascontiguousarray(cells, dtype=np.float64).reshape(self.shape), low, high)
        known = inside > 0.0 or len(self._tried) == len(ends)
        plain, noise = self.tried[3:] if known else self.least_squares(low, high)
        if inside > 0.0:
            noise = noise + inside * self.tried[2]
        count = np.diff([*ends, len(low)])
        return np.asarray(np.add.reduceat((sums - plain) ** 2 / noise, ends) / count, dtype=np.float64)

    @cached_property
    def trials(self) -> tuple[IntArray, IntArray, IntArray]:
        """Boxes of every size class, and where each class starts."""
        trials = trial_boxes(self.shape)
        low, high = (np.concatenate([each[side] for each in trials]) for side in range(2))
        return low, high, np.cumsum([0, *(len(each[0]) for each in trials)])[:-1]

    @cached_property
    def _tried(self) -> dict[int, tuple[FloatArray, ...]]:
        """What both laws say of the trial boxes of the size classes that were looked at, as `ask_both` gives it."""
        return {}

    @property
    def tried(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """What the law says of them (mean, variance, inner part) and what plain least squares does (mean, variance)."""
        classes = range(count_classes(self.shape))
        self._try(classes)
        mean, known, inner, plain, noise = (
            np.concatenate([self._tried[each][part] for each in classes]) for part in range(5)
        )
        return mean, known, inner, plain, noise

    def _try(self, classes: Sequence[int]) -> None:
        """Ask the trial boxes of some size classes; each is a question by itself, whatever else is asked with it."""
        classes = [each for each in classes if each not in self._tried]
        if not classes:
            return
        boxes = [trial_boxes(self.shape)[each] for each in classes]
        low, high = (np.concatenate([each[side] for each in boxes]) for side in range(2))
        ends = np.cumsum([len(each[0]) for each in boxes])
        said = self.ask_both(low, high, np.arange(len(low) + 1))
        for each, *parts in zip(classes, *(np.split(answers, ends[:-1]) for answers in said), strict=True):
            self._tried[each] = tuple(parts)

    def _ask_cells(
        self, law: tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray], cells: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        mean, slope, rest, variance, unevenness = law
        along = self._along.get(id(law))
        if along is None:
            along = self._along[id(law)] = path_variances(self.left, slope, rest, float(variance[0]))
        return ask_cells(self._leaves(cells), self.low, self.high, mean, along, variance, unevenness, cells)

    def _leaves(self, cells: IntArray) -> IntArray:
        """The leaf of every cell."""
        size = math.prod(self.shape)
        if size <= _LARGEST_PAINTED and len(cells) >= min(size // 2, _PAINTED_FROM):
            at: IntArray = self._painted[np.ravel_multi_index(tuple(cells.T), self.shape)]
            if not at.size or int(at.min()) >= 0:
                return at
        return found_leaves(self.left, self.low, self.high, cells)

    @cached_property
    def _painted(self) -> ShortArray:
        return painted_leaves(self.left, self.low, self.high)

    @cached_property
    def _along(self) -> dict[int, FloatArray]:
        """What each node's slope adds to a variance, for either law; both are kept as long as the engine."""
        return {}

    # ---- the check ----

    def caution_of(self, cells: FloatArray) -> FloatArray:
        """The caution for questions about so many cells: of their size classes, and no others are looked at."""
        number = np.ceil(np.log2(np.maximum(cells, 1.0) / 1.5)).astype(np.int64)
        number = np.clip(number, 0, count_classes(self.shape) - 1)
        wanted = np.flatnonzero(np.bincount(number))
        table = np.zeros(int(wanted[-1]) + 1 if wanted.size else 0)
        table[wanted] = self._caution(wanted.tolist())
        return np.asarray(table[number], dtype=np.float64)

    @property
    def caution(self) -> FloatArray:
        """By how much the mean squared error of the means exceeds their variance, for every size class."""
        return self._caution(range(count_classes(self.shape)))

    @cached_property
    def _cautions(self) -> dict[int, float]:
        return {}

    def _caution(self, classes: Sequence[int]) -> FloatArray:
        """The caution of some size classes.

        Plain least squares l is unbiased with known variance W. So (l − m)² − W + 2V estimates the squared
        error of m (Stein's identity, with V for the covariance of m and l); over many boxes of one size it is set
        against V, hedged. What lies inside leaves that a box cuts was never measured: there l says nothing, and V
        counts twice.
        """
        new = [each for each in classes if each not in self._cautions]
        self._try(new)
        for each in new:
            low, high = trial_boxes(self.shape)[each]
            mean, known, inner, plain, noise = self._tried[each]
            squares = (plain - mean) ** 2 - noise + 2.0 * (known + inner)
            cells = np.prod((high - low).astype(np.float64), axis=1)
            claimed = self.hedged(known, noise, cells) + inner
            ratio = float(np.add.reduceat(squares, [0])[0]) / max(
                float(np.add.reduceat(claimed, [0])[0]), 1e-9
            )
            self._cautions[each] = max(self.least_caution, ratio)
        return np.array([self._cautions[each] for each in classes], dtype=np.float64)

    def hedged(self, known: FloatArray, noise: FloatArray, cells: FloatArray) -> FloatArray:
        """The law's variances, with a part of what it claims to know beyond plain least squares taken back.

        Args:
            known: The law's variances of some questions.
            noise: Those of plain least squares.
            cells: How many cells each question is about.

        Returns:
            The variances to go by.
        """
        doubt: FloatArray = np.where(cells > self.doubted_from, self.doubt, 0.0)
        wider: FloatArray = known + doubt * np.maximum(noise - known, 0.0)
        return wider


def _single(low: IntArray, high: IntArray) -> bool:
    """Whether every box is one cell."""
    return bool((np.asarray(high) - low == 1).all())


def _deviations(best: FloatArray, spread: FloatArray) -> float:
    known = bool(best.size) and float(spread[0]) > 0.0
    return max(1.0, float(best[0]) / math.sqrt(float(spread[0]))) if known else math.inf
