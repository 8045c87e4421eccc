"""What everything that was measured as a tree says of any sum of cells: the law is learned here, once.

No budget is spent: only released values are read. Given a prior of how totals divide, which parts of a tree were
measured, and why, drops out of the posterior; so the law holds whatever rule grew the tree, as far as the prior does.
The prior is learned from the measured splits themselves (`dphist.kernels.predictive.ways`), and how far that was too
smooth is checked against plain least squares, whose errors are known (`caution`). What was learned is a `Law`, plain
numbers: whoever only asks needs nothing of this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.law import BinaryTree, Law, Moments, size_classes_of
from dphist.kernels.predictive.halving import size_classes
from dphist.kernels.predictive.ways import CARRIED, FIRST, NEAR, WAYS, infer_splits, learn_ways
from dphist.kernels.summed_area import box_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Variances are at least 1.1 times what the prior says: the prior is off by that on average. A tree that stopped early
# taught it little: this grows with one over the root of how many deviations of its noise the total is.
LEAST_CAUTION, _LITTLE_LEARNED = 1.1, 1.5
# How much of what the law claims to know beyond plain least squares is not believed, on a line; and in a tree, whose
# counts are averaged with the law's means. Errors of a learned prior are shared by all splits it was applied to, so
# they add up over long ranges, which no variance of splits shows.
_DOUBT, _DOUBT_OF_TREES = 0.25, 0.2
# Where every cell was measured, sums of more cells than this are hedged.
_LONG_SUM = 32.0
# At sizes that were never measured, what was learned from larger ones may be wrong: 0.4 of what c² is believed to be
# before anything was seen is added, fading as splits of that size are seen, for hidden combs and teeth. That part
# grows by the factor 1 + 12/√d where the total is d deviations of its noise: what taught little may hide much.
_UNSEEN, _HIDDEN = 0.4, 12.0
# What c² is believed before anything was seen.
_BEFORE = float(np.dot(FIRST, WAYS)) / sum(FIRST)
# What all squared errors on planes are scaled by, as what is added for leaves, for caution and for the distance from
# the law's mean overlaps.
_OVERLAP_ON_PLANES = 0.9
# Which part of what is unknown inside leaves is the same in all that a question cuts, on planes and from three axes on:
# where attributes do not depend on each other all boxes lean to the same side, and errors of a table of one attribute,
# which cuts nearly all leaves at one place, add up instead of cancelling out (bench/results/tried.md).
_ALIKE_ON_PLANES, _ALIKE = 0.05, 0.4
# Trial boxes of one size class.
_MOST, _FEWEST = 384, 40


@dataclass(frozen=True, eq=False)
class Learned:
    """A law with what it was learned from.

    Args:
        law: The law.
        ways: How often each way to divide occurs, by size class.
        tried: What the law says of `trial_boxes`, all of them one size class after the other.
        starts: Where each size class starts in them.
    """

    law: Law
    ways: FloatArray
    tried: Moments
    starts: IntArray

    @property
    def trials(self) -> tuple[IntArray, IntArray]:
        """The boxes that were tried."""
        return trial_boxes(self.law.binary.shape)[:2]

    @property
    def one_sided(self) -> float:
        """How likely a measured split has all, or nearly all, on one side: on average over splits."""
        tree = self.law.binary
        of_size = self.ways[:, NEAR + 1 :].sum(axis=1)
        return float(of_size[size_classes(tree.size[tree.splits])].mean()) if tree.splits.size else 1.0

    def departures(self, cells: NDArray[Any]) -> FloatArray:
        """How far other cells' sums are from the noisy ones: mean squares over noise, for boxes of 1, 2, 4 … cells."""
        low, high = self.trials
        sums = box_sums(
            np.ascontiguousarray(cells, dtype=np.float64).reshape(self.law.binary.shape), low, high
        )
        return _averaged((sums - self.tried.plain) ** 2 / self.tried.noise, self.starts)


def learned_of_tree(tree: MeasuredTree) -> Learned:
    """Learn from a measured tree: boxes with noisy totals, siblings side by side."""
    binary, axes = BinaryTree.of_tree(tree), len(tree.shape)
    seen = math.sqrt(binary.deviations)
    overlap = _OVERLAP_ON_PLANES if axes == 2 else 1.0
    least = LEAST_CAUTION * (1.0 + _LITTLE_LEARNED / seen)
    return _learned(binary, least, doubt=_DOUBT_OF_TREES if axes == 1 else 0.0, overlap=overlap)


def learned_of_cells(noisy: NDArray[Any], variance: float) -> Learned:
    """Learn from noisy cells that all carry noise of the same variance."""
    return _learned(BinaryTree.of_cells(noisy, variance), LEAST_CAUTION, doubt=_DOUBT, doubted_from=_LONG_SUM)


