"""What stays unknown inside leaves that boxes cut, for many boxes at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.predictive.passes import size_classes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# Bits of a number that says which leaf's sides and which part of it are meant.
_LONGEST_KEY = 62.0


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
    p, q = np.concatenate(one), np.concatenate(two)
    # First each box with itself, then with the others of its question.
    p2, q2 = p[box.size :], q[box.size :]
    shared = np.concatenate(
        [
            shared_alone(leaf, low, high, box_low[box], box_high[box], mean, variance, unevenness),
            shared_inside(
                *(leaf[p2], low, high, box_low[box[p2]], box_high[box[p2]]),
                *(box_low[box[q2]], box_high[box[q2]], mean, variance, unevenness),
            ),
        ]
    )
    twice = np.where(p == q, 1.0, 2.0)
    parts = twice * shared
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
    one_low: IntArray,
    one_high: IntArray,
    two_low: IntArray,
    two_high: IntArray,
    means: FloatArray,
    variances: FloatArray,
    unevenness: FloatArray,
) -> FloatArray:
    """What two boxes share of the uncertainty inside a leaf, for many pairs of boxes."""
    base = low[leaf]
    lengths = (high[leaf] - base).astype(np.float64)
    volume = np.ones(leaf.size)
    for axis in range(low.shape[1]):
        volume *= lengths[:, axis]
    spans = np.stack(
        [
            np.maximum((one_low - base).astype(np.float64), 0.0),
            np.minimum((one_high - base).astype(np.float64), lengths),
            np.maximum((two_low - base).astype(np.float64), 0.0),
            np.minimum((two_high - base).astype(np.float64), lengths),
        ]
    )
    parts = np.ones(lengths.shape)
    products, contrasts = _products(lengths, parts, spans)
    mean, square = means[leaf], means[leaf] ** 2 + variances[leaf]
    shared = np.zeros(leaf.size)
    rows = np.arange(leaf.size)
    while True:
        axis = np.argmax(lengths, axis=1)
        going = np.flatnonzero(lengths[rows, axis] > 1.0)
        if not going.size:
            return shared
        g, a = going, axis[going]
        rest = 0.25 * (square[g] * unevenness[size_classes(volume[g])] + mean[g])
        cut = contrasts[g, a].copy()
        for other in range(low.shape[1]):
            cut *= np.where(a == other, 1.0, products[g, other])
        shared[g] += cut * rest
        mean[g] *= 0.5
        square[g] = 0.25 * square[g] + rest
        volume[g] *= 0.5
        lengths[g, a] *= 0.5
        parts[g, a] *= 2.0
        products[g, a], contrasts[g, a] = _products(lengths[g, a], parts[g, a], spans[:, g, a])


def shared_alone(
    leaf: IntArray,
    low: ShortArray,
    high: ShortArray,
    box_low: IntArray,
    box_high: IntArray,
    means: FloatArray,
    variances: FloatArray,
    unevenness: FloatArray,
) -> FloatArray:
    """As `shared_inside` of each box with itself: what lies at one place of leaves of one shape is alike.

    Which part of each halving a box meets depends on where it lies in the leaf and on the leaf's sides, and how unsure
    the halving is on the leaf: each is worked out once, and a box adds up their products in the same order. Where the
    sides of a leaf are powers of two all its cells are alike: halves of halves are whole cells down to the last, one of
    them holds the cell and the other does not, and contrasts count by their squares.
    """
    if not leaf.size:
        return np.zeros(0)
    leaves, of_leaf = _numbered(leaf, len(low))
    sides = (high[leaves] - low[leaves]).astype(np.int64)
    most = sides.max(axis=0) + 1
    if 3.0 * float(np.log2(most.astype(np.float64)).sum()) > _LONGEST_KEY:
        boxes = box_low, box_high
        return shared_inside(leaf, low, high, *boxes, *boxes, means, variances, unevenness)
    begins, ends = [], []
    alike = ((sides & (sides - 1)) == 0).all(axis=1)[of_leaf]
    for axis in range(low.shape[1]):
        base, side = low[leaf, axis], sides[of_leaf, axis]
        begins.append(np.maximum(box_low[:, axis] - base, 0))
        ends.append(np.minimum(box_high[:, axis] - base, side))
        alike &= ends[-1] - begins[-1] == 1
    # One cell speaks for all that are alike in a leaf.
    same, others = np.flatnonzero(alike), np.flatnonzero(~alike)
    one = np.full(leaves.size, -1, dtype=np.int64)
    one[of_leaf[same]] = same
    spoken = np.flatnonzero(one >= 0)
    rows = np.concatenate([one[spoken], others])
    kind, key = of_leaf[rows], np.zeros(rows.size, dtype=np.int64)
    for axis in range(low.shape[1]):
        begins[axis], ends[axis] = begins[axis][rows], ends[axis][rows]
        begins[axis][: spoken.size], ends[axis][: spoken.size] = 0, 1
        for each in (sides[kind, axis], begins[axis], ends[axis]):
            key = key * most[axis] + each
    first, of_key = _distinct(key)
    spans = np.stack([np.stack([each[first] for each in edge], axis=1) for edge in (begins, ends)])
    met = _met(sides[kind[first]].astype(np.float64), spans.astype(np.float64))
    unsure = _unsure(sides.astype(np.float64), means[leaves], variances[leaves], unevenness)
    shared = np.zeros(rows.size)
    for part, rest in zip(met, unsure, strict=True):
        shared += part[of_key] * rest[kind]
    of_leaves, found = np.zeros(leaves.size), np.empty(leaf.size)
    of_leaves[spoken] = shared[: spoken.size]
    found[same], found[others] = of_leaves[of_leaf[same]], shared[spoken.size :]
    return found


def _numbered(leaf: IntArray, nodes: int) -> tuple[IntArray, IntArray]:
    """The different leaves in order, and which of them every one is."""
    present = np.zeros(nodes, dtype=bool)
    present[leaf] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[leaf]


def _distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """Where each of the different values first stands, and which of them every value is."""
    # As np.unique gives them, which would load masked arrays.
    order = np.argsort(values, kind="stable")
    opens = np.append(True, np.diff(values[order]) != 0)
    which = np.empty(values.size, dtype=np.int64)
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
