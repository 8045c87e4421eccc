"""What an answer will cost in accuracy, before anything is spent: no data are read here.

A forecast is exact where the noise does not depend on the data; elsewhere the mechanism is run on made-up data, and it
says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError, InputError
from dphist.inference.estimate import Errors, IndependentNoise, integers
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse, show
from dphist.mechanisms.tree import Tree
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.exact import Number, positive
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise

FloatArray = NDArray[np.float64]

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
_QUESTIONS = 1000
_LARGEST_RUN = 1 << 22
_LARGEST_SIMULATION = 1 << 18
_RUNS = 4
_NARROWEST, _WIDEST = Fraction(1, 10**5), Fraction(10**6)


@dataclass(frozen=True)
class Forecast:
    """How far answers will be from the truth, by the root of their mean squared error, and how that is known.

    ``error`` is None where the mechanism cannot be forecast, and ``basis`` says why. Where it was simulated, ``error``
    is the worst over several made-up populations and ``best`` the best. ``epsilon_needed`` brings ``error`` down to
    what was wanted.

    Args:
        mechanism: Its text.
        error: The root mean squared error expected, or None.
        best: The least over the made-up populations.
        basis: How that is known, or why not.
        epsilon_needed: The ε that brings the error down to what was wanted.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> forecast, = dphist.planning.plan(domain, 1, "cells", mechanisms=["laplace"])
        >>> forecast.mechanism, round(forecast.error, 2)
        ('laplace', 1.41)
    """

    mechanism: str
    error: float | None
    best: float | None
    basis: str
    epsilon_needed: float | None = None


def plan(
    domain: Domain,
    epsilon: Number,
    workload: str | Workload = "ranges",
    *,
    mechanisms: Sequence[str | Mechanism] = MECHANISMS,
    records: int = 100_000,
    error: float | None = None,
    unit: Unit | None = None,
) -> list[Forecast]:
    """Forecast the error of each mechanism on a workload ("cells", "prefixes", "ranges", "marginals"), best first.

    ``records`` is a public guess at how many there are; only simulated forecasts use it. With ``error`` each
    forecast also says which ε would bring the error down to it.

    Args:
        domain: What would be counted.
        epsilon: What would be spent.
        workload: What would be asked.
        mechanisms: Whom to forecast.
        records: A public guess at how many records there are.
        error: An error to find the ε for.
        unit: Who is protected.

    Returns:
        A forecast for each mechanism, best first; those without one last.

    Example:
        >>> import dphist
        >>> domain = dphist.Domain([dphist.Ordinal("x", range(64))])
        >>> [each.mechanism for each in dphist.planning.plan(domain, 1, "cells", mechanisms=["tree", "laplace"])]
        ['laplace', 'tree']
    """
    spend = positive(epsilon, "epsilon")
    if records < 0:
        raise InputError("records must not be negative")
    if error is not None and not error > 0:
        raise InputError("error must be above zero")
    hint, asked = _questions(domain, workload)
    protected = unit or Unit()
    forecasts = []
    for given in mechanisms:
        recipe = parse(given) if isinstance(given, str) else given
        study = _Study(domain, recipe, hint, asked, records, protected)
        forecasts.append(study.forecast(spend, error))
    return sorted(forecasts, key=lambda f: math.inf if f.error is None else f.error)


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
        1.41
    """
    forecast = plan(domain, epsilon, workload, mechanisms=[mechanism], records=records)[0]
    if forecast.error is None:
        raise InputError(f"{forecast.mechanism}: {forecast.basis}")
    return forecast.error


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


