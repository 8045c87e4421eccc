"""Trees of noisy totals as flat node lists: combine, prune, threshold, project, spread.

A tree is four arrays. Nodes come parents first and the children of a node stand side by side:
``first[i]`` is its first child (−1 for a leaf), ``last[i]`` one past its last; ``size[i]`` counts its cells.
``value[i]`` is a noisy total with precision ``weight[i]`` (one over its variance; 0 when it was not measured;
every leaf is). The same arrays describe one dimension, a nominal hierarchy and boxes in any dimension.

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@kernel
def combine(
    first: IntArray, last: IntArray, value: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Best linear unbiased total of every node from what was measured at it and below, and its variance."""
    best = np.empty(value.size)
    variance = np.empty(value.size)
    for i in range(value.size - 1, -1, -1):
        if first[i] < 0:
            best[i] = value[i]
            variance[i] = 1.0 / weight[i]
            continue
        total = 0.0
        spread = 0.0
        for c in range(first[i], last[i]):
            total += best[c]
            spread += variance[c]
        precision = weight[i] + 1.0 / spread
        best[i] = (weight[i] * value[i] + total / spread) / precision
        variance[i] = 1.0 / precision
    return best, variance


@kernel
def _project(value: FloatArray, variance: FloatArray, keep: BoolArray, total: float) -> None:
    """Move one family onto {≥ 0, sum = total} in the variance-weighted norm, in place; others become 0.

    Dropping whoever turns negative and solving again ends at the exact projection: the multiplier only falls.
    """
    while True:
        excess = total
        spread = 0.0
        for c in range(value.size):
            if keep[c]:
                excess -= value[c]
                spread += variance[c]
        if spread == 0.0:
            break
        shift = excess / spread
        settled = True
        for c in range(value.size):
            if keep[c] and value[c] + shift * variance[c] < 0.0:
                keep[c] = False
                settled = False
        if settled:
            for c in range(value.size):
                if keep[c]:
                    value[c] += shift * variance[c]
            break
    for c in range(value.size):
        if not keep[c]:
            value[c] = 0.0


@kernel
def distribute(
    first: IntArray,
    last: IntArray,
    size: FloatArray,
    best: FloatArray,
    variance: FloatArray,
    cut: FloatArray,
    shrink: float,
) -> FloatArray:
    """Hand every parent's total down to its children, none below zero.

    Given the parent's total, the children are projected onto {≥ 0, sum = parent}. Doing it top-down keeps
    large totals unbiased; one joint non-negative fit pushes every long sum upward instead. Children at or below
    ``cut[i]`` deviations are dropped first, unless that would empty the family. With ``shrink`` ≥ 0 a family's
    departure from a uniform spread is shrunk by the positive-part James–Stein factor 1 − (b − shrink)/Q.
    """
    total = np.zeros(best.size)
    total[0] = max(best[0], 0.0)
    for i in range(best.size):
        if first[i] < 0:
            continue
        lo, hi = first[i], last[i]
        if total[i] <= 0.0:
            total[lo:hi] = 0.0
            continue
        child = best[lo:hi].copy()
        keep = np.ones(hi - lo, dtype=np.bool_)
        if cut[i] > 0.0:
            some = False
            for c in range(hi - lo):
                if child[c] > cut[i] * math.sqrt(variance[lo + c]):
                    some = True
            if some:
                for c in range(hi - lo):
                    keep[c] = child[c] > cut[i] * math.sqrt(variance[lo + c])
        elif shrink >= 0.0 and hi - lo > shrink:
            excess = total[i] - child.sum()
            spread = variance[lo:hi].sum()
            q = 0.0
            for c in range(hi - lo):
                child[c] += variance[lo + c] * excess / spread
                gap = child[c] - total[i] * size[lo + c] / size[i]
                q += gap * gap / variance[lo + c]
            factor = max(0.0, 1.0 - (hi - lo - shrink) / q) if q > 0.0 else 0.0
            for c in range(hi - lo):
                even = total[i] * size[lo + c] / size[i]
                child[c] = even + factor * (child[c] - even)
        _project(child, variance[lo:hi], keep, total[i])
        total[lo:hi] = child
    return total


@kernel
def prune(
    first: IntArray, last: IntArray, size: FloatArray, best: FloatArray, variance: FloatArray, price: float
) -> IntArray:
    """Drop the splits that do not pay: returns ``first`` with −1 where a node becomes a leaf.

    A split is kept when the χ² of all contrasts below it (children against a uniform spread) exceeds ``price``
    a contrast plus what the kept splits further down cost: the dyadic classification tree on released totals.
    """
    chi = np.zeros(best.size)
    cost = np.zeros(best.size)
    kept = first.copy()
    for i in range(best.size - 1, -1, -1):
        if first[i] < 0:
            continue
        total = 0.0
        for c in range(first[i], last[i]):
            total += best[c]
        here = 0.0
        below = price * (last[i] - first[i] - 1)
        for c in range(first[i], last[i]):
            gap = best[c] - total * size[c] / size[i]
            here += chi[c] + gap * gap / variance[c]
            below += cost[c]
        chi[i] = here
        cost[i] = min(here, below)
        if below >= here:
            kept[i] = -1
    return kept


@kernel
def mirror_threshold(scores: FloatArray) -> float:
    """Where to cut small positive scores, learned from the negative ones: the noise is symmetric.

    With scores in deviations, keeping a score costs its noise and dropping it costs its signal; the negatives show
    how much of the positives is noise. Returns the t ≥ 0 that minimises Σ_{0<q≤t}(q²−1) + Σ_{−t≤q<0}(1−2q²), among
    those where the scores within t of zero sum to nothing, up to 2.5 deviations: many small true totals cost little
    one by one, but a range that holds them all would miss their sum.
    """
    if scores.size < 16:
        return 0.0
    order = np.argsort(np.abs(scores))
    running = 0.0
    lowest = 0.0
    cut = 0.0
    total = 0.0
    squares = 0.0
    for j in order:
        q = scores[j]
        running += q * q - 1.0 if q > 0.0 else 1.0 - 2.0 * q * q
        total += q
        squares += q * q
        if running < lowest and total <= 2.5 * math.sqrt(squares):
            lowest = running
            cut = abs(q)
    return cut


@kernel
def level_cuts(
    parent: IntArray, first: IntArray, level: IntArray, best: FloatArray, variance: FloatArray
) -> FloatArray:
    """A mirror threshold for the boxes of every ``level`` whose parents hold something, handed to the parents."""
    cut = np.zeros(best.size)
    for this in range(1, level.max() + 1):
        scores = np.empty(best.size)
        count = 0
        for i in range(1, best.size):
            if level[i] == this and first[parent[i]] >= 0 and best[parent[i]] > 0.0:
                scores[count] = best[i] / math.sqrt(variance[i])
                count += 1
        threshold = mirror_threshold(scores[:count])
        for i in range(1, best.size):
            if level[i] == this:
                cut[parent[i]] = threshold
    return cut


@kernel
def merged_leaves(first: IntArray, last: IntArray, kept: IntArray) -> IntArray:
    """For every node, the node that now stands for it: itself, or its nearest ancestor that became a leaf."""
    stands = np.arange(first.size)
    for i in range(first.size):
        if first[i] >= 0 and (kept[i] < 0 or stands[i] != i):
            for c in range(first[i], last[i]):
                stands[c] = stands[i]
    return stands
