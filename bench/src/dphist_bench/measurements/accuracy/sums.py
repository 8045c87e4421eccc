"""Sums, means and ratios: how often intervals hold, range sums beside sums per cell, bounds learned privately.

*coverage*: made-up skewed money and signed values, dense and sparse, with ``--data`` the census records: sums, means
and ratios by kind of question, over many draws of the noise. *ranges*: the error of range sums beside noisy sums per
cell that are added up, which is what OpenDP, Tumult and others offer, at equal ε and bounds: once where they publish
counts and sums as well, each for half of ε, and once where they spend all of it on the sums; CPU of both, and OpenDP
itself where it is installed. *bounds*: how many runs of learning bounds hold 98 % of the records and are at most four
times as wide as the middle 98 %.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dphist.mechanisms.auto import Auto
from dphist.model.budget import Budget
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.bounds import Bounds
from dphist.publishing.door import _release
from dphist.publishing.measures import Plan, noised, plan_measures
from dphist.release import Release
from dphist.release.cube.measures import means, ratios, sums
from dphist.sources.count import count_and_sum
from dphist_bench.measuring import Failure, Line

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_CENTURY = range(100)
_REGIONS = [f"r{place}" for place in range(8)]


def measure(
    *,
    quick: bool,
    only: Annotated[Literal["coverage", "ranges", "bounds", "all"], "what to measure"] = "all",
    data: Annotated[Path | None, "a folder with adult-records.csv"] = None,
    draws: Annotated[int, "of the noise, for each case"] = 60,
    rows: Annotated[int, "of the sales table"] = 10_000_000,
    epsilon: Annotated[str, "of every release"] = "1",
) -> Iterator[Line]:
    """Measure, and say where a promise was broken."""
    draws, rows = (4, 20_000) if quick else (draws, rows)
    spend = Budget.of(epsilon)
    if only in ("all", "coverage"):
        yield from _coverage(spend, draws, data, quick)
    if only in ("all", "ranges"):
        yield from _ranges(spend, draws, data, rows)
    if only in ("all", "bounds"):
        yield from _bounds(5 if quick else 4 * draws, quick)


# ---- data ----


def _money(records: int, ages: int, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)  # noqa: TID251 -- made-up records
    return pd.DataFrame(
        {
            "age": (ages * random.beta(2, 3, records)).astype(int),
            "region": random.choice(_REGIONS, records, p=np.arange(8, 0, -1) / 36),
            "first": random.lognormal(5, 1.2, records).round(2),
            "second": random.gamma(2.0, 20.0, records).round(1),
        }
    )


def _signed(records: int, ages: int) -> pd.DataFrame:
    frame = _money(records, ages, 1)
    random = np.random.default_rng(1)  # noqa: TID251 -- made-up records
    frame["first"] = random.normal(-5, 60, records).round(1)
    frame["second"] = np.abs(random.normal(30, 10, records)).round(1)
    return frame


def _adult(folder: Path) -> pd.DataFrame:
    read = pd.read_csv(folder / "adult-records.csv", usecols=["age", "sex", "capital_gain", "hours_per_week"])
    return read.rename(columns={"sex": "region", "capital_gain": "first", "hours_per_week": "second"})


def _cases(data: Path | None, quick: bool) -> Iterator[tuple[str, pd.DataFrame, Domain, list[Measure]]]:
    def domain(ages: int, regions: list[str]) -> Domain:
        return Domain([Ordinal("age", range(ages)), Nominal("region", regions)])

    money = [Measure("first", 0, 2_000, step="0.01"), Measure("second", 0, 200, step="0.1")]
    balance = [Measure("first", -200, 200, step="0.1"), Measure("second", 0, 80, step="0.1")]
    size = 5_000 if quick else 200_000
    yield "money, dense", _money(size, 100), domain(100, _REGIONS), money
    yield "money, sparse", _money(size // 50, 1_000), domain(1_000, _REGIONS), money
    yield "signed, dense", _signed(size, 100), domain(100, _REGIONS), balance
    yield "signed, sparse", _signed(size // 50, 1_000), domain(1_000, _REGIONS), balance
    if data is not None:
        adult = [Measure("first", 0, 10_000), Measure("second", 0, 100)]
        yield "Adult: gain, hours", _adult(data), domain(100, ["Female", "Male"]), adult


# ---- coverage ----


def _kinds(domain: Domain) -> dict[str, Workload]:
    return {
        "all": Workload.where(domain, {}),
        "groups": Workload.marginals(domain, [[domain.names[1]]]),
        "ranges": Workload.random(domain, 120, seed=3),
        "cells": Workload.cells(domain).spread(200),
    }


def _releases(
    plan: Plan,
    budget: Budget,
    workload: Workload | None,
    counted: tuple[Histogram, list[IntArray]],
    draws: int,
) -> Iterator[Release]:
    for draw in range(draws):
        noise = Noise(Keystream.for_tests(1_000 + draw))
        yield noised(_release, plan, budget, Unit(), workload, *counted, noise=noise)


def _uncentred(plan: Plan, histogram: Histogram, totals: list[IntArray]) -> list[IntArray]:
    """The true sums, with the centres that were taken off every record."""
    return [
        total + each.centre * histogram.counts for each, total in zip(plan.quantities, totals, strict=True)
    ]


def _coverage(budget: Budget, draws: int, data: Path | None, quick: bool) -> Iterator[Line]:
    for name, frame, domain, measures in _cases(data, quick):
        plan = plan_measures(domain, measures, Auto(), None, None, budget)
        counted = count_and_sum(frame, domain, Unit(), plan.quantities)
        steps = [float(each.size) for each in measures]
        width = float(Fraction(measures[0].high) - Fraction(measures[0].low)) * (1 - 1e-9)
        held: dict[tuple[str, str], list[float]] = {}
        unknown: dict[tuple[str, str], list[float]] = {}
        for release in _releases(plan, budget, None, counted, draws):
            for kind, asked in _kinds(domain).items():
                count = asked.answer(counted[0].counts).astype(float)
                one, two = (
                    asked.answer(total) * step
                    for total, step in zip(_uncentred(plan, *counted), steps, strict=True)
                )
                with np.errstate(divide="ignore", invalid="ignore"):
                    wanted = {"sum": one, "mean": one / count, "ratio": one / two}
                answers = {
                    "sum": sums(release, "first", asked),
                    "mean": means(release, "first", asked),
                    "ratio": ratios(release, "first", "second", asked),
                }
                for what, truth in wanted.items():
                    known = np.isfinite(truth) & (count > 0)
                    found = answers[what]
                    inside = (found.low <= truth + 1e-9) & (truth <= found.high + 1e-9)
                    held.setdefault((kind, what), []).extend(inside[known].tolist())
                    whole = np.isinf(found.high) if what == "ratio" else found.high - found.low >= width
                    unknown.setdefault((kind, what), []).extend((whole & (what != "sum"))[known].tolist())
        for (kind, what), each in held.items():
            share = float(np.mean(each)) if each else float("nan")
            none = np.array(unknown[kind, what])
            told = float(np.mean(np.array(each)[~none])) if (~none).any() else None
            yield {
                "data": name, "question": kind, "of": what, "answers": len(each), "held at 95 %": share,
                "not known": float(none.mean()) if none.size else 0.0, "held where known": told,
            }  # fmt: skip
        worst = (
            min(float(np.mean(each)) for each in held.values() if len(each) >= 1_000) if not quick else 1.0
        )
        if worst < 0.93:
            yield Failure(f"{name}: an interval of 95 % held {worst:.3f} of the time")


# ---- ranges ----


def _ranges(budget: Budget, draws: int, data: Path | None, rows: int) -> Iterator[Line]:
    cases: list[tuple[str, Any, Domain, Measure]] = []
    if data is not None:
        adult = _adult(data)
        line = Domain([Ordinal("age", _CENTURY)])
        cases.append(("Adult: hours by age", adult, line, Measure("second", 0, 100)))
        cases.append(("Adult: gain by age", adult, line, Measure("first", 0, 10_000)))
    random = np.random.default_rng(7)  # noqa: TID251 -- made-up records
    sales = pd.DataFrame(
        {
            "minute": np.minimum((525_600 * random.beta(1.2, 1.1, rows)).astype(int), 525_599),
            "first": random.lognormal(3, 1, rows).round(2).astype(np.float32),
        }
    )
    days = Domain([Ordinal("minute", edges=range(0, 525_601, 128 if rows > 10**6 else 8_760))])
    cases.append((f"sales: {rows:,} rows by time", sales, days, Measure("first", 0, 200)))
    for name, frame, domain, each in cases:
        yield _range_line(name, frame, domain, each, budget, draws)


def _range_line(
    name: str, frame: pd.DataFrame, domain: Domain, each: Measure, budget: Budget, draws: int
) -> Line:
    told = Workload.all_ranges(domain)
    asked = Workload.random(domain, 300, seed=11)
    begin = time.process_time()
    plan = plan_measures(domain, [each], Auto(), told, None, budget)
    counted = count_and_sum(frame, domain, Unit(), plan.quantities)
    once = time.process_time() - begin
    truth = asked.answer(_uncentred(plan, *counted)[0]) * float(each.size)
    begin = time.process_time()
    mine = _range_error(plan, budget, told, counted, draws, each.name, asked, truth)
    release_cpu = (time.process_time() - begin) / draws
    # Whoever wants sums more than counts says so: a twentieth is left for the counts.
    alone = plan_measures(domain, [each], Auto(), told, {"count": 1, each.name: 19}, budget)
    most = _range_error(alone, budget, told, counted, draws, each.name, asked, truth)
    reach = max(abs(each.lowest), abs(each.highest))
    random = np.random.default_rng(5)  # noqa: TID251 -- peers
    theirs = []
    begin = time.process_time()
    for _ in range(draws):
        noise = random.laplace(0, 2 * reach / float(budget.amount), counted[1][0].shape) * float(each.size)
        theirs.append(float(np.mean(asked.answer(noise) ** 2)))
    cell_cpu = (time.process_time() - begin) / draws
    cells = np.sqrt(np.mean(theirs))
    line: dict[str, object] = {
        "ranges of": name,
        "cells": domain.size,
        "ours": mine,
        "sums per cell": float(cells),
        "times better": float(cells / mine),
        "ours, 19:1": most,
        "all ε on sums": float(cells / 2),
        "times better then": float(cells / 2 / most),
        "CPU counting": once,
        "CPU ours": release_cpu,
        "CPU per cell": cell_cpu,
    }
    return line | _opendp(frame, domain, each, budget)


def _range_error(
    plan: Plan, budget: Budget, told: Workload, counted: tuple[Histogram, list[IntArray]], draws: int,
    name: str, asked: Workload, truth: FloatArray,
) -> float:  # fmt: skip
    squares = []
    for release in _releases(plan, budget, told, counted, draws):
        squares.append(float(np.mean((sums(release, name, asked).value - truth) ** 2)))
    return float(np.sqrt(np.mean(squares)))


def _opendp(frame: pd.DataFrame, domain: Domain, each: Measure, budget: Budget) -> dict[str, object]:
    """The noise of OpenDP's own sum of one cell at half of ε, as a scale: it is the same for every cell."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return {"OpenDP's scale": None}
    dp.enable_features("contrib")
    low, high = float(Fraction(each.low)), float(Fraction(each.high))
    space = dp.vector_domain(dp.atom_domain(bounds=(low, high))), dp.symmetric_distance()
    summed = space >> dp.t.then_sum()
    noisy = dp.binary_search_chain(lambda s: summed >> dp.m.then_laplace(s), 1, float(budget.amount) / 2)
    values = np.clip(frame[each.name].to_numpy(dtype=float)[:2_000], low, high).tolist()
    begin = time.process_time()
    draws = np.array([noisy(values) for _ in range(200)])
    cpu = (time.process_time() - begin) / 200
    return {"OpenDP's scale": float(np.std(draws) / np.sqrt(2)), "OpenDP's CPU a cell": cpu}


