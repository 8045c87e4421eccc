"""How often intervals hold the truth, and how wide they are: mechanism × kind of question × data × ε × level.

Data are drawn by number, each with its own records and ε, or read from a folder (``--data``): count vectors, planes,
and cubes of the census records in it. Each case is one kind of question about one set of counts, over many draws of
the noise. Beside each mechanism stands how wide intervals are of what `laplace` has in the same cases, if it is tried,
and its root mean squared error over that of the best of the others, picked with hindsight case by case: `PUBLISHED` is
what others published.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError
from dphist.inference.estimate import Interval
from dphist.mechanisms.options import parse
from dphist.model.budget import Budget
from dphist.testing.gates import run
from dphist_bench.data.coverage import Data, cubes, drawn_data, files
from dphist_bench.judge.cases import questions
from dphist_bench.measuring import Line
from dphist_bench.results import geometric_mean

FloatArray = NDArray[np.float64]
Sort = Literal["all", "line", "plane", "cube"]

LEVELS = (0.5, 0.8, 0.95, 0.99)
# What intervals must keep, case by case, at 95 %.
LEAST = 0.93
MECHANISMS = ("auto", "auto, told", "posterior", "h", "laplace")
# As their authors published them: no early stop, no projection away from negative counts. (``--published``)
PUBLISHED = (
    *(
        "laplace",
        "uniform",
        "hb",
        "privelet",
        "ahp",
        "noisefirst",
        "dpcube",
        "uniformgrid(nonnegative=False)",
    ),
    *("adaptivegrid(nonnegative=False)", "kdhybrid(stop=0, nonnegative=False)"),
    *("quadtree(stop=0, nonnegative=False)", "tree(fanout='hb', root=False, nonnegative=False)"),
)


@dataclass(frozen=True)
class Outcome:
    """One case: how often each level held, and the mean half-width at 95 % and the error in units of 1/ε."""

    mechanism: str
    sort: str
    kind: str
    data: str
    held: tuple[float, ...]
    width: float
    error: float

    def at(self, level: float) -> float:
        """How often the intervals of a level held."""
        return self.held[LEVELS.index(level)]

    def row(self) -> dict[str, object]:
        """The case as a line of a table."""
        held = {f"{100 * level:g} %": round(self.at(level), 3) for level in LEVELS}
        case = {"mechanism": self.mechanism, "questions": self.kind, "data": self.data}
        return {**case, **held, "half-width": round(self.width, 2), "error": round(self.error, 2)}


def outcomes(
    data: Data,
    epsilon: str,
    draws: int,
    mechanisms: Sequence[str],
    *,
    rho: bool = False,
    guaranteed: bool = False,
) -> Iterator[Outcome]:
    """Try every mechanism on some counts; one that is *told* runs anew for each kind of question.

    With ``rho`` ε²/2 of ρ is spent instead, which gives a cell Gaussian noise of deviation 1/ε. With ``guaranteed``
    the intervals are those that a theorem vouches for. Each set of counts has noise of its own, which its mechanisms
    share: the same noise for all would let one unlucky draw fail many cases together.
    """
    budget = Budget.of(rho=Fraction(epsilon) ** 2 / 2) if rho else Budget.of(epsilon)
    name = f"{data.name}, {data.records:,} records, {'ρ' if rho else 'ε'} = {budget.amount}"
    domain = data.histogram.domain
    asked = questions(domain)
    truths = {
        kind: np.asarray(each.answer(data.histogram.counts), dtype=np.float64) for kind, each in asked.items()
    }
    first = zlib.crc32(name.encode())
    for mechanism in mechanisms:
        told = mechanism.endswith(", told")
        for kinds in [(kind,) for kind in asked] if told else [tuple(asked)]:
            hint = asked[kinds[0]] if told else None
            tallies = {kind: Tally() for kind in kinds}
            for draw in range(draws):
                try:
                    estimate = run(
                        parse(mechanism.removesuffix(", told")),
                        data.histogram,
                        budget,
                        seed=first + draw,
                        workload=hint,
                    )
                except DphistError:
                    break  # it does not take such data
                for kind, tally in tallies.items():
                    load, errors = asked[kind], estimate.errors
                    summed = np.asarray(load.answer(estimate.counts.reshape(domain.shape)), dtype=np.float64)
                    published = errors.answer(load, summed)
                    bounds = [
                        errors.interval(load, published, level, guaranteed=guaranteed) for level in LEVELS
                    ]
                    tally.add(truths[kind], published, bounds)
            for kind, tally in tallies.items():
                if tally.draws:
                    yield Outcome(mechanism, data.sort, kind, name, *tally.close(float(epsilon)))


class Tally:
    """What the draws of one case add up to."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.draws = 0
        self.held, self.known = np.zeros(len(LEVELS)), np.zeros(len(LEVELS))
        self.width = self.square = 0.0

    def add(self, truth: FloatArray, published: FloatArray, bounds: Sequence[Interval]) -> None:
        """Count one draw; bounds of what was not measured are wide, and no measure of how intervals do."""
        for place, bound in enumerate(bounds):
            low, high = bound.low, bound.high
            known = np.isfinite(low) if bound.guessed is None else np.isfinite(low) & ~bound.guessed
            self.known[place] += known.sum()
            self.held[place] += ((low - 1e-6 <= truth) & (truth <= high + 1e-6))[known].sum()
            if LEVELS[place] == 0.95:
                self.width += float((high - low)[known].sum()) / 2.0
        self.draws += 1
        self.square += float(np.mean((published - truth) ** 2))

    def close(self, epsilon: float) -> tuple[tuple[float, ...], float, float]:
        """How often each level held, and width and error in units of 1/ε; NaN where nothing was measured."""
        with np.errstate(invalid="ignore"):
            held, width = self.held / self.known, self.width / self.known[LEVELS.index(0.95)]
        return tuple(held.tolist()), float(width) * epsilon, math.sqrt(self.square / self.draws) * epsilon


