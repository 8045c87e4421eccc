"""How unevenly totals divide inside blocks that were never divided: believed beforehand, and learned from what was.

Ways to divide are learned size by size from every measured split, but splits differ in what they tell. Cells whose
noise is larger than their counts say next to nothing of how two of them share a total, however many there are: a comb
of high and low cells looks as even as a level. So a split counts by what it tells, and what many of them show together
is read off second moments, which are unbiased however small the totals are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.sparse import sparse_unevenness
from dphist.kernels.predictive.passes import levels, size_classes
from dphist.kernels.predictive.ways import CARRIED, FIRST, WAYS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# At sizes that were never measured, what was learned from larger ones may be wrong: 0.4 of what is believed before
# anything was seen is added, fading as splits of that size are seen. Hidden combs and teeth need it.
_UNSEEN = 0.4
# That part grows by the factor 1 + 12/√d where the total is d deviations of its noise: what taught little may hide
# much. Of 160 cases on 40 drawn planes (`dphist_bench.data.drawn`, 8 draws) one then holds in less than 0.93, four
# without it; of those on 40 drawn lines none, three without it.
_HIDDEN = 12.0
# What c² is believed before anything was seen.
_BEFORE = float(np.dot(FIRST, WAYS)) / sum(FIRST)
# Wary of what splits do not tell: only those under blocks at most twice as full as the leaves are listened to; the
# deviation of c² beforehand is 0.35; at least 0.7 of what is believed stays, whatever second moments say; and those of
# fewer than 8 splits are ignored. On combs, levels under combs, stairs (20 lines of 4,096 cells, 500 cases, 16 draws) 5
# then hold in less than 0.93, the least in 0.88; 16 without, the least in 0.60 (6 draws). Ordinary lines are 1.01 to
# 1.04 as wide.
_AS_FULL = 2.0
_DEVIATION = 0.35
_STAYS = 0.7
_FEWEST = 8


class Splits(NamedTuple):
    """Every split of a halved tree: size class, share of the left part, total, and what was seen of it."""

    node: IntArray
    number: IntArray
    scatter: FloatArray
    """f(1 − f) of the left part's share f."""
    total: FloatArray
    """Of both parts as they were seen."""
    noise: FloatArray
    """Its variance."""
    departs: FloatArray
    """What the left part exceeds its share by."""
    unsure: FloatArray
    """The variance of that."""

    @classmethod
    def of(cls, left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray) -> Splits:
        """Read a halved tree."""
        node = np.flatnonzero(left >= 0)
        one, other = left[node], left[node] + 1
        share = size[one] / size[node]
        return cls(
            node,
            size_classes(size[node]),
            share * (1.0 - share),
            best[one] + best[other],
            spread[one] + spread[other],
            (1.0 - share) * best[one] - share * best[other],
            (1.0 - share) ** 2 * spread[one] + share**2 * spread[other],
        )


def inner_unevenness(
    left: IntArray,
    size: FloatArray,
    best: FloatArray,
    spread: FloatArray,
    learned: FloatArray,
    deviations: float,
    *,
    line: bool,
    wary: bool,
) -> FloatArray:
    """What c² is to be expected of splits that were not measured, by size class.

    Args:
        left: The left child of every node of a halved tree, −1 for a leaf; the right one is the next.
        size: How many cells each node has.
        best: Best linear totals from below.
        spread: Their variances.
        learned: What c² ways to divide have on average, by size class.
        deviations: How many deviations of its noise the whole is.
        line: Whether the cells are a line, on which what was not divided is sparse.
        wary: Whether splits count by what they tell.

    Returns:
        A number from 0 to 1 for every size class.
    """
    classes = len(learned)
    unseen = _UNSEEN * (1.0 + _HIDDEN / math.sqrt(deviations))
    if wary:
        splits = Splits.of(left, size, best, spread)
        heard, total = _heard(splits, left, size, best, spread)
        told = np.bincount(splits.number, _told(splits, total) * heard, minlength=classes)[:classes]
        expected = _moments(splits, heard, learned + unseen * _BEFORE * CARRIED / (CARRIED + told))
    else:
        seen = np.bincount(size_classes(size[left >= 0]), minlength=classes)[:classes]
        expected = learned + unseen * _BEFORE * CARRIED / (CARRIED + seen)
    if line:
        # What was not divided is sparse, and is as uneven as sparse totals were seen to be.
        expected = np.maximum(expected, sparse_unevenness(left, size, best, spread))
    return np.minimum(expected, 1.0)


def _told(splits: Splits, total: FloatArray) -> FloatArray:
    """How much each split tells of c², as a part of what it would tell without noise: Fisher's information.

    A left part of variance n + s + t·f(1 − f), with s = t²c²f(1 − f), tells (s over all of it)² of what s alone would.
    """
    uneven = total**2 * _BEFORE * splits.scatter
    part: FloatArray = (uneven / (uneven + splits.unsure + total * splits.scatter + 1e-300)) ** 2
    return part


def _heard(
    splits: Splits, left: IntArray, size: FloatArray, best: FloatArray, spread: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Which splits lie in blocks like the leaves of several cells; and what an even share of its block gives each.

    What is much fuller was divided, and tells of itself alone. Blocks are as large as the smallest such leaf at least:
    to go by the total of a split itself would leave out those with a tall cell in them, and take noise for records.
    """
    known: BoolArray = splits.unsure < 1e29
    leaves = (left < 0) & (size > 1.0) & (spread < 1e29)
    if not leaves.any():
        return known, np.maximum(best[splits.node], 0.0)
    density, noise = best / size, np.sqrt(spread) / size
    typical = max(float(np.median(density[leaves])), 0.0)
    smallest = float(size[leaves].min())
    for level in levels(left):
        node = level[size[level] <= smallest]
        for child in (left[node], left[node] + 1):
            density[child], noise[child] = density[node], noise[node]
    heard = known & (density[splits.node] <= _AS_FULL * np.maximum(typical, noise[splits.node]))
    return heard, np.maximum(density * size, 0.0)[splits.node]


def _moments(splits: Splits, heard: BoolArray, expected: FloatArray) -> FloatArray:
    """Move what is expected of c² towards what second moments show, as far as their own deviations let them speak."""
    out = expected.copy()
    beyond = splits.departs**2 - splits.unsure - np.maximum(splits.total, 0.0) * splits.scatter
    squares = (splits.total**2 - splits.noise) * splits.scatter
    for number in range(1, len(expected)):
        mine = heard & (splits.number == number)
        every = float(squares[mine].sum())
        if int(mine.sum()) < _FEWEST or every <= 0.0:
            continue
        found = float(beyond[mine].sum()) / every
        variance = float(((beyond[mine] - found * squares[mine]) ** 2).sum()) / every**2
        moved = out[number] + (found - out[number]) * _DEVIATION**2 / (_DEVIATION**2 + variance)
        out[number] = max(moved, _STAYS * out[number])
    return out
