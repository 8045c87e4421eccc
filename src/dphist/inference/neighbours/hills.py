"""Counts that rise and fall gently, read off a tree of blocks or boxes: where the evidence says so, and only there.

A tree measures boxes one by one; within one that was measured as a whole its total is spread evenly, and what its
neighbours show of it is not asked. On hills both are wrong in a way that a smooth surface mends. So the plane is cut
into bins, which are boxes of one level of the tree, and everything that was measured (sums of bins, with noise of known
variance) is set beside models of them whose logarithms are smooth (`dphist.inference.neighbours.loggaussian`). So hills
may end in nothing: a bin that is nearly empty can hardly move, nor be negative.

Each model has its likeliest surface and its evidence. Gentle models have next to nothing of their own for a bin, rough
ones much. The rough ones have no opinion beyond the tree: by their share of the evidence the tree's counts stay. Models
are weighed on `_COARSE` bins an axis; then the best one is fitted to `_FINE` where these have enough cells, and weighed
against a rough one again. Within a bin the tree's counts say how its total is divided.

A line is read in the same way, in up to 64 bins. Lines that are full everywhere have gentle models of their own
(`dphist.inference.neighbours.smoothing`), which are heard first. Bins that hold tall cells and are measured in parts do
not fit any surface: one that is further from the tree's counts than noise explains is not heard at all.

Nothing private is read here: arithmetic on numbers that were paid for when they were measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.inference.neighbours.loggaussian import Fit, Model, SumsOfBins
from dphist.inference.neighbours.smoothing import cut_into_bins, read_bins
from dphist.kernels.summed_area import box_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Bins of an axis; the finer ones are looked at where each has so many cells at least.
_COARSE, _FINE = 16, 32
_FINE_CELLS = 4
# Of models: over how many of the coarse bins logarithms are alike, how far they vary, and what each bin has of its own.
# Those come first that are most often the best: others are not followed far then.
_GENTLE = tuple((width, height, 0.1) for width in (1.5, 4.0) for height in (3.0, 1.5, 0.5))
_ROUGH = ((0.7, 1.5, 1.5), (2.0, 1.5, 1.5))
_ROUGH_WHEN_FINE = (1.5, 1.5, 1.5)
# The same of lines, over how many of 64 bins.
_GENTLE_LINES = tuple((width, height, 0.1) for width in (3.0, 8.0, 20.0) for height in (3.0, 1.5, 0.5))
_ROUGH_LINES = ((1.0, 1.5, 1.5), (6.0, 1.5, 1.5), (2.0, 1.5, 0.5), (8.0, 1.5, 0.5))
_BINS_OF_LINES = 64
# On fewer cells a tree goes down to them.
_FEWEST = 64
# A line's surface is not heard that is further from the tree's bins than noise is, by so many deviations of that.
_OFF = 5.0
# How far counts go towards gentle models that have all of the evidence.
_MOST = 0.7
# Below this weight nothing changes.
_FAINT = 1e-3
# A fit begins at the tree's counts, but at no less than this part of the mean level; on a plane at no less than noise,
# if that is less.
_BEGIN = 0.02
# Finer bins begin between what coarser ones expect, off by about this part of it, and the tree's counts; at no less
# than the second part of what is expected.
_OFF_INSIDE, _LOW = 0.5, 0.05
# With more deviations of noise in the whole a tree has told all that a bin can: on nine hills of 64 × 64 and 128 × 128
# cells (`dphist_bench.data.planes.smooth_hills`, two draws) with 4,000 boxes were off by 0.91 of what they are without,
# with 10,000 and with 40,000 by 1.06.
_MANY = 6000.0
# On a line so many: 4,000 to 6,000 noise scales of records on 1,024 to 4,096 cells. With 10,000 errors were 0.98 to 1
# of those without surfaces, and intervals of prefixes held less often.
_MANY_ON_LINES = 600.0
# Bins are rounded to this part of the mean level: what a platform's algebra rounds otherwise must not change them.
_GRAIN = 2.0**-20
# Cells of a leaf that differ by no more than this are as even as sums of floats are.
_EVEN = 1e-6


def with_hills(tree: MeasuredTree, counts: FloatArray, heard: float = 0.0) -> FloatArray:
    """Move counts towards what gentle surfaces expect of their bins, as far as the surfaces' evidence goes.

    Args:
        tree: What was measured of a plane, boxes that are halved along both axes; or blocks of a line.
        counts: What was inferred from it, a number for each cell.
        heard: On a line, how far other gentle models were heard already, from 0 to 1: surfaces have the rest.

    Returns:
        Counts of the cells, none below zero if none was.

    Example:
        >>> import numpy as np
        >>> from dphist.inference.measured import MeasuredTree
        >>> tree = MeasuredTree.of(
        ...     (32, 32), [-1, 0, 0], [[0, 0], [0, 0], [16, 0]], [[32, 32], [16, 32], [32, 32]], [90, 47, 43], [8, 8, 8]
        ... )
        >>> with_hills(tree, tree.cells(tree.least_squares())).shape
        (32, 32)
    """
    if len(tree.shape) == 1:
        line, expected, gentle = _line(tree, counts)
        if line is None:
            return counts
        return _moved(line, counts, expected, gentle * (1.0 - heard), line.level(line.sums(counts)))
    if _tells_all(tree, _MANY):
        return counts
    coarse = _Bins.of(tree, _COARSE)
    if coarse is None:
        return counts
    held = coarse.sums(counts)
    level = coarse.level(held)
    begin = np.maximum(held, np.minimum(_BEGIN * level * coarse.part, coarse.noise))
    fits, chance, gentle = _weighed(coarse, _GENTLE, _ROUGH, begin, level)
    if gentle < _FAINT:
        return counts
    best_one = int(np.argmax(chance[: len(_GENTLE)]))
    bins, expected = coarse, _mixed(fits, chance, _GENTLE) / gentle
    fine = _Bins.of(tree, _FINE) if counts.size >= _FINE_CELLS * _FINE * _FINE else None
    if fine is not None:
        to_one = fine.to_one(coarse)
        spread = fine.part * (coarse.spread(fits[best_one].bins / coarse.part, fine) / to_one)
        held = fine.sums(counts)
        about = np.maximum(held, np.minimum(spread, fine.noise))
        width, height, own = _GENTLE[best_one]
        smooth = fine.fit(
            (width * _FINE / _COARSE, height, own),
            about,
            level / to_one,
            fine.between(spread, held, _OFF_INSIDE),
        )
        rough = (_ROUGH_WHEN_FINE[0] * _FINE / _COARSE, *_ROUGH_WHEN_FINE[1:])
        begin = fine.between(smooth.bins, held, rough[1])
        against = fine.fit(rough, about, level / to_one, begin, smooth.evidence)
        ours, others = fine.weighed([smooth, against])
        gentle *= 1.0 / (1.0 + math.exp(min(float(others - ours), 700.0)))
        bins, expected = fine, smooth.bins
    return _moved(bins, counts, expected, gentle, level)


def how_gentle(tree: MeasuredTree, counts: FloatArray) -> float:
    """Say how much of the evidence gentle surfaces of a line have.

    Args:
        tree: What was measured of a line so far.
        counts: What was inferred from it, a number for each cell.

    Returns:
        From 0 to 1; 0 where no surface was looked at.
    """
    return _line(tree, counts)[2]


def _tells_all(tree: MeasuredTree, many: float) -> bool:
    """Whether there is nothing to tell, or so much that a tree has told all that a bin can."""
    best, variance = tree.gathered
    return not 0.0 < best[0] < many * math.sqrt(float(variance[0]))


def _line(tree: MeasuredTree, counts: FloatArray) -> tuple[_Bins | None, FloatArray, float]:
    """The bins of a line, what gentle surfaces expect of them, and what part of the evidence these have."""
    nothing = None, np.zeros(0), 0.0
    bins = None if _tells_all(tree, _MANY_ON_LINES) else _Bins.of_line(tree)
    if bins is None:
        return nothing
    held, ratio = bins.sums(counts), bins.across[1] / _BINS_OF_LINES
    level = bins.level(held)
    begin = np.maximum(held, _BEGIN * level * bins.part)
    gentle, rough = (
        tuple((width * ratio, height, own) for width, height, own in models)
        for models in (_GENTLE_LINES, _ROUGH_LINES)
    )
    fits, chance, share = _weighed(bins, gentle, rough, begin, level)
    if share < _FAINT:
        return nothing
    expected = _mixed(fits, chance, gentle) / share
    off = expected - held
    if float(off @ (bins.precise @ off)) > held.size + _OFF * math.sqrt(2.0 * held.size):
        return nothing
    # Of next to nothing in many bins surfaces make a little in each, which adds up in long sums.
    return bins, np.where(held < _BEGIN * level * bins.part, held, expected), share


def _weighed(
    bins: _Bins, gentle: Sequence[Model], rough: Sequence[Model], about: FloatArray, level: float
) -> tuple[list[Fit], FloatArray, float]:
    """Every model's bins and evidence, how likely each is, and all gentle ones together."""
    fits: list[Fit] = []
    best, begin = -math.inf, about
    for model in (*gentle, *rough):
        fits.append(bins.fit(model, about, level, begin, best))
        # What a model found is near to what the next one will find.
        best, begin = max(best, fits[-1].evidence), fits[-1].bins
    evidence = bins.weighed(fits)
    chance = np.exp(evidence - evidence.max())
    chance /= chance.sum()
    return fits, chance, float(chance[: len(gentle)].sum())


