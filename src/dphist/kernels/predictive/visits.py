"""Mean and variance of any weighted sum of boxes, visiting only the nodes that the boxes cut.

A sum's slope in a node's total is β = γβ_l + (1 − γ)β_r, and each split adds (β_l − β_r)²·rest to its variance.
Slopes of several boxes add up, so their covariances come for nothing. Inside a leaf of many cells the halvings go on
in thought: at depth k all parts look alike, and what a box cuts of them is a product over the axes, counted at its
two ends.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel, kernel_with_twin
from dphist.kernels.predictive import twins, ways
from dphist.kernels.predictive.splits import infer_split, size_class
from dphist.kernels.predictive.ways import WAYS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]
BoolArray = NDArray[np.bool_]


@kernel
def _taken(index: float, length: float, start: float, stop: float) -> tuple[float, float]:
    """Of interval ``index`` of this length: the share that start … stop takes; its halves' difference."""
    begin = index * length
    half = 0.5 * length
    a = max(0.0, min(stop, begin + half) - max(start, begin)) / half
    b = max(0.0, min(stop, begin + length) - max(start, begin + half)) / half
    return 0.5 * (a + b), a - b


@kernel
def _products(
    length: float, intervals: int, start: float, stop: float, other_start: float, other_stop: float
) -> tuple[float, float]:
    """Sums over all intervals of this length: products of what two spans take of each, and of their contrasts."""
    product = 0.0
    contrast = 0.0
    ends = (int(start / length), int(stop / length), int(other_start / length), int(other_stop / length))
    # Intervals that both take whole contribute one each; those at the ends are looked at one by one.
    lowest = max(math.ceil(start / length), math.ceil(other_start / length))
    highest = min(ends[1], ends[3])
    whole = max(float(highest - lowest), 0.0)
    for e in range(4):
        again = False
        for before in range(e):
            if ends[before] == ends[e]:
                again = True
        if again or ends[e] >= intervals:
            continue
        if lowest <= ends[e] < highest:
            whole -= 1.0
        mine, my_contrast = _taken(ends[e], length, start, stop)
        theirs, their_contrast = _taken(ends[e], length, other_start, other_stop)
        product += mine * theirs
        contrast += my_contrast * their_contrast
    return product + whole, contrast


@kernel
def _inside(
    leaf: int,
    low: ShortArray,
    high: ShortArray,
    box_low: IntArray,
    box_high: IntArray,
    one: int,
    two: int,
    mean: float,
    square: float,
    unevenness: FloatArray,
    scratch: FloatArray,
) -> float:
    """What two boxes share of the uncertainty inside a leaf, given its total of this mean and second moment.

    ``scratch`` has a row for each axis: what is worked out there, in a place that is made once for all leaves.
    """
    axes = low.shape[1]
    volume = 1.0
    for a in range(axes):
        length = float(high[leaf, a] - low[leaf, a])
        volume *= length
        scratch[a, 0] = max(float(box_low[one, a] - low[leaf, a]), 0.0)
        scratch[a, 1] = min(float(box_high[one, a] - low[leaf, a]), length)
        scratch[a, 2] = max(float(box_low[two, a] - low[leaf, a]), 0.0)
        scratch[a, 3] = min(float(box_high[two, a] - low[leaf, a]), length)
        # The length of its parts, and how many there are; products and contrasts.
        scratch[a, 4] = length
        scratch[a, 5] = 1.0
    shared = 0.0
    for a in range(axes):
        scratch[a, 6], scratch[a, 7] = _products(
            scratch[a, 4], 1, scratch[a, 0], scratch[a, 1], scratch[a, 2], scratch[a, 3]
        )
    while True:
        axis = 0
        for a in range(1, axes):
            if scratch[a, 4] > scratch[axis, 4]:
                axis = a
        if scratch[axis, 4] <= 1.0:
            return shared
        rest = 0.25 * (square * unevenness[size_class(volume)] + mean)
        cut = scratch[axis, 7]
        for a in range(axes):
            if a != axis:
                cut *= scratch[a, 6]
        shared += cut * rest
        mean *= 0.5
        square = 0.25 * square + rest
        volume *= 0.5
        scratch[axis, 4] *= 0.5
        scratch[axis, 5] *= 2.0
        scratch[axis, 6], scratch[axis, 7] = _products(
            scratch[axis, 4],
            int(scratch[axis, 5]),
            scratch[axis, 0],
            scratch[axis, 1],
            scratch[axis, 2],
            scratch[axis, 3],
        )


@kernel_with_twin(ways.infer_for_boxes, cost=ways.boxes_cost)
def infer_for_boxes(
    left: IntArray,
    low: ShortArray,
    high: ShortArray,
    size: FloatArray,
    best: FloatArray,
    spread: FloatArray,
    chances: FloatArray,
    mean: FloatArray,
    variance: FloatArray,
    slope: FloatArray,
    rest: FloatArray,
    ready: BoolArray,
    box_low: IntArray,
    box_high: IntArray,
) -> None:
    """Work out the splits that these boxes cut and that were not worked out yet: of very many, few are ever asked."""
    axes = low.shape[1]
    stack = np.empty(256, dtype=np.int64)
    logs = np.empty(len(WAYS))
    for box in range(len(box_low)):
        stack[0] = 0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            i = stack[waiting]
            if left[i] < 0:
                continue
            inside = True
            outside = False
            for a in range(axes):
                if box_low[box, a] > low[i, a] or box_high[box, a] < high[i, a]:
                    inside = False
                if box_low[box, a] >= high[i, a] or box_high[box, a] <= low[i, a]:
                    outside = True
            if inside or outside:
                continue
            if not ready[i]:
                infer_split(i, left, size, best, spread, chances, mean, variance, slope, rest, logs)
                ready[i] = True
            if waiting + 2 > stack.size:
                stack = np.concatenate((stack, np.empty_like(stack)))
            stack[waiting] = left[i] + 1
            stack[waiting + 1] = left[i]
            waiting += 2


