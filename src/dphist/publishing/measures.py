"""Counts and sums in one release: who measures them, what each may cost, and how they are centred.

Every choice here reads public facts alone (the domain, the workload, the measures, the unit), so it is made before
anything is counted, and costs nothing. The counts and the sums of each measure are then asked through gates of their
own, each with its share of the budget; the shares sum to one, and losses add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import InputError, MechanismError
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.choosing.asked import asked_kinds
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.forecast import Plan as TablePlan
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.matrix import Matrix
from dphist.mechanisms.options import show
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism, goes_wide
from dphist.mechanisms.sparselaplace import SparseLaplace
from dphist.mechanisms.tree import Tree
from dphist.model.budget import Budget, Currency
from dphist.model.domain import Domain, Ordinal
from dphist.model.exact import Number, exact
from dphist.model.exact import shares as insist_on_shares
from dphist.model.histogram import Histogram
from dphist.model.law import NoiseLaw
from dphist.model.measure import Measure, Quantity, Sums
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.publishing.making import begin_pieces, check_room, empty, preflight, release_of
from dphist.release.contents import MeasuredSums
from dphist.release.guarantee import Guarantee
from dphist.release.release import Release
from dphist.sources.count import count_and_sum, declared

IntArray = NDArray[np.int64]

# What the counts get of the budget by default; the rest is for the sums. Means are best served by a little more than
# half for the sum: its reach is half of the width, while a mean is a quarter of the width from the middle, if it lies
# anywhere between the bounds.
_COUNTS = Fraction(2, 5)
_QUESTIONS = 200


@dataclass(frozen=True)
class Plan:
    """Who measures the counts and for which share, what is added up beside them, by whom and why by that one."""

    counts: Mechanism
    share: Fraction
    quantities: tuple[Quantity, ...]
    shares: tuple[Fraction, ...]
    mechanism: Mechanism
    why: str


def plan_measures(
    domain: Domain,
    measures: Sequence[Measure],
    mechanism: Mechanism,
    workload: Workload | None = None,
    shares: Mapping[str, Number] | None = None,
    budget: Budget | None = None,
) -> Plan:
    """Decide from public facts what is asked, by whom and for how much.

    ``shares`` are what each part gets: ``count``, the names of the measures, names with ² for squares and " clipped"
    for clipped records. The budget's currency decides what noise a forecast reckons with.
    """
    if isinstance(mechanism, SparseLaplace):
        raise MechanismError(
            "measures: sparselaplace publishes counts above a threshold, and no sums; name another mechanism"
        )
    if goes_wide(mechanism, domain, workload):
        raise InputError(
            "measures: sums need every combination of values, and this domain is published as tables of few "
            "attributes; declare fewer columns for the sums"
        )
    listed = [Quantity(measure) for measure in measures]
    listed += [Quantity(measure, squared=True) for measure in measures if measure.squares]
    listed += [Quantity(measure, clipped=True) for measure in measures if measure.clipped]
    share, others = _shares(listed, shares)
    quantities = tuple(
        replace(each, centre=_centre(each, share, own)) for each, own in zip(listed, others, strict=True)
    )
    counts: Mechanism = mechanism
    inner = mechanism.inner if isinstance(mechanism, ByPart) else mechanism
    if isinstance(inner, Auto):
        # Whose errors are noise of a known law: the intervals of means and sums hold only as well as those of counts.
        known = replace(inner, guaranteed=True)
        counts = replace(mechanism, inner=known) if isinstance(mechanism, ByPart) else known
    found = signed(mechanism)
    if found is not None:
        return Plan(counts, share, quantities, others, found, "as was asked for")
    chosen, why = choose(domain, workload, "epsilon" if budget is None else budget.currency)
    if isinstance(mechanism, ByPart):
        chosen = replace(mechanism, inner=chosen)
    return Plan(counts, share, quantities, others, chosen, why)


def _shares(
    quantities: Sequence[Quantity], given: Mapping[str, Number] | None
) -> tuple[Fraction, tuple[Fraction, ...]]:
    """The counts' share, and that of each quantity; they sum to one."""
    names = [share_name(each) for each in quantities]
    if given is None:
        return _COUNTS, ((1 - _COUNTS) / len(quantities),) * len(quantities)
    if len({"count", *names}) <= len(names):
        # One share would be handed out twice.
        raise InputError(
            "shares: two parts go by one name; call the measure otherwise, with column= for its column"
        )
    if not isinstance(given, Mapping) or set(given) != {"count", *names}:
        raise InputError(f"shares: give one for each of {', '.join(['count', *names])}")
    weights = {name: exact(value, f"shares: {name}") for name, value in given.items()}
    if min(weights.values()) <= 0:
        raise InputError("shares: each must be above zero")
    total = sum(weights.values())
    return weights["count"] / total, tuple(weights[name] / total for name in names)


