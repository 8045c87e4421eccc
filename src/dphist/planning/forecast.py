"""What an answer will cost in accuracy, before anything is spent: no data are read here.

A forecast is exact where what is
published is the truth plus noise whose variance is the same for all data; elsewhere, also where such numbers are then
cut at zero or fitted, the mechanism is run on made-up populations, and the forecast says so and how far they differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.errors import DphistError, InputError
from dphist.inference.drawn import budget_for, drawn_variance, scaled_budget
from dphist.inference.estimate import Errors, IndependentNoise
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.choosing.currency import settle
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.prefixsums import PrefixSums
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse, show
from dphist.mechanisms.tree import Tree
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure, Sums
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.nuclear import limit
from dphist.planning.populations import LIMIT, POPULATIONS, questions, root_mean_square, told_well, typical
from dphist.planning.searching import least_amount
from dphist.planning.wide import wide_cases, wide_error
from dphist.private.gate import PrivateCounts, open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.pricing import Purse
from dphist.release.answers import spoken

MECHANISMS = (
    "laplace",
    "privelet",
    "tree",
    "quadtree",
    "dpcube",
    "dpcube(estimator='nonnegative')",
    "kdhybrid",
    "adaptivegrid",
    "noisefirst",
    "auto",
)
_LARGEST_RUN = 1 << 24
_LARGEST_SIMULATION = 1 << 18
# How often a mechanism is run on each population at most, by the largest number of cells; beyond, once.
_RUNS = ((1 << 10, 16), (1 << 13, 4), (1 << 16, 2))
# The confidence of the intervals of which a forecast says how they will be obtained.
_CONFIDENCE = 0.95
# A forecast is to be right within this factor, and a range goes by it beyond what was seen.
BAND = 1.25


@dataclass(frozen=True)
class Forecast:
    """How far answers will be from the truth, by the root of their mean squared error, and how that is known.

    ``error`` is None where the mechanism cannot be forecast, and ``basis`` says why; where ``best`` is None it is a
    limit. Where it was simulated, ``error``
    is the median over made-up populations (all of them but the even one), ``best`` and ``worst`` are the least and the
    largest over all runs on all of them and a quarter beyond, and ``cases`` has the error on each. The median is a
    figure to plan by only where the populations agree on it (``agreed``); elsewhere the range is all that can be said
    before data are read, and `shown` says no more. ``epsilon_needed`` brings ``error`` down to what was wanted; for a
    budget in ρ, also one that an (ε, δ) bought, it is a ρ.

    Args:
        mechanism: Its text.
        error: The root mean squared error expected, or None.
        best: The least over all runs on the made-up populations, and a quarter below.
        basis: How that is known, or why not.
        epsilon_needed: The ε, or ρ, that brings the error down to what was wanted.
        worst: The largest over all runs on the made-up populations, and a quarter above.
        cases: The error on each of them, by its name.
        limit: The least error that unbiased linear answers can have (`dphist.planning.limit`), where it was computed.
        intervals: How intervals of the release will be obtained, as it will say it itself, where that is known.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> forecast, = dphist.planning.plan(domain, 1, "cells", mechanisms=["laplace"])
        >>> forecast.mechanism, round(forecast.error, 2), forecast.shown
        ('laplace', 1.36, '1.36')
    """

    mechanism: str
    error: float | None
    best: float | None
    basis: str
    epsilon_needed: float | None = None
    worst: float | None = None
    cases: tuple[tuple[str, float], ...] = ()
    limit: float | None = None
    intervals: str = ""

    @property
    def agreed(self) -> bool:
        """Whether the figure is within a quarter of the error on every made-up population, but for the even one."""
        if self.error is None or self.best is None:
            return False
        return all(
            self.error <= BAND * error and error <= BAND * self.error
            for case, error in self.cases
            if case != LIMIT
        )

    @property
    def shown(self) -> str:
        """The forecast in words: a figure, perhaps with its range or as a limit, or a range alone."""
        if self.error is None:
            return "not known"
        if self.best is None:
            return f"at most {_digits(self.error)}"
        if not self.cases:
            return _digits(self.error)
        between = f"{_digits(self.best)} to {_digits(self.worst or 0.0)}"
        return f"{_digits(self.error)} ({between})" if self.agreed else between

    @property
    def said(self) -> str:
        """The same, and why there is none where nothing is known."""
        return self.shown if self.error is not None else f"{self.shown}: {self.basis}"


def _digits(error: float) -> str:
    """Three digits; of thousands the rest are zeros."""
    return f"{error:,.3g}" if error < 999.5 else f"{float(f'{error:.3g}'):,.0f}"


@explained
def plan(
    domain: Domain,
    epsilon: Number | Budget | None = None,
    workload: str | Workload = "ranges",
    *,
    rho: Number | None = None,
    delta: Number | None = None,
    mechanisms: Sequence[str | Mechanism] = MECHANISMS,
    records: int = 100_000,
    error: float | None = None,
    unit: Unit | None = None,
    announced: bool = True,
    measures: Sequence[Measure] = (),
    runs: int | None = None,
) -> list[Forecast]:
    """Forecast the error of each mechanism on a workload ("cells", "prefixes", "ranges", "marginals:2"), best first.

    ``records`` is a public guess at how many there are; only simulated forecasts use it. With ``error`` each
    forecast also says which ε would bring the error down to it.

    Args:
        domain: What would be counted.
        epsilon: What would be spent: pure ε, or with ``delta`` the ε of (ε, δ), or a `Budget`.
        workload: What would be asked.
        rho: The ρ that would be spent instead.
        delta: The δ that goes with ``epsilon``.
        mechanisms: Whom to forecast.
        records: A public guess at how many records there are.
        error: An error to find the ε (or ρ) for.
        unit: Who is protected.
        announced: Whether the mechanism is told what will be asked; `auto` measures something else if nobody says so.
        measures: What will be added up beside the counts, which then have a share of the budget alone.
        runs: How often a mechanism is run on each made-up population; by the number of cells unless told.

    Returns:
        A forecast for each mechanism, best first; those without one last.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> sorted(each.mechanism for each in dphist.planning.plan(domain, 1, "cells", mechanisms=["tree", "laplace"]))
        ['laplace', 'tree']
    """
    spend = Budget.of(epsilon, rho=rho, delta=delta)
    if records < 0:
        raise InputError("records must not be negative")
    if error is not None and not error > 0:
        raise InputError("error must be above zero")
    told, asked = questions(domain, workload)
    hint = told if announced else None
    protected = unit or Unit()
    forecasts, limits = [], dict[Fraction, float | None]()
    for given in mechanisms:
        recipe = parse(given) if isinstance(given, str) else given
        # What a release without a ledger that counts ρ would do.
        chosen, settled = settle(recipe, spend, domain, protected, hint, Fraction(1, 1 + len(measures)))
        share = Fraction(1)
        try:
            counter, paid = _beside_sums(domain, measures, chosen, hint, settled)
            share = paid.amount / settled.amount
            found = _Study(domain, counter, hint, asked, records, protected, runs).forecast(paid, error)
        except DphistError as refusal:
            found = Forecast("", None, None, str(refusal))
        if share not in limits:
            limits[share] = limit(told, spend.part(share) if measures else spend, unit=protected)
        if found.epsilon_needed is not None:
            # What the counts need is their share of it.
            found = replace(found, epsilon_needed=found.epsilon_needed / float(share))
        if settled != spend and found.error is not None:
            found = replace(found, basis=f"{found.basis}; spends the pure ε and leaves δ unused")
        forecasts.append(replace(found, mechanism=show(recipe), limit=limits[share]))
    return sorted(forecasts, key=lambda f: math.inf if f.error is None else f.error)


@explained
def release_forecasts(
    domain: Domain,
    epsilon: Number | Budget,
    workload: str | Workload | None = None,
    *,
    records: int = 100_000,
    unit: Unit | None = None,
    measures: Sequence[Measure] = (),
) -> dict[str, Forecast]:
    """Forecast what `publish` would release by default, by what is asked of it: whoever says this says it from here.

    Args:
        domain: What would be counted.
        epsilon: What would be spent.
        workload: What will be asked, where that is announced; else the usual kinds of questions are forecast.
        records: A public guess at how many records there are.
        unit: Who is protected.
        measures: What will be added up.

    Returns:
        A forecast for each kind of question, and of sums of each measure.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> told = dphist.planning.release_forecasts(domain, 1, measures=[dphist.Measure("cost", 0, 100)])
        >>> told["sums of cost, cells"].shown
        '211'
    """
    asked = None if workload is None else Workload.parse(domain, workload)
    wide = Auto().goes_wide(domain, asked)
    pairs = wide and len(domain.attributes) > 1
    usual = {"tables of two attributes": "marginals:2"} if pairs else {each: each for each in _USUAL}
    kinds: dict[str, str | Workload] = {**usual} if asked is None else {"what will be asked": asked}
    # Whoever hears nothing of a domain that nobody can write out publishes all tables of two attributes.
    announced = asked is not None or wide
    found: dict[str, Forecast] = {}
    for name, each in kinds.items():
        try:
            (counts,) = plan(
                domain, epsilon, each, mechanisms=["auto"], records=records, unit=unit, announced=announced,
                measures=measures,
            )  # fmt: skip
            found[name] = counts
            for measure in measures:
                found[f"sums of {measure.name}, {name}"] = _sums_forecast(
                    domain,
                    Budget.of(epsilon),
                    asked,
                    questions(domain, each)[1],
                    unit or Unit(),
                    measures,
                    measure,
                    counts,
                )
        except DphistError as refusal:
            # Whoever rehearses or starts has more to hear than that this question cannot be forecast.
            found.setdefault(name, Forecast("auto", None, None, str(refusal)))
    return found


def _beside_sums(
    domain: Domain, measures: Sequence[Measure], mechanism: Mechanism, hint: Workload | None, budget: Budget
) -> tuple[Mechanism, Budget]:
    """Who measures the counts, and for how much: all of the budget, or what sums leave of it."""
    if not measures:
        return mechanism, budget
    # Loaded here: it knows the door and the sources, and most forecasts need neither.
    from dphist.publishing.measures import plan_measures

    plan = plan_measures(domain, measures, mechanism, hint, None, budget)
    return plan.counts, budget.part(plan.share)


def _sums_forecast(
    domain: Domain,
    budget: Budget,
    hint: Workload | None,
    asked: Workload,
    unit: Unit,
    measures: Sequence[Measure],
    measure: Measure,
    counts: Forecast,
) -> Forecast:
    """Sums are noise of a known law, and what was taken from each value is given back by as many noisy counts."""
    from dphist.publishing.measures import plan_measures

    plan = plan_measures(domain, measures, Auto(), hint, None, budget)
    place = [each.plain and each.measure == measure for each in plan.quantities].index(True)
    quantity = plan.quantities[place]
    if counts.error is None:
        return replace(counts, mechanism=show(plan.mechanism))
    right, _ = open_gate(
        Sums(domain, np.zeros(domain.shape, dtype=np.int64)), budget.part(plan.shares[place]), quantity.in_steps(unit),
        workload=hint, noise=Noise(Keystream.for_tests(0)),
    )  # fmt: skip
    errors = plan.mechanism.estimate(right).errors
    steps = float(np.mean(drawn_variance(errors, asked))) + (quantity.centre * counts.error) ** 2
    off = math.sqrt(steps) * float(quantity.step)
    return Forecast(
        show(plan.mechanism),
        off,
        off,
        "exact but for counts that are not",
        intervals=spoken(errors.words, _CONFIDENCE)[0],
    )


@explained
def expected_error(
    mechanism: str | Mechanism,
    domain: Domain,
    epsilon: Number,
    workload: str = "ranges",
    *,
    records: int = 100_000,
) -> float:
    """Forecast one mechanism's root mean squared error; refuses where there is no forecast.

    Args:
        mechanism: Whom to forecast.
        domain: What would be counted.
        epsilon: What would be spent.
        workload: What would be asked.
        records: A public guess at how many records there are.

    Returns:
        The error, in records.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> round(dphist.planning.expected_error("laplace", domain, 1, "cells"), 2)
        1.36
    """
    forecast = plan(domain, epsilon, workload, mechanisms=[mechanism], records=records)[0]
    if forecast.error is None:
        raise InputError(f"{forecast.mechanism}: {forecast.basis}")
    return forecast.error


@explained
def epsilon_needed(
    mechanism: str | Mechanism,
    domain: Domain,
    error: float,
    workload: str = "ranges",
    *,
    records: int = 100_000,
) -> float:
    """Find the ε with which one mechanism's root mean squared error comes down to ``error``.

    Args:
        mechanism: Whom to forecast.
        domain: What would be counted.
        error: The error to come down to, in records.
        workload: What would be asked.
        records: A public guess at how many records there are.

    Returns:
        The ε.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> dphist.planning.epsilon_needed("laplace", domain, error=1.0, workload="cells") > 1
        True
    """
    forecast = plan(domain, 1, workload, mechanisms=[mechanism], records=records, error=error)[0]
    if forecast.epsilon_needed is None:
        raise InputError(f"{forecast.mechanism}: {forecast.basis}")
    return forecast.epsilon_needed


# What is forecast where nobody says what will be asked, of a release that is told nothing, either.
_USUAL = ("cells", "ranges", "marginals")


def _tables_forecast(name: str, rms: float, parts: Mapping[str, float]) -> Forecast:
    if math.isinf(rms):
        raise InputError("tables of few attributes are published; this would not be measured")
    if parts:
        cases = tuple((case, part * rms) for case, part in parts.items())
        errors = [error for _, error in cases]
        basis = "expected of a model that is fitted to noisy tables, by how far columns depend on each other"
        middle = typical({case: [error] for case, error in cases})
        return Forecast(name, middle, min(errors) / BAND, basis, None, max(errors) * BAND, cases)
    basis = "exact for least squares over tables of few attributes; what is published is cut at zero and made to agree"
    return Forecast(name, rms, None, basis, None, rms)


@dataclass(frozen=True, eq=False)
class _Study:
    domain: Domain
    mechanism: Mechanism
    hint: Workload | None
    asked: Workload
    records: int
    unit: Unit
    runs: int | None = None

    def forecast(self, budget: Budget, wanted: float | None) -> Forecast:
        name = show(self.mechanism)
        try:
            wide = self._wide(budget)
            if wide is not None:
                return replace(wide, epsilon_needed=self._wide_needed(wide, budget, wanted))
            errors = self._oblivious(budget)
            if errors is not None:
                rms = math.sqrt(float(np.mean(drawn_variance(errors, self.asked))))
                needed = None if wanted is None else budget_for(errors, self.asked, budget, wanted)
                basis = "exact: what is published is the truth plus noise that does not depend on the data"
                return Forecast(
                    name, rms, rms, basis, needed, rms, intervals=spoken(errors.words, _CONFIDENCE)[0]
                )
            if self.domain.size > _LARGEST_SIMULATION:
                return self._limit(budget, wanted)
            found, said = self._simulate(budget)
            needed = None
            if wanted is not None:
                needed = _needed(
                    lambda other: typical(self._simulate(other)[0]), wanted, budget, typical(found)
                )
        except DphistError as refusal:
            return Forecast(name, None, None, str(refusal))
        runs = [one for each in found.values() for one in each]
        cases = tuple((case, root_mean_square(each)) for case, each in found.items())
        basis = f"simulated on {len(found)} made-up populations of {self.records:,} records; yours may lie outside"
        if isinstance(self.mechanism, Auto):
            basis += f"; {self._chosen(budget)}"
        # Some runs on some populations: others would go beyond the least and the largest.
        return Forecast(
            name, typical(found), min(runs) / BAND, basis, needed, max(runs) * BAND, cases, intervals=said
        )

    def _limit(self, budget: Budget, wanted: float | None) -> Forecast:
        """What least squares leaves of tables that are too large to simulate what is then made of them."""
        fixed = self._fixed(budget)
        if not isinstance(fixed, Marginals):
            cells = f"{self.domain.size:,} cells"
            raise InputError(f"depends on the data, and {cells} are too many to simulate")
        plain = replace(fixed, nonnegative=False)
        noise = Noise(Keystream.for_tests(0))
        errors = plain.estimate(self._open(self._nothing, budget, noise)).errors
        variance = drawn_variance(errors, self.asked)
        found = _tables_forecast(show(self.mechanism), math.sqrt(float(np.mean(variance))), {})
        if wanted is None or found.error is None:
            return found
        needed = _needed(lambda other: self._limit(other, None).error or 0.0, wanted, budget, found.error)
        return replace(found, epsilon_needed=needed)

    def _wide(self, budget: Budget) -> Forecast | None:
        """The forecast of tables of few attributes, where these are published."""
        rms = wide_error(self.mechanism, self.domain, budget, self.unit, self.hint, self.asked)
        if rms is None:
            return None
        to_wide = self.mechanism, self.domain, budget, self.unit, self.hint
        parts = wide_cases(*to_wide, self.records) if math.isfinite(rms) else {}
        return _tables_forecast(show(self.mechanism), rms, parts)

    def _wide_needed(self, known: Forecast, budget: Budget, wanted: float | None) -> float | None:
        if wanted is None or known.error is None:
            return None
        if not isinstance(self.mechanism, Auto):
            return scaled_budget(budget, known.error, wanted)
        # A model leaves the more of least squares' error the more is spent: no power of the budget.
        return _needed(
            lambda other: cast("Forecast", self._wide(other)).error or 0.0, wanted, budget, known.error
        )

    def _chosen(self, budget: Budget) -> str:
        """What `auto` chooses, and why."""
        return Auto.choose(cast("Auto", self.mechanism), self._open(self._nothing, budget, None))[1]

    def _fixed(self, budget: Budget) -> Mechanism:
        """Who measures: `auto` hands over to another."""
        if isinstance(self.mechanism, Auto):
            return self.mechanism.choose(self._open(self._nothing, budget, None))[0]
        return self.mechanism

    @cached_property
    def _nothing(self) -> NDArray[np.int64]:
        if self.domain.size > _LARGEST_RUN:
            raise InputError(f"{self.domain.size:,} cells are too many to lay out")
        return np.zeros(self.domain.shape, dtype=np.int64)

    def _open(self, counts: NDArray[np.int64], budget: Budget, noise: Noise | None) -> PrivateCounts:
        histogram = Histogram(self.domain, counts)
        return open_gate(histogram, budget, self.unit, workload=self.hint, noise=noise)[0]

    def _oblivious(self, budget: Budget) -> Errors | None:
        """Errors of mechanisms that publish the truth plus noise that is the same for all data.

        What is cut at zero, thresholded or fitted afterwards is no longer that, though the noise below it is.
        """
        # Plain noise on every cell needs no run, however many cells there are.
        purse = Purse.of(budget, self.unit)
        if isinstance(self.mechanism, Laplace):
            return IndependentNoise(1 / purse.pure, exact=True)
        if isinstance(self.mechanism, Gaussian) and not budget.pure:
            return IndependentNoise(purse.law("apart"), exact=True)
        fixed = self._fixed(budget)
        if isinstance(fixed, Laplace | Gaussian | PrefixSums) or (
            (isinstance(fixed, Tree | Marginals) and not fixed.nonnegative)
            or (isinstance(fixed, Privelet) and not fixed.threshold)
        ):
            noise = Noise(Keystream.for_tests(0))
            errors = fixed.estimate(self._open(self._nothing, budget, noise)).errors
            # What lies in no measured table is a guess, whose error depends on the data.
            return errors if bool(np.isfinite(errors.variance(self.asked)).all()) else None
        return None

    @property
    def _runs(self) -> int:
        """Answers of one run share their noise, so several are needed; of many cells fewer will do."""
        size = self.domain.size
        return self.runs or next((runs for cells, runs in _RUNS if size <= cells), 1)

    def _simulate(self, budget: Budget) -> tuple[dict[str, list[float]], str]:
        """Root mean squared error of each run on each made-up population; and how intervals were obtained."""
        found: dict[str, list[float]] = {}
        said: dict[str, None] = {}
        for number, (name, make) in enumerate(POPULATIONS.items()):
            counts = make(self.domain.shape, self.records)
            truth = self.asked.answer(counts)
            found[name] = []
            for run in range(self._runs):
                right = self._open(counts, budget, Noise(Keystream.for_tests(1000 * number + run)))
                estimate = self.mechanism.estimate(right)
                said[spoken(estimate.errors.words, _CONFIDENCE)[0]] = None
                summed = self.asked.answer(estimate.counts.reshape(self.domain.shape))
                # As a release would answer: not always with the sum of the published cells.
                answers = estimate.errors.answer(self.asked, np.asarray(summed, dtype=np.float64))
                found[name].append(math.sqrt(float(np.mean((answers - truth) ** 2))))
                if self.runs is None and told_well(found[name]):
                    break
        return found, " or ".join(said)


def _needed(error: Callable[[Budget], float], wanted: float, budget: Budget, known: float) -> float | None:
    """The ε, or ρ, that brings errors down to what is wanted, beginning at what is known of this budget."""

    def left(amount: Fraction) -> float:
        return error(Budget(amount, budget.currency))

    return least_amount(left, wanted, (budget.amount, known), 1.0 if budget.pure else 0.5)
