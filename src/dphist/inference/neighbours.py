"""Single cells, inferred from neighbours on a line or surroundings on a grid: arithmetic on released values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.halves import doubled, halved, hilbert_order
from dphist.kernels.levels.fit import Denoised, denoise

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Price of a box in the classification tree, in noise variances: flat from 5 to 8, and Laplace tails break 4.
_BOX_PRICE = 6.0
# Up to here the level model runs along the curve as well; beyond, the classification tree speaks alone.
MOST_CELLS_ON_CURVE = 1 << 20
# On a grid the level model weighs 0.6 before errors are compared, and that counts as much as 100 noisy cells: flat from
# 0.5 to 0.65. The weight is rounded, since the last bits of a sum must not show in a release.
_MODEL, _DOUBT, _GRAIN = 0.6, 100.0, 1024.0


def denoise_field(
    values: IntArray, scale: float, *, gaussian: bool = False
) -> tuple[FloatArray, Denoised | None]:
    """Infer counts from noisy ones: a line by the hidden level model, a grid by the mean of two readings.

    One reading follows the hidden level model along a Hilbert curve, on which neighbours mostly stay neighbours; the
    other averages over the dyadic boxes that explain the values best. Their errors differ, so a mean of both is better:
    as their errors look, of which a reading r of n values y with f degrees of freedom has |r − y|² − n·variance +
    2·variance·f on average (Stein's identity). Without that announced cells of drawn planes have 1.07 of the error.
    """
    variance = 2.0 * scale * scale
    normal = variance if gaussian else 0.0
    if values.ndim == 1:
        line = denoise(values, 1.0 / scale, normal)
        return line.mean, line
    if values.size > MOST_CELLS_ON_CURVE:
        return classify(values, variance), None
    order = hilbert_order(values.shape)
    model = denoise(values.reshape(-1)[order], 1.0 / scale, normal)
    field = np.empty_like(model.mean)
    field[order] = model.mean
    boxes, number = _classified(values, variance)
    apart = field.reshape(values.shape) - boxes
    free = float((model.within + model.between).sum()) - number * variance
    found = float((apart * (values - boxes)).sum()) - free + _DOUBT * _MODEL * variance
    weight = min(max(found / (float((apart * apart).sum()) + _DOUBT * variance), 0.0), 1.0)
    return np.asarray(boxes + round(weight * _GRAIN) / _GRAIN * apart, dtype=np.float64), model


def classify(values: NDArray[Any], variance: float) -> FloatArray:
    """Average noisy cells over the dyadic boxes that explain them best; none below zero.

    Bottom-up, a box stays whole when its squared error about its mean plus the price of one box is at most what
    its parts cost; a cell costs one box. That is the best of all dyadic partitions, in time linear in the cells.
    """
    return _classified(values, variance)[0]


def _classified(values: NDArray[Any], variance: float) -> tuple[FloatArray, int]:
    """The same, and how many boxes there are."""
    price = _BOX_PRICE * variance
    means = [np.asarray(values, dtype=np.float64)]
    splits: list[BoolArray] = []
    total, square = means[0], means[0] ** 2
    cells = [np.ones(n) for n in total.shape]
    cost = np.full(total.shape, price)
    while total.size > 1:
        axes = _long(total.shape)
        total, square, below = (halved(each, axes) for each in (total, square, cost))
        cells = [np.add.reduceat(c, np.arange(0, c.size, 2)) for c in cells]
        size = cells[0]
        for more in cells[1:]:
            size = np.multiply.outer(size, more)
        own = square - total * total / size + price
        splits.append(below < own)
        cost = np.minimum(below, own)
        means.append(total / size)
    value, active, number = means.pop(), np.ones(total.shape, dtype=bool), 0
    while splits:
        finer, split = means.pop(), splits.pop()
        number += int((active & ~split).sum())
        axes = _long(finer.shape)
        active = doubled(active & split, finer.shape, axes)
        value = np.where(active, finer, doubled(value, finer.shape, axes))
    return np.maximum(value, 0.0), number + int(active.sum())


def _long(shape: tuple[int, ...]) -> list[int]:
    return [axis for axis, length in enumerate(shape) if length > 1]