def share_name(quantity: Quantity) -> str:
    """How a share of the budget is called."""
    return quantity.measure.name + ("²" if quantity.squared else " clipped" if quantity.clipped else "")


def _centre(quantity: Quantity, counts: Fraction, own: Fraction) -> int:
    """The middle, or nothing: whichever the forecast for sums and means together prefers.

    With noise of one over the share on either part, a sum has the variance reach² ÷ own² + centre² ÷ counts², and a
    mean that may lie anywhere between the bounds reach² ÷ own² + E[(mean − centre)²] ÷ counts². Squares serve
    variances only, and are centred always. What a person may add up to is about values from zero on.
    """
    if quantity.clipped or (quantity.plain and quantity.measure.per_person is not None):
        return 0
    if quantity.squared:
        return quantity.middle
    low, high = quantity.bounds
    forecasts = {}
    for centre in (0, quantity.middle):
        reach = replace(quantity, centre=centre).reach
        noise = (reach / float(own)) ** 2
        away = ((low + high) / 2 - centre) ** 2 + (high - low) ** 2 / 12
        forecasts[centre] = (noise + (centre / float(counts)) ** 2) * (noise + away / float(counts) ** 2)
    return min(forecasts, key=lambda centre: forecasts[centre])


def choose(
    domain: Domain, workload: Workload | None, currency: Currency = "epsilon"
) -> tuple[Mechanism, str]:
    """Who measures sums best: by the exact forecast of those who can, tried out on nothing."""
    listed = list(candidates(domain.shape, workload))
    # Cells up to which mechanisms are compared by trying them out on nothing.
    if domain.size > 1 << 20:
        return listed[1], "the tree serves ranges of all sizes"
    asked = [workload] if workload is not None else list(_everyday(domain))
    asked = [_some(each) for each in asked]
    found: list[tuple[float, Mechanism]] = []
    nothing = Sums(domain, np.zeros(domain.shape, dtype=np.int64))
    for mechanism in listed:
        noise = Noise(Keystream.for_tests(0))
        right, _ = open_gate(nothing, Budget(Fraction(1), currency), Unit(), workload=workload, noise=noise)
        errors = mechanism.estimate(right).errors
        logs = []
        for each in asked:
            variance = float(np.mean(errors.variance(each)))
            logs.append(math.log(variance) if variance > 0 else math.inf)
        found.append((sum(logs) / len(logs), mechanism))
    best = min(found, key=lambda each: each[0] if not math.isnan(each[0]) else math.inf)
    asked_for = "of what was announced" if workload is not None else "of tables, ranges and cells alike"
    return best[1], f"the least forecast error {asked_for} among {', '.join(show(m) for m in listed)}"


def _everyday(domain: Domain) -> list[Workload]:
    """What people ask who announced nothing: tables of one and of two attributes, ranges, single cells."""
    asked = [Workload.marginals(domain, 1)]
    if len(domain.shape) > 1:
        asked.append(_some(Workload.marginals(domain, 2)))
    if any(isinstance(attribute, Ordinal) and attribute.size >= 16 for attribute in domain.attributes):
        asked.append(Workload.random(domain, _QUESTIONS, seed=1))
    asked.append(_some(Workload.cells(domain)))
    return asked


def _some(workload: Workload) -> Workload:
    few = workload.size <= _QUESTIONS or workload.query is not None
    return workload if few else workload.spread(_QUESTIONS)


