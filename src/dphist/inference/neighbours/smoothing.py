"""Counts along a line that vary gently, read off a tree of blocks: where the evidence says so, and only there.

A tree measures blocks, and within a block that was measured as a whole its total is spread evenly. On data that rise
and fall gently that is wrong in a way that the neighbours could mend. So the line is cut into at most `_BINS` bins, and
what was measured (every block and every pool is a sum of bins, with noise of known variance) is set beside a family of
models: bins are (mean level) · (1 + g), g a sum of cosines with independent normal weights whose variances fall with
the frequency k as (1 + (k/k₀)²)⁻², plus as much again of its own for every bin. Some of the family are flat, some wavy,
some so rough that each bin stands for itself. Each has its evidence in closed form (a normal law), and so has what it
expects of every bin. The rough ones have no opinion beyond the tree: their share of the evidence keeps the tree's
counts. What the gentle ones expect replaces the bins' totals by their share. Nor are they heard where they would leave
a bin (nearly) empty: there counts cannot be normal about a level, and a tree does better on steps and tails.

Nothing private is read here: arithmetic on numbers that were paid for when they were measured.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Bins of a line at most; gentle is what changes over several of them.
_BINS = 64
# On fewer cells a tree goes down to them.
_FEWEST = 64
# Where waves begin to fade, how tall they are, and what every bin has of its own: parts of the mean level.
_FADING = (1.0, 3.0, 9.0)
_TALL = (0.1, 0.25, 0.6, 1.5)
_OWN = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
# A bin with so much of its own stands for itself.
_ROUGH = 0.5
# How likely an exactly even line is beforehand.
_EVEN = 0.5
# Gentle models are heard in full where they leave every bin this part of the mean level, and not at all at none of it.
_LEAST = 0.2
# The mean level is not known beforehand: its variance, in parts of its square.
_ANY_LEVEL = 1e4
# Below this weight nothing changes.
_FAINT = 1e-3
# Bins are rounded to this part of the mean level: what a platform's algebra rounds otherwise must not change them.
_GRAIN = 2.0**-24


def smoothed(tree: MeasuredTree, counts: FloatArray) -> FloatArray:
    """Move the counts of a line towards what gentle models expect of its bins, as far as their evidence goes.

    Args:
        tree: What was measured of a line of ordered cells.
        counts: What was inferred from it, a number for each cell.

    Returns:
        Counts of the cells, none below zero.

    Example:
        >>> import numpy as np
        >>> from dphist.mechanisms.adaptivetree import AdaptiveTree, counts_of
        >>> from dphist.testing import open_counts
        >>> slope = np.linspace(60, 20, 256).astype(np.int64)
        >>> tree = AdaptiveTree().grow(open_counts(slope, 1))[0]
        >>> smoothed(tree, counts_of(tree)).shape
        (256,)
    """
    return smoothed_so_far(tree, counts)[0]


def smoothed_so_far(tree: MeasuredTree, counts: FloatArray) -> tuple[FloatArray, float]:
    """Do the same, and say how far gentle models were heard.

    Args:
        tree: What was measured of a line of ordered cells.
        counts: What was inferred from it, a number for each cell.

    Returns:
        Counts of the cells, and what part of the way they went, from 0 to 1.
    """
    if counts.size < _FEWEST:
        return counts, 0.0
    opens, width = cut_into_bins(counts.size)
    held = np.add.reduceat(counts, opens)
    if np.count_nonzero(held < _LEAST * 0.1 * held.mean()) > 0.25 * held.size:
        # Largely empty: no gentle model would be heard.
        return counts, 0.0
    expected, weight = _expected(*read_bins(tree, opens, width))
    if weight < _FAINT:
        return counts, 0.0
    place = np.arange(counts.size) // int(width[0])
    within = np.divide(counts, held[place], out=1.0 / width[place], where=held[place] > 0.0)
    return np.asarray(counts + weight * (expected[place] * within - counts), dtype=np.float64), weight


def cut_into_bins(cells: int) -> tuple[IntArray, FloatArray]:
    """Cut a line into at most 64 bins of 2^k cells each, but for a shorter last one.

    Args:
        cells: How many cells it has.

    Returns:
        Where each begins, and how many cells it has.
    """
    side = 1
    while math.ceil(cells / side) > _BINS:
        side *= 2
    opens = np.arange(0, cells, side, dtype=np.int64)
    return opens, np.diff(np.append(opens, cells)).astype(np.float64)


def read_bins(
    tree: MeasuredTree, opens: IntArray, width: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Read what was measured of a line as sums of bins.

    Blocks below a bin's size are added up, with all that was measured below them; so are those that were measured
    together inside of one bin.

    Args:
        tree: What was measured.
        opens: Where each bin begins.
        width: How many cells it has.

    Returns:
        The precision matrix, the weighted sums, and the bins' parts of the cells.
    """
    low, high, side = tree.low[:, 0], tree.high[:, 0], float(width[0])
    best, variance = tree.gathered
    wide = (high - low >= side) & ~tree.pool
    asked = np.flatnonzero(wide & np.isfinite(tree.variance))
    rows = [_overlaps(low[asked], high[asked], opens, width)]
    values, noise = [tree.value[asked]], [tree.variance[asked]]
    alone = np.zeros(len(tree), dtype=bool)
    if tree.pool.any():
        pools = np.flatnonzero(tree.pool)
        inside = np.flatnonzero(tree.pool[tree.parent] & (tree.parent >= 0))
        joint = np.zeros((pools.size, opens.size))
        of = np.searchsorted(pools, tree.parent[inside])
        np.add.at(joint, of, _overlaps(low[inside], high[inside], opens, width))
        # Blocks are measured together because they are alike, so they do not speak for what else there is in a bin.
        whole = np.isclose(joint, np.rint(joint)).all(axis=1)
        rows.append(joint[whole])
        values.append(tree.value[pools[whole]])
        noise.append(tree.variance[pools[whole]])
        alone[pools[~whole & (np.count_nonzero(joint, axis=1) == 1)]] = True
    small = ~wide & ~tree.pool & (tree.parent >= 0) & (wide | tree.pool)[tree.parent] & ~alone[tree.parent]
    units = np.flatnonzero(small | alone)
    if units.size:
        bins = low[units] // int(side)
        covered = np.bincount(bins, tree.size[units], minlength=opens.size) / width
        here = covered > 0.0
        rows.append(np.diag(covered)[here])
        for each, wanted in ((best, values), (variance, noise)):
            sums = np.bincount(bins, each[units], minlength=opens.size)[here]
            wanted.append(np.asarray(sums, dtype=np.float64))
    design, precise = np.concatenate(rows), 1.0 / np.concatenate(noise)
    weighted = design * precise[:, None]
    return design.T @ weighted, weighted.T @ np.concatenate(values), width / width.sum()


