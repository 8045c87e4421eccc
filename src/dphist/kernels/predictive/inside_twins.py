"""What stays unknown inside leaves that boxes cut, in NumPy and for many boxes at once: a part of `twins.ask_boxes`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.predictive.ways import size_classes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]


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
    weight: FloatArray,
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
    shared = shared_inside(
        leaf[p], low, high, box_low[box[p]], box_high[box[p]], box_low[box[q]], box_high[box[q]],
        mean, variance, unevenness,
    )  # fmt: skip
    twice = np.where(p == q, 1.0, 2.0)
    parts = twice * weight[box[p]] * weight[box[q]] * shared
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


def _products(length: FloatArray, intervals: FloatArray, spans: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums over all intervals of these lengths: products of what two spans take of each, and of their contrasts."""
    ends = np.floor(spans / length)
    lowest = np.maximum(np.ceil(spans[0] / length), np.ceil(spans[2] / length))
    highest = np.minimum(ends[1], ends[3])
    whole = np.maximum(highest - lowest, 0.0)
    product, contrast = np.zeros(length.shape), np.zeros(length.shape)
    for e in range(4):
        counted = ends[e] < intervals
        for before in range(e):
            counted &= ends[before] != ends[e]
        whole -= counted & (lowest <= ends[e]) & (ends[e] < highest)
        mine, my_contrast = _taken(ends[e], length, spans[0], spans[1])
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