def publish_measured(
    source: Any,
    domain: Domain | None,
    budget: Budget,
    mechanism: Mechanism,
    unit: Unit,
    workload: Workload | None,
    measures: Sequence[Measure],
    shares: Mapping[str, Number] | None,
    pay: Callable[[], None] | None = None,
    noise: Noise | None = None,
) -> Release:
    """Publish counts and sums: what can be refused is refused before the first of them is paid for."""
    domain = declared(domain)
    plan = plan_measures(domain, measures, mechanism, workload, shares, budget)
    own = budget.part(plan.share)
    parts = [
        (quantity, budget.part(share), quantity.in_steps(unit))
        for quantity, share in zip(plan.quantities, plan.shares, strict=True)
    ]
    check_room(plan.counts, domain, 1 + len(parts))
    nobody = empty(domain)
    preflight(own, unit, partial(release_of, nobody, own, plan.counts, unit, workload))
    begin_pieces(plan.counts, nobody, own, unit, workload)
    for _, paid, moved in parts:
        none = Sums(domain, nobody.counts)
        preflight(paid, moved, partial(release_of, none, paid, plan.mechanism, moved, workload))
        begin_pieces(plan.mechanism, none, paid, moved, workload)
    histogram, totals = count_and_sum(source, domain, unit, plan.quantities)
    return noised(plan, budget, unit, workload, histogram, totals, pay=pay, noise=noise)


def noised(
    plan: Plan,
    budget: Budget,
    unit: Unit,
    workload: Workload | None,
    histogram: Histogram,
    totals: Sequence[IntArray],
    *,
    pay: Callable[[], None] | None = None,
    noise: Noise | None = None,
) -> Release:
    """The release of counts and sums that were counted; ``pay``, which pays once, is called before each first noise."""
    # Gates of their own are not split from one right, so it is insisted here that they cost no more than was paid.
    insist_on_shares((plan.share, *plan.shares))
    own = budget.part(plan.share)
    release = release_of(histogram, own, plan.counts, unit, workload, noise=noise, pay=pay)
    sums = []
    for quantity, share, total in zip(plan.quantities, plan.shares, totals, strict=True):
        centred, moved = Sums(histogram.domain, total), quantity.in_steps(unit)
        made = release_of(centred, budget.part(share), plan.mechanism, moved, workload, noise=noise, pay=pay)
        sums.append(MeasuredSums(quantity, made))
    return replace(release, guarantee=Guarantee(budget, unit), sums=tuple(sums), known=release.model)


def signed(mechanism: Mechanism) -> Mechanism | None:
    """The form of a mechanism that takes sums of values; None if its model is one of counts.

    For the gate a cell of sums is a cell: every proof there is about one step, and steps of either sign are steps. What
    assumes counts comes after: cutting at zero, handing down without going below zero. Mechanisms that are linear
    without it take sums by leaving it out; their errors are then noise of a known law, whatever the data.
    """
    match mechanism:
        case Laplace() | Gaussian():
            return mechanism
        case Tree() | Matrix() | Marginals():
            return replace(mechanism, nonnegative=False)
        case Privelet() if not mechanism.threshold:
            return mechanism
        case ByPart():
            inner = signed(mechanism.inner)
            return None if inner is None else replace(mechanism, inner=inner)
    return None


def candidates(shape: tuple[int, ...], workload: Workload | None) -> Iterator[Mechanism]:
    """Who could measure sums over this shape: what a forecast chooses among."""
    yield Laplace()
    yield Tree(fanout="auto", nonnegative=False)
    if len(shape) > 1:
        yield Privelet()
        if workload is not None and workload.kind == "marginals":
            yield Marginals(nonnegative=False)
        elif workload is None and len(shape) > 2:
            plan = plan_tables(shape)
            yield Marginals(tables=plan.tables, shares=plan.shares, nonnegative=False)


def plan_tables(shape: tuple[int, ...]) -> TablePlan:
    """The best tables and shares of a cube of which nobody said what will be asked, whatever it holds."""
    return Forecaster(shape, asked_kinds(shape, None, None, None), NoiseLaw("laplace", Fraction(1))).tables()