def _overlaps(low: IntArray, high: IntArray, opens: IntArray, width: FloatArray) -> FloatArray:
    """The part of every bin that each interval covers."""
    ends = opens + width
    inside = np.minimum(high[:, None], ends) - np.maximum(low[:, None], opens)
    return np.asarray(np.maximum(inside, 0.0) / width, dtype=np.float64)


@lru_cache(maxsize=8)
def _family(bins: int) -> tuple[FloatArray, FloatArray, NDArray[np.bool_], FloatArray]:
    """Cosines; for every model the variances of their weights; which models are rough; how likely each is."""
    k, places = np.arange(bins), (np.arange(bins) + 0.5) / bins
    waves = np.cos(np.pi * np.outer(places, k)) * np.where(k > 0, math.sqrt(2.0), 1.0)
    shapes = [np.zeros(bins)]
    for fading in _FADING:
        falls = np.where(k > 0, (1.0 + (k / fading) ** 2) ** -2.0, 0.0)
        shapes += [tall * tall * falls / falls.sum() for tall in _TALL]
    models = [(shape + np.where(k > 0, own * own / bins, 0.0), own) for shape in shapes for own in _OWN]
    variances = np.array([each for each, _ in models])
    variances[:, 0] = _ANY_LEVEL
    rough = np.array([own > _ROUGH for _, own in models])
    likely = np.full(len(models), (1.0 - _EVEN) / (len(models) - 1))
    likely[0] = _EVEN
    return waves, variances, rough, np.log(likely)


def _expected(precise: FloatArray, weighted: FloatArray, part: FloatArray) -> tuple[FloatArray, float]:
    """What gentle models expect of every bin, none below zero, and how much they are to be heard.

    With g = W·a, a normal with variances s, the weights' posterior precision is I + √s WᵀPW √s in units of √s; its
    determinant and the quadratic form are the evidence.
    """
    bins = part.size
    waves, variances, rough, likely = _family(bins)
    # A short last bin has its part of the level.
    basis = waves * (part * bins)[:, None]
    level = float(weighted @ part) / float(part @ precise @ part) / bins
    level = max(level, 1.0 / math.sqrt(float(precise.sum())))
    inner, pull = basis.T @ precise @ basis, basis.T @ weighted
    roots = level * np.sqrt(variances)
    system = roots[:, :, None] * inner * roots[:, None, :]
    system[:, np.arange(bins), np.arange(bins)] += 1.0
    half = np.linalg.cholesky(system)
    logs = np.log(np.diagonal(half, axis1=1, axis2=2)).sum(axis=1)
    sides = (roots * pull)[:, :, None]
    weights = np.linalg.solve(system, sides)[:, :, 0]
    evidence = likely - logs + 0.5 * (weights * sides[:, :, 0]).sum(axis=1)
    chance = np.exp(evidence - evidence.max())
    chance /= chance.sum()
    gentle = float(chance[~rough].sum())
    if gentle < _FAINT:
        return np.zeros(bins), 0.0
    mixed = (chance[~rough] / gentle) @ (roots * weights)[~rough]
    found = basis @ mixed
    mean = float(found.mean())
    if mean <= 0.0:
        return np.zeros(bins), 0.0
    heard = gentle * min(max(float((found / (part * bins)).min()) / (_LEAST * mean), 0.0), 1.0)
    grain = _GRAIN * 2.0 ** math.ceil(math.log2(mean))
    return np.maximum(np.rint(found / grain) * grain, 0.0), round(heard * 1024.0) / 1024.0