def measure(
    *,
    quick: Annotated[bool, "one set of each sort, two draws: seconds"],
    data: Annotated[Path | None, "folder of count vectors, planes and census records"] = None,
    draws: Annotated[int, "draws of the noise for each case"] = 16,
    only: Sort = "all",
    mechanisms: Annotated[tuple[str, ...], "which"] = MECHANISMS,
    published: Annotated[bool, "what others published, and auto, instead of these"] = False,
    rho: Annotated[bool, "spend ρ = ε²/2 instead of ε"] = False,
    guaranteed: Annotated[bool, "guaranteed intervals instead of calibrated ones"] = False,
    drawn: Annotated[int, "how many data of each sort are drawn by number"] = 24,
    first: Annotated[int, "the first such number"] = 0,
) -> Iterator[Line]:
    """Count how often intervals hold, case by case, then by mechanism and kind of question."""
    found: list[Outcome] = []
    mechanisms = ("auto, told", *PUBLISHED) if published else mechanisms
    every = drawn_data(range(first, first + (1 if quick else drawn))) if data is None else _read(data)
    for some, epsilon in every:
        if only in ("all", some.sort):
            for outcome in outcomes(
                some, epsilon, 2 if quick else draws, mechanisms, rho=rho, guaranteed=guaranteed
            ):
                found.append(outcome)
                yield outcome.row()
    yield from _summary(found)


def _read(folder: Path) -> Iterator[tuple[Data, str]]:
    for epsilon in ("0.1", "1"):
        for records in (10**4, 10**6):
            yield from ((some, epsilon) for some in files(folder, records))
        yield from ((some, epsilon) for some in cubes(folder))


def _summary(found: Sequence[Outcome]) -> Iterator[Line]:
    """Means and worst cases, and how wide intervals are beside those of `laplace` in the same cases."""
    for sort, name, kind in dict.fromkeys((each.sort, each.mechanism, each.kind) for each in found):
        here = [each for each in found if (each.sort, each.kind) == (sort, kind)]
        mine = [each for each in here if each.mechanism == name and not math.isnan(each.width)]
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
        row[f"below {LEAST}"] = sum(each.at(0.95) < LEAST for each in mine)
        exact = {each.data: each.width for each in here if each.mechanism == "laplace"}
        both = [(each.width, exact[each.data]) for each in mine if each.data in exact]
        others = [each for each in here if not each.mechanism.startswith("auto")]
        ratios = [
            each.error / best
            for each in mine
            if (
                best := min(
                    (o.error for o in others if o.data == each.data and o.mechanism != name), default=0.0
                )
            )
        ]
        yield row | {
            "of laplace": float(np.divide(*np.sum(both, axis=0))) if both else None,
            "error over the best other's": geometric_mean(ratios),
            "worst": max(ratios, default=math.nan),
        }
