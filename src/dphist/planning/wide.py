"""Forecasts for tables of few attributes out of very many: the variance of least squares is known beforehand."""

from __future__ import annotations

import math

from dphist.inference.tables import Axes
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.residuals import Residuals
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.private.records import open_records_gate


def wide_error(
    mechanism: Mechanism,
    domain: Domain,
    budget: Budget,
    unit: Unit,
    hint: Workload | None,
    asked: Workload,
) -> float | None:
    """Forecast the root mean squared error of asked tables under least squares, where they are published as tables.

    Args:
        mechanism: Who publishes.
        domain: What would be counted.
        budget: What would be spent.
        unit: Who is protected.
        hint: What the mechanism is told.
        asked: The cells of some tables.

    Returns:
        The error; infinite if a table would not be measured, None if this is no such release.
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
    right, _ = open_records_gate(nobody, budget, unit, workload=hint, noise=noise)
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
