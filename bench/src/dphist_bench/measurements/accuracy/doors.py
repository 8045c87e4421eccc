"""How often intervals hold the truth wherever they are printed: means, quantiles, groups, roll-ups, wide tables, keys.

Made-up data; counts and noise are drawn anew for each of ``--draws`` releases, and every case has noise of its own. A
case is a door, a shape, records a cell and a budget. `dphist bench run coverage` counts the intervals of counts.
"""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.sparselaplace import SparseLaplace
from dphist.model.about import About
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.adding import added_release
from dphist.publishing.discovering import publish_discovered
from dphist.publishing.door import _release, _sparse
from dphist.publishing.measures import noised, plan_measures
from dphist.publishing.wide import tables_release
from dphist.release.cube import Cube
from dphist.release.cube.measures import clipped, means, ratios, sums, variances
from dphist.release.release import Release
from dphist.sources.count import count_and_sum
from dphist_bench.data.coverage import SHAPES, shape
from dphist_bench.measuring import Line

FloatArray = NDArray[np.float64]
Asked = tuple[str, FloatArray, FloatArray, FloatArray]
"""A kind of question, its truths and the ends of their intervals."""

LEAST = 0.93
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


@dataclass(frozen=True)
class Draw:
    """One release to be made: its shape, records a cell on average, budget, and where its noise comes from."""

    shape: str
    each: float
    budget: Budget
    seed: int
    workload: str | None = None

    @property
    def random(self) -> np.random.Generator:  # noqa: TID251 -- made-up data
        """Where counts come from."""
        return np.random.default_rng(self.seed)  # noqa: TID251 -- made-up data

    @property
    def noise(self) -> Noise:
        """Where the noise comes from."""
        return Noise(Keystream.for_tests(self.seed))

    def counts(self, size: int) -> NDArray[np.int64]:
        """Counts of a line."""
        draws = self.random
        return draws.poisson(self.each * shape(self.shape, size, draws)).astype(np.int64)

    def publish(self, histogram: Histogram) -> Release:
        """What `auto` publishes."""
        told = None if self.workload is None else Workload.parse(histogram.domain, self.workload)
        return _release(histogram, self.budget, Auto(), Unit(), told, self.noise)


# ---- doors ----


def line(draw: Draw, size: int) -> Iterator[Asked]:
    """Means, sums, quantiles and shares of an ordered attribute."""
    counts = draw.counts(size)
    release = draw.publish(Histogram(Domain([Ordinal("x", range(size))]), counts))
    yield from _moments(Cube(release), counts[None])


def groups(draw: Draw) -> Iterator[Asked]:
    """The same beside three groups that share an attribute of 40 values unequally, and restricted to a part of it."""
    share = np.array([0.6, 0.3, 0.1])
    draws = draw.random
    expected = draw.each * 3 * shape(draw.shape, 40, draws)[:, None] * share
    counts = draws.poisson(expected).astype(np.int64)
    domain = Domain([Ordinal("x", range(40)), Nominal("g", ["a", "b", "c"])])
    cube = Cube(draw.publish(Histogram(domain, counts)))
    yield _said("groups", counts.sum(axis=0), cube.by("g").count())
    yield _said("groups of a part", counts[10:30].sum(axis=0), cube.dice(x=(10, 29)).by("g").count())
    yield from _moments(cube.by("g"), counts.T)
    for kind, truth, low, high in _moments(cube.dice(x=(10, 29)).by("g"), counts[10:30].T, 10):
        yield f"{kind} of a part", truth, low, high


def rollups(draw: Draw) -> Iterator[Asked]:
    """Counts of categories in a hierarchy of 6 × 4 × 5, rolled up level by level."""
    tree = {f"a{i}": {f"a{i}b{j}": [f"a{i}b{j}c{k}" for k in range(5)] for j in range(4)} for i in range(6)}
    counts = draw.counts(120)
    cube = Cube(draw.publish(Histogram(Domain([Nominal("place", tree)]), counts))).by("place")
    yield _said("categories", counts, cube.count())
    cube = cube.roll_up("place")
    yield _said("rolled up once", counts.reshape(24, 5).sum(axis=1), cube.count())
    yield _said("rolled up twice", counts.reshape(6, 20).sum(axis=1), cube.roll_up("place").count())


def categories(draw: Draw, size: int) -> Iterator[Asked]:
    """Counts of categories without order, and lists of them."""
    counts = draw.counts(size)
    domain = Domain([Nominal("c", [f"c{i}" for i in range(size)])])
    release = draw.publish(Histogram(domain, counts))
    yield _said("categories", counts, Cube(release).by("c").count())
    # Lists of a category twice are refused.
    some = draw.random.permuted(np.tile(np.arange(size), (60, 1)), axis=1)[:, :3]
    asked = Workload(domain, some.reshape(-1, 1), some.reshape(-1, 1) + 1, np.repeat(np.arange(60), 3))
    yield _said("lists of three", counts[some].sum(axis=1), release.answer(asked))


