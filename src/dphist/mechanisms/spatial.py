"""The same in two dimensions and more: cells from their surroundings, boxes from a tree of boxes.

Only `grow_boxes` asks anything; the rest is arithmetic on released values.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.curve import hilbert_order
from dphist.kernels.dyadic import combine, distribute, level_cuts, merged_leaves, prune
from dphist.kernels.levelfit import Denoised, denoise
from dphist.mechanisms.growing import GridBlocks, GrownTree, Measured, grow, slight
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Price of a box in the classification tree, in noise variances: flat from 5 to 8, and Laplace tails break 4.
_BOX_PRICE = 6.0
# Up to here the level model runs along the curve as well; beyond, the classification tree speaks alone.
MOST_CELLS_ON_CURVE = 1 << 20
# A noisy total below this many noise scales times the root of the number of cells is too little for a full tree.
_ENOUGH = 2
# Cells of the blocks of the full tree, coarse to fine, and what each level costs in hundredths.
_FULL = ((1024, 15), (64, 20), (16, 20), (1, 43))
# What a contrast of the full tree must explain to be kept, in variances.
_CONTRAST_PRICE = 1.5


def denoise_field(values: IntArray, scale: float) -> tuple[FloatArray, Denoised | None]:
    """Infer counts from noisy ones: a line by the hidden level model, a grid by the mean of two readings.

    One reading follows the hidden level model along a Hilbert curve, on which neighbours mostly stay neighbours; the
    other averages over the dyadic boxes that explain the values best. Their errors differ, so their mean beats both.
    """
    if values.ndim == 1:
        line = denoise(values, 1.0 / scale)
        return line.mean, line
    boxes = classify(values, 2.0 * scale * scale)
    if values.size > MOST_CELLS_ON_CURVE:
        return boxes, None
    order = hilbert_order(values.shape)
    model = denoise(values.reshape(-1)[order], 1.0 / scale)
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    parts = [part[back].reshape(values.shape) for part in (model.mean, model.within, model.between)]
    field = Denoised(parts[0], parts[1], parts[2], model.scatter, model.stay)
    return 0.5 * (boxes + field.mean), field


def classify(values: NDArray[Any], variance: float) -> FloatArray:
    """Average noisy cells over the dyadic boxes that explain them best; none below zero.

    Bottom-up, a box stays whole when its squared error about its mean plus the price of one box is at most what
    its parts cost; a cell costs one box. That is the best of all dyadic partitions, in time linear in the cells.
    """
    price = _BOX_PRICE * variance
    means = [np.asarray(values, dtype=np.float64)]
    splits: list[BoolArray] = []
    total, square = means[0], means[0] ** 2
    cells = [np.ones(n) for n in total.shape]
    cost = np.full(total.shape, price)
    while total.size > 1:
        total, square, below = _halve(total), _halve(square), _halve(cost)
        cells = [np.add.reduceat(c, np.arange(0, c.size, 2)) for c in cells]
        size = cells[0]
        for more in cells[1:]:
            size = np.multiply.outer(size, more)
        own = square - total * total / size + price
        splits.append(below < own)
        cost = np.minimum(below, own)
        means.append(total / size)
    value, active = means.pop(), np.ones(total.shape, dtype=bool)
    while splits:
        finer = means.pop()
        active = _double(active & splits.pop(), finer.shape)
        value = np.where(active, finer, _double(value, finer.shape))
    return np.maximum(value, 0.0)


def _halve(array: FloatArray) -> FloatArray:
    """Add neighbours in pairs along every axis; a last one without a partner stays alone."""
    for axis, length in enumerate(array.shape):
        if length > 1:
            array = np.add.reduceat(array, np.arange(0, length, 2), axis=axis)
    return array


def _double(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Repeat every entry for the pair it stands for."""
    for axis, length in enumerate(shape):
        if length > 1:
            array = np.repeat(array, 2, axis=axis)
            if array.shape[axis] > length:
                array = np.delete(array, length, axis=axis)
    return array


