"""The experiments of the Privelet paper: error against coverage and selectivity (Figs. 9–12), time (Figs. 13, 14).

The census files are not ours to ship, so the tables are synthetic, of the same schema and sizes. Basic, Privelet+ and
Privelet* carry the noise that the paper prints; "tight" is the same with the noise its guarantee needs.
Neighbours here add or remove a record, the paper's replace one: pass ``--replace`` for its factor of two.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.bench import data
from dphist.bench.privelet import best, census_domain, say, square_domain
from dphist.domain import Domain, Nominal
from dphist.histogram import Histogram
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.privelet import Privelet
from dphist.testing import open_counts
from dphist.unit import Unit
from dphist.workload import Workload

FloatArray = NDArray[np.float64]
Row = dict[str, Any]

PLAIN = ("age", "gender")
METHODS: dict[str, Any] = {
    "Basic": Laplace(),
    "Privelet+": Privelet(plain=PLAIN, calibration="paper"),
    "Privelet*": Privelet(plain=PLAIN, calibration="paper", threshold=True),
    "Privelet+ tight": Privelet(plain=PLAIN),
    "Privelet* tight": Privelet(plain=PLAIN, threshold=True),
}
EPSILONS = (Fraction(1, 2), Fraction(3, 4), Fraction(1), Fraction(5, 4))


@dataclass(frozen=True)
class Census:
    """A table of the paper: its name, the sizes of its attributes, its records."""

    name: str
    shape: tuple[int, int, int, int]
    records: int


BRAZIL = Census("Brazil-like", (101, 2, 512, 1_001), 10_000_000)
US = Census("US-like", (96, 2, 511, 1_020), 8_000_000)
SMALL = Census("small", (20, 2, 64, 100), 50_000)


def main(argv: list[str]) -> int:
    """Print the tables; with ``--out`` also save them and the plots."""
    parser = argparse.ArgumentParser(prog="python -m dphist.bench paper004", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small table and few questions, in seconds")
    parser.add_argument("--census", choices=("brazil", "us", "both"), default="both")
    parser.add_argument("--queries", type=int, default=40_000)
    parser.add_argument("--replace", action="store_true", help="neighbours replace a record, as in the paper")
    parser.add_argument("--no-time", action="store_true", help="leave Figs. 13 and 14 out")
    parser.add_argument("--no-error", action="store_true", help="leave Figs. 9 to 12 out")
    parser.add_argument("--out", type=Path, help="a folder for plots and tables")
    options = parser.parse_args(argv)
    chosen = {"brazil": [BRAZIL], "us": [US], "both": [BRAZIL, US]}[options.census]
    errors: list[Row] = []
    if not options.no_error:
        for census in [SMALL] if options.quick else chosen:
            count = 500 if options.quick else options.queries
            errors += error_rows(census, count, EPSILONS[2:3] if options.quick else EPSILONS, options.replace)
    times: list[Row] = []
    if not options.no_time:
        times = time_rows(options.quick)
    text = error_tables(errors) + time_tables(times)
    sys.stdout.write(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "paper004.md").write_text(text, encoding="utf-8")
        draw(errors, times, options.out)
    return 0


def questions(domain: Domain, count: int, seed: int = 0) -> Workload:
    """Random range-count questions as in Section 8.1.

    One to four predicates on attributes picked at random: a random interval of an ordered one, a node other than the
    root of a hierarchy.
    """
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    low = np.zeros((count, len(domain.shape)), dtype=np.int64)
    high = np.tile(np.array(domain.shape, dtype=np.int64), (count, 1))
    asked = draw.random(low.shape).argsort(axis=1) < draw.integers(1, 5, (count, 1))
    for place, attribute in enumerate(domain.attributes):
        rows = np.flatnonzero(asked[:, place])
        if isinstance(attribute, Nominal):
            node = draw.integers(1, attribute.hierarchy.size, rows.size)
            low[rows, place], high[rows, place] = (
                attribute.hierarchy.start[node],
                attribute.hierarchy.stop[node],
            )
        else:
            ends = np.sort(draw.integers(0, attribute.size, (rows.size, 2)), axis=1)
            low[rows, place], high[rows, place] = ends[:, 0], ends[:, 1] + 1
    return Workload(domain, low, high)


def error_rows(census: Census, count: int, epsilons: tuple[Fraction, ...], replace: bool) -> list[Row]:
    """Mean errors of every method in every fifth of the questions, by coverage and by selectivity."""
    domain = census_domain(census.shape)
    histogram = Histogram(domain, data.census(census.shape, census.records))
    workload = questions(domain, count)
    truth = workload.answer(histogram.counts).astype(np.float64)
    coverage = workload.cells_in_each / domain.size
    selectivity = truth / census.records
    sanity = np.maximum(truth, 0.001 * census.records)
    rows: list[Row] = []
    for epsilon in epsilons:
        for method, mechanism in METHODS.items():
            start = time.process_time()
            right = open_counts(histogram, epsilon, unit=Unit(replace=replace))
            answers = workload.answer(mechanism.estimate(right).counts)
            say(f"{census.name}, ε = {float(epsilon)}, {method}: {time.process_time() - start:.1f} CPU s")
            off = np.abs(answers - truth)
            for figure, by, error in (
                ("coverage", coverage, off),
                ("selectivity", selectivity, off / sanity),
            ):
                for fifth, members in enumerate(np.array_split(np.argsort(by, kind="stable"), 5)):
                    rows.append(
                        {
                            "census": census.name,
                            "ε": float(epsilon),
                            "method": method,
                            "by": figure,
                            "fifth": fifth + 1,
                            "at": float(by[members].mean()),
                            "error": float(error[members].mean()),
                        }
                    )
    return rows


def time_rows(quick: bool) -> list[Row]:
    """CPU time from records in memory to released cells, every attribute transformed."""
    rows: list[Row] = []
    cells = 2**12 if quick else 2**24
    for records in (10_000, 20_000) if quick else [k * 1_000_000 for k in range(1, 6)]:
        rows += timed("records", records, cells, records)
    for size in (2**10, 2**12) if quick else [2**k for k in range(22, 27)]:
        rows += timed("cells", 10_000 if quick else 5_000_000, size, size)
    return rows


def timed(by: str, records: int, cells: int, at: int) -> list[Row]:
    """One point of Fig. 13 or 14."""
    domain = square_domain(round(cells**0.25))
    draw = np.random.default_rng(0)  # noqa: TID251 -- data only
    table = [draw.integers(0, size, records, dtype=np.int32) for size in domain.shape]
    rows: list[Row] = []
    for method, mechanism in (
        ("Basic", Laplace()),
        ("Privelet+", Privelet(plain=(), calibration="paper")),
        ("Privelet*", Privelet(plain=(), calibration="paper", threshold=True)),
    ):
        spent, _ = best(partial(release, table, domain, mechanism), 2)
        rows.append(
            {"method": method, "by": by, "at": domain.size if by == "cells" else at, "seconds": spent}
        )
        say(f"{by} {at:,}, {method}: {spent:.2f} CPU s")
    return rows


def release(table: list[NDArray[np.int32]], domain: Domain, mechanism: Any) -> None:
    """Count records and release them."""
    flat = np.ravel_multi_index(tuple(table), domain.shape)
    counts = np.bincount(flat, minlength=domain.size).reshape(domain.shape)
    mechanism.estimate(open_counts(Histogram(domain, counts), 1))


def error_tables(rows: list[Row]) -> str:
    """Errors as Markdown: a line per fifth of the questions, a column per method."""
    text = ""
    for census in dict.fromkeys(row["census"] for row in rows):
        for by, what in (
            ("coverage", "Mean absolute error against coverage"),
            ("selectivity", "Mean relative error against selectivity"),
        ):
            text += f"\n### {what}, {census}\n\n| ε | {by} | {' | '.join(METHODS)} |\n"
            text += "|---" * (2 + len(METHODS)) + "|\n"
            picked = [row for row in rows if row["census"] == census and row["by"] == by]
            for epsilon, fifth in dict.fromkeys((row["ε"], row["fifth"]) for row in picked):
                line = [row for row in picked if (row["ε"], row["fifth"]) == (epsilon, fifth)]
                errors = {row["method"]: row["error"] for row in line}
                cells = " | ".join(
                    f"{errors[m]:,.0f}" if by == "coverage" else f"{errors[m]:.2%}" for m in METHODS
                )
                text += f"| {epsilon} | {line[0]['at']:.2g} | {cells} |\n"
    return text


def time_tables(rows: list[Row]) -> str:
    """Times as Markdown."""
    text = ""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for by in dict.fromkeys(row["by"] for row in rows):
        text += f"\n### CPU seconds against the number of {by}\n\n| {by} | {' | '.join(methods)} |\n"
        text += "|---" * (1 + len(methods)) + "|\n"
        for at in dict.fromkeys(row["at"] for row in rows if row["by"] == by):
            spent = {row["method"]: row["seconds"] for row in rows if (row["by"], row["at"]) == (by, at)}
            text += f"| {at:,} | {' | '.join(f'{spent[m]:.2f}' for m in methods)} |\n"
    return text


def draw(errors: list[Row], times: list[Row], folder: Path) -> None:
    """Save the figures as PNG."""
    import altair as alt
    import pandas as pd

    figures = {
        "coverage": ("mean absolute error", "figures-9-10"),
        "selectivity": ("mean relative error", "figures-11-12"),
    }
    for by, (title, name) in figures.items():
        rows = [row for row in errors if row["by"] == by]
        if not rows:
            continue
        chart = (
            alt.Chart(pd.DataFrame(rows))
            .mark_line(point=True)
            .encode(
                x=alt.X("at:Q", title=by, scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=5)),
                y=alt.Y("error:Q", title=title, scale=alt.Scale(type="log"), axis=alt.Axis(tickCount=5)),
                color=alt.Color("method:N", sort=list(METHODS), title=None),
                strokeDash=alt.StrokeDash("method:N", sort=list(METHODS), legend=None),
            )
            .properties(width=220, height=200)
            .facet(column="ε:N", row=alt.Row("census:N", title=None))
        )
        chart.save(folder / f"{name}.png", scale_factor=2)
    if times:
        charts = [
            alt.Chart(pd.DataFrame([row for row in times if row["by"] == by]))
            .mark_line(point=True)
            .encode(
                x=alt.X("at:Q", title=f"number of {by}", axis=alt.Axis(format="s", tickCount=5)),
                y=alt.Y("seconds:Q", title="CPU seconds"),
                color=alt.Color("method:N", title=None),
            )
            .properties(width=280, height=220)
            for by in ("records", "cells")
        ]
        alt.hconcat(*charts).save(folder / "figures-13-14.png", scale_factor=2)
