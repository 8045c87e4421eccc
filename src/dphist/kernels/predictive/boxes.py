"""Mean and variance of any sum of boxes, visiting only the nodes that the boxes cut.

A sum's slope in a node's total is β = γβ_l + (1 − γ)β_r, and each split adds (β_l − β_r)²·rest to its variance.
Slopes of several boxes add up, so their covariances come for nothing. Inside a leaf of many cells the halvings go on
in thought.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.predictive.halving import size_classes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

Bounds = tuple[IntArray, IntArray]

# Boxes that go down the tree together.
_BLOCK = 2048
# Bits of a number that says which leaf's sides and which part of it are meant.
_LONGEST_KEY = 62.0


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


# ---- inside leaves ----


def within(
    box: IntArray,
    leaf: IntArray,
    low: ShortArray,
    high: ShortArray,
    mean: FloatArray,
    variance: FloatArray,
    unevenness: FloatArray,
    alike: float,
    box_low: IntArray,
    box_high: IntArray,
    asked: IntArray,
    questions: int,
) -> FloatArray:
    """What stays unknown inside leaves that boxes cut; boxes of one question that cut the same leaf in pairs."""
    order = np.lexsort((box, leaf, asked[box]))
    box, leaf = box[order], leaf[order]
    one, two = [np.arange(box.size)], [np.arange(box.size)]
    distance = 1
    while True:
        here = np.arange(box.size - distance)
        again = (leaf[here] == leaf[here + distance]) & (asked[box[here]] == asked[box[here + distance]])
        if not again.any():
            break
        one.append(here[again])
        two.append(here[again] + distance)
        distance += 1
    # First each box with itself, then with the others of its question.
    p, q = np.concatenate(one), np.concatenate(two)
    alone, pairs = p[: box.size], slice(box.size, None)

    def shared(at: IntArray, *boxes: IntArray) -> FloatArray:
        bounds = [(box_low[box[each]], box_high[box[each]]) for each in boxes]
        return shared_inside(leaf[at], low, high, bounds, mean, variance, unevenness)

    parts = np.concatenate([shared(alone, alone), 2.0 * shared(p[pairs], p[pairs], q[pairs])])
    sums = np.maximum(np.bincount(asked[box[p]], parts, questions), 0.0)
    if alike > 0.0 and box.size:
        # Of every question and leaf, the root of what is unknown there; roots add up where all leaves err alike.
        new = np.concatenate([[True], (leaf[1:] != leaf[:-1]) | (asked[box[1:]] != asked[box[:-1]])])
        each = np.maximum(np.bincount((np.cumsum(new) - 1)[p], parts), 0.0)
        roots = np.bincount(asked[box[new]], np.sqrt(each), questions)
        sums += alike * (roots * roots - sums)
    return np.asarray(sums, dtype=np.float64)


def shared_inside(
    leaf: IntArray,
    low: ShortArray,
    high: ShortArray,
    boxes: list[Bounds],
    means: FloatArray,
    variances: FloatArray,
    unevenness: FloatArray,
) -> FloatArray:
    """What two boxes share of the uncertainty inside a leaf, or one with itself; for many leaves and boxes.

    Which part of each halving boxes meet depends on where they lie in the leaf and on the leaf's sides, and how unsure
    the halving is on the leaf: each is worked out once, and their products are added up in order.
    """
    if not leaf.size:
        return np.zeros(0)
    base, sides = low[leaf], (high[leaf] - low[leaf]).astype(np.int64)
    spans = []
    for begins, ends in boxes:
        spans += [np.maximum(begins - base, 0), np.minimum(ends - base, sides)]
    first, kind = _kinds(np.concatenate([sides, *spans], axis=1))
    leaves, of_leaf = _numbered(leaf, len(low))
    met = _met(sides[first].astype(np.float64), np.stack(spans)[:, first].astype(np.float64))
    unsure = _unsure(
        (high[leaves] - low[leaves]).astype(np.float64), means[leaves], variances[leaves], unevenness
    )
    shared = np.zeros(leaf.size)
    for part, rest in zip(met, unsure, strict=True):
        shared += part[kind] * rest[of_leaf]
    return shared


def _numbered(leaf: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """The different leaves in order, and which of them every one is."""
    present = np.zeros(nodes, dtype=bool)
    present[leaf] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[leaf]


def _kinds(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Where a row of each kind first stands, and of which kind every row is.

    Rows are told apart by one number; where that would be too long, each is a kind of its own.
    """
    most = rows.max(axis=0) + 1
    if float(np.log2(most.astype(np.float64)).sum()) > _LONGEST_KEY:
        return np.arange(len(rows)), np.arange(len(rows))
    key = np.zeros(len(rows), dtype=np.int64)
    for column, length in zip(rows.T, most, strict=True):
        key = key * length + column
    # As np.unique gives them, which would load masked arrays.
    order = np.argsort(key, kind="stable")
    opens = np.append(True, np.diff(key[order]) != 0)
    which = np.empty(key.size, dtype=np.int64)
    which[order] = np.cumsum(opens) - 1
    return order[opens], which


