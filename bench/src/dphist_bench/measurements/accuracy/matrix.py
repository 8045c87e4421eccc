"""``auto`` beside the best of our own candidates, over attributes × records × ε × announced or not × kind of question.

Made-up people: a mixture of groups, each with habits of its own on every attribute, and a smooth slope. With ``--data
FOLDER`` (the Adult census in it) the first attributes of Adult are measured too, as many records drawn from its shares
as anywhere. Answers are those of ``release.answer``; beside the ratio to the best candidate, chosen per case with
hindsight, stands how often the 95 % interval held. Where nothing is announced one release must serve all kinds of
questions: *each alike* compares the geometric means over them, each candidate's against auto's; no release can be the
best one for every kind at once. Every candidate draws the same noise, so where ``auto`` hands over to one of them the
ratio is 1.

The best of many candidates by few draws is a lucky one: its error is less than it would be on other draws. So there is
a second ratio, *by other draws*: the best candidate is chosen by every other draw and compared with ``auto`` on the
rest, then the other way round; the geometric mean of both counts.
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
from dphist.mechanisms.choosing.sums import plan_tables
from dphist.mechanisms.grids import UniformGrid
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.posterior import Posterior
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.door import _release
from dphist_bench.data import sample
from dphist_bench.data.coverage import ADULT, adult_cube
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
WORST = 1.15
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
    apart: float
    """Auto's error over that of the candidate that other draws chose."""

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
            "by other draws": self.apart,
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
    data: Annotated[
        Path | None, "folder with the Adult census: its first attributes are measured as well"
    ] = None,
    losses: Annotated[bool, "print only what lies above what is wanted, and the summary"] = False,
) -> Iterator[Line]:
    """Every case, then means, worst cases and how many lie above what is wanted."""
    if quick:
        attributes, records, epsilons, only, draws = (3,), (10**4,), ("1",), ("groups",), 1
    found: list[Case] = []
    for count, scale in product(attributes, records):
        for name, (domain, weights) in populations(count, data).items():
            if only and name not in only:
                continue
            histogram = Histogram(domain, sample(weights, scale, 1))
            for epsilon in epsilons:
                for case in cases(histogram, name, epsilon, draws):
                    found.append(case)
                    if not losses or case.ratio > WORST:
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


def populations(count: int, data: Path | None) -> dict[str, tuple[Domain, FloatArray]]:
    """Domains of so many attributes and weights of their cells: people who are made up, and those of Adult."""
    made_up = domain_of(count)
    found = {name: (made_up, weights) for name, weights in people(made_up.shape).items()}
    if data is not None and count <= len(ADULT):
        adult = adult_cube(data / "adult-records.csv", count)
        found["Adult"] = adult.domain, np.asarray(adult.counts, dtype=np.float64)
    return found


def people(shape: tuple[int, ...]) -> dict[str, FloatArray]:
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
    told_nothing = {
        label: _run(mechanism, histogram, epsilon, None, asked, truth, draws)
        for label, mechanism in _candidates(histogram.domain.shape).items()
    }
    fixed = {label: run for label, run in told_nothing.items() if run is not None}
    silent = _run(Auto(), histogram, epsilon, None, asked, truth, draws, intervals=True)
    assert silent is not None
    facts = len(histogram.domain.shape), name, int(histogram.counts.sum()), epsilon
    yield _beside((*facts, False, "each alike"), fixed, silent, tuple(asked))
    for announced in (False, True):
        for kind, load in asked.items():
            mine, rivals = silent, dict(fixed)
            if announced:
                one, right = {kind: load}, {kind: truth[kind]}
                told: dict[str, Mechanism] = {"adaptivetree": AdaptiveTree()}
                if load.kind == "marginals":
                    told["marginals"] = Marginals()
                for label, mechanism in told.items():
                    run = _run(mechanism, histogram, epsilon, load, one, right, draws)
                    if run is not None:
                        rivals[label] = run
                heard = _run(Auto(), histogram, epsilon, load, one, right, draws, intervals=True)
                assert heard is not None
                mine = heard
            yield _beside((*facts, announced, kind), rivals, mine, (kind,))


