"""``auto`` beside the best of our own candidates, over attributes × records × ε × announced or not × kind of question.

Made-up people: a mixture of groups, each with habits of its own on every attribute, and a smooth slope. Answers are
those of ``release.answer``; beside the ratio to the best candidate, chosen per case with hindsight, stands how often
the 95 % interval held. Where nothing is announced one release must serve all kinds of questions: *each alike* compares
the geometric means over them, each candidate's against auto's; no release can be the best one for every kind at once.
Every candidate draws the same noise, so where ``auto`` hands over to one of them the ratio is 1. With ``--data FOLDER``
(the Adult census in it) five attributes of Adult are measured too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError
from dphist.mechanisms.adaptivetree import AdaptiveTree
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.mechanisms.grids import UniformGrid
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.tableplan import plan_tables
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.door import _release
from dphist_bench.coverage_data import cubes
from dphist_bench.data import sample
from dphist_bench.measuring import Line

FloatArray = NDArray[np.float64]

# Ordered attributes first: how many, then all sizes.
SHAPES: dict[int, tuple[int, tuple[int, ...]]] = {
    1: (1, (1024,)),
    2: (2, (64, 64)),
    3: (2, (32, 12, 6)),
    5: (1, (24, 6, 5, 3, 2)),
    8: (0, (4, 4, 3, 3, 2, 2, 2, 2)),
    10: (0, (3, 3, 3, 3, 2, 2, 2, 2, 2, 2)),
}
RECORDS = (10**3, 10**4, 10**5, 10**6, 10**7)
EPSILONS = ("0.1", "1")
# What anybody would try first; nothing announced, `marginals` measures tables of one attribute.
PLAIN = ("laplace", "marginals", "adaptivetree")
# What is wanted of auto.
GEOMETRIC, WORST = 1.03, 1.15
_QUESTIONS = 400
_GROUPS = 8


@dataclass(frozen=True)
class Case:
    """How far auto is from the best candidate, in one case."""

    attributes: int
    data: str
    records: int
    epsilon: str
    announced: bool
    kind: str
    best: str
    best_error: float
    error: float
    held: float
    robust: float
    """The better of plain noise, tables of one attribute, and the tree, told as much as auto was."""

    @property
    def ratio(self) -> float:
        """Auto's error over the best candidate's."""
        return self.error / self.best_error if self.best_error > 0 else 1.0

    def row(self) -> dict[str, object]:
        """A line of the table."""
        return {
            "attributes": self.attributes,
            "data": self.data,
            "records": self.records,
            "ε": self.epsilon,
            "announced": "yes" if self.announced else "no",
            "asked": self.kind,
            "best": self.best,
            "its error": self.best_error,
            "auto": self.error,
            "ratio": self.ratio,
            "of the plain three": self.error / self.robust,
            "held at 95 %": self.held,
        }


def measure(
    *,
    quick: Annotated[bool, "one small case: seconds"],
    draws: Annotated[int, "draws of the noise for each case"] = 3,
    attributes: Annotated[tuple[int, ...], "how many attributes"] = tuple(SHAPES),
    records: Annotated[tuple[int, ...], "how many records"] = RECORDS,
    epsilons: Annotated[tuple[str, ...], "budgets"] = EPSILONS,
    only: Annotated[tuple[str, ...], "only these kinds of data"] = (),
    data: Annotated[Path | None, "folder with the Adult census: measured as well"] = None,
    losses: Annotated[bool, "print only what lies above what is wanted, and the summary"] = False,
) -> Iterator[Line]:
    """Every case, then means, worst cases and how many lie above what is wanted."""
    if quick:
        attributes, records, epsilons, only, draws = (3,), (10**4,), ("1",), ("groups",), 1
    found: list[Case] = []
    for count, scale in product(attributes, records):
        for name, weights in populations(SHAPES[count][1]).items():
            if only and name not in only:
                continue
            histogram = Histogram(domain_of(count), sample(weights, scale, 1))
            for epsilon in epsilons:
                for case in cases(histogram, name, epsilon, draws):
                    found.append(case)
                    if not losses or case.ratio > WORST:
                        yield case.row()
    if data is not None:
        five = next(
            cube for cube in cubes(data, quick=False, largest=5) if len(cube.histogram.counts.shape) == 5
        )
        for epsilon in epsilons:
            for case in cases(five.histogram, "Adult", epsilon, draws):
                found.append(case)
                yield case.row()
    yield from summary(found)


def domain_of(count: int) -> Domain:
    """Attributes of the matrix: ordered ones first."""
    ordered, shape = SHAPES[count]
    return Domain(
        [
            Ordinal(f"x{axis}", range(n))
            if axis < ordered
            else Nominal(f"x{axis}", [f"v{value}" for value in range(n)])
            for axis, n in enumerate(shape)
        ]
    )


def populations(shape: tuple[int, ...]) -> dict[str, FloatArray]:
    """Weights of made-up people: groups with habits of their own, and a smooth slope."""
    draw = np.random.default_rng(11)  # noqa: TID251 -- data only
    groups, smooth = np.zeros(shape), np.ones(shape)
    for _ in range(_GROUPS):
        one = np.ones((1,) * len(shape))
        for axis, n in enumerate(shape):
            place = (np.arange(n) + 0.5) / n
            habit = np.exp(-0.5 * ((place - draw.random()) / draw.uniform(0.03, 0.2)) ** 2) + 1e-3
            if n <= 8:
                habit = draw.dirichlet(np.full(n, 0.5))
            one = one * habit.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        groups += one / one.sum() * (draw.pareto(1.0) + 0.1)
    for axis, n in enumerate(shape):
        slope = 1.0 + 0.8 * np.cos(np.pi * (np.arange(n) + 0.5) / n + axis)
        smooth = smooth * slope.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return {"groups": groups, "smooth": smooth}


def questions(domain: Domain) -> dict[str, Workload]:
    """Kinds of questions that a domain has."""
    axes = len(domain.shape)
    asked = {"cells": Workload.cells(domain)}
    if axes == 1:
        return asked | {
            "prefixes": Workload.prefixes(domain),
            "ranges": Workload.random(domain, _QUESTIONS, seed=5),
        }
    asked["one-way"] = Workload.marginals(domain, 1)
    if axes > 2:
        asked["two-way"] = Workload.marginals(domain, 2)
        asked["ranges of two"] = ranges_of_two(domain)
    asked["boxes"] = Workload.random(domain, _QUESTIONS, seed=5)
    return asked


def ranges_of_two(domain: Domain) -> Workload:
    """Random boxes that are bounded on two attributes, every pair as often as any other."""
    boxes = Workload.random(domain, _QUESTIONS, seed=6)
    pairs = list(combinations(range(len(domain.shape)), 2))
    low, high = boxes.low.copy(), boxes.high.copy()
    for row in range(len(low)):
        free = [axis for axis in range(len(domain.shape)) if axis not in pairs[row % len(pairs)]]
        low[row, free], high[row, free] = 0, np.array(domain.shape)[free]
    return Workload(domain, low, high)


def cases(histogram: Histogram, name: str, epsilon: str, draws: int) -> Iterator[Case]:
    """All kinds of questions about one set of counts, told and not told."""
    asked = questions(histogram.domain)
    truth = {kind: np.asarray(load.answer(histogram.counts), dtype=float) for kind, load in asked.items()}
    plain = _candidates(histogram.domain.shape)
    fixed = {
        label: _errors(mechanism, histogram, epsilon, None, asked, truth, draws)
        for label, mechanism in plain.items()
    }
    silent = _errors(Auto(), histogram, epsilon, None, asked, truth, draws)
    facts = len(histogram.domain.shape), name, int(histogram.counts.sum()), epsilon
    alike = {
        label: _geometric([each[0] for each in errors.values()]) for label, errors in fixed.items() if errors
    }
    best = min(alike, key=alike.__getitem__)
    robust = min(alike[label] for label in PLAIN if label in alike)
    error = _geometric([each[0] for each in silent.values()])
    yield Case(*facts, False, "each alike", best, alike[best], error, math.nan, robust)
    for announced in (False, True):
        for kind, load in asked.items():
            one, right = {kind: load}, {kind: truth[kind]}
            rivals = {label: errors[kind][0] for label, errors in fixed.items() if kind in errors}
            if announced:
                told: dict[str, Mechanism] = {"adaptivetree": AdaptiveTree()}
                if load.kind == "marginals":
                    told["marginals"] = Marginals()
                for label, mechanism in told.items():
                    run = _errors(mechanism, histogram, epsilon, load, one, right, draws)
                    rivals[label] = run[kind][0]
                mine = _errors(Auto(), histogram, epsilon, load, one, right, draws)[kind]
            else:
                mine = silent[kind]
            best = min(rivals, key=rivals.__getitem__)
            robust = min(rivals[label] for label in PLAIN if label in rivals)
            yield Case(*facts, announced, kind, best, rivals[best], *mine, robust)


def _candidates(shape: tuple[int, ...]) -> dict[str, Mechanism]:
    """Who could be chosen; told nothing. Those who listen are run again for each kind of question."""
    some: dict[str, Mechanism] = {
        "laplace": Laplace(),
        "posterior": Posterior(),
        "adaptivetree": AdaptiveTree(),
        "uniform": Uniform(),
    }
    if len(shape) <= 3:
        some["uniformgrid"] = UniformGrid()
    if len(shape) > 1:
        some["marginals"] = Marginals()
        plan = plan_tables(shape)
        some["planned tables"] = Marginals(tables=plan.tables, shares=plan.shares)
    return some


def _errors(
    mechanism: Mechanism,
    histogram: Histogram,
    epsilon: str,
    told: Workload | None,
    asked: Mapping[str, Workload],
    truth: Mapping[str, FloatArray],
    draws: int,
) -> dict[str, tuple[float, float]]:
    """Root mean squared error and part of the intervals that held, by kind of question."""
    squares, held = dict.fromkeys(asked, 0.0), dict.fromkeys(asked, 0.0)
    for seed in range(draws):
        noise = Noise(Keystream.for_tests(seed))
        try:
            release = _release(histogram, Fraction(epsilon), mechanism, Unit(), told, noise)
        except DphistError:
            return {}
        for kind, load in asked.items():
            answers = release.answer(load)
            squares[kind] += float(np.mean((answers.value - truth[kind]) ** 2)) / draws
            inside = (answers.low <= truth[kind]) & (truth[kind] <= answers.high)
            known = ~np.isnan(answers.low)
            held[kind] += float(inside[known].mean() if known.any() else np.nan) / draws
    return {kind: (math.sqrt(squares[kind]), held[kind]) for kind in asked}


def summary(found: list[Case]) -> Iterator[Line]:
    """Means and worst cases: all, told or not, and by kind of question."""
    for announced in (True, False):
        mine = [case for case in found if case.announced is announced]
        for kind in ["all", *dict.fromkeys(case.kind for case in mine)]:
            some = [case for case in mine if kind in ("all", case.kind)]
            if not some:
                continue
            robust = [case.error / case.robust for case in some]
            held = [case.held for case in some if not math.isnan(case.held)]
            yield {
                "announced": "yes" if announced else "no",
                "questions": kind,
                "geometric mean": _geometric([case.ratio for case in some]),
                "worst": max(case.ratio for case in some),
                f"above {WORST}": sum(case.ratio > WORST for case in some),
                "cases": len(some),
                "of the plain three": _geometric(robust),
                "worst of these": max(robust),
                "held at 95 %": float(np.mean(held)) if held else math.nan,
                "least held": min(held, default=math.nan),
            }


def _geometric(ratios: list[float]) -> float:
    return math.exp(sum(math.log(max(ratio, 1e-9)) for ratio in ratios) / len(ratios))
