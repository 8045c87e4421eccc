"""Mean and variance of any sum of boxes, visiting only the nodes that the boxes cut.

A sum's slope in a node's total is β = γβ_l + (1 − γ)β_r, and each split adds (β_l − β_r)²·rest to its variance.
Slopes of several boxes add up, so their covariances come for nothing. Inside a leaf of many cells the halvings go on
in thought (`dphist.kernels.predictive.inside`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.predictive.inside import within

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# Boxes that go down the tree together.
_BLOCK = 2048


def ask_boxes(
    left: IntArray,
    low: ShortArray,
    high: ShortArray,
    mean: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
    tops: FloatArray,
    variance: FloatArray,
    unevenness: FloatArray,
    alike: float,
    box_low: IntArray,
    box_high: IntArray,
    starts: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of every question: the sum over its boxes ``starts[j]`` up to ``starts[j + 1]``.

    Several laws of one tree are asked at once: ``mean``, ``slope`` and ``rest`` have a column for each, and ``tops`` is
    the root's variance. ``variance`` is the first one's, and read in leaves of several cells. Returned apart: what is
    known of totals that were measured, by law, and what is unknown inside leaves that a box cuts, by the first (none
    where ``unevenness`` is empty). A part ``alike`` of it is the same in all leaves, so that it adds up: Σ√ squared,
    instead of Σ.
    """
    questions = starts.size - 1
    means, variances = (np.zeros((questions, tops.size)) for _ in range(2))
    inner = np.zeros(questions)
    begin = 0
    while begin < questions:
        end = max(begin + 1, int(np.searchsorted(starts, starts[begin] + _BLOCK, side="right")) - 1)
        boxes = slice(starts[begin], starts[end])
        asked = np.repeat(np.arange(end - begin), np.diff(starts[begin : end + 1]))
        bounds = box_low[boxes], box_high[boxes]
        sums, parted, cut = _go_down(left, low, high, mean, slope, rest, tops, *bounds, asked, end - begin)
        means[begin:end], variances[begin:end] = sums, parted
        if unevenness.size:
            inner[begin:end] = within(
                *(*cut, low, high, mean[:, 0], variance, unevenness, alike),
                *(*bounds, asked, end - begin),
            )
        begin = end
    return means, variances, np.maximum(inner, 0.0)


def _go_down(
    left: IntArray,
    low: ShortArray,
    high: ShortArray,
    mean: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
    tops: FloatArray,
    box_low: IntArray,
    box_high: IntArray,
    asked: IntArray,
    questions: int,
) -> tuple[FloatArray, FloatArray, tuple[IntArray, IntArray]]:
    """Means and variances of questions, and which boxes cut which leaves."""
    laws = range(tops.size)
    means, variances = (np.zeros((questions, tops.size)) for _ in range(2))
    # Axis by axis: NumPy takes several times as long to look along rows of two numbers.
    axes = [
        tuple(np.ascontiguousarray(each[:, axis], dtype=np.int32) for each in (low, high, box_low, box_high))
        for axis in range(low.shape[1])
    ]
    box, node = np.arange(len(box_low)), np.zeros(len(box_low), dtype=np.int64)
    steps, cut_boxes, cut_leaves = [], [], []
    while box.size:
        inside, outside = np.ones(box.size, dtype=bool), np.zeros(box.size, dtype=bool)
        for lows, highs, begins, ends in axes:
            start, stop, one, two = lows[node], highs[node], begins[box], ends[box]
            inside &= (one <= start) & (two >= stop)
            outside |= (one >= stop) | (two <= start)
        # Where a box misses a node's hull it has none of it, even if the hull is empty.
        beta: FloatArray = np.asarray(inside & ~outside, dtype=np.float64)
        on = np.flatnonzero(~(inside | outside))
        ends_here = left[node[on]] < 0
        leaf, further = on[ends_here], on[~ends_here]
        shares = np.ones(leaf.size)
        of_box, of_node = box[leaf], node[leaf]
        for lows, highs, begins, ends in axes:
            start, stop = lows[of_node], highs[of_node]
            side = np.minimum(ends[of_box], stop) - np.maximum(begins[of_box], start)
            shares *= side / (stop - start)
        beta[leaf] = shares
        held = np.flatnonzero(beta)
        of_held = box[held]
        part = beta[held]
        for law in laws:
            means[:, law] += np.bincount(asked[of_held], part * mean[node[held], law], questions)
        cut_boxes.append(of_box)
        cut_leaves.append(of_node)
        steps.append((box, node, beta, further))
        child = left[node[further]]
        box, node = np.repeat(box[further], 2), np.stack([child, child + 1], axis=1).reshape(-1)
    several = asked.size > questions
    for law in laws:
        below: FloatArray = np.zeros(0)
        for box, node, seen, further in reversed(steps):
            i, b, g = node[further], box[further], slope[node[further], law]
            half, rest_of_it = below[0::2], below[1::2]
            beta = seen.copy()
            beta[further] = g * half + (1.0 - g) * rest_of_it
            apart = half - rest_of_it
            question = asked[b]
            if several and further.size:
                # Boxes of one question that part the same node: their contrasts add up before they are squared.
                key, where = np.unique(question * np.int64(left.size) + i, return_inverse=True)
                apart = np.asarray(np.bincount(where, apart), dtype=np.float64)
                question, i = key // left.size, key % left.size
            variances[:, law] += np.bincount(question, apart * apart * rest[i, law], questions)
            below = beta
        top = np.bincount(asked, below, questions)
        variances[:, law] += top * top * tops[law]
    return means, variances, (np.concatenate(cut_boxes), np.concatenate(cut_leaves))
