"""Counts of a plane that rise and fall gently, read off a tree of boxes: where the evidence says so, and only there.

A tree measures boxes one by one; within one that was measured as a whole its total is spread evenly, and what its
neighbours show of it is not asked. On hills both are wrong in a way that a smooth surface mends. So the plane is cut
into bins, which are boxes of one level of the tree, and everything that was measured (sums of bins, with noise of known
variance) is set beside models of them: a bin holds (its part of a full bin) · exp(f), f being normal with covariance
height²·(1 + r)·e⁻ʳ, r = √3·(distance in bins) ÷ width, and as much of its own for every bin as the model says. The
logarithm is smooth, so hills may end in nothing: a bin that is nearly empty can hardly move, nor be negative.

Each model has its likeliest surface (Gauss and Newton's steps) and its evidence by Laplace's approximation. Gentle
models have next to nothing of their own for a bin, rough ones much. The rough ones have no opinion beyond the tree: by
their share of the evidence the tree's counts stay. Models are weighed on `_COARSE` bins an axis; then the best one is
fitted to `_FINE` where these have enough cells, and weighed against a rough one again. Within a bin the tree's counts
say how its total is divided.

Nothing private is read here: arithmetic on numbers that were paid for when they were measured.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.kernels.definite import CurvedRoot
from dphist.kernels.summed_area import box_sums

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Bins of an axis; the finer ones are looked at where each has so many cells at least, or with a closer look so many.
_COARSE, _FINE = 16, 32
_FINE_CELLS, _FINE_CELLS_CLOSE = 16, 4
# Of models: over how many of the coarse bins logarithms are alike, how far they vary, and what each bin has of its own.
_GENTLE = tuple((width, height, 0.1) for width in (1.5, 4.0) for height in (0.5, 1.5, 3.0))
_ROUGH = ((0.7, 1.5, 1.5), (2.0, 1.5, 1.5))
_ROUGH_WHEN_FINE = (1.5, 1.5, 1.5)
# The mean logarithm is not known beforehand: its variance.
_ANY_LEVEL = 100.0
# How far counts go towards gentle models that have all of the evidence.
_MOST = 0.7
# Below this weight nothing changes.
_FAINT = 1e-3
# Steps of a fit at most; it ends when one gains less than this in evidence; no logarithm moves further in one
# step, of which less than a last part is not tried.
_STEPS, _GAINED, _FURTHEST, _SHORTEST = 12, 0.1, 3.0, 0.02
# A step that gained less than this is followed by others along the same curvature.
_NEAR = 5.0
# A fit begins at the tree's counts, but at no less than this part of the mean level, or of what coarse bins expect; a
# close one at no less than noise, if that is less.
_BEGIN, _BEGIN_FINE = 0.02, 1e-3
_COARSE_PART = 0.3
# With more deviations of noise in the whole a tree has told all that a bin can.
_MANY = 3e5
# Bins are rounded to this part of the mean level: what a platform's algebra rounds otherwise must not change them.
_GRAIN = 2.0**-20
# Cells of a leaf that differ by no more than this are as even as sums of floats are.
_EVEN = 1e-6


def with_hills(tree: MeasuredTree, counts: FloatArray, *, close: bool = False) -> FloatArray:
    """Move the counts of a plane towards what gentle surfaces expect of its bins, as far as their evidence goes.

    Args:
        tree: What was measured of a plane, boxes that are halved along both axes.
        counts: What was inferred from it, a number for each cell.
        close: Look at finer bins already where these have four cells, and begin fits within the noise of what was
            measured. That takes fewer steps where there are many records: a bin that begins far above what it has comes
            down by a factor of e a step.

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
    best, variance = tree.gathered
    if not 0.0 < best[0] < _MANY * math.sqrt(float(variance[0])):
        return counts
    coarse = _Bins.of(tree, _COARSE)
    if coarse is None:
        return counts
    held = coarse.sums(counts)
    level = max(float(held.mean()), 1.0 / math.sqrt(float(coarse.precise.sum())))
    least = _BEGIN * level * coarse.part
    begin = np.maximum(held, np.minimum(least, coarse.noise) if close else least)
    fits = [coarse.fit(model, begin, level) for model in (*_GENTLE, *_ROUGH)]
    evidence = np.array([gained for _, gained in fits])
    chance = np.exp(evidence - evidence.max())
    chance /= chance.sum()
    gentle = float(chance[: len(_GENTLE)].sum())
    if gentle < _FAINT:
        return counts
    best_one = int(np.argmax(chance[: len(_GENTLE)]))
    mixed = sum(
        (part * found for part, (found, _) in zip(chance, fits[: len(_GENTLE)], strict=False)),
        np.zeros(held.size),
    )
    bins, expected = coarse, mixed / gentle
    if counts.size >= (_FINE_CELLS_CLOSE if close else _FINE_CELLS) * _FINE * _FINE:
        fine = _Bins.of(tree, _FINE)
        if fine is not None:
            spread = fine.part * (coarse.spread(fits[best_one][0] / coarse.part, fine) / fine.to_one(coarse))
            held = fine.sums(counts)
            begin = (
                np.maximum(held, np.minimum(spread, fine.noise))
                if close
                else np.maximum(held * (1.0 - _COARSE_PART) + _COARSE_PART * spread, _BEGIN_FINE * spread)
            )
            fine_level = level / fine.to_one(coarse)
            width, height, own = _GENTLE[best_one]
            found, heard = fine.fit((width * _FINE / _COARSE, height, own), begin, fine_level)
            rough = (_ROUGH_WHEN_FINE[0] * _FINE / _COARSE, *_ROUGH_WHEN_FINE[1:])
            against = fine.fit(rough, begin, fine_level)[1]
            gentle *= 1.0 / (1.0 + math.exp(min(against - heard, 700.0)))
            bins, expected = fine, found
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


