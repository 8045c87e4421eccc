"""Wide tables: forty and a hundred columns, all pairs; error of the announced tables; how often their intervals hold.

Every cost is measured in a process of its own, reading, publishing and saving included.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from dphist.inference.intervals import half_widths
from dphist.inference.tables.measured import Axes
from dphist.inference.tables.published import ResidualNoise
from dphist.inference.tables.residuals import TableResiduals
from dphist.mechanisms.residuals import Residuals, measure_residuals
from dphist.model.budget import Budget
from dphist.model.coded import CodedColumns, code_type
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.private.records import open_records_gate
from dphist.publishing.wide import tables_release
from dphist.release.cells import TableCells
from dphist.release.release import Release
from dphist_bench.measuring import Failure, Line
from dphist_bench.timing import peak_memory

# Columns, rows, and what publishing and saving may take: CPU seconds and gigabytes.
SIZES = ((40, 1_000_000, 25.0, 1.0), (100, 1_000_000, 120.0, 2.0), (20, 10_000_000, 120.0, 2.0))
# What the issue asks of ten attributes of four levels, 50,000 records, ε = 1.
LARGEST_ERROR = 57.0
LEAST_COVERAGE = 0.94


def measure(
    *,
    quick: bool,
    draws: Annotated[int, "releases whose intervals are counted"] = 16,
    times: Annotated[
        int, "draws of single measurements, so that tables of few cells are counted often"
    ] = 200,
    only: Annotated[str, "one part: cost, error or coverage"] = "",
    columns: Annotated[int, "costs of tables of so many columns alone: 40, 100 or 20 (ten million rows)"] = 0,
) -> Iterator[Line]:
    """Give costs, errors and coverage."""
    if only in ("", "cost"):
        sizes = tuple(each for each in SIZES if columns in (0, each[0]))
        yield from costs(((6, 2_000, 60.0, 1.0),) if quick else sizes)
    if only in ("", "error"):
        yield from errors(2_000 if quick else 50_000, (4,) if quick else (8, 10, 14), 1 if quick else 3)
    if only in ("", "coverage"):
        yield from coverage(2 if quick else draws, quick)
        yield from often(3 if quick else times, 4 if quick else 8)
        yield from few(300 if quick else 100 * times)


def columns(count: int, rows: int, seed: int = 0) -> tuple[Domain, dict[str, Any]]:
    """Made-up records: columns of 2 to 40 values, each leaning on one hidden number."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    hidden = draw.random(rows)
    attributes: list[Any] = []
    held: dict[str, Any] = {}
    for place in range(count):
        size, name = int(draw.integers(2, 41)), f"c{place}"
        mixed = 0.5 * hidden + 0.5 * draw.random(rows) ** 2
        codes = np.minimum((size * mixed).astype(np.int64), size - 1)
        if place % 3:
            attributes.append(Ordinal(name, range(size)))
            held[name] = codes
        else:
            words = np.array([f"v{value}" for value in range(size)])
            attributes.append(Nominal(name, words.tolist()))
            held[name] = words[codes]
    return Domain(attributes), held