@dataclass(frozen=True, eq=False)
class _Study:
    domain: Domain
    mechanism: Mechanism
    hint: Workload
    asked: Workload
    records: int
    unit: Unit

    def forecast(self, epsilon: Fraction, wanted: float | None) -> Forecast:
        name = show(self.mechanism)
        try:
            errors = self._oblivious(epsilon)
            if errors is not None:
                rms = math.sqrt(float(np.mean(errors.variance(self.asked))))
                needed = None if wanted is None else float(epsilon) * rms / wanted
                return Forecast(name, rms, rms, "exact: the noise does not depend on the data", needed)
            if self.domain.size > _LARGEST_SIMULATION:
                return Forecast(
                    name,
                    None,
                    None,
                    f"depends on the data, and {self.domain.size:,} cells are too many to simulate",
                )
            found = self._simulate(epsilon, _RUNS)
            needed = None if wanted is None else self._search(wanted)
        except DphistError as refusal:
            return Forecast(name, None, None, str(refusal))
        basis = f"simulated on made-up data of {self.records:,} records; yours may lie outside"
        return Forecast(name, max(found), min(found), basis, needed)

    def _oblivious(self, epsilon: Fraction) -> Errors | None:
        """Errors of mechanisms whose questions and noise are the same for all data."""
        if isinstance(self.mechanism, Laplace):
            return IndependentNoise(self.unit.steps / epsilon)
        if isinstance(self.mechanism, Tree) or (
            isinstance(self.mechanism, Privelet) and not self.mechanism.threshold
        ):
            if self.domain.size > _LARGEST_RUN:
                raise InputError(f"{self.domain.size:,} cells are too many to lay out")
            nothing = Histogram(self.domain, np.zeros(self.domain.shape, dtype=np.int64))
            right, _ = open_gate(nothing, epsilon, self.unit, workload=self.hint)
            return self.mechanism.estimate(right).errors
        return None

    def _simulate(self, epsilon: Fraction, runs: int) -> list[float]:
        """Root mean squared error on each made-up population."""
        found = []
        for number, make in enumerate(POPULATIONS.values()):
            counts = make(self.domain.shape, self.records)
            truth = self.asked.answer(counts)
            squares = []
            for run in range(runs):
                noise = Noise(Keystream.for_tests(1000 * number + run))
                right, _ = open_gate(
                    Histogram(self.domain, counts), epsilon, self.unit, workload=self.hint, noise=noise
                )
                estimate = self.mechanism.estimate(right).counts.reshape(self.domain.shape)
                squares.append(float(np.mean((self.asked.answer(estimate) - truth) ** 2)))
            found.append(math.sqrt(sum(squares) / runs))
        return found

    def _search(self, wanted: float) -> float | None:
        """Halve the distance in log ε; None if no ε in reach is enough."""
        low, high = _NARROWEST, _WIDEST
        if max(self._simulate(high, _RUNS)) > wanted:
            return None
        if max(self._simulate(low, _RUNS)) <= wanted:
            return float(low)
        for _ in range(12):
            middle = Fraction(math.sqrt(float(low) * float(high))).limit_denominator(10**9)
            if max(self._simulate(middle, _RUNS)) > wanted:
                low = middle
            else:
                high = middle
        return float(high)


def _even(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    return _round(np.ones(shape), records)


def _hump(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    weights = np.ones((1,) * len(shape))
    for axis, n in enumerate(shape):
        place = (np.arange(n) + 0.5) / n
        bell = np.exp(-(((place - 0.4) / 0.15) ** 2) / 2.0) + 0.02
        weights = weights * bell.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return _round(weights, records)


def _scattered(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """One cell in sixteen holds records, by a hash of its place, with a heavy tail."""
    size = math.prod(shape)
    mixed = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    level = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    weights = np.where(level < 1 / 16, 1.0 / (level * 16 + 1e-3), 0.0)
    return _round((weights if weights.any() else np.ones(size)).reshape(shape), records)


def _round(weights: FloatArray, records: int) -> NDArray[np.int64]:
    return integers(weights * (records / weights.sum())).astype(np.int64)


POPULATIONS: dict[str, Callable[[tuple[int, ...], int], NDArray[np.int64]]] = {
    "even": _even,
    "one hump": _hump,
    "scattered": _scattered,
}


def _questions(domain: Domain, name: str | Workload) -> tuple[Workload, Workload]:
    """The workload as a hint for mechanisms, and as many of its questions as a forecast needs."""
    if isinstance(name, Workload):
        return name, name
    rank = np.unique(np.linspace(0, domain.size - 1, min(domain.size, _QUESTIONS)).astype(np.int64))
    place = np.stack(np.unravel_index(rank, domain.shape), axis=1).astype(np.int64)
    if name == "cells":
        return Workload.cells(domain), Workload(domain, place, place + 1)
    if name == "prefixes":
        return Workload.prefixes(domain), Workload(domain, np.zeros_like(place), place + 1)
    if name == "ranges":
        return Workload.all_ranges(domain), Workload.random(domain, _QUESTIONS, seed=1)
    if name == "marginals":
        tables = Workload.marginals(domain, 1)
        return tables, tables
    raise InputError("workload must be cells, prefixes, ranges or marginals")
