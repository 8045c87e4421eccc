"""Which of two promises to keep: (ε, δ) is kept by the ρ it buys, and by pure ε as well.

Who allows (ε, δ) allows two kinds of noise. Gaussian noise of the largest ρ that implies (ε, δ) is better where many
questions meet every record; Laplace noise of the pure ε is better where few do (at δ = 10⁻⁹, up to about twenty). A
release is made with one of them, and `auto` chooses which; with Laplace noise it may then serve many tables from cells.

Private because either keeps the promise. What is ε-differentially private is (ε, δ)-differentially private for every δ,
by definition; what is ρ-zCDP is (ε, δ)-differentially private for a ρ that implies it. The choice is a function of the
domain, the unit, what was announced and the budget, all public: for every pair of neighbours the same one is made, so
the release is one of the two mechanisms and not a mixture that somebody could tell apart. The guarantee, the
transcript and the ledger then name what was spent, never both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.errors import InputError
from dphist.inference.drawn import drawn_variance
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.wide.noise import planned_variances
from dphist.mechanisms.wide.plan import wanted_tables
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.empty import open_empty
from dphist.private.facts import part_workload
from dphist.private.pricing import UnitBudget

# Larger domains are judged by a smaller one with as many axes: which noise is less depends on the logarithm of sizes.
_LARGEST = 1 << 14
_QUESTIONS = 1000


def settle(
    mechanism: Mechanism,
    budget: Budget,
    domain: Domain,
    unit: Unit,
    workload: Workload | None = None,
    share: Fraction = Fraction(1),
) -> tuple[Mechanism, Budget]:
    """Say what of an (ε, δ) is spent: its ρ, or its pure ε where that has the smaller forecast.

    Args:
        mechanism: Who publishes; only `auto` chooses.
        budget: What was allowed.
        domain: What is counted.
        unit: Who is protected.
        workload: What was announced.
        share: Of the budget, that this is about.

    Returns:
        The mechanism, told to measure cells where pure ε and that are best, and the budget: as it is, or its pure ε,
        which remembers the (ε, δ) that was allowed.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> allowed = Budget.of(1, delta="1e-9")
        >>> settle(Auto(), allowed, domain, dphist.Unit(), dphist.Workload.cells(domain))[1].describe()
        '1-differential privacy (of the (1, 1e-09) that was allowed, δ is not used)'
    """
    if budget.pure or budget.epsilon is None:
        return mechanism, budget
    if isinstance(mechanism, ByPart):
        rest = [name for name in domain.names if name not in mechanism.by]
        if not rest:
            return mechanism, budget
        inner = domain.project(rest)
        asked = part_workload(workload, inner, [domain.axis(name) for name in rest])
        chosen, spent = settle(mechanism.inner, budget, inner, unit, asked, share)
        return replace(mechanism, inner=chosen), spent
    if not isinstance(mechanism, Auto):
        return mechanism, budget
    pure = budget.without_delta()
    # Auto's own rule is about one currency: with Laplace noise the cells may serve better than many tables do.
    offers = [(mechanism, pure), (mechanism, budget)]
    if not mechanism.goes_wide(domain, workload):
        offers.append((replace(mechanism, workload="cells"), pure))
    errors = [forecast(each, money.part(share), domain, unit, workload) for each, money in offers]
    return offers[errors.index(min(errors))]


def forecast(
    auto: Auto, budget: Budget, domain: Domain, unit: Unit, workload: Workload | None = None
) -> float:
    """The root mean squared error of what `auto` would measure, read as least squares has it.

    That is the noise before anything adapts to the data: exact for the sibling whose errors do not depend on them. Of a
    mixture it is the geometric mean over its parts, each as much as it counts.

    Args:
        auto: Who chooses what is measured.
        budget: What would be spent.
        domain: What is counted.
        unit: Who is protected.
        workload: What was announced; ranges of every size unless told.

    Returns:
        The error, in records; infinite where noise so large cannot be drawn.
    """
    if auto.goes_wide(domain, workload):
        return _wide(UnitBudget.of(budget, unit).law(), domain, workload)
    smaller, asked = _smaller(domain, workload)
    known = Auto(workload=auto.workload, guaranteed=True)
    try:
        recipe = known.choose(open_empty(smaller, budget, unit, asked))[0]
        if isinstance(recipe, Marginals):
            recipe = replace(recipe, nonnegative=False)  # the same noise, and no cube is fitted
        errors = recipe.estimate(open_empty(smaller, budget, unit, asked)).errors
    except InputError:
        return math.inf
    # By what auto was told in words if there is no workload of its own; else by ranges.
    if asked is None:
        rule = auto.workload if auto.workload in ("prefixes", "marginals") else "ranges"
        asked = Workload.parse(smaller, rule)
    if asked.kind == "all_ranges":
        asked = Workload.random(smaller, _QUESTIONS, seed=1)
    # By the whole numbers that are drawn: at a large ε they are mostly 0, and far from the continuous law.
    return _mean(
        (weight, drawn_variance(errors, part.spread(_QUESTIONS) if len(part) > _QUESTIONS else part))
        for weight, part in asked.parts or ((1.0, asked),)
    )


def _wide(law: NoiseLaw, domain: Domain, workload: Workload | None) -> float:
    """The same for tables of very many attributes: those that were announced, or all of two."""
    told = () if workload is None else workload.parts or ((1.0, workload),)
    kinds = [(weight, part.tables) for weight, part in told if part.tables]
    axes = range(len(domain.shape))
    kinds = kinds or [(1.0, tuple(combinations(axes, min(2, len(axes)))))]
    wanted = wanted_tables(domain.shape, [table for _, tables in kinds for table in tables])
    return _mean(
        (weight, planned_variances(law, domain.shape, wanted, wanted_tables(domain.shape, tables))[0])
        for weight, tables in kinds
    )


def _mean(kinds: Iterable[tuple[float, NDArray[np.float64]]]) -> float:
    """The geometric mean over kinds of questions of their root mean squared errors, each as much as it counts."""
    parts = [(weight, math.log(max(float(np.nanmean(each)), 1e-300)) / 2.0) for weight, each in kinds]
    return math.exp(sum(weight * each for weight, each in parts) / sum(weight for weight, _ in parts))


def _smaller(domain: Domain, workload: Workload | None) -> tuple[Domain, Workload | None]:
    """A domain of as many axes that is quick to lay out, and the same questions about it."""
    if domain.size <= _LARGEST:
        return domain, workload
    sizes = list(domain.shape)
    while math.prod(sizes) > _LARGEST:
        sizes[sizes.index(max(sizes))] = (max(sizes) + 1) // 2
    small = Domain(
        [
            attribute if size == attribute.size else Ordinal(attribute.name, range(size))
            for attribute, size in zip(domain.attributes, sizes, strict=True)
        ]
    )
    if workload is None:
        return small, None
    if workload.parts:
        return small, Workload.mixture(
            small, [(w, _moved(domain, small, part)) for w, part in workload.parts]
        )
    return small, _moved(domain, small, workload)


def _moved(domain: Domain, small: Domain, workload: Workload) -> Workload:
    """The same questions about a smaller domain."""
    if workload.tables is not None:
        names = [[domain.names[axis] for axis in table] for table in workload.tables]
        return Workload.marginals(small, names)
    if workload.kind in ("cells", "prefixes", "all_ranges"):
        return Workload.from_json(small, {"kind": workload.kind})
    few = workload.query is not None or len(workload) <= _QUESTIONS
    some = workload if few else workload.spread(_QUESTIONS)
    old, new = np.array(domain.shape), np.array(small.shape)
    low = some.low * new // old
    return Workload(small, low, np.maximum(-(-some.high * new // old), low), some.query)
