"""Which of two promises to keep: (ε, δ) is kept by the ρ it buys, and by pure ε as well.

Who allows (ε, δ) allows two kinds of noise. Gaussian noise of the largest ρ that implies (ε, δ) is better where many
questions meet every record; Laplace noise of the pure ε is better where few do (at δ = 10⁻⁹, up to about twenty). A
release is made with one of them, and `auto` chooses which.

Private because either keeps the promise. What is ε-differentially private is (ε, δ)-differentially private for every δ,
by definition; what is ρ-zCDP is (ε, δ)-differentially private for a ρ that implies it. The choice is a function of the
domain, the unit, what was announced and the budget, all public: for every pair of neighbours the same one is made, so
the release is one of the two mechanisms and not a mixture that somebody could tell apart. The guarantee, the
transcript and the ledger then name what was spent, never both.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

from dphist.mechanisms.auto import Auto
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.choosing.request import Request
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.wide.plan import planned_variances, residual_error, wanted_tables
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.law import NoiseLaw
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.facts import facts_of, part_workload


def settle(
    mechanism: Mechanism,
    budget: Budget,
    domain: Domain,
    unit: Unit,
    workload: Workload | None = None,
    share: Fraction = Fraction(1),
) -> Budget:
    """Say what of an (ε, δ) is spent: its ρ, or its pure ε where that has the smaller forecast for `auto`.

    A pure ε remembers the (ε, δ) that was allowed; ``share`` is the part of the budget that this is about.
    """
    if budget.pure or budget.epsilon is None:
        return budget
    if isinstance(mechanism, ByPart):
        rest = [name for name in domain.names if name not in mechanism.by]
        if not rest:
            return budget
        inner = domain.project(rest)
        asked = part_workload(workload, inner, [domain.axis(name) for name in rest])
        return settle(mechanism.inner, budget, inner, unit, asked, share)
    if not isinstance(mechanism, Auto):
        return budget
    offers = (budget.without_delta(), budget)
    return min(offers, key=lambda each: forecast(mechanism, each.part(share), domain, unit, workload))


def forecast(
    auto: Auto, budget: Budget, domain: Domain, unit: Unit, workload: Workload | None = None
) -> float:
    """What `auto` is expected to be off by, before anything adapts to the data: closed forms of public sizes.

    Of a mixture it is the geometric mean over its parts, each as much as it counts.
    """
    facts = facts_of(domain, budget, unit, workload)
    law = facts.law()
    if auto.goes_wide(domain, workload):
        return _wide(law, domain, workload)
    request = Request(facts, auto.workload)
    forecaster = request.forecaster()
    if request.why_cells or request.nearly_exact:
        return forecaster.cells()
    if not request.forecast:
        return forecaster.tree()
    tables = forecaster.tables().score
    return min(
        tables,
        residual_error(law, domain.shape, request.tables) if request.tables else forecaster.tree(),
    )


def _wide(law: NoiseLaw, domain: Domain, workload: Workload | None) -> float:
    """The same for tables of very many attributes: those that were announced, or all of two."""
    parts = () if workload is None else workload.parts or ((1.0, workload),)
    kinds = [(weight, part.tables) for weight, part in parts if part.tables]
    axes = range(len(domain.shape))
    kinds = kinds or [(1.0, tuple(combinations(axes, min(2, len(axes)))))]
    wanted = wanted_tables(domain.shape, [table for _, tables in kinds for table in tables])
    total = 0.0
    for weight, tables in kinds:
        variances = planned_variances(law, domain.shape, wanted, wanted_tables(domain.shape, tables))[0]
        total += weight * math.log(max(float(np.nanmean(variances)), 1e-300)) / 2.0
    return math.exp(total / sum(weight for weight, _ in kinds))
