"""What an answer will cost in accuracy, before anything is spent: no data are read here.

A forecast is exact where what is
published is the truth plus noise whose variance is the same for all data; elsewhere, also where such numbers are then
cut at zero or fitted, the mechanism is run on made-up populations, and the forecast says so and how far they differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.arguments import explained
from dphist.errors import DphistError, InputError
from dphist.inference.estimate import Errors, IndependentNoise
from dphist.inference.trees import drawn_variance
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.baseline import Gaussian, Laplace
from dphist.mechanisms.choosing.currency import settle
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.options import parse, show
from dphist.mechanisms.prefixsums import PrefixSums
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.tree import Tree
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.exact import Number
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure, Sums
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.nuclear import limit
from dphist.planning.populations import LIMIT, POPULATIONS, questions, root_mean_square, typical, well_known
from dphist.planning.searching import least_amount
from dphist.planning.wide import wide_cases, wide_error
from dphist.private.facts import facts_of
from dphist.private.gate import PrivateCounts, open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.pricing import UnitBudget
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
# How often a mechanism is run on each population at most, by the largest number of cells; beyond, once.
_RUNS = ((1 << 10, 16), (1 << 13, 4), (1 << 16, 2))
# The confidence of the intervals of which a forecast says how they will be obtained.
_CONFIDENCE = 0.95
# A forecast is to be right within this factor, and a range goes by it beyond what was seen.
BAND = 1.25


@dataclass(frozen=True)
class Forecast:
    """How far answers will be from the truth, by the root of their mean squared error, and how that is known.

    Where it was simulated the error is a figure to plan by only where the populations agree on it (``agreed``);
    elsewhere the range is all that can be said before data are read, and `shown` says no more.

    Args:
        mechanism: Its text.
        error: The root mean squared error expected, None where it is not known; where it was simulated, the median over
            made-up populations but the even one.
        best: The least over all runs on the made-up populations, and a quarter below; None where ``error`` is a limit.
        basis: How that is known, or why not.
        epsilon_needed: The ε that brings the error down to what was wanted; a ρ where the budget is one.
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
        announced: Whether the mechanism knows what will be asked; `auto` measures something else if nobody says so.
        measures: What will be added up beside the counts, which then have a share of the budget alone.
        runs: How often a mechanism is run on each made-up population; by the number of cells by default.

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
    whole, asked = questions(domain, workload)
    hint = whole if announced else None
    protected = unit or Unit()
    forecasts, limits = [], dict[Fraction, float | None]()
    for given in mechanisms:
        recipe = parse(given) if isinstance(given, str) else given
        # What a release without a ledger that counts ρ would do.
        settled = settle(recipe, spend, domain, protected, hint, Fraction(1, 1 + len(measures)))
        share = Fraction(1)
        try:
            counter, paid = _beside_sums(domain, measures, recipe, hint, settled)
            share = paid.amount / settled.amount
            found = _Study(domain, counter, hint, asked, records, protected, runs).forecast(paid, error)
        except DphistError as refusal:
            found = Forecast("", None, None, str(refusal))
        if share not in limits:
            limits[share] = limit(whole, spend.part(share) if measures else spend, unit=protected)
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
        >>> found = dphist.planning.release_forecasts(domain, 1, measures=[dphist.Measure("cost", 0, 100)])
        >>> found["sums of cost, cells"].shown
        '211'
    """
    asked = None if workload is None else Workload.parse(domain, workload)
    wide = Auto().goes_wide(domain, asked)
    pairs = wide and len(domain.attributes) > 1
    kinds: dict[str, str | Workload] = {each: each for each in ("cells", "ranges", "marginals")}
    if pairs:
        kinds = {"tables of two attributes": "marginals:2"}
    if asked is not None:
        kinds = {"what will be asked": asked}
    # Where nothing is announced of a domain that nobody can write out all tables of two attributes are published.
    announced = asked is not None or wide
    found: dict[str, Forecast] = {}
    for name, each in kinds.items():
        try:
            (counts,) = plan(
                domain, epsilon, each, mechanisms=["auto"], records=records, unit=unit, announced=announced,
                measures=measures,
            )  # fmt: skip
            found[name] = counts
            if measures:
                sums = _sums_forecasts(
                    domain, Budget.of(epsilon), asked, questions(domain, each)[1], unit or Unit(), measures, counts
                )  # fmt: skip
                found |= {f"sums of {measure}, {name}": error for measure, error in sums.items()}
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


def _sums_forecasts(
    domain: Domain,
    budget: Budget,
    hint: Workload | None,
    asked: Workload,
    unit: Unit,
    measures: Sequence[Measure],
    counts: Forecast,
) -> dict[str, Forecast]:
    """Sums are noise of a known law, and what was taken from each value is given back by as many noisy counts."""
    from dphist.publishing.measures import plan_measures

    plan = plan_measures(domain, measures, Auto(), hint, None, budget)
    name, nothing = show(plan.mechanism), Sums(domain, np.zeros(domain.shape, dtype=np.int64))
    found: dict[str, Forecast] = {}
    for quantity, share in zip(plan.quantities, plan.shares, strict=True):
        if not quantity.plain:
            continue
        measure = quantity.measure.name
        if counts.error is None:
            found[measure] = replace(counts, mechanism=name)
            continue
        noise = Noise(Keystream.for_tests(0))
        right, _ = open_gate(nothing, budget.part(share), quantity.in_steps(unit), workload=hint, noise=noise)
        errors = plan.mechanism.estimate(right).errors
        steps = float(np.mean(drawn_variance(errors, asked))) + (quantity.centre * counts.error) ** 2
        off = math.sqrt(steps) * float(quantity.step)
        words = spoken(errors.words, _CONFIDENCE)[0]
        found[measure] = Forecast(name, off, off, "exact but for counts that are not", intervals=words)
    return found


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
        try:
            found = self._expected(budget)
            if wanted is None:
                return found
            # In its logarithm: what is simulated is right within a quarter.
            near = 1e-7 if found.basis.startswith("exact") else 0.02
            needed = least_amount(
                lambda amount: self._expected(Budget(amount, budget.currency)).error or 0.0,
                wanted, (budget.amount, found.error or 0.0), 1.0 if budget.pure else 0.5, near,
            )  # fmt: skip
        except DphistError as refusal:
            return Forecast(show(self.mechanism), None, None, str(refusal))
        return replace(found, epsilon_needed=needed)

    def _expected(self, budget: Budget) -> Forecast:
        """What this budget leaves: in closed form where there is one, else by trying it out."""
        name = show(self.mechanism)
        wide = wide_error(self.mechanism, self.domain, budget, self.unit, self.hint, self.asked)
        if wide is not None:
            to_wide = self.mechanism, self.domain, budget, self.unit, self.hint
            return _tables_forecast(
                name, wide, wide_cases(*to_wide, self.records) if math.isfinite(wide) else {}
            )
        fixed, why = self.mechanism, ""
        if isinstance(fixed, Auto):
            fixed, why = fixed.choose(facts_of(self.domain, budget, self.unit, self.hint))
        errors = self._oblivious(fixed, budget)
        if errors is not None:
            rms = math.sqrt(float(np.mean(drawn_variance(errors, self.asked))))
            basis = "exact: what is published is the truth plus noise that does not depend on the data"
            return Forecast(name, rms, rms, basis, None, rms, intervals=spoken(errors.words, _CONFIDENCE)[0])
        if self.domain.size > 1 << 18:
            if not isinstance(fixed, Marginals):
                cells = f"{self.domain.size:,} counts"
                raise InputError(f"depends on the data, and {cells} are too many to simulate")
            # What least squares leaves of tables that are too large to simulate what is then made of them.
            errors = self._tried(replace(fixed, nonnegative=False), budget)
            return _tables_forecast(name, math.sqrt(float(np.mean(drawn_variance(errors, self.asked)))), {})
        found, said = self._simulate(budget)
        runs = [one for each in found.values() for one in each]
        cases = tuple((case, root_mean_square(each)) for case, each in found.items())
        basis = f"simulated on {len(found)} made-up populations of {self.records:,} records; yours may lie outside"
        basis += f"; {why}" if why else ""
        # Some runs on some populations: others would go beyond the least and the largest.
        return Forecast(
            name, typical(found), min(runs) / BAND, basis, None, max(runs) * BAND, cases, intervals=said
        )

    @cached_property
    def _nothing(self) -> NDArray[np.int64]:
        if self.domain.size > 1 << 24:
            raise InputError(f"{self.domain.size:,} counts are too many to lay out")
        return np.zeros(self.domain.shape, dtype=np.int64)

    def _open(self, counts: NDArray[np.int64], budget: Budget, noise: Noise) -> PrivateCounts:
        histogram = Histogram(self.domain, counts)
        return open_gate(histogram, budget, self.unit, workload=self.hint, noise=noise)[0]

    def _tried(self, mechanism: Mechanism, budget: Budget) -> Errors:
        """The errors of what a mechanism makes of nothing."""
        noise = Noise(Keystream.for_tests(0))
        return mechanism.estimate(self._open(self._nothing, budget, noise)).errors

    def _oblivious(self, fixed: Mechanism, budget: Budget) -> Errors | None:
        """Errors of mechanisms that publish the truth plus noise that is the same for all data.

        What is cut at zero, thresholded or fitted afterwards is no longer that, though the noise below it is.
        """
        # Plain noise on every cell needs no run, however many cells there are.
        unit_budget = UnitBudget.of(budget, self.unit)
        if isinstance(fixed, Laplace):
            return IndependentNoise(1 / unit_budget.pure, exact=True)
        if isinstance(fixed, Gaussian) and not budget.pure:
            return IndependentNoise(unit_budget.law("disjoint"), exact=True)
        if isinstance(fixed, Gaussian | PrefixSums) or (
            (isinstance(fixed, Tree | Marginals) and not fixed.nonnegative)
            or (isinstance(fixed, Privelet) and not fixed.threshold)
        ):
            errors = self._tried(fixed, budget)
            # What lies in no measured table is a guess, whose error depends on the data.
            return errors if bool(np.isfinite(errors.variance(self.asked)).all()) else None
        return None

    def _simulate(self, budget: Budget) -> tuple[dict[str, list[float]], str]:
        """Root mean squared error of each run on each made-up population; and how intervals were obtained."""
        found: dict[str, list[float]] = {}
        said: dict[str, None] = {}
        # Answers of one run share their noise, so several are needed; of many cells fewer will do.
        runs = self.runs or next((runs for cells, runs in _RUNS if self.domain.size <= cells), 1)
        for number, (name, make) in enumerate(POPULATIONS.items()):
            counts = make(self.domain.shape, self.records)
            truth = self.asked.answer(counts)
            found[name] = []
            for run in range(runs):
                right = self._open(counts, budget, Noise(Keystream.for_tests(1000 * number + run)))
                estimate = self.mechanism.estimate(right)
                said[spoken(estimate.errors.words, _CONFIDENCE)[0]] = None
                summed = self.asked.answer(estimate.counts.reshape(self.domain.shape))
                # As a release would answer: not always with the sum of the published cells.
                answers = estimate.errors.answer(self.asked, np.asarray(summed, dtype=np.float64))
                found[name].append(math.sqrt(float(np.mean((answers - truth) ** 2))))
                if self.runs is None and well_known(found[name]):
                    break
        return found, " or ".join(said)