def _met(lengths: FloatArray, spans: FloatArray) -> Iterator[FloatArray]:
    """What boxes from here to there meet of every halving of leaves with such sides, one after the other."""
    parts = np.ones(lengths.shape)
    products, contrasts = _products(lengths, parts, spans)
    rows = np.arange(len(lengths))
    while True:
        axis = np.argmax(lengths, axis=1)
        going = np.flatnonzero(lengths[rows, axis] > 1.0)
        if not going.size:
            return
        g, a = going, axis[going]
        cut = contrasts[g, a].copy()
        for other in range(lengths.shape[1]):
            cut *= np.where(a == other, 1.0, products[g, other])
        part = np.zeros(len(lengths))
        part[g] = cut
        yield part
        lengths[g, a] *= 0.5
        parts[g, a] *= 2.0
        products[g, a], contrasts[g, a] = _products(lengths[g, a], parts[g, a], spans[:, g, a])


def _unsure(
    lengths: FloatArray, mean: FloatArray, variance: FloatArray, unevenness: FloatArray
) -> Iterator[FloatArray]:
    """How unsure every halving of some leaves is, one after the other; nothing where a leaf has no more."""
    mean = mean.copy()
    square = mean**2 + variance
    volume = np.ones(len(lengths))
    for axis in range(lengths.shape[1]):
        volume *= lengths[:, axis]
    rows = np.arange(len(lengths))
    while True:
        longest = np.argmax(lengths, axis=1)
        g = np.flatnonzero(lengths[rows, longest] > 1.0)
        if not g.size:
            return
        rest = 0.25 * (square[g] * unevenness[size_classes(volume[g])] + mean[g])
        unsure = np.zeros(len(lengths))
        unsure[g] = rest
        yield unsure
        mean[g] *= 0.5
        square[g] = 0.25 * square[g] + rest
        volume[g] *= 0.5
        lengths[g, longest[g]] *= 0.5


def _products(length: FloatArray, intervals: FloatArray, spans: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums over all intervals of these lengths: products of what two spans take of each, and of their contrasts.

    One span alone is taken twice.
    """
    ends = np.floor(spans / length)
    other = len(spans) - 2
    lowest = np.maximum(np.ceil(spans[0] / length), np.ceil(spans[other] / length))
    highest = np.minimum(ends[1], ends[other + 1])
    whole = np.maximum(highest - lowest, 0.0)
    product, contrast = np.zeros(length.shape), np.zeros(length.shape)
    for e in range(len(spans)):
        counted = ends[e] < intervals
        for before in range(e):
            counted &= ends[before] != ends[e]
        whole -= counted & (lowest <= ends[e]) & (ends[e] < highest)
        mine, my_contrast = _taken(ends[e], length, spans[0], spans[1])
        theirs, their_contrast = mine, my_contrast
        if other:
            theirs, their_contrast = _taken(ends[e], length, spans[2], spans[3])
        product += np.where(counted, mine * theirs, 0.0)
        contrast += np.where(counted, my_contrast * their_contrast, 0.0)
    return product + whole, contrast


def _taken(
    index: FloatArray, length: FloatArray, start: FloatArray, stop: FloatArray
) -> tuple[FloatArray, FloatArray]:
    begin = index * length
    half = 0.5 * length
    a = np.maximum(0.0, np.minimum(stop, begin + half) - np.maximum(start, begin)) / half
    b = np.maximum(0.0, np.minimum(stop, begin + length) - np.maximum(start, begin + half)) / half
    return 0.5 * (a + b), a - b