def _learned(
    binary: BinaryTree,
    least_caution: float,
    *,
    doubt: float,
    doubted_from: float = 0.0,
    overlap: float = 1.0,
) -> Learned:
    tree, (best, spread) = binary, binary.totals
    ways = learn_ways(tree.left, tree.size, best, spread)
    hidden = _UNSEEN * (1.0 + _HIDDEN / math.sqrt(tree.deviations)) * _BEFORE
    uneven = np.minimum(ways @ np.array(WAYS) + hidden * CARRIED / (CARRIED + _told(tree)[: len(ways)]), 1.0)
    axes = len(tree.shape)
    alike = 0.0 if axes == 1 else _ALIKE_ON_PLANES if axes == 2 else _ALIKE
    law = Law.of(
        *(tree, infer_splits(tree.left, tree.size, best, spread, ways), uneven, alike),
        doubt=doubt,
        doubted_from=doubted_from,
        overlap=overlap,
    )
    low, high, starts = trial_boxes(tree.shape)
    tried = law.ask(low, high)
    caution = _caution(law, tried, np.prod((high - low).astype(np.float64), axis=1), starts)
    return Learned(replace(law, caution=np.maximum(least_caution, caution)), ways, tried, starts)


def _told(tree: BinaryTree) -> FloatArray:
    """How much the splits of each size tell of c², in splits without noise: Fisher's information.

    A left part of variance n + s + t·f(1 − f), with s = t²c²f(1 − f) and n of noise, tells (s over all of it)² of what
    s alone would. Cells whose noise is larger than their counts say next to nothing of how two of them share a total,
    however many there are: a comb of high and low cells looks as even as a level.
    """
    best, spread = tree.totals
    node, left = tree.splits, tree.left[tree.splits]
    share, total = tree.size[left] / tree.size[node], np.maximum(best[node], 0.0)
    noise = (1.0 - share) ** 2 * spread[left] + share**2 * spread[left + 1]
    scatter = share * (1.0 - share)
    uneven = total**2 * _BEFORE * scatter
    part = (uneven / (uneven + noise + total * scatter + 1e-300)) ** 2
    return np.asarray(np.bincount(size_classes(tree.size[node]), part, size_classes_of(tree.shape) + 1))


@lru_cache(maxsize=8)
def trial_boxes(shape: tuple[int, ...]) -> tuple[IntArray, IntArray, IntArray]:
    """For every size class 2^k the bounds of some boxes of about 2^k cells, and where each class starts.

    Places follow a low-discrepancy rule. In several dimensions a box is cut from the grid on some axes and takes the
    whole of the others, as questions do.
    """
    cells = math.prod(shape)
    sides = np.log2(np.array(shape, dtype=np.float64))
    boxes = []
    for k in range(size_classes_of(shape)):
        count = int(min(_MOST, max(_FEWEST, 4 * cells // (1 << k))))
        wanted = np.minimum(k - 0.4 + 0.8 * _spread(count, 0), sides.sum())
        lengths = np.ones((count, len(shape)), dtype=np.int64)
        # Axes in turn take a random part of what is wanted, and the last what is left.
        order = np.argsort(np.stack([_spread(count, 1 + axis) for axis in range(len(shape))], axis=1), axis=1)
        left, room = wanted.copy(), np.full(count, sides.sum())
        for turn in range(len(shape)):
            axis = order[:, turn]
            room = room - sides[axis]
            least = np.maximum(left - room, 0.0)
            most = np.minimum(sides[axis], np.maximum(left, 0.0))
            bits = least + (most - least) * _spread(count, 20 + turn)
            whole = np.array(shape)[axis]
            length = np.clip(np.rint(2.0**bits), 1, whole).astype(np.int64)
            lengths[np.arange(count), axis] = length
            left = left - np.log2(length)
        low = np.stack(
            [
                np.floor(_spread(count, 40 + axis) * (size - lengths[:, axis] + 1)).astype(np.int64)
                for axis, size in enumerate(shape)
            ],
            axis=1,
        )
        boxes.append((low, low + lengths))
    lows, highs = (np.concatenate([each[side] for each in boxes]) for side in range(2))
    return lows, highs, np.cumsum([0, *(len(each[0]) for each in boxes)])[:-1]


def _spread(count: int, salt: int) -> FloatArray:
    """Numbers that fill [0, 1) evenly: multiples of an irrational, another one for each salt."""
    irrational = math.sqrt(2.0 + salt + salt // 2) % 1.0 or 0.6180339887498949
    return np.asarray((irrational * (np.arange(count) + 1) + 0.37 * salt) % 1.0, dtype=np.float64)


def _caution(law: Law, tried: Moments, cells: FloatArray, starts: IntArray) -> FloatArray:
    """By how much the mean squared error of the means exceeds their variance, for every size class.

    Plain least squares l is unbiased with known variance W. So (l − m)² − W + 2V estimates the squared error of m
    (Stein's identity, with V for the covariance of m and l); over many boxes of one size it is set against V, hedged.
    What lies inside leaves that a box cuts was never measured: there l says nothing, and V counts twice.
    """
    squares = (tried.plain - tried.mean) ** 2 - tried.noise + 2.0 * (tried.known + tried.inner)
    claimed = law.hedged(tried.known, tried.noise, cells) + tried.inner
    return _summed(squares, starts) / np.maximum(_summed(claimed, starts), 1e-9)


def _summed(values: FloatArray, starts: IntArray) -> FloatArray:
    return np.asarray(np.add.reduceat(values, starts), dtype=np.float64)


def _averaged(values: FloatArray, starts: IntArray) -> FloatArray:
    return _summed(values, starts) / np.diff([*starts, values.size])
