"""Single columns, the pairs that a model of them gets most wrong, and what is published: tables between both.

How many pairs, and the share of single columns, were tried on made-up tables (5 and 15 columns of 2, 10 or mixed
numbers of values, with and without dependence, 3,000 and 50,000 records, both currencies); the share under ε was set
looking at the Adult records: figures on those are not blind. Whether any are chosen is decided by forecast
(`dphist.mechanisms.wide.outlook`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.inference.estimate import nonnegative
from dphist.inference.tables.errors import ResidualNoise, noise_after
from dphist.inference.tables.fitting import settle
from dphist.inference.tables.mixture import MixtureModel, NoisyTable, fit_mixture
from dphist.inference.tables.published import PublishedModel
from dphist.inference.tables.residuals import Axes, TableResiduals, subsets
from dphist.inference.tables.shrinking import disagreement, shrink_together
from dphist.mechanisms.residuals import measure_residuals
from dphist.mechanisms.wide.plan import Kinds, pair_weights
from dphist.model.law import NoiseLaw
from dphist.private.gate import PrivateCounts
from dphist.private.scores.tables import TableErrors, chosen_tables

# Rounds of choosing pairs; after the first the model knows what was measured.
_ROUNDS = 2
# Of what a round has, to choose its pairs.
_CHOICE_SHARE = Fraction(1, 20)
# The strength of a budget is counted in records × ε: noise of deviation σ is worth ε = √2 ÷ σ, under ρ 5.77 ÷ σ.
_LAPLACE_WORTH, _GAUSSIAN_WORTH, _USUAL = math.sqrt(2.0), 5.77, 3e4
# A model nearer to measured pairs than this part of their noise follows it.
_FOLLOWS = 0.5
# Pairs this much further from independence than noise gain little by any model.
_CLEAR = 4.0
# Tables of three and more attributes take part in the fit while they have at most 20,000 cells together.
_MOST_FITTED = 20_000
# Dependence costs less where noise is small: this part at least, all of it from a tenth of total variation on.
_LEAST_PRICE, _FULL_PRICE = 0.15, 0.1


def _strength(law: NoiseLaw, total: float) -> float:
    """How much a budget can see, beside what is usual."""
    worth = _GAUSSIAN_WORTH if law.gaussian else _LAPLACE_WORTH
    return worth * total / float(law.deviation) / _USUAL


def singles_share(law: NoiseLaw, total: float) -> Fraction:
    """The share of tables of one attribute: the more, the less can be seen of pairs."""
    most = 0.3 if law.gaussian else 0.4
    return Fraction(round(1000 * float(np.clip(most * _strength(law, total) ** -0.3, 0.15, 0.7))), 1000)


def picks(law: NoiseLaw, total: float, columns: int, pairs: int) -> int:
    """How many pairs to measure."""
    wanted = (3.0 if law.gaussian else 2.0) * columns * _strength(law, total) ** 0.4
    return int(min(pairs, max(1.0, wanted)))


def measure_singles(data: PrivateCounts) -> ResidualNoise:
    """Measure single columns with a whole right."""
    every = [(axis,) for axis, size in enumerate(data.shape) if size > 1]
    return ResidualNoise(measure_residuals(data, every or [()], by_cells=True))


def measure_chosen(
    data: PrivateCounts, pairs: Sequence[Axes], total: float, kinds: Kinds, classes: int, steps: int
) -> tuple[ResidualNoise, int]:
    """Measure single columns, then in rounds those pairs that a model gets most wrong; says how many.

    What a pair is away from the model counts by its weight among ``kinds``.
    """
    law, left, chosen = data.law(), list(pairs), list[Axes]()
    share = singles_share(law, total)
    wanted = picks(law, total, len(data.shape), len(left))
    one, rest = data.split(share, 1 - share)
    errors = measure_singles(one)
    rounds = _ROUNDS if 1 < wanted < len(left) else 1
    for number, right in enumerate(rest.split(*[Fraction(1, rounds)] * rounds)):
        take = min(len(left), wanted // rounds + (wanted % rounds if number == 0 else 0))
        here = left
        if take < len(left):
            choose, right = right.split(_CHOICE_SHARE, 1 - _CHOICE_SHARE)
            model = fit_together(errors.residuals, chosen, classes, steps).mixture
            said = [np.rint(total * model.table(axes)).astype(np.int64).reshape(-1) for axes in left]
            weights = _whole(pair_weights(kinds, left)) if kinds else None
            score = TableErrors(tuple(left), np.concatenate(said), take, weights)
            here = sorted(left[place] for place in chosen_tables(choose.choose(score), len(left)))
        errors = noise_after(errors, measure_residuals(right, here, by_cells=True))
        chosen += here
        left = [pair for pair in left if pair not in here]
        if not left:
            break
    return errors, len(chosen)


def _whole(weights: FloatArray) -> IntArray:
    """Weights as whole numbers: the least that differs from nothing is a sixteenth of the largest."""
    return np.asarray(np.maximum(1, np.rint(16.0 * weights / weights.max())), dtype=np.int64)


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