# ---- bounds ----


def _bounds(runs: int, quick: bool) -> Iterator[Line]:
    n = 10_000
    made: dict[str, Callable[[Any], FloatArray]] = {
        "normal": lambda r: r.normal(0, 1, n),
        "normal, 170 ± 10": lambda r: r.normal(170, 10, n),
        "normal, a million ± 3": lambda r: r.normal(1e6, 3, n),
        "log-normal": lambda r: r.lognormal(7, 1.5, n),
        "Pareto 1.1": lambda r: r.pareto(1.1, n) + 1,
        "Pareto 1.5": lambda r: 100 * (r.pareto(1.5, n) + 1),
        "Pareto 3": lambda r: r.pareto(3, n) + 1,
        "two clusters": lambda r: np.where(r.random(n) < 0.5, r.normal(0, 1, n), r.normal(50, 1, n)),
        "two clusters, near": lambda r: np.where(
            r.random(n) < 0.7, r.normal(1000, 1, n), r.normal(1010, 1, n)
        ),
        "all negative": lambda r: -r.lognormal(3, 1, n),
        "10¹² apart": lambda r: np.where(r.random(n) < 0.5, 1.0, 1e12),
    }
    random = np.random.default_rng(2)  # noqa: TID251 -- made-up records
    for place, (name, make) in enumerate(made.items()):
        inside, narrow, both = 0, 0, 0
        for run in range(runs):
            values = make(random)

            def tally(edges: Any, values: FloatArray = values) -> IntArray:
                return np.histogram(values, edges)[0].astype(np.int64)

            noise = Noise(Keystream.for_tests(1_000 * place + run))
            found = Bounds(tally, Fraction(1, 20), Unit(), noise=noise).learn()
            low, high = float(found.low), float(found.high)
            first, last = np.quantile(values, [0.01, 0.99])
            holds = bool(np.mean((values >= low) & (values <= high)) >= 0.98)
            close = high - low <= 4 * (last - first)
            inside, narrow, both = inside + holds, narrow + close, both + (holds and close)
        yield {
            "bounds of": name, "runs": runs, "98 % inside": inside / runs, "at most 4 ×": narrow / runs,
            "both": both / runs,
        }  # fmt: skip
        if not quick and both / runs < 0.95:
            yield Failure(f"{name}: only {both / runs:.3f} of the runs were right")