def tables(draw: Draw, *, added: bool) -> Iterator[Asked]:
    """Pairs of sixteen columns of three values; perhaps with two tables of three added later for as much again."""
    columns, draws = 16, draw.random
    domain = Domain([Nominal(f"c{i}", ["a", "b", "c"]) for i in range(columns)])
    rows = int(draw.each * 1000)
    law = shape(draw.shape, 9, draws) + 1e-3
    hidden = draws.choice(9, rows, p=law / law.sum())
    codes = [
        np.where(draws.random(rows) < 0.5, hidden // 3 if i % 2 else hidden % 3, (hidden + i) % 3)
        for i in range(columns)
    ]
    coded = CodedColumns(domain, tuple(each.astype(np.uint8) for each in codes))
    pairs = Workload.parse(domain, "marginals:2")
    release = tables_release(coded, draw.budget, Auto(), Unit(), pairs, noise=draw.noise)
    if added:
        more = Noise(Keystream.for_tests(draw.seed + 500_000))
        release = added_release(release, coded, ((0, 1, 2), (2, 3, 4)), draw.budget, noise=more)
        asked = Workload.parse(domain, "marginals:c0,c1,c2;c2,c3,c4")
        yield _said("added tables", _truth(coded, [(0, 1, 2), (2, 3, 4)]), release.answer(asked))
    ways = [(i, j) for i in range(columns) for j in range(i + 1, columns)]
    yield _said("two-way tables", _truth(coded, ways), release.answer(pairs))
    ones = Workload.parse(domain, "marginals:1")
    yield _said("one-way tables", _truth(coded, [(i,) for i in range(columns)]), release.answer(ones))


def _truth(coded: CodedColumns, tables: Any) -> FloatArray:
    return np.concatenate([each.reshape(-1) for each in coded.tables(tables)]).astype(np.float64)


def sparse(draw: Draw) -> Iterator[Asked]:
    """A trillion cells of which two hundred are full: these, empty ones, and boxes that hold some."""
    draws = draw.random
    side, full = 10**6, 200
    domain = Domain([Ordinal("x", range(side)), Ordinal("y", range(side))])
    expected = 20.0 * draw.each * shape(draw.shape, full, draws)
    counts = draws.poisson(expected).astype(np.int64)
    places = draws.integers(0, side, (full, 2))
    rows = np.repeat(places, counts, axis=0)
    frame = pd.DataFrame({"x": rows[:, 0], "y": rows[:, 1]})
    release = _sparse(frame, domain, draw.budget, SparseLaplace(), Unit(), lambda: None, draw.noise)
    yield _said("full cells", counts, release.answer(Workload(domain, places, places + 1)))
    empty = draws.integers(0, side, (100, 2))
    yield _said("empty cells", np.zeros(100), release.answer(Workload(domain, empty, empty + 1)))
    low = np.zeros((60, 2), dtype=np.int64)
    low[:, 0] = np.arange(60) * (side // 60)
    high = np.stack([low[:, 0] + side // 60, np.full(60, side)], axis=1)
    truth = [
        counts[(places[:, 0] >= a) & (places[:, 0] < b)].sum()
        for a, b in zip(low[:, 0], high[:, 0], strict=True)
    ]
    yield _said("strips", np.array(truth), release.answer(Workload(domain, low, high)))


def discovered(draw: Draw) -> Iterator[Asked]:
    """Keys that nobody declared, of which the frequent ones are shown."""
    counts = draw.counts(100) * 10
    frame = pd.DataFrame({"key": np.repeat([f"k{i:03d}" for i in range(100)], counts)})
    pure = draw.budget.currency == "epsilon"
    unknown = Nominal("key", discover=True)
    release = publish_discovered(
        frame, Domain([unknown]), unknown, epsilon=draw.budget.amount if pure else None,
        rho=None if pure else draw.budget.amount, delta="1e-9", mechanism="auto", unit=None, ledger=None,
        dataset=None, about=About(), noise=draw.noise,
    )  # fmt: skip
    said = Cube(release).by("key").count()
    true = {f"k{i:03d}": int(count) for i, count in enumerate(counts)}
    known = [place for place, label in enumerate(said.labels["key"]) if label in true]
    truth = np.array([true[said.labels["key"][place]] for place in known], dtype=np.float64)
    yield "keys that are shown", truth, said.low[known], said.high[known]


def measured(draw: Draw) -> Iterator[Asked]:
    """Sums, means, ratios, deviations and clipped shares of columns, in all, by group and by cell."""
    draws = draw.random
    expected = draw.each * 3 * shape(draw.shape, 40, draws)[:, None] * np.array([0.6, 0.3, 0.1])
    counts = draws.poisson(expected)
    x, g = (np.repeat(each.reshape(-1), counts.reshape(-1)) for each in np.indices(counts.shape))
    pay = draws.lognormal(3.0 + 0.02 * x, 0.8).round(1)
    hours = draws.gamma(4.0, 10.0, x.size).round()
    frame = pd.DataFrame({"x": x, "g": np.array(["a", "b", "c"])[g], "pay": pay, "hours": hours})
    domain = Domain([Ordinal("x", range(40)), Nominal("g", ["a", "b", "c"])])
    wanted = [
        Measure("pay", 0, 100, step="0.1", squares=True, clipped=True),
        Measure("hours", 0, 80),
    ]
    plan = plan_measures(domain, wanted, Auto(), None, None, draw.budget)
    counted = count_and_sum(frame, domain, Unit(), plan.quantities)
    release = noised(_release, plan, draw.budget, Unit(), None, *counted, noise=draw.noise)
    frame["kept"], frame["lost"] = frame.pay.clip(0, 100), (frame.pay > 100) * 1.0
    frame["worked"], frame["square"] = frame.hours.clip(0, 80), frame.pay.clip(0, 100) ** 2

    def grid(column: Any) -> FloatArray:
        made = np.zeros(domain.shape)
        np.add.at(made, (x, g), np.asarray(column, dtype=np.float64))
        return made

    true = {name: grid(frame[name]) for name in ("kept", "lost", "worked", "square")}
    for where, asked in {
        "in all": Workload.where(domain, {}),
        "by group": Workload.marginals(domain, [["g"]]),
        "by cell": Workload.cells(domain),
    }.items():
        total = {name: np.asarray(asked.answer(values), dtype=np.float64) for name, values in true.items()}
        n = np.asarray(asked.answer(counts), dtype=np.float64)
        some, worked = n > 0, total["worked"] > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total["kept"] / n
            spread = np.sqrt(np.maximum(total["square"] / n - mean**2, 0.0))
            truths = {
                "sums": (total["kept"], sums(release, "pay", asked), np.ones(n.shape, dtype=bool)),
                "means": (mean, means(release, "pay", asked), some),
                "ratios": (total["kept"] / total["worked"], ratios(release, "pay", "hours", asked), worked),
                "deviations": (spread, variances(release, "pay", asked, root=True), some),
                "clipped shares": (total["lost"] / n, clipped(release, "pay", asked), some),
            }  # fmt: skip
        for kind, (truth, said, known) in truths.items():
            if known.any():
                yield f"{kind} {where}", truth[known], said.low[known], said.high[known]


DOORS: dict[str, Callable[[Draw], Iterator[Asked]]] = {
    "line of 100": lambda draw: line(draw, 100),
    "line of 1,000": lambda draw: line(draw, 1_000),
    "groups": groups,
    "roll-ups": rollups,
    "categories": lambda draw: categories(draw, 100),
    "wide": lambda draw: tables(draw, added=False),
    "adding": lambda draw: tables(draw, added=True),
    "sparse": sparse,
    "discovered": discovered,
    "measures": measured,
}


def _said(kind: str, truth: NDArray[Any], said: Any) -> Asked:
    return kind, np.asarray(truth, dtype=np.float64), said.low, said.high


def _moments(cube: Cube, counts: NDArray[np.int64], first: int = 0) -> Iterator[Asked]:
    """What is read off the counts of an ordered attribute, of every group that has any records."""
    some = counts.sum(axis=1) > 0
    values = first + np.arange(counts.shape[1], dtype=np.float64)
    yield _said("sums", counts @ values, cube.sum("x"))
    if not some.any():
        return
    true, n = counts[some], counts.shape[1]
    total = true.sum(axis=1)
    mean = cube.mean("x")
    yield "means", true @ values / total, mean.low[some], mean.high[some]
    share = np.cumsum(true, axis=1) / total[:, None]
    # As exact fractions: 0.05 of 20 records is the first, whatever 0.05 is in binary.
    needed = [[math.ceil(Fraction(str(level)) * int(each)) for level in LEVELS] for each in total]
    place = [np.searchsorted(np.cumsum(row), least) for row, least in zip(true, needed, strict=True)]
    found = cube.quantiles("x", LEVELS)
    low, high = (end.reshape(len(counts), len(LEVELS))[some].reshape(-1) for end in (found.low, found.high))
    yield "quantiles", values[np.concatenate(place)], low, high
    shares = cube.cdf("x")
    low, high = (end.reshape(len(counts), n)[some].reshape(-1) for end in (shares.low, shares.high))
    yield "shares", share.reshape(-1), low, high


# ---- counting ----


@dataclass
class _Tally:
    """What the draws of one case and kind add up to."""

    held: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)

    def add(self, truth: FloatArray, low: FloatArray, high: FloatArray) -> None:
        known = ~np.isnan(low)
        truth, low, high = truth[known], low[known], high[known]
        if truth.size:
            slack = 1e-6 * (1.0 + np.abs(truth))
            inside = (low - slack <= truth) & (truth <= high + slack)
            self.held.append(float(inside.mean()))
            finite = np.isfinite(high - low)
            self.width.append(float((high - low)[finite].mean()) / 2.0 if finite.any() else math.nan)


@dataclass(frozen=True)
class Outcome:
    """How often the intervals of one case held."""

    door: str
    kind: str
    case: str
    held: float
    give: float
    width: float
    draws: int


def measure(
    *,
    quick: Annotated[bool, "three shapes, two draws: seconds"],
    draws: Annotated[int, "releases of each case"] = 16,
    only: Annotated[tuple[str, ...], "only these doors"] = (),
    shapes: Annotated[tuple[str, ...], "only these shapes"] = (),
    each: Annotated[tuple[float, ...], "records a cell on average"] = (3.0, 30.0),
    budgets: Annotated[tuple[str, ...], "of ε, or of ρ with r before it"] = ("0.1", "1", "r1/200"),
    announced: Annotated[str, "what lines, groups and categories are told: cells, prefixes …"] = "",
    first: Annotated[int, "the first seed"] = 0,
    minutes: Annotated[float, "begin no case after so long"] = math.inf,
) -> Iterator[Line]:
    """Publish, ask at every door, and count."""
    draws = 2 if quick else draws
    tried = shapes or (("bell", "comb of 7", "empty") if quick else SHAPES)
    found: list[Outcome] = []
    began = time.monotonic()
    for door in only or tuple(DOORS):
        for name in tried:
            for budget in budgets[:1] if quick else budgets:
                for records in each[:1] if quick else each:
                    if time.monotonic() - began > 60.0 * minutes:
                        break
                    for outcome in _case(door, name, records, budget, draws, announced or None, first):
                        found.append(outcome)
                        if outcome.held < LEAST:
                            yield _row(outcome)
        yield from _summary(door, [one for one in found if one.door == door])


def _case(
    door: str, name: str, each: float, budget: str, draws: int, told: str | None, first: int
) -> Iterator[Outcome]:
    spend = Budget.of(rho=budget[1:]) if budget.startswith("r") else Budget.of(budget)
    case = f"{name}, {each:g} each, {'ρ' if budget.startswith('r') else 'ε'} = {budget.lstrip('r')}"
    start = zlib.crc32(f"{door}, {case}".encode()) + first
    tallies: dict[str, _Tally] = {}
    for number in range(draws):
        draw = Draw(name, each, spend, start + number, told)
        try:
            for kind, truth, low, high in DOORS[door](draw):
                tallies.setdefault(kind, _Tally()).add(truth, low, high)
        except MechanismError:
            continue  # nothing was found that may be shown
    for kind, tally in tallies.items():
        if tally.held:
            give = float(np.std(tally.held)) / math.sqrt(len(tally.held))
            width = float(np.nanmean(tally.width)) if np.isfinite(tally.width).any() else math.nan
            yield Outcome(door, kind, case, float(np.mean(tally.held)), give, width, len(tally.held))


def _row(one: Outcome) -> Line:
    return {
        "door": one.door, "questions": one.kind, "case": one.case, "held at 95 %": f"{one.held:.3f} ± {one.give:.3f}",
        "half-width": round(one.width, 3),
    }  # fmt: skip


def _summary(door: str, found: list[Outcome]) -> Iterator[Line]:
    for kind in dict.fromkeys(one.kind for one in found):
        mine = [one for one in found if one.kind == kind]
        worst = min(mine, key=lambda one: one.held)
        widths = [one.width for one in mine if math.isfinite(one.width)]
        yield (
            f"{door}: {kind}: {np.mean([one.held for one in mine]):.3f} of {len(mine)} cases, "
            f"{sum(one.held < LEAST for one in mine)} below {LEAST}, worst {worst.held:.3f} ± {worst.give:.3f} "
            f"({worst.case}), half-width {np.mean(widths) if widths else math.nan:.3f}"
        )
