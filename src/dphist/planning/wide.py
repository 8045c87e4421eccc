"""Forecasts for tables of few attributes out of very many.

The variance of least squares is known beforehand. Where a model is fitted to the noisy tables (`mixture`), what is
published is nearer to the truth the less columns depend on each other, which nobody knows before data are read: its
own forecast (`dphist.mechanisms.wide.outlook`) is given for columns that are independent and for some that are not.
"""

from __future__ import annotations

import math

import numpy as np

from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.mixture import Mixture, counted
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.residuals import Residuals, asked_ranges
from dphist.mechanisms.wide.outlook import HALF_MEAN
from dphist.mechanisms.wide.ranges import plan_axes
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise


def wide_error(
    mechanism: Mechanism,
    domain: Domain,
    budget: Budget,
    unit: Unit,
    hint: Workload | None,
    asked: Workload,
) -> float | None:
    """Forecast the root mean squared error of asked tables under least squares, where they are published as tables.

    ``hint`` is what the mechanism is told, ``asked`` the cells of some tables. Infinite if a table would not be
    measured, None if this is no such release.
    """
    if not isinstance(mechanism, Residuals | Auto) or not mechanism.goes_wide(domain, hint):
        return None
    # Of very many cells a forecast is handed some; the tables they come from are what the mechanism was told.
    tables = asked.tables or (None if hint is None else hint.tables)
    if tables is None:
        return math.inf
    recipe = mechanism if isinstance(mechanism, Residuals) else Residuals()
    # Nobody's records and a test's noise: only the variances are read, and they are those of any data.
    nobody = CodedColumns.nobody(domain)
    noise = Noise(Keystream.for_tests(0))
    right, _ = open_gate(nobody, budget, unit, workload=hint, noise=noise)
    known = recipe.measured(right)[1]
    squares, cells = 0.0, 0
    for axes in tables:
        kept: Axes = tuple(sorted(axes))
        if not known.covers(kept):
            return math.inf
        size = math.prod(domain.shape[axis] for axis in kept)
        squares += size * known.cell_variance(kept)
        cells += size
    return math.sqrt(squares / cells)


# How far pairs are from independence, as a total variation beyond sampling, in words.
_DEPENDENCES = {
    "independent columns": 0.0,
    "hardly dependent columns": 0.02,
    "dependent columns": 0.1,
    "columns that follow from each other": 0.4,
}


def wide_cases(
    mechanism: Mechanism, domain: Domain, budget: Budget, unit: Unit, hint: Workload | None, records: int
) -> dict[str, float]:
    """What part of the error of least squares `auto` is expected to have, by how far columns depend on each other.

    Nothing where least squares is published as it is; ``records`` is a public guess.
    """
    if not isinstance(mechanism, Auto) or mechanism.guaranteed:
        return {}
    nobody = CodedColumns.nobody(domain)
    right, _ = open_gate(nobody, budget, unit, workload=hint, noise=Noise(Keystream.for_tests(0)))
    if plan_axes(domain, asked_ranges(right, None), gaussian=right.law().gaussian):
        return {}
    recipe = Mixture()
    outlook = counted(right, recipe.tables, recipe.ways)[1].counted(float(records))
    if not outlook.pairs:
        return {}
    best = outlook.ways.min(axis=0)
    # Errors there are of tables without negative cells; beside least squares, which may have any.
    uncut = outlook.mean(HALF_MEAN * np.sqrt(outlook.variances[0]) * outlook.cells / outlook.total)
    return {
        name: float(np.interp(beyond, outlook.beyond, np.minimum(best, outlook.plain)) / uncut)
        for name, beyond in _DEPENDENCES.items()
    }