@dataclass(frozen=True, eq=False)
class _Bins:
    """What was measured as sums of bins: the precision matrix, the weighted sums, and how full a bin's box is."""

    shape: tuple[int, ...]
    side: IntArray
    across: tuple[int, int]
    part: FloatArray
    """Of every bin, the cells it has as a part of those of a whole one."""
    precise: FloatArray
    weighted: FloatArray

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
        design = (inside[0][:, :, None] & inside[1][:, None, :]).reshape(asked.size, -1).astype(np.float64)
        known = 1.0 / tree.variance[asked]
        precise = (design.T * known) @ design
        weighted = design.T @ (known * tree.value[asked])
        small = np.flatnonzero(~whole & (tree.parent >= 0))
        small = small[whole[tree.parent[small]]]
        if small.size:
            best, variance = tree.gathered
            bins = first[small, 0] * columns + first[small, 1]
            noise = np.bincount(bins, variance[small], minlength=rows * columns)
            here = np.flatnonzero(noise > 0.0)
            precise[here, here] += 1.0 / noise[here]
            weighted[here] += np.bincount(bins, best[small], minlength=rows * columns)[here] / noise[here]
        part = np.outer(*lengths).reshape(-1)
        return cls(tuple(tree.shape), side, (rows, columns), part, precise, weighted)

    @property
    def noise(self) -> FloatArray:
        """Of every bin, the deviation it would have if all others were known."""
        return np.asarray(1.0 / np.sqrt(np.diagonal(self.precise)))

    def sums(self, counts: FloatArray) -> FloatArray:
        """How much each bin has of some counts."""
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

    def fit(
        self, model: tuple[float, float, float], begin: FloatArray, level: float
    ) -> tuple[FloatArray, float]:
        """The likeliest bins by a model, and its evidence, but for what is the same for all models."""
        prior, log_root = _prior(self.across, *model)
        # About the beginning: sums of squares themselves would drown what tells models apart.
        pull = self.weighted - self.precise @ begin
        middle = math.log(level)

        def lost(logs: FloatArray) -> float:
            moved, away = self.part * np.exp(logs) - begin, logs - middle
            return float(0.5 * moved @ (self.precise @ moved) - pull @ moved + 0.5 * away @ (prior @ away))

        buffer = np.empty_like(prior)

        def root_of(bins: FloatArray) -> CurvedRoot:
            return CurvedRoot(self.precise, prior, bins, buffer)

        logs: FloatArray = np.log(begin / self.part)
        root: CurvedRoot | None = None
        at = lost(logs)
        for _ in range(_STEPS):
            bins = self.part * np.exp(logs)
            slope = bins * (pull - self.precise @ (bins - begin)) - prior @ (logs - middle)
            root = root_of(bins) if root is None else root
            step = root.solve(slope)
            step *= min(1.0, _FURTHEST / max(float(np.abs(step).max()), 1e-300))
            length, now = 1.0, lost(logs + step)
            while now >= at and length > _SHORTEST:
                length /= 2.0
                now = lost(logs + length * step)
            if now >= at:
                break
            gained, logs, at = at - now, logs + length * step, now
            if gained < _GAINED:
                break
            # Near the top the slope alone changes: nearly all of the time goes into roots.
            root = root if gained < _NEAR else None
        bins = self.part * np.exp(logs)
        return bins, -at - log_root - root_of(bins).log_determinant

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
        return np.asarray(counts * factor + added, dtype=np.float64)


