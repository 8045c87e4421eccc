"""From what was measured of many columns to what is published: a model fitted to it, tables between both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial, reduce

import numpy as np

from dphist.arrays import FloatArray
from dphist.inference.estimate import nonnegative
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.fitting import settle
from dphist.inference.tables.mixture import MixtureModel, NoisyTable, fit_mixture
from dphist.inference.tables.published import TableEstimate
from dphist.inference.tables.residuals import Axes, TableResiduals, subsets
from dphist.inference.tables.shrinking import disagreement, shrink_column, shrink_together
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
    residuals: TableResiduals, asked: Sequence[Axes], classes: int, steps: int, long: int
) -> PublishedModel:
    """Fit a model to all that was measured, and make the tables that were asked for between both."""
    total = max(1.0, float(residuals.table(())))
    every = [*asked, *((axis,) for axis in range(len(residuals.shape)))]
    inside = {residuals.kept(inner) for axes in every for inner in subsets(axes)} - {()}
    known = sorted((axes for axes in inside if residuals.covers(axes)), key=lambda axes: (len(axes), axes))
    noisy = [NoisyTable(axes, residuals.table(axes), residuals.cell_variance(axes)) for axes in known]
    model = fit_model(residuals.shape, noisy, total, classes, steps, long=long)
    near: dict[Axes, FloatArray] = {
        axes: shrink_column(residuals.table(axes), residuals.cell_variance(axes), total)
        for axes in known
        if len(axes) == 1
    }
    pairs = [axes for axes in known if len(axes) == 2]
    said, chance = partial(_said, model, total), partial(by_chance, near, total)
    far, deviation = disagreement(residuals, pairs, chance)
    # A model that follows the noise, or could and need not help much, says nothing beyond the measurement; and none
    # is needed where noise alone explains how far pairs are from independence.
    cells = sum(math.prod(residuals.shape[axis] - 1 for axis in axes) for axes in pairs)
    able = 2 * cells < classes * (sum(residuals.shape) - len(residuals.shape))
    alone = (
        far < 1.0 + 2.0 * deviation
        or (able and far > _CLEAR)
        or disagreement(residuals, pairs, said)[0] < _FOLLOWS
    )
    if alone:
        near |= shrink_together(residuals, pairs, chance, sampled=True)
    near |= shrink_together(residuals, [axes for axes in known if len(axes) > 2 or not alone], said)
    return settled_near(residuals.shape, asked, total, near, model)


def fit_model(
    shape: Sequence[int],
    noisy: Sequence[NoisyTable],
    total: float,
    classes: int,
    steps: int,
    dearer: float = 1.0,
    *,
    long: int,
) -> MixtureModel:
    """Fit a mixture of products at ``dearer`` times the price that the noise of its tables asks for."""
    large = sum(table.values.size for table in noisy if len(table.axes) > 2)
    used = [table for table in noisy if len(table.axes) <= 2 or large <= _MOST_FITTED]
    if all(len(table.axes) == 1 for table in used):
        return _product(shape, used, total)
    price = dearer * float(np.clip(_raw(used, total) / _FULL_PRICE, _LEAST_PRICE, 1.0))
    most = min(classes, 4 * sum(shape))
    return fit_mixture(shape, used, total, components=most, steps=steps, price=price, long=long)


def _product(shape: Sequence[int], columns: Sequence[NoisyTable], total: float) -> MixtureModel:
    """The model of single columns, which go together by chance alone: nothing to descend to, each is its own table."""
    rows = [np.full(size, 1.0 / size) for size in shape]
    for axis in range(len(shape)):
        told = [table for table in columns if table.axes == (axis,)]
        if told and total > 0.0:
            weights = [1.0 / float(np.mean(table.variance)) for table in told]
            mean = np.average([table.values for table in told], axis=0, weights=weights)
            rows[axis] = nonnegative(mean, total) / total
    return MixtureModel(tuple(shape), np.ones(1), np.concatenate(rows)[:, None])


def publish_near(
    shape: Sequence[int],
    asked: Sequence[Axes],
    total: float,
    near: Mapping[Axes, FloatArray],
    model: MixtureModel,
    errors: ResidualNoise,
    note: str,
) -> TableEstimate:
    """Settle the announced tables, and those of single attributes, so that all agree.

    ``near`` has what was made of measured tables; the model says something of all others.
    """
    fitted = settled_near(shape, asked, total, near, model)
    return TableEstimate(fitted.tables, errors, note, fitted)


def settled_near(
    shape: Sequence[int],
    asked: Sequence[Axes],
    total: float,
    near: Mapping[Axes, FloatArray],
    model: MixtureModel,
) -> PublishedModel:
    """The tables that `publish_near` publishes, with the model."""
    every = [*asked, *((axis,) for axis in range(len(shape)))]

    def table(axes: Axes) -> FloatArray:
        if not axes:
            return np.array(total)
        return near[axes] if axes in near else np.asarray(total * model.table(axes))

    return PublishedModel(model, settle(shape, every, table))


def _said(model: MixtureModel, total: float, axes: Axes) -> FloatArray:
    """A table as the model has it."""
    return np.asarray(total * model.table(axes), dtype=np.float64)


def by_chance(near: Mapping[Axes, FloatArray], total: float, axes: Axes) -> FloatArray:
    """A table whose attributes go together by chance alone."""
    parts = [near[(axis,)] / max(float(near[(axis,)].sum()), 1e-300) for axis in axes]
    return np.asarray(total * reduce(np.multiply.outer, parts), dtype=np.float64)


def _raw(tables: Sequence[NoisyTable], total: float) -> float:
    """The expected total variation between measured pairs and true ones."""
    pairs = [table for table in tables if len(table.axes) > 1]
    noise = [0.4 * math.sqrt(float(np.mean(t.variance))) * t.values.size / total for t in pairs]
    return float(np.mean(noise)) if noise else 0.0
