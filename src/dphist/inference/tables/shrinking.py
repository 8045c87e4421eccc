"""Noisy tables moved towards models of them, a table at a time.

A measured table is unbiased and noisy, a model's table smooth and a little wrong. Shrinking (James and Stein 1961)
goes from the model towards the measurement as far as their difference exceeds what noise alone would make of it. Many
tables tell each other how far models are from measurements (empirical Bayes, Efron and Morris 1973): so tables of two
values shrink as well, each of which could not by itself.

Where the model is wrong by more than the noise the measurement speaks; where it is not, the model does. The nearest
table without negative cells and with the same total follows; `dphist.inference.tables.fitting.settle` then makes tables
agree. Arithmetic on released numbers throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative
from dphist.inference.tables.fitting import bounds, implied
from dphist.inference.tables.residuals import Axes, TableResiduals, centred, subsets

FloatArray = NDArray[np.float64]

# How far tables may depart from a model, as a part of their noise's variance.
_TAU = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1e3, 1e4, 1e6])
# Steps of expectation–maximisation.
_LEARNING = 15


def shrink_together(
    measured: TableResiduals,
    tables: Sequence[Axes],
    model: Callable[[Axes], FloatArray],
    *,
    sampled: bool = False,
    bounded: bool = False,
) -> dict[Axes, FloatArray]:
    """Move measured tables towards a model of them, all tables of as many attributes by what they show together.

    Each table is judged by its own residual alone (what it says beyond its margins, which have tables of their own):
    e = ‖residual of y − m‖² ÷ variance has k degrees of freedom. If tables depart from the model by normal laws of
    variance τ times the noise, e ÷ (1 + τ) is χ² of k, and a table keeps τ ÷ (1 + τ) of its difference. How often each
    τ is so, from none to anything, all tables of as many attributes say together (expectation–maximisation); each then
    keeps what its own e makes of that. Tables that all agree with the model are left there, one that does not among
    many that do is not.

    Args:
        measured: All that was measured, by residuals.
        tables: Tables that are covered.
        model: What a model says of a table, as counts.
        sampled: Whether the model is of a population, from which records were drawn: they depart from it at least by
            that. Of n records whose attributes go together by chance Σ residual² is about n Π (1 − Σ share²); in
            units of the noise that is the least τ of a table.
        bounded: Whether τ is bounded by what counts allow: a number between 0 and M, the least of a cell's margins,
            with a mean of m has a variance of at most m (M − m). Where noise is far larger than counts, a small part of
            it would else be believed.
    """
    found: dict[Axes, FloatArray] = {}
    for ways in sorted({len(axes) for axes in tables}):
        here = [axes for axes in tables if len(axes) == ways]
        apart = {axes: measured.table(axes) - model(axes) for axes in here}
        energy = {axes: _energy(measured, axes, apart[axes]) for axes in here}
        freedom = {axes: math.prod(size - 1 for size in apart[axes].shape) for axes in here}
        least = [_drawn(measured, axes, model(axes)) if sampled else 0.0 for axes in here]
        kept = _kept(
            np.array([energy[axes] for axes in here]),
            np.array([freedom[axes] for axes in here], dtype=np.float64),
            np.array(least),
            np.array([_bound(measured, axes, model(axes)) if bounded else np.inf for axes in here]),
        )
        for axes, part in zip(here, kept, strict=True):
            said = model(axes)
            found[axes] = nonnegative(said + part * apart[axes], float(said.sum()))
    return found


def _kept(energy: FloatArray, freedom: FloatArray, least: FloatArray, most: FloatArray) -> FloatArray:
    """The part of its difference that every table keeps: a posterior mean, the prior learned from all tables."""
    tau = np.minimum(least + _TAU[:, None], most)
    grown = 1.0 + tau
    log = -0.5 * (freedom * np.log(grown) + energy / grown)
    fits = np.exp(log - log.max(axis=0))
    often = even = np.full(len(fits), 1.0 / len(fits))
    for _ in range(_LEARNING):
        part = often[:, None] * fits
        # As if one more table had been any of them.
        often = ((part / part.sum(axis=0)).sum(axis=1) + even) / (energy.size + 1.0)
    part = often[:, None] * fits
    return np.asarray((part * (tau / grown)).sum(axis=0) / part.sum(axis=0), dtype=np.float64)


def _drawn(measured: TableResiduals, axes: Axes, model: FloatArray) -> float:
    """How far records drawn from a model are from it beyond their margins: a variance, in units of the noise's."""
    total = float(model.sum())
    freedom = math.prod(size - 1 for size in model.shape)
    if total <= 0.0 or not freedom or measured.kept(axes) != axes:
        return 0.0
    spread = total
    for place in range(model.ndim):
        others = tuple(other for other in range(model.ndim) if other != place)
        share = model.sum(axis=others) / total
        spread *= 1.0 - float((share * share).sum())
    return float(spread * measured.residuals[axes].precision / freedom)


def _bound(measured: TableResiduals, axes: Axes, model: FloatArray) -> float:
    """How far counts may be from a model beyond their margins: a variance, in units of the noise's."""
    freedom = math.prod(size - 1 for size in model.shape)
    if not freedom or measured.kept(axes) != axes:
        return math.inf
    spread = float((model * np.maximum(bounds(model) - model, 0.0)).sum())
    return float(spread * measured.residuals[axes].precision / freedom)


def disagreement(
    measured: TableResiduals, tables: Sequence[Axes], model: Callable[[Axes], FloatArray]
) -> tuple[float, float]:
    """Say how far tables are from a model beyond their margins, in units of their noise: Σe ÷ Σk, and its deviation.

    Noise alone makes it 1 for a model that knows nothing of the measurement. It is far below 1 for a model so rich that
    it follows the noise.
    """
    energy = sum(_energy(measured, axes, measured.table(axes) - model(axes)) for axes in tables)
    freedom = max(1, sum(math.prod(measured.shape[axis] - 1 for axis in axes) for axes in tables))
    return energy / freedom, math.sqrt(2.0 / freedom)


def _energy(measured: TableResiduals, axes: Axes, apart: FloatArray) -> float:
    """What a table differs by beyond its margins, squared, in units of its noise's variance."""
    kept = measured.kept(axes)
    if kept != axes:
        return 0.0
    left = centred(apart)
    return float((left * left).sum()) * measured.residuals[axes].precision


def shrink_downward(measured: TableResiduals, tables: Sequence[Axes]) -> dict[Axes, FloatArray]:
    """Move measured tables towards what smaller ones suggest, from the total down, by what they show together.

    Tables of one attribute are moved towards an even spread of the total, larger ones towards the table of largest
    entropy that has the smaller ones inside it, as these are by then; all of as many attributes at once
    (`shrink_together`). Where noise hides everything an even spread is left, and where it hides how attributes go
    together, chance. Models are of populations: records that were drawn from one depart from it at least by that.
    """
    needed = {subset for axes in tables for subset in subsets(tuple(sorted(axes)))} | {()}
    found: dict[Axes, FloatArray] = {(): np.maximum(measured.table(()), 0.0)}

    def model(axes: Axes) -> FloatArray:
        return implied([measured.shape[axis] for axis in axes], axes, found)

    for ways in range(1, max(len(axes) for axes in needed) + 1):
        here = sorted(axes for axes in needed if len(axes) == ways)
        found |= shrink_together(measured, here, lru_cache(None)(model), sampled=True, bounded=True)
    return found
