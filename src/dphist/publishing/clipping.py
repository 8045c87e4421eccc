"""What a measure's bounds cost, before anything is spent: noise, and how much clipping would outweigh it.

Wider bounds let one record add more, so noise grows with them; narrower ones clip. No data are read here, so what is
clipped is not known; but how much could be clipped before that outweighs the noise is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dphist.errors import InputError
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure, Sums
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.publishing.measures import plan_measures


@dataclass(frozen=True)
class BoundCost:
    """The noise that a measure's bounds bring with them.

    Args:
        measure: The measure.
        sum_error: The standard deviation of the noise in a typical sum.
        mean_error: The same of a mean over ``records`` records that lies amid the bounds.
        break_even: What share of the records could lie a quarter of the width beyond the bounds before the mean loses
            as much by clipping as by noise: wider bounds are worth it above, narrower ones below.
    """

    measure: Measure
    sum_error: float
    mean_error: float
    break_even: float


def bound_cost(
    domain: Domain,
    measure: Measure,
    epsilon: Number,
    *,
    records: int,
    workload: Workload | str | None = None,
    mechanism: Mechanism | str = "auto",
    unit: Unit | None = None,
) -> BoundCost:
    """Forecast the noise of a measure's sums and means; no data are read.

    Args:
        domain: What the cells are.
        measure: The measure, with the bounds to look at.
        epsilon: What all of the release would spend.
        records: How many records a typical question holds: a public guess.
        workload: What will be asked; all records together unless told.
        mechanism: Who would measure.
        unit: Who is protected.

    Returns:
        The noise, and how much clipping outweighs it.

    Example:
        >>> import dphist
        >>> from dphist.publishing.clipping import bound_cost
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> narrow, wide = (
        ...     bound_cost(domain, dphist.Measure("cost", 0, high), 1, records=10_000) for high in (1_000, 4_000)
        ... )
        >>> round(wide.mean_error / narrow.mean_error)
        4
    """
    if records < 1:
        raise InputError("records must be at least 1")
    budget, protected = Budget.of(epsilon), unit or Unit()
    recipe = parse(mechanism) if isinstance(mechanism, str) else mechanism
    asked = None if workload is None else Workload.parse(domain, workload)
    plan = plan_measures(domain, [measure], recipe, asked, None, budget)
    looked = asked if asked is not None and asked.query is None else Workload.where(domain, {})
    looked = looked if looked.size <= 500 else looked.spread(500)
    nothing = np.zeros(domain.shape, dtype=np.int64)
    count = _errors(
        plan.counts, Histogram(domain, nothing), budget.part(plan.share), protected, asked, looked
    )
    quantity = plan.quantities[0]
    moved = quantity.in_steps(protected)
    steps = _errors(plan.mechanism, Sums(domain, nothing), budget.part(plan.shares[0]), moved, asked, looked)
    noise, people = steps, count
    step, width = float(measure.size), float(measure.highest - measure.lowest)
    total = math.sqrt(noise + quantity.centre**2 * people) * step
    # A mean anywhere between the bounds is on average the width's 1/√12 away from the middle.
    away = (quantity.centre - measure.middle) ** 2 + width**2 / 12
    mean = math.sqrt(noise + away * people) * step / records
    return BoundCost(measure, total, mean, min(1.0, mean / (width * step / 4)))


def _errors(
    mechanism: Mechanism,
    cells: Histogram | Sums,
    budget: Budget,
    unit: Unit,
    hint: Workload | None,
    asked: Workload,
) -> float:
    """The mean variance of some answers: the mechanism is tried out on nothing."""
    right, _ = open_gate(cells, budget, unit, workload=hint, noise=Noise(Keystream.for_tests(0)))
    return float(np.mean(mechanism.estimate(right).errors.variance(asked)))