def _mixed(fits: list[Fit], chance: FloatArray, gentle: Sequence[Model]) -> FloatArray:
    """What gentle models expect of bins, each by its share of the evidence."""
    some = fits[: len(gentle)]
    return sum(
        (part * each.bins for part, each in zip(chance, some, strict=False)),
        np.zeros(fits[0].bins.size),
    )


def _moved(bins: _Bins, counts: FloatArray, expected: FloatArray, gentle: float, level: float) -> FloatArray:
    """Counts on their way to what is expected of bins."""
    weight = round(_MOST * gentle * 1024.0) / 1024.0
    if weight < _FAINT:
        return counts
    grain = _GRAIN * 2.0 ** math.ceil(math.log2(level))
    moved = bins.scaled(counts, np.rint(expected / grain) * grain)
    return np.asarray(counts + weight * (moved - counts), dtype=np.float64)


def divides_leaves(tree: MeasuredTree, counts: FloatArray) -> bool:
    """Say whether counts differ inside a box that was measured as a whole, as those read off surfaces do.

    Args:
        tree: What was measured.
        counts: What is published of it, a number for each cell.

    Returns:
        Whether some leaf is not spread evenly.
    """
    flat = np.asarray(counts, dtype=np.float64).reshape(-1)
    even = (np.bincount(tree.leaf, flat, minlength=len(tree)) / tree.size)[tree.leaf]
    return bool((np.abs(flat - even) > _EVEN * (1.0 + even)).any())