@dataclass(frozen=True)
class _Run:
    """Mean squared errors of every draw, by kind of question, and part of the intervals that held."""

    squares: Mapping[str, FloatArray]
    held: Mapping[str, float]

    def error(self, kinds: tuple[str, ...], some: slice = slice(None)) -> float:
        """Root mean squared error over some draws, the geometric mean of several kinds."""
        return _geometric([math.sqrt(float(self.squares[kind][some].mean())) for kind in kinds])


def _beside(
    facts: tuple[int, str, int, str, bool, str],
    rivals: Mapping[str, _Run],
    mine: _Run,
    kinds: tuple[str, ...],
) -> Case:
    """Our error beside that of the best rival: by all draws, and by those that did not choose it."""
    errors = {label: run.error(kinds) for label, run in rivals.items()}
    best = min(errors, key=errors.__getitem__)
    ratios = []
    if mine.squares[kinds[0]].size > 1:
        even, odd = slice(0, None, 2), slice(1, None, 2)
        for chooses, judges in ((even, odd), (odd, even)):
            by_some = {label: run.error(kinds, chooses) for label, run in rivals.items()}
            chosen = rivals[min(by_some, key=by_some.__getitem__)]
            ratios.append(mine.error(kinds, judges) / max(chosen.error(kinds, judges), 1e-9))
    return Case(
        *facts,
        best=best,
        best_error=errors[best],
        error=mine.error(kinds),
        held=mine.held[kinds[0]] if len(kinds) == 1 else math.nan,
        robust=min(errors[label] for label in PLAIN if label in errors),
        apart=_geometric(ratios),
    )


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


def _run(
    mechanism: Mechanism,
    histogram: Histogram,
    epsilon: str,
    told: Workload | None,
    asked: Mapping[str, Workload],
    truth: Mapping[str, FloatArray],
    draws: int,
    *,
    intervals: bool = False,
) -> _Run | None:
    """Release as often as there are draws, and ask all kinds of questions; nothing where it cannot be done."""
    squares = {kind: np.zeros(draws) for kind in asked}
    held = dict.fromkeys(asked, 0.0)
    for seed in range(draws):
        noise = Noise(Keystream.for_tests(seed))
        try:
            release = _release(histogram, Fraction(epsilon), mechanism, Unit(), told, noise)
        except DphistError:
            return None
        for kind, load in asked.items():
            if not intervals:
                # What an answer says, without the time that its interval takes.
                summed = np.asarray(load.answer(release.counts), dtype=np.float64)
                value = release._estimate.errors.answer(load, summed)
                squares[kind][seed] = float(np.mean((value - truth[kind]) ** 2))
                continue
            answers = release.answer(load)
            squares[kind][seed] = float(np.mean((answers.value - truth[kind]) ** 2))
            inside = (answers.low <= truth[kind]) & (truth[kind] <= answers.high)
            known = answers.measured
            held[kind] += float(inside[known].mean() if known.any() else np.nan) / draws
    return _Run(squares, held)


def summary(found: list[Case]) -> Iterator[Line]:
    """Means and worst cases: all, told or not, and by kind of question."""
    for announced in (True, False):
        mine = [case for case in found if case.announced is announced]
        for kind in ["all", *dict.fromkeys(case.kind for case in mine)]:
            some = [case for case in mine if kind in ("all", case.kind)]
            if not some:
                continue
            robust = [case.error / case.robust for case in some]
            apart = [case.apart for case in some if not math.isnan(case.apart)]
            held = [case.held for case in some if not math.isnan(case.held)]
            yield {
                "announced": "yes" if announced else "no",
                "questions": kind,
                "geometric mean": _geometric([case.ratio for case in some]),
                "worst": max(case.ratio for case in some),
                f"above {WORST}": sum(case.ratio > WORST for case in some),
                "cases": len(some),
                "by other draws": _geometric(apart),
                "worst by these": max(apart, default=math.nan),
                f"above {WORST} by these": sum(ratio > WORST for ratio in apart),
                "of the plain three": _geometric(robust),
                "worst of these": max(robust),
                "held at 95 %": float(np.mean(held)) if held else math.nan,
                "least held": min(held, default=math.nan),
            }


def _geometric(ratios: list[float]) -> float:
    if not ratios:
        return math.nan
    return math.exp(sum(math.log(max(ratio, 1e-9)) for ratio in ratios) / len(ratios))
