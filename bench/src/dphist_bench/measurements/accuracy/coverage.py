"""How often intervals hold the truth, and how wide they are: mechanism × kind of question × data × ε × records × level.

Data are made up (flat, empty, spikes, steps, Zipf, combs, …), read from a folder (``--data``), or cubes of the census
records in it. Each case is one kind of question about one set of counts at one ε, over many draws of the noise;
beside each mechanism stand the widths of exact ones that do not adapt.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError
from dphist.inference.estimate import Errors, Interval
from dphist.inference.predictive.errors import PredictiveErrors, asked_cells, by_question
from dphist.mechanisms.spec import parse
from dphist.model.budget import Budget
from dphist.model.domain import Domain
from dphist.model.workload import Workload
from dphist.testing.gates import run
from dphist_bench.data.coverage import Data, cubes, files, made_up_data
from dphist_bench.data.drawn import drawn_cube, drawn_line, drawn_plane
from dphist_bench.measuring import Line

FloatArray = NDArray[np.float64]

LEVELS = (0.5, 0.8, 0.95, 0.99)
# What each sort of data is tried with: calibrated ones first, then the exact ones that widths are set against.
MECHANISMS = {
    "line": ("auto", "auto, told", "posterior", "h", "laplace"),
    "plane": ("auto", "auto, told", "posterior", "h", "laplace"),
    "cube": ("auto", "auto, told", "posterior", "laplace"),
}
EXACT = {"line": ("h", "laplace"), "plane": ("h", "laplace"), "cube": ("laplace",)}
# What intervals must keep, case by case, at 95 %.
LEAST = 0.93
_QUESTIONS = 300
_MOST_CELLS = 4096


@dataclass(frozen=True)
class Outcome:
    """One case: how often each level held, the mean half-width at 95 % in units of 1/ε, and how many truths were 0."""

    mechanism: str
    sort: str
    kind: str
    data: str
    records: int
    spent: str
    held: tuple[float, ...]
    width: float
    error: float
    empty: float
    unmeasured: float

    def at(self, level: float) -> float:
        """How often the intervals of a level held."""
        return self.held[LEVELS.index(level)]

    def row(self) -> dict[str, object]:
        """The case as a line of a table."""
        held = {f"{100 * level:g} %": round(self.at(level), 3) for level in LEVELS}
        case = {"mechanism": self.mechanism, "questions": self.kind, "data": self.name}
        return {**case, **held, "half-width": round(self.width, 2), "error": round(self.error, 2)}

    @property
    def name(self) -> str:
        """The case in words."""
        return f"{self.data}, {self.records:,} records, {self.spent}"


def questions(sort: str, domain: Domain) -> dict[str, Workload]:
    """The kinds of questions that are asked of data of one sort."""
    if sort == "line":
        return {
            "cells": _some_cells(domain),
            "short ranges": _boxes(domain, 16, 1),
            "ranges": Workload.random(domain, _QUESTIONS, seed=3),
            "lists of pieces": _pieces(domain),
        }
    if sort == "plane":
        return {
            "cells": _some_cells(domain),
            "small rectangles": _boxes(domain, 16, 2),
            "rectangles": Workload.random(domain, _QUESTIONS, seed=3),
            "marginals": Workload.marginals(domain, 1),
        }
    return {
        "one-way tables": Workload.marginals(domain, 1),
        "two-way tables": Workload.marginals(domain, 2),
        "boxes": Workload.random(domain, _QUESTIONS, seed=3),
    }


# What a workload-aware run is told, for each kind of question.
_TOLD: dict[str, Callable[[Domain], Workload]] = {
    "cells": Workload.cells,
    "one-way tables": lambda domain: Workload.marginals(domain, 1),
    "two-way tables": lambda domain: Workload.marginals(domain, 2),
    "marginals": lambda domain: Workload.marginals(domain, 1),
}


def outcomes(
    data: Data,
    records: int,
    epsilon: str,
    draws: int,
    mechanisms: tuple[str, ...],
    *,
    rho: bool = False,
    guaranteed: bool = False,
) -> Iterator[Outcome]:
    """Try every mechanism on some counts; kinds that are announced alike share their runs.

    With ``rho`` ε²/2 of ρ is spent instead, which gives a cell Gaussian noise of deviation 1/ε. With ``guaranteed``
    the intervals are those that a theorem vouches for. Each set of counts has noise of its own, which its mechanisms
    share: the same noise for all would let one unlucky draw fail many cases together.
    """
    half = Fraction(epsilon) ** 2 / 2
    budget: Budget | str = Budget.of(rho=half) if rho else epsilon
    spent = f"ρ = {half}" if rho else f"ε = {epsilon}"
    domain, counts = data.histogram.domain, data.histogram.counts
    first = zlib.crc32(f"{data.name}, {records}, {spent}".encode())
    asked = questions(data.sort, domain)
    truths = {kind: np.asarray(each.answer(counts), dtype=np.float64) for kind, each in asked.items()}
    for name in mechanisms:
        mechanism = parse(name.split(",")[0])
        told: dict[str, list[str]] = {}
        for kind in asked:
            told.setdefault(kind if name.endswith("told") else "", []).append(kind)
        for announced, kinds in told.items():
            hint = None if not announced else _TOLD.get(announced, lambda d, a=announced: asked[a])(domain)
            tallies = {kind: _Tally() for kind in kinds}
            for draw in range(draws):
                try:
                    estimate = run(mechanism, data.histogram, budget, seed=first + draw, workload=hint)
                except DphistError:
                    break  # it does not take such data
                for kind in kinds:
                    summed = np.asarray(
                        asked[kind].answer(estimate.counts.reshape(domain.shape)), dtype=np.float64
                    )
                    published = estimate.errors.answer(asked[kind], summed)
                    bounds = intervals(estimate.errors, asked[kind], published, guaranteed=guaranteed)
                    tallies[kind].add(truths[kind], published, bounds)
            for kind, tally in tallies.items():
                if tally.draws:
                    yield Outcome(
                        name, data.sort, kind, data.name, records, spent, *tally.close(float(epsilon))
                    )


def intervals(
    errors: Errors, workload: Workload, published: FloatArray, *, guaranteed: bool = False
) -> list[Interval]:
    """Intervals at every level; the predictive law is asked once for all of them."""
    if guaranteed or not isinstance(errors, PredictiveErrors):
        return [errors.interval(workload, published, level, guaranteed=guaranteed) for level in LEVELS]
    boxes = by_question(workload)
    deviation, cells = np.sqrt(errors.squares(*boxes, published)), asked_cells(*boxes)
    return [errors.whole(published, deviation, cells, level) for level in LEVELS]


class _Tally:
    """What the draws of one case add up to."""

    def __init__(self) -> None:
        self.draws = 0
        self.held = np.zeros(len(LEVELS))
        self.width = self.square = self.empty = self.unmeasured = 0.0

    def add(self, truth: FloatArray, published: FloatArray, bounds: list[Interval]) -> None:
        """Count one draw."""
        known = np.zeros(truth.shape, dtype=bool)
        for place, bound in enumerate(bounds):
            low, high = bound.low, bound.high
            # Bounds of what was not measured are wide, and no measure of how intervals do.
            known = np.isfinite(low) if bound.guessed is None else np.isfinite(low) & ~bound.guessed
            if known.any():
                holds = (low - 1e-6 <= truth) & (truth <= high + 1e-6)
                self.held[place] += float(holds[known].mean())
                if LEVELS[place] == 0.95:
                    self.width += float((high - low)[known].mean()) / 2.0
        self.draws += 1
        self.square += float(np.mean((published - truth) ** 2))
        self.empty += float(np.mean(truth == 0))
        self.unmeasured += float(1.0 - known.mean())

    def close(self, epsilon: float) -> tuple[tuple[float, ...], float, float, float, float]:
        """Means over the draws; widths and errors in units of 1/ε."""
        n = self.draws
        return (
            tuple(float(each) for each in self.held / n),
            self.width / n * epsilon,
            math.sqrt(self.square / n) * epsilon,
            self.empty / n,
            self.unmeasured / n,
        )


def _some_cells(domain: Domain) -> Workload:
    """Every cell, or some of a large grid, at steps that no pattern keeps time with: every other cell has all teeth."""
    flat = np.arange(domain.size)
    if domain.size > _MOST_CELLS:
        golden = (math.sqrt(5.0) - 1.0) / 2.0
        flat = np.unique((np.arange(_MOST_CELLS) * golden % 1.0 * domain.size).astype(np.int64))
    low = np.stack(np.unravel_index(flat, domain.shape), axis=1)
    return Workload(domain, low, low + 1)


def _boxes(domain: Domain, longest: int, seed: int) -> Workload:
    """Boxes of one to so many cells on a side, anywhere."""
    draws = np.random.default_rng(seed)  # noqa: TID251 -- questions only
    shape = np.array(domain.shape)
    sides = np.minimum(draws.integers(1, longest + 1, (_QUESTIONS, shape.size)), shape)
    low = np.floor(draws.random((_QUESTIONS, shape.size)) * (shape - sides + 1)).astype(np.int64)
    return Workload(domain, low, low + sides)


def _pieces(domain: Domain) -> Workload:
    """Questions that are each a list of four ranges apart."""
    n = domain.size
    draws = np.random.default_rng(7)  # noqa: TID251 -- questions only
    ends = np.sort(np.stack([draws.choice(n + 1, 8, replace=False) for _ in range(_QUESTIONS)]), axis=1)
    return Workload(
        domain, ends[:, ::2].reshape(-1, 1), ends[:, 1::2].reshape(-1, 1), np.repeat(np.arange(_QUESTIONS), 4)
    )


def measure(
    *,
    quick: Annotated[bool, "small made-up data, two draws: seconds"],
    data: Annotated[Path | None, "folder of count vectors, planes and census records"] = None,
    made_up: Annotated[bool, "made-up data as well as those of the folder"] = False,
    draws: Annotated[int, "draws of the noise for each case"] = 16,
    only: Literal["all", "line", "plane", "cube"] = "all",
    mechanisms: Annotated[tuple[str, ...], "these instead of the usual ones"] = (),
    attributes: Annotated[int, "cubes of the census with at most so many"] = 8,
    fewest: Annotated[int, "and at least so many"] = 3,
    rho: Annotated[bool, "spend ρ = ε²/2 instead of ε"] = False,
    guaranteed: Annotated[bool, "guaranteed intervals instead of calibrated ones"] = False,
    drawn: Annotated[
        int, "instead of these so many data of each sort, drawn by number with records and ε"
    ] = 0,
    first: Annotated[int, "the first such number"] = 0,
    minutes: Annotated[float, "begin no case after so long; cases come in a shuffled order"] = math.inf,
) -> Iterator[Line]:
    """Count how often intervals hold, case by case, then by mechanism and kind of question."""
    epsilons, scales = (("1",), (10**4,)) if quick else (("0.1", "1"), (10**4, 10**6))
    draws = min(draws, 2) if quick else draws
    found: list[Outcome] = []
    every = (
        list(_drawn(range(first, first + drawn), only))
        if drawn
        else [
            (some, records, epsilon)
            for some, records in _data(quick, data, made_up or data is None, scales, (fewest, attributes))
            for epsilon in epsilons
            if only in ("all", some.sort)
        ]
    )
    if minutes < math.inf:
        np.random.default_rng(1).shuffle(every)  # noqa: TID251 -- the order of the cases only
    started, tried = time.monotonic(), 0
    for some, records, epsilon in every:
        if time.monotonic() - started > 60.0 * minutes:
            break
        tried += 1
        tried_here = mechanisms or MECHANISMS[some.sort]
        for outcome in outcomes(some, records, epsilon, draws, tried_here, rho=rho, guaranteed=guaranteed):
            found.append(outcome)
            yield outcome.row()
    if tried < len(every):
        yield f"{tried} of {len(every)} sets of counts and ε, drawn at random, for want of time"
    yield from _summary(found)


def _drawn(numbers: range, only: str) -> Iterator[tuple[Data, int, str]]:
    """Data that nobody chose, each with its own number of records and its own ε."""
    for sort, make in (("line", drawn_line), ("plane", drawn_plane), ("cube", drawn_cube)):
        for number in numbers if only in ("all", sort) else ():
            name, histogram, epsilon = make(number)
            shape = " × ".join(map(str, histogram.domain.shape))
            yield (
                Data(f"{sort} {number} ({shape}: {name})", sort, histogram),
                int(histogram.counts.sum()),
                epsilon,
            )


def _data(
    quick: bool, folder: Path | None, made: bool, scales: tuple[int, ...], attributes: tuple[int, int]
) -> Iterator[tuple[Data, int]]:
    for records in scales:
        if made:
            yield from ((some, records) for some in made_up_data(records, quick=quick))
        if folder is not None:
            yield from ((some, records) for some in files(folder, records))
    for cube in cubes(folder, quick=quick, smallest=attributes[0], largest=attributes[1]):
        yield cube, int(cube.histogram.counts.sum())


def _summary(found: list[Outcome]) -> Iterator[Line]:
    """Means and worst cases, and how wide intervals are beside those of exact mechanisms in the same cases."""
    for sort, name, kind in dict.fromkeys((each.sort, each.mechanism, each.kind) for each in found):
        here = [each for each in found if (each.sort, each.kind) == (sort, kind)]
        mine = [each for each in here if each.mechanism == name and each.unmeasured < 1.0]
        if not mine:
            continue
        row: dict[str, object] = {
            "data": f"{sort}s",
            "mechanism": name,
            "questions": kind,
            "cases": len(mine),
        }
        for level in LEVELS:
            held = [each.at(level) for each in mine]
            row[f"{100 * level:g} %"] = f"{np.mean(held):.3f} [{min(held):.2f}]"
        row["below 0.93"] = sum(each.at(0.95) < LEAST for each in mine)
        for other in EXACT[sort]:
            widths = {each.name: each.width for each in here if each.mechanism == other}
            both = [(each.width, widths[each.name]) for each in mine if each.name in widths]
            row[f"of {other}"] = float(np.divide(*np.sum(both, axis=0))) if both else None
        yield row