@lru_cache(maxsize=12)
def _prior(across: tuple[int, int], width: float, height: float, own: float) -> tuple[FloatArray, float]:
    """A model's precision matrix of the logarithms, and half the logarithm of their covariance's determinant.

    Bins and their mirror images are alike, so that what is even and what is odd along an axis do not go together: four
    matrices of a quarter of the bins are inverted rather than one of all.
    """
    apart = np.hypot(*np.indices(across)) * (math.sqrt(3.0) / width)
    alike = height * height * (1.0 + apart) * np.exp(-apart) + _ANY_LEVEL
    alike[0, 0] += own * own
    rows, columns = across
    high, wide = (n // 2 if n % 2 == 0 else n for n in across)
    one, other = (np.arange(n) for n in (high, wide))
    # From a bin to another one, and to its mirror image.
    down = [np.abs(one[:, None] - one), rows - 1 - one[:, None] - one][: rows // high]
    over = [np.abs(other[:, None] - other), columns - 1 - other[:, None] - other][: columns // wide]
    parts, log_root = np.zeros((len(down), len(over), high, wide, high, wide)), 0.0
    for signs in product(*((1.0, -1.0)[: len(each)] for each in (down, over))):
        odd = [(signs[0] ** i * signs[1] ** j, i, j) for i in range(len(down)) for j in range(len(over))]
        here = sum(
            (sign * alike[down[i][:, None, :, None], over[j][None, :, None, :]] for sign, i, j in odd),
            np.zeros((high, wide, high, wide)),
        )
        whole = here.reshape(high * wide, -1)
        log_root += float(np.log(np.diagonal(np.linalg.cholesky(whole))).sum())
        inverse = np.linalg.inv(whole).reshape(here.shape) / len(odd)
        for sign, i, j in odd:
            parts[i, j] += sign * inverse
    found = np.empty((*across, *across))
    for i, j in np.ndindex(parts.shape[:2]):
        there = [
            np.s_[:high] if i == 0 else np.s_[: -high - 1 : -1],
            np.s_[:wide] if j == 0 else np.s_[: -wide - 1 : -1],
        ]
        found[:high, :wide][:, :, there[0]][:, :, :, there[1]] = parts[i, j]
    if rows > high:
        found[high:, :wide] = found[:high, :wide][::-1, :, ::-1]
    if columns > wide:
        found[:, wide:] = found[:, :wide][:, ::-1, :, ::-1]
    return found.reshape(rows * columns, -1), log_root