def costs(sizes: tuple[tuple[int, int, float, float], ...]) -> Iterator[Line]:
    """Publish all pairs of a Parquet file and save them, each time in a new process."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    yield "all pairs of a Parquet file, read, published and saved: CPU seconds and memory of the process"
    for count, rows, seconds, gigabytes in sizes:
        domain, held = columns(count, rows)
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            pq.write_table(pa.table(held), place / "records.parquet")
            (place / "schema.toml").write_text(domain.to_toml(), encoding="utf-8")
            del held
            for budget in ("epsilon", "rho"):
                asked = [sys.executable, "-m", "dphist_bench.measurements.accuracy.wide", folder, budget]
                done = subprocess.run(asked, capture_output=True, text=True, check=True)
                found = json.loads(done.stdout)
                yield {
                    "columns": count, "rows": rows, "budget": budget, "tables": found["tables"],
                    "cells": found["cells"], "CPU s": found["cpu"], "GB": found["memory"] / 1e9,
                    "MB on disk": found["file"] / 1e6,
                }  # fmt: skip
                if found["cpu"] > seconds or found["memory"] > gigabytes * 1e9:
                    yield Failure(
                        f"{count} columns of {rows:,} rows: at most {seconds:g} CPU s and {gigabytes:g} GB"
                    )


def errors(records: int, attributes: tuple[int, ...], runs: int) -> Iterator[Line]:
    """Root mean squared error of the cells of all pairs, announced, at ε = 1."""
    yield f"attributes of four levels, {records:,} records, all pairs announced: error of a cell"
    for count in attributes:
        draw = np.random.default_rng(5)  # noqa: TID251 -- data only
        group = draw.integers(0, 4, records)
        held = [
            np.where(draw.random(records) < 0.4, group, draw.integers(0, 4, records)) for _ in range(count)
        ]
        domain = Domain([Ordinal(f"c{place}", range(4)) for place in range(count)])
        coded = CodedColumns(domain, tuple(each.astype(np.uint8) for each in held))
        pairs = list(combinations(range(count), 2))
        truth = coded.tables(pairs)
        for budget in (Budget.of(1), Budget.of(1, delta="1e-9")):
            squares, away = [], []
            for seed in range(runs):
                tables = _tables(_released(coded, budget, seed))
                squares += [np.mean((tables[p] - t) ** 2) for p, t in zip(pairs, truth, strict=True)]
                away += [np.abs(tables[p] - t).sum() / 2 / records for p, t in zip(pairs, truth, strict=True)]
            error = math.sqrt(float(np.mean(squares)))
            yield {
                "attributes": count,
                "budget": budget.describe(),
                "RMSE": error,
                "mean TV": float(np.mean(away)),
            }
            if budget.pure and count == 10 and error > LARGEST_ERROR:
                yield Failure(f"ten attributes: an error of at most {LARGEST_ERROR:g}")


def coverage(draws: int, quick: bool) -> Iterator[Line]:
    """How often 95 % intervals hold the truth, by table: the mean, and the worst table."""
    yield f"95 % intervals of every cell of every covered table, {draws} draws: share that hold the truth"
    coded = _coded(*columns(5 if quick else 12, 500 if quick else 20_000, seed=3))
    wanted = [axes for order in range(3) for axes in combinations(range(len(coded.columns)), order)]
    truth = coded.tables(wanted)
    for budget in (Budget.of(1), Budget.of(1, delta="1e-9"), Budget.of("1/10")):
        share: dict[Any, list[float]] = {axes: [] for axes in wanted}
        for seed in range(draws):
            release = _released(coded, budget, seed)
            found = _intervals(release)
            for axes, counts in zip(wanted, truth, strict=True):
                low, high = found[axes]
                share[axes].append(float(((low <= counts) & (counts <= high)).mean()))
        means = {axes: float(np.mean(each)) for axes, each in share.items()}
        # A table of few cells is a few questions: chance alone takes it further from its mean.
        many = {axes: m for axes, m in means.items() if draws * truth[wanted.index(axes)].size >= 1_000}
        worst = min(many, key=many.__getitem__) if many else ()
        yield {
            "budget": budget.describe(), "tables": len(wanted), "mean": float(np.mean(list(means.values()))),
            "tables of 1,000 cells over all draws": len(many), "worst of these": many.get(worst, math.nan),
            "below .94": sum(m < LEAST_COVERAGE for m in many.values()),
        }  # fmt: skip
        if many and many[worst] < LEAST_COVERAGE - 0.01:
            yield Failure(f"intervals of the table {worst} hold {many[worst]:.3f} of the time")


def often(times: int, count: int) -> Iterator[Line]:
    """The same of measurements alone, very often, with tables that were added later among them.

    Sixteen draws of a table of two cells are about sixteen questions: by luck alone every fourth such table is held
    less than 0.94 of the time though 0.95 is exact. So tables are drawn often, without what publishing adds (which only
    widens intervals), and each is compared with what it should be by the deviation of its own draws.
    """
    yield f"intervals of what was measured, {times} draws: the least any table is held, and how often luck explains it"
    coded = _coded(*columns(count, 20_000, seed=3))
    pairs = list(combinations(range(count), 2))
    later = [(0, 1, 2), (1, 2, 3)]
    wanted = [axes for order in range(3) for axes in combinations(range(count), order)]
    for kind in ("published at once", "added later"):
        tables = wanted if kind == "published at once" else [*wanted, *later]
        truth = dict(zip(tables, coded.tables(tables), strict=True))
        for budget in (Budget.of(1), Budget.of(1, delta="1e-9"), Budget.of("1/10")):
            share: dict[float, dict[Any, list[float]]] = {0.95: {}, 0.8: {}}
            for seed in range(times):
                right = open_records_gate(coded, budget, Unit(), noise=Noise(Keystream.for_tests(seed)))[0]
                if kind == "published at once":
                    known = measure_residuals(right, pairs)
                else:
                    first, second = right.split(Fraction(1, 2), Fraction(1, 2))
                    parts = measure_residuals(first, pairs), measure_residuals(second, later)
                    known = TableResiduals(coded.domain.shape, [m for part in parts for m in part.measured])
                for confidence, found in share.items():
                    for axes in tables:
                        interval = ResidualNoise(known).table_interval(axes, known.table(axes), confidence)
                        inside = (interval.low <= truth[axes]) & (truth[axes] <= interval.high)
                        found.setdefault(axes, []).append(float(inside.mean()))
            for confidence, found in share.items():
                means = np.array([np.mean(each) for each in found.values()])
                # A table that was always held has no deviation of its own to speak of.
                doubts = np.array(
                    [max(float(np.std(each)), 0.05) / math.sqrt(times) for each in found.values()]
                )
                yield {
                    "tables": kind, "budget": budget.describe(), "confidence": confidence, "mean": float(means.mean()),
                    "least": float(means.min()), "deviations below": float(((confidence - means) / doubts).max()),
                    "by luck": luck(float(means.min()), times, sum(t.size <= 16 for t in truth.values()), confidence),
                    "of tables": len(means),
                }  # fmt: skip
                if times >= 100 and (means < confidence - 5.0 * doubts).any():
                    yield Failure(f"intervals of {kind} tables hold less than {confidence:g}")


def luck(least: float, times: int, tables: int, chance: float) -> float:
    """How often exact intervals have a least table as low as that, if each of so many is one question a draw.

    The cells of a table of two values have nearly the same error: about one question.
    """
    held = math.floor(least * times + 1e-9)
    below = sum(math.comb(times, k) * chance**k * (1.0 - chance) ** (times - k) for k in range(held + 1))
    return 1.0 - (1.0 - below) ** tables


def few(times: int) -> Iterator[Line]:
    """Tables of few cells once more, so often that luck is no excuse: the noise of least squares alone.

    An interval around least squares holds the truth if and only if the noise is within its width, whatever the records
    are; widening it to hold what is published, and cutting it at zero, only adds to that. So the exact noise of all
    that is measured is drawn very often, and the linear map from there to the cells of tables is found by unit draws.
    """
    yield f"tables of few cells, {times:,} draws of the noise of least squares alone: the least any table is held"
    draw = np.random.default_rng(7)  # noqa: TID251 -- data only
    sizes = (2, 2, 3, 5)
    domain = Domain([Ordinal(f"c{place}", range(size)) for place, size in enumerate(sizes)])
    coded = CodedColumns(domain, tuple(draw.integers(0, size, 2_000).astype(np.uint8) for size in sizes))
    pairs: list[Axes] = list(combinations(range(4), 2))
    for kind in ("published at once", "added later"):
        tables: list[Axes] = [axes for order in range(1, 3) for axes in combinations(range(4), order)]
        tables += [(0, 1, 2)] * (kind == "added later")
        for number, budget in enumerate((Budget.of(1), Budget.of(1, delta="1e-9"), Budget.of("1/10"))):
            right = open_records_gate(coded, budget, Unit(), noise=Noise(Keystream.for_tests(number)))[0]
            parts = [(right, pairs)]
            if kind == "added later":
                first, second = right.split(Fraction(1, 2), Fraction(1, 2))
                parts = [(first, pairs), (second, [(0, 1, 2)])]
            measured = [each for part, asked in parts for each in measure_residuals(part, asked).measured]
            known = TableResiduals(sizes, measured)
            noise = Noise(Keystream.for_tests(100 + number))
            drawn, reach = list[Any](), dict[Any, list[Any]]()
            for place, each in enumerate(measured):
                # Residuals are published in units of their table, and were noised as whole numbers.
                units = each.values.size if each.residual else 1
                law = Fraction(each.scale or each.variance * units**2).limit_denominator(10**6)
                add = noise.add_laplace if each.scale else noise.add_gaussian
                whole = add(np.zeros((each.values.size, times), dtype=np.int64), law)
                drawn.append(whole / units)
                for cell in range(each.values.size):
                    unit = [replace(m, values=np.zeros_like(m.values)) for m in measured]
                    unit[place].values.reshape(-1)[cell] = 1.0
                    one = TableResiduals(sizes, unit)
                    for axes in tables:
                        reach.setdefault(axes, []).append(one.table(axes).reshape(-1))
            every = np.concatenate(drawn)
            for confidence in (0.95, 0.8):
                means, doubts = [], []
                for axes in tables:
                    low = np.zeros((1, 4), dtype=np.int64)
                    high = np.array([[1 if a in axes else n for a, n in enumerate(sizes)]], dtype=np.int64)
                    width = half_widths(ResidualNoise(known).spread(Workload(domain, low, high)), confidence)[
                        0
                    ]
                    held = (np.abs(np.array(reach[axes]).T @ every) <= width).mean(axis=0)
                    means.append(float(held.mean()))
                    doubts.append(max(float(held.std()), 0.05) / math.sqrt(times))
                below = max((confidence - m) / d for m, d in zip(means, doubts, strict=True))
                yield {
                    "tables": kind, "budget": budget.describe(), "confidence": confidence,
                    "mean": float(np.mean(means)), "least": min(means), "deviations below": below,
                    "of tables": len(means),
                }  # fmt: skip
                if times >= 10_000 and min(means) < confidence - 0.01:
                    yield Failure(f"tables of few cells, {kind}, are held {min(means):.3f} of the time")


def _intervals(release: Release) -> dict[Any, tuple[Any, Any]]:
    errors: Any = release._estimate.errors
    found = {}
    for axes, table in _tables(release).items():
        interval = errors.table_interval(axes, table, 0.95)
        found[axes] = (interval.low, interval.high)
    return found


def _coded(domain: Domain, held: dict[str, Any]) -> CodedColumns:
    codes = []
    for attribute in domain.attributes:
        place = {label: cell for cell, label in enumerate(attribute.labels)}
        codes.append(np.array([place[str(v)] for v in held[attribute.name]], dtype=code_type(attribute.size)))
    return CodedColumns(domain, tuple(codes))


def _released(coded: CodedColumns, budget: Budget, seed: int) -> Release:
    noise = Noise(Keystream.for_tests(seed))
    return tables_release(coded, budget, Residuals(), Unit(), None, noise=noise)


def _tables(release: Release) -> Any:
    if not isinstance(release.cells, TableCells):
        raise TypeError("a release of tables was expected")
    return release.cells.tables


def _one(folder: Path, currency: str) -> dict[str, Any]:
    """Publish in this process, and say what it took."""
    from dphist.publishing.door import publish

    warnings.simplefilter("ignore")
    domain = Domain.from_toml(folder / "schema.toml")
    paid: dict[str, Any] = {"epsilon": 1} if currency == "epsilon" else {"rho": "1/50"}
    release = publish(
        str(folder / "records.parquet"), domain, mechanism="residuals", workload="marginals:2", **paid
    )
    release.save(folder / f"{currency}.parquet")
    return {
        "tables": len(_tables(release)), "cells": int(release.cells.numbers.size), "cpu": time.process_time(),
        "memory": peak_memory(), "file": (folder / f"{currency}.parquet").stat().st_size,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(_one(Path(sys.argv[1]), sys.argv[2])))