@kernel_with_twin(twins.ask_boxes, cost=twins.boxes_cost)
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
    weight: FloatArray,
    starts: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of every question: the weighted sum over its boxes ``starts[j]`` up to ``starts[j + 1]``.

    Several laws of one tree are asked at once: ``mean``, ``slope`` and ``rest`` have a column for each, and ``tops`` is
    the root's variance. ``variance`` is the first one's, and read in leaves of several cells. Returned apart: what is
    known of totals that were measured, by law, and what is unknown inside leaves that a box cuts, by the first (none
    where ``unevenness`` is empty). A part ``alike`` of it is the same in all leaves, so that it adds up: Σ√ squared,
    instead of Σ.
    """
    axes = low.shape[1]
    laws = mean.shape[1]
    questions = starts.size - 1
    means = np.zeros((questions, laws))
    variances = np.zeros((questions, laws))
    inner = np.zeros(questions)
    beta = np.zeros((left.size, laws))
    contrast = np.zeros((left.size, laws))
    top = np.zeros(laws)
    stack = np.empty(256, dtype=np.int64)
    visited = np.empty(256, dtype=np.int64)
    touched = np.empty(256, dtype=np.int64)
    cut_leaf = np.empty(64, dtype=np.int64)
    cut_box = np.empty(64, dtype=np.int64)
    scratch = np.empty((axes, 8))
    for j in range(questions):
        for law in range(laws):
            top[law] = 0.0
        changed = 0
        leaves = 0
        several = starts[j + 1] - starts[j] > 1
        for box in range(starts[j], starts[j + 1]):
            stack[0] = 0
            waiting = 1
            seen = 0
            while waiting > 0:
                waiting -= 1
                i = stack[waiting]
                inside = True
                outside = False
                for a in range(axes):
                    if box_low[box, a] >= high[i, a] or box_high[box, a] <= low[i, a]:
                        outside = True
                        break
                    if box_low[box, a] > low[i, a] or box_high[box, a] < high[i, a]:
                        inside = False
                if outside:
                    for law in range(laws):
                        beta[i, law] = 0.0
                    continue
                if inside:
                    for law in range(laws):
                        beta[i, law] = 1.0
                        means[j, law] += weight[box] * mean[i, law]
                    continue
                if left[i] < 0:
                    share = 1.0
                    for a in range(axes):
                        start = max(box_low[box, a], low[i, a])
                        stop = min(box_high[box, a], high[i, a])
                        share *= (stop - start) / (high[i, a] - low[i, a])
                    for law in range(laws):
                        beta[i, law] = share
                        means[j, law] += weight[box] * share * mean[i, law]
                    if leaves == cut_leaf.size:
                        cut_leaf = np.concatenate((cut_leaf, np.empty_like(cut_leaf)))
                        cut_box = np.concatenate((cut_box, np.empty_like(cut_box)))
                    cut_leaf[leaves] = i
                    cut_box[leaves] = box
                    leaves += 1
                    continue
                if seen == visited.size:
                    visited = np.concatenate((visited, np.empty_like(visited)))
                visited[seen] = i
                seen += 1
                if waiting + 2 > stack.size:
                    stack = np.concatenate((stack, np.empty_like(stack)))
                stack[waiting] = left[i] + 1
                stack[waiting + 1] = left[i]
                waiting += 2
            # A parent was visited before its children: backwards, theirs are ready.
            for k in range(seen - 1, -1, -1):
                i = visited[k]
                c = left[i]
                for law in range(laws):
                    part = slope[i, law]
                    beta[i, law] = part * beta[c, law] + (1.0 - part) * beta[c + 1, law]
                    apart = weight[box] * (beta[c, law] - beta[c + 1, law])
                    if several:
                        contrast[i, law] += apart
                    else:
                        variances[j, law] += apart * apart * rest[i, law]
                if several:
                    if changed == touched.size:
                        touched = np.concatenate((touched, np.empty_like(touched)))
                    touched[changed] = i
                    changed += 1
            for law in range(laws):
                top[law] += weight[box] * beta[0, law]
        for k in range(changed):
            i = touched[k]
            for law in range(laws):
                variances[j, law] += contrast[i, law] * contrast[i, law] * rest[i, law]
                contrast[i, law] = 0.0
        for law in range(laws):
            variances[j, law] += top[law] * top[law] * tops[law]
        if unevenness.size == 0:
            continue
        order = np.argsort(cut_leaf[:leaves], kind="mergesort")
        roots = 0.0
        of_leaf = 0.0
        for p in range(leaves):
            one = order[p]
            q = p
            while q < leaves and cut_leaf[order[q]] == cut_leaf[one]:
                two = order[q]
                i = cut_leaf[one]
                shared = _inside(
                    *(i, low, high, box_low, box_high, cut_box[one], cut_box[two]),
                    *(mean[i, 0], mean[i, 0] ** 2 + variance[i], unevenness, scratch),
                )
                twice = 1.0 if p == q else 2.0
                share = twice * weight[cut_box[one]] * weight[cut_box[two]] * shared
                inner[j] += share
                of_leaf += share
                q += 1
            if p + 1 == leaves or cut_leaf[order[p + 1]] != cut_leaf[one]:
                roots += math.sqrt(max(of_leaf, 0.0))
                of_leaf = 0.0
        if alike > 0.0:
            inner[j] = max(inner[j], 0.0)
            inner[j] += alike * (roots * roots - inner[j])
    return means, variances, np.maximum(inner, 0.0)