def full_blocks(shape: tuple[int, ...]) -> tuple[GridBlocks, tuple[Fraction, ...]]:
    """Boxes of about 1024, 64 and 16 cells, as cubical as the shape allows, then cells; and their shares."""
    sides: list[tuple[int, ...]] = []
    shares: list[Fraction] = []
    most = 2 * math.prod(shape)
    for cells, share in _FULL:
        side = _box(shape, cells)
        if cells > 1 and (cells * 4 > most or side in sides or max(side) == 1):
            continue
        sides.append(side)
        shares.append(Fraction(share))
    total = sum(shares, Fraction(0))
    return GridBlocks(shape, tuple(sides)), tuple(share / total for share in shares)


def _box(shape: tuple[int, ...], cells: int) -> tuple[int, ...]:
    """A box of about so many cells with sides that are powers of two, none much longer than its axis."""
    longest = [max(0, (n - 1).bit_length()) for n in shape]
    bits = [0] * len(shape)
    wanted = round(math.log2(cells))
    while sum(bits) < wanted:
        open_axes = [a for a in range(len(shape)) if bits[a] < longest[a]]
        if not open_axes:
            break
        grow_axis = min(open_axes, key=lambda a: bits[a])
        bits[grow_axis] += 1
    # Even out: all axes that may, get the same side.
    common = max(bits)
    return tuple(1 << min(longest[a], common if bits[a] < longest[a] else bits[a]) for a in range(len(shape)))


def sparse_blocks(shape: tuple[int, ...]) -> tuple[GridBlocks, tuple[Fraction, ...]]:
    """Boxes halved along every axis again and again, down to the cells: many levels at equal shares.

    With little to measure most boxes stop early, and the few that are full must be followed down cheaply.
    """
    longest = [max(0, (n - 1).bit_length()) for n in shape]
    cuts = range(max(0, max(longest) - 1), -1, -1)
    sides = []
    for bits in cuts:
        side = tuple(1 << min(bits, top) for top in longest)
        if side not in sides:
            sides.append(side)
    return GridBlocks(shape, tuple(sides)), tuple(Fraction(1, len(sides)) for _ in sides)


def grow_boxes(data: PrivateCounts) -> tuple[GrownTree, bool]:
    """Measure a tree of boxes: few levels down to the cells, or many that stop early when there is little.

    A noisy total costs 2 % and chooses the plan; it is a measurement of the tree's root as well. Private because
    the total and the tree split the budget, and the plan is a function of the noisy total.
    """
    asked, rest = data.split(Fraction(1, 50), Fraction(49, 50))
    total = asked.measure(Totals())
    root = (float(total.values[0]), 1.0 / float(total.variance))
    full = root[0] >= _ENOUGH * math.sqrt(data.size) * float(data.unit_scale)
    blocks, shares = full_blocks(data.shape) if full else sparse_blocks(data.shape)

    def finish(view: Measured) -> tuple[BoolArray, BoolArray]:
        # A family that cannot tell its children apart even with all that is left is measured as one.
        weak = slight(view, 4.0 if full else 2.5) & (view.level > 0)
        # Any other box that does not stand out of its noise is not split but measured once more by itself.
        boxes_like_these = data.size / float(view.sizes.max())
        stop = 2.0 if full else boxes_like_these**0.15
        together: BoolArray = weak[view.family]
        return together | (view.totals < stop * view.scale), together

    return grow(rest, blocks, shares, finish=finish, root=root), full


def field_of(tree: GrownTree, *, pruned: bool) -> FloatArray:
    """Infer every cell from a tree of boxes.

    Best linear unbiased totals; splits that explain too little are dropped (in a full tree); every parent's total is
    handed down to the children that stand out of the noise, none below zero; leaves are spread evenly.
    """
    best, variance = combine(tree.first, tree.last, tree.value, tree.weight)
    first, leaf = tree.first, tree.leaf
    if pruned:
        first = prune(tree.first, tree.last, tree.size, best, variance, _CONTRAST_PRICE)
        leaf = merged_leaves(tree.first, tree.last, first)[leaf]
    # What lies within a deviation of nothing is nothing; where most boxes are empty, within two.
    cuts = np.maximum(level_cuts(first, tree.last, tree.starts, best, variance), 1.0 if pruned else 2.0)
    totals = distribute(first, tree.last, tree.size, best, variance, cuts, 3.0)
    density: FloatArray = totals / tree.size
    return density[leaf]
