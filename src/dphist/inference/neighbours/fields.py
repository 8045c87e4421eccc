"""Single cells, inferred from neighbours on a line or surroundings on a grid: arithmetic on released values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.neighbours.structural import FEWEST, MOST
from dphist.inference.neighbours.structural import structural as read_trend
from dphist.kernels.curve import hilbert_order
from dphist.kernels.levels.fit import Denoised, denoise

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Price of a box in the classification tree, in noise variances: flat from 5 to 8, and Laplace tails break 4.
_BOX_PRICE = 6.0
# Up to here the level model runs along the curve as well; beyond, the classification tree speaks alone.
MOST_CELLS_ON_CURVE = 1 << 20
# On a plane the boxes' reading is averaged over so many places to begin the halving from: no boundary is special. On 84
# made-up and drawn planes (`dphist_bench.data`, `data.drawn` 0 to 49) the mean of both readings then has 0.95 of the
# error; four places give 0.96.
_PLACES = ((0, 0), (1, 2), (3, 1), (2, 5), (5, 3), (7, 6), (6, 11), (11, 9))
# What the level model weighs on a plane before their errors are compared: flat from 0.5 to 0.65.
_MODEL = 0.6
# That many noisy cells' worth of doubt: comparing then leaves 0.97 and 0.98 of the error on the same planes, 1.09 at
# worst; the best weight, known with hindsight, 0.95 and 0.965.
_DOUBT = 100.0
# On a line the level model speaks alone but for what says otherwise, with so much doubt. On 17 made-up shapes of 100,
# 365, 1,024 and 4,096 cells with nine numbers of records each (3 draws) a trend beside it then leaves 0.966, 0.917,
# 0.886 and 0.862 of the error, 1.13, 1.01, 1.02 and 1.02 at worst. While periods were looked for twice, with a doubt of
# 10 0.948, 0.905 and 0.880 of the first three, 1.39 at worst; with 100 0.981, 0.933 and 0.898.
_DOUBT_ON_LINES = 40.0
# Of a trend that weighs less nobody is told.
_HEARD = 0.8
# The weight is rounded to this: the last bits of a sum must not show in a release.
_GRAIN = 1024.0


def denoise_field(
    values: IntArray, scale: float, *, gaussian: bool = False, fine: bool = False, structural: bool = False
) -> tuple[FloatArray, Denoised | None]:
    """Infer counts from noisy ones: a line by the hidden level model, a grid by the mean of two readings.

    One reading follows the hidden level model along a Hilbert curve, on which neighbours mostly stay neighbours; the
    other averages over the dyadic boxes that explain the values best. Their errors differ, so their mean beats both. On
    a plane boxes are averaged over several such trees, and the readings weigh as their errors look.

    The noise is Laplace of this ``scale``, or Gaussian of the same variance. On a line ``fine`` has finer models join,
    and ``structural`` a second reading, a trend with a profile that repeats.
    """
    variance = 2.0 * scale * scale
    normal = variance if gaussian else 0.0
    if values.ndim == 1:
        line = denoise(values, 1.0 / scale, normal, fine=fine)
        if not structural or not FEWEST <= values.size <= MOST:
            return line.mean, line
        trend = read_trend(values, variance, line.mean)
        counts, weight = _weighed(values, trend.counts, trend.freedom, line, variance, 1.0, _DOUBT_ON_LINES)
        if weight >= _HEARD:
            return counts, line
        own = float((line.within + line.between).sum()) / variance
        freedom = weight * own + (1.0 - weight) * trend.freedom
        return counts, replace(line, period=trend.period, freedom=freedom)
    if values.size > MOST_CELLS_ON_CURVE:
        return classify(values, variance), None
    order = hilbert_order(values.shape)
    model = denoise(values.reshape(-1)[order], 1.0 / scale, normal)
    back = np.empty_like(order)
    back[order] = np.arange(order.size)
    parts = [part[back].reshape(values.shape) for part in (model.mean, model.within, model.between)]
    field = Denoised(parts[0], parts[1], parts[2], model.scatter, model.stay)
    if values.ndim == 2:
        return _weighed(values, *_from_places(values, variance), field, variance)[0], field
    return 0.5 * (classify(values, variance) + field.mean), field


def _weighed(
    values: IntArray,
    other: FloatArray,
    freedom: float,
    field: Denoised,
    variance: float,
    model: float = _MODEL,
    doubt: float = _DOUBT,
) -> tuple[FloatArray, float]:
    """Between the level model's reading and another one, where the squared error looks least.

    A reading r of values y is off by |r − y|² − n·variance + 2·variance·(its degrees of freedom), on average (Stein's
    identity). Boxes have as many degrees of freedom as there are boxes, the level model what it says of its variance.
    With no more than ``doubt`` noisy cells' worth of evidence the level model's weight is ``model``.

    Returns:
        The counts, and what the level model weighs.
    """
    apart = field.mean - other
    free = float((field.within + field.between).sum()) - freedom * variance
    found = float((apart * (values - other)).sum()) - free + doubt * model * variance
    weight = min(max(found / (float((apart * apart).sum()) + doubt * variance), 0.0), 1.0)
    weight = round(weight * _GRAIN) / _GRAIN
    return np.asarray(other + weight * apart, dtype=np.float64), weight


def _from_places(values: NDArray[Any], variance: float) -> tuple[FloatArray, float]:
    """The mean of dyadic classifications of a plane that begin at several places, mirrored beyond its edge.

    Returns the counts, and how many boxes there are on average.
    """
    total, number = np.zeros(values.shape), 0
    for row, column in _PLACES:
        found, boxes = _classified(np.pad(values, ((row, 0), (column, 0)), mode="symmetric"), variance)
        total += found[row:, column:]
        number += boxes
    return total / len(_PLACES), number / len(_PLACES)


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
    number = 0
    while splits:
        finer, split = means.pop(), splits.pop()
        number += int((active & ~split).sum())
        active = _double(active & split, finer.shape)
        value = np.where(active, finer, _double(value, finer.shape))
    return np.maximum(value, 0.0), number + int(active.sum())


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
