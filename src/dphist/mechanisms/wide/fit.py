"""From what was measured of many columns to what is published: a model fitted to it, tables between both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial, reduce

import numpy as np

from dphist.arrays import FloatArray
from dphist.inference.estimate import nonnegative
from dphist.inference.tables.fitting import settle
from dphist.inference.tables.mixture import MixtureModel, NoisyTable, fit_mixture
from dphist.inference.tables.residuals import Axes, TableResiduals, subsets
from dphist.inference.tables.shrinking import disagreement, shrink_together
from dphist.inference.tables.synthesis import PublishedModel

# A model nearer to measured pairs than this part of their noise follows it.
_FOLLOWS = 0.5
# Pairs this much further from independence than noise gain little by any model.
_CLEAR = 4.0
# Tables of three and more attributes take part in the fit while they have at most 20,000 cells together.
_MOST_FITTED = 20_000
# Dependence costs less where noise is small: this part at least, all of it from a tenth of total variation on.
_LEAST_PRICE, _FULL_PRICE = 0.15, 0.1


def fit_together(
    residuals: TableResiduals, asked: Sequence[Axes], classes: int, steps: int
) -> PublishedModel:
    """Fit a model to all that was measured, and make the tables that were asked for between both.

    Those that are not covered are the model's guess. Where nothing but single columns was measured the guess is that
    they go together by chance alone.
    """
    shape, total = residuals.shape, max(1.0, float(residuals.table(())))
    every = [*asked, *((axis,) for axis in range(len(shape)))]
    inside = {residuals.kept(inner) for axes in every for inner in subsets(axes)} - {()}
    known = sorted((axes for axes in inside if residuals.covers(axes)), key=lambda axes: (len(axes), axes))
    near: dict[Axes, FloatArray] = {
        axes: nonnegative(residuals.table(axes), total) for axes in known if len(axes) == 1
    }
    larger = [axes for axes in known if len(axes) > 1]
    if larger:
        noisy = [NoisyTable(axes, residuals.table(axes), residuals.cell_variance(axes)) for axes in known]
        model = _fitted(shape, noisy, total, classes, steps)
    else:
        rows = [near[axes] / total if (axes := (axis,)) in near else np.ones(1) for axis in range(len(shape))]
        model = MixtureModel(shape, np.ones(1), np.concatenate(rows)[:, None])
    pairs = [axes for axes in larger if len(axes) == 2]
    said, chance = partial(_said, model, total), partial(_by_chance, dict(near), total)
    far, deviation = disagreement(residuals, pairs, chance)
    # A model that follows the noise, or could and need not help much, says nothing beyond the measurement; and none
    # is needed where noise alone explains how far pairs are from independence.
    cells = sum(math.prod(shape[axis] - 1 for axis in axes) for axes in pairs)
    able = 2 * cells < classes * (sum(shape) - len(shape))
    alone = (
        far < 1.0 + 2.0 * deviation
        or (able and far > _CLEAR)
        or disagreement(residuals, pairs, said)[0] < _FOLLOWS
    )
    if alone:
        near |= shrink_together(residuals, pairs, chance, sampled=True)
    near |= shrink_together(residuals, [axes for axes in larger if len(axes) > 2 or not alone], said)

    def table(axes: Axes) -> FloatArray:
        if not axes:
            return np.array(total)
        return near[axes] if axes in near else said(axes)

    return PublishedModel(model, settle(shape, every, table))


def _fitted(
    shape: Sequence[int], noisy: Sequence[NoisyTable], total: float, classes: int, steps: int
) -> MixtureModel:
    """Fit a mixture of products at the price that the noise of its tables asks for."""
    large = sum(table.values.size for table in noisy if len(table.axes) > 2)
    used = [table for table in noisy if len(table.axes) <= 2 or large <= _MOST_FITTED]
    # The expected total variation between measured pairs and true ones.
    noise = [
        0.4 * math.sqrt(float(np.mean(table.variance))) * table.values.size / total
        for table in used
        if len(table.axes) > 1
    ]
    price = float(np.clip(np.mean(noise) / _FULL_PRICE, _LEAST_PRICE, 1.0))
    return fit_mixture(shape, used, total, components=min(classes, 4 * sum(shape)), steps=steps, price=price)


def _said(model: MixtureModel, total: float, axes: Axes) -> FloatArray:
    """A table as the model has it."""
    return np.asarray(total * model.table(axes), dtype=np.float64)


def _by_chance(near: Mapping[Axes, FloatArray], total: float, axes: Axes) -> FloatArray:
    """A table whose attributes go together by chance alone."""
    parts = [near[(axis,)] / max(float(near[(axis,)].sum()), 1e-300) for axis in axes]
    return np.asarray(total * reduce(np.multiply.outer, parts), dtype=np.float64)