def _summed(
    across: tuple[int, int], first: IntArray, last: IntArray, tree: MeasuredTree, asked: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The precision matrix of bins, and their weighted sums, box by box.

    Boxes of a level are disjoint, so that all have few times as many pairs of bins as there are. A product of matrices
    would wake a second thread (`dphist.kernels.definite`).
    """
    bins = math.prod(across)
    precise, weighted = np.zeros((*across, *across)), np.zeros(across)
    known = 1.0 / tree.variance[asked]
    pull = known * tree.value[asked]
    for (top, left), (bottom, right), weight, told in zip(
        first.tolist(), last.tolist(), known.tolist(), pull.tolist(), strict=True
    ):
        precise[top:bottom, left:right, top:bottom, left:right] += weight
        weighted[top:bottom, left:right] += told
    return precise.reshape(bins, bins), weighted.reshape(bins)


def _told_apart(held_by: BoolArray) -> IntArray:
    """Numbers of bins, the same for bins of the same sums."""
    held = np.ascontiguousarray(np.packbits(held_by, axis=0).T)
    return np.unique(held.view(f"V{held.shape[1]}").reshape(-1), return_inverse=True)[1]


@dataclass(frozen=True, eq=False)
class _Bins(SumsOfBins):
    """Sums of bins that are boxes of a plane, or intervals of a line, which is a plane of one row."""

    shape: tuple[int, ...]
    side: IntArray

    @classmethod
    def of(cls, tree: MeasuredTree, most: int) -> _Bins | None:
        """Cut a plane into boxes of the level that has up to so many an axis; None if none is larger than a cell."""
        ends = np.array(tree.shape, dtype=np.int64)
        side = np.array([max(1, (1 << (n - 1).bit_length()) // most) for n in tree.shape], dtype=np.int64)
        if (side == 1).all():
            return None
        rows, columns = (int(-(-n // s)) for n, s in zip(tree.shape, side, strict=True))
        lengths = [np.minimum(s, n - np.arange(0, n, s)) / s for n, s in zip(tree.shape, side, strict=True)]
        first, last = tree.low // side, -(-tree.high // side)
        # Sums of whole bins; what is smaller speaks for its bin together with its siblings, which cover it.
        whole = ((tree.low % side == 0) & ((tree.high % side == 0) | (tree.high == ends))).all(axis=1)
        asked = np.flatnonzero(whole & np.isfinite(tree.variance))
        inside = [
            (np.arange(n) >= first[asked, axis, None]) & (np.arange(n) < last[asked, axis, None])
            for axis, n in enumerate((rows, columns))
        ]
        group = _told_apart((inside[0][:, :, None] & inside[1][:, None, :]).reshape(asked.size, -1))
        precise, weighted = _summed((rows, columns), first[asked], last[asked], tree, asked)
        small = np.flatnonzero(~whole & (tree.parent >= 0))
        small = small[whole[tree.parent[small]]]
        if small.size:
            best, variance = tree.gathered
            bins = first[small, 0] * columns + first[small, 1]
            noise = np.bincount(bins, variance[small], minlength=rows * columns)
            here = np.flatnonzero(noise > 0.0)
            group[here] = group.size + here
            precise[here, here] += 1.0 / noise[here]
            weighted[here] += np.bincount(bins, best[small], minlength=rows * columns)[here] / noise[here]
        part = np.outer(*lengths).reshape(-1)
        group = np.unique(group, return_inverse=True)[1]
        return cls((rows, columns), part, precise, weighted, tuple(tree.shape), side, group=group)

    @classmethod
    def of_line(cls, tree: MeasuredTree) -> _Bins | None:
        """Cut a line into bins of as many cells each; None if there are too few."""
        cells = tree.shape[0]
        if cells < _FEWEST:
            return None
        opens, width = cut_into_bins(cells)
        precise, weighted, _ = read_bins(tree, opens, width)
        side = np.array([1, width[0]], dtype=np.int64)
        return cls((1, opens.size), width / width[0], precise, weighted, (1, cells), side)

    def level(self, held: FloatArray) -> float:
        """About what a bin holds, or what noise would hide."""
        return max(float(held.mean()), 1.0 / math.sqrt(float(self.precise.sum())))

    @property
    def noise(self) -> FloatArray:
        """Of every bin, the deviation it would have if all others were known."""
        return np.asarray(1.0 / np.sqrt(np.diagonal(self.precise)))

    def between(self, expected: FloatArray, held: FloatArray, doubt: float) -> FloatArray:
        """Bins between what is expected and what is held, nearer to that the more there is than noise."""
        spread, noise = (doubt * expected) ** 2, self.noise**2
        found = expected + spread / (spread + noise) * (held - expected)
        return np.maximum(found, _LOW * expected)

    def sums(self, counts: FloatArray) -> FloatArray:
        """How much each bin has of some counts."""
        counts = counts.reshape(self.shape)
        low = np.indices(self.across).reshape(2, -1).T * self.side
        high = np.minimum(low + self.side, np.array(self.shape))
        return box_sums(np.ascontiguousarray(counts, dtype=np.float64), low, high)

    def to_one(self, coarse: _Bins) -> float:
        """How many whole bins one of another cut has."""
        return float(np.prod(coarse.side / self.side))

    def spread(self, values: FloatArray, fine: _Bins) -> FloatArray:
        """A value of every bin for each of the finer ones in it."""
        step = self.side // fine.side
        rows, columns = (np.arange(n) // s for n, s in zip(fine.across, step, strict=True))
        return np.asarray(values.reshape(self.across)[np.ix_(rows, columns)].reshape(-1), dtype=np.float64)

    def scaled(self, counts: FloatArray, expected: FloatArray) -> FloatArray:
        """Counts with other sums of bins, divided inside as before, or evenly where there was nothing."""
        held = self.sums(counts)
        some = held > 0.0
        cells = self.part * float(np.prod(self.side))
        factor = np.divide(expected, held, out=np.zeros(held.size), where=some)
        added = np.where(some, 0.0, expected / cells)
        rows, columns = (np.arange(n) // s for n, s in zip(self.shape, self.side, strict=True))
        place = np.ix_(rows, columns)
        factor, added = factor.reshape(self.across)[place], added.reshape(self.across)[place]
        return np.asarray(
            counts * factor.reshape(counts.shape) + added.reshape(counts.shape), dtype=np.float64
        )
