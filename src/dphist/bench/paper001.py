"""The experiments of the DPCube paper: formulas (Figs. 9–12), histograms and queries (13–16), uses (17, 18).

The paper's "Income" in amounts is in no public file; hours a week take its place in Figures 13–15. Figures 13–18 run
on the Adult census file in the folder given by ``--data``, or on made-up records of the same schema. Neighbours add or
remove a record, as in the paper.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist import plan
from dphist.bench import paper001_uses, people
from dphist.domain import Domain
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.dpcube import DPCube
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spatialtrees import HierarchicalKD, KDHybrid
from dphist.testing import run
from dphist.workload import Workload

FloatArray = NDArray[np.float64]
Row = dict[str, Any]

# Table 2: partition size, budgets of the phases, smoothness, inconsistency.
PART, CELLS, LEAF, GAMMA, ETA = 11, 0.05, 0.15, 5.0, 5.0


def main(argv: list[str]) -> int:
    """Regenerate the figures as tables, and as pictures where ``--out`` says."""
    options = argparse.ArgumentParser(prog="python -m dphist.bench paper001", description=__doc__)
    options.add_argument("--data", type=Path, help="folder that may hold adult-records.csv")
    options.add_argument("--out", type=Path, help="folder for pictures (needs the report extra)")
    options.add_argument("--runs", type=int, default=5, help="runs each point is averaged over")
    options.add_argument(
        "--figures", default="9,10,11,12,13,14,15,16,17,18", help="which, separated by commas"
    )
    options.add_argument("--quick", action="store_true", help="few records and queries, one run")
    given = options.parse_args(argv)
    runs, queries = (1, 200) if given.quick else (given.runs, 10_000)
    records, what = people.read(given.data, 3_000 if given.quick else 30_000)
    if given.quick:
        records = people.some(records, slice(3_000))
    say(what)
    figures: dict[str, Callable[[], list[Row]]] = {
        "9": figure_9,
        "10": figure_10,
        "11": figure_11,
        "12": figure_12,
        "13": lambda: figure_13(records),
        "14": lambda: figure_14(records, runs),
        "15": lambda: figure_15(records, runs, queries),
        "16": lambda: figure_16(records, runs, queries, given.quick),
        "17": lambda: paper001_uses.figure_17(records, runs),
        "18": lambda: paper001_uses.figure_18(records, runs, given.quick),
    }
    for number in given.figures.split(","):
        rows = figures[number.strip()]()
        show(rows)
        if given.out is not None:
            picture(number.strip(), rows, given.out)
    return 0


# ---- formulas ------------------------------------------------------------------------------------------------


def _formulas(figure: str, x: float, axis: str, **changed: float) -> Iterator[Row]:
    """Both cases of the paper at one point: smooth data, and any data. Weighted least squares is ours."""
    p: dict[str, float] = {
        "size": 5,
        "part": PART,
        "cells": CELLS,
        "leaf": LEAF,
        "gamma": GAMMA,
        "eta": ETA,
    } | changed
    size, part = int(p["size"]), int(p["part"])
    values = {
        "uniform, γ-smooth bound (7)": plan.smooth_error_bound(p["gamma"], size, part, p["leaf"]),
        "uniform, any data (8)": plan.observed_error(p["eta"], size, p["cells"]),
        "least squares (9)": plan.least_squares_error(size, part, p["cells"], p["leaf"]),
        "weighted least squares": plan.least_squares_error(size, part, p["cells"], p["leaf"], weighted=True),
    }
    for method, value in values.items():
        yield {"figure": figure, "axis": axis, "x": x, "method": method, "value": value}


def figure_9() -> list[Row]:
    """Error against the size of the query."""
    return [row for s in range(1, PART + 1) for row in _formulas("Fig. 9: error", s, "query size s", size=s)]


def figure_10() -> list[Row]:
    """Error against the budget of phase one, out of 0.2."""
    points = [0.01, *np.arange(0.02, 0.2, 0.02).round(2).tolist(), 0.19]
    return [
        row
        for a in points
        for row in _formulas("Fig. 10: error", a, "α₁ (of 0.2)", cells=a, leaf=round(0.2 - a, 3))
    ]


def figure_11() -> list[Row]:
    """Error against the size of the part (a) and the smoothness (b)."""
    rows = [
        row
        for n in range(3, 22, 2)
        for row in _formulas("Fig. 11(a): error", n, "part size n", part=n, size=(n - 1) // 2)
    ]
    rows += [row for g in range(11) for row in _formulas("Fig. 11(b): error", g, "smoothness γ", gamma=g)]
    return rows


def figure_12() -> list[Row]:
    """Error against the inconsistency between cells and leaf."""
    return [
        row for eta in range(0, 41, 4) for row in _formulas("Fig. 12: error", eta, "inconsistency η", eta=eta)
    ]


# ---- histograms ----------------------------------------------------------------------------------------------


def _first(records: people.Records, *names: str) -> tuple[Domain, NDArray[np.int64]]:
    """The first 10⁴ records, as the paper takes them."""
    histogram = people.count(people.some(records, slice(10_000)), *names)
    return histogram.domain, histogram.counts


def figure_13(records: people.Records) -> list[Row]:
    """The original, the noisy cells, and two estimates from DPCube, at α₁ = 0.05: how far each cell is off."""
    _, counts = _first(records, "age", "hours_per_week")
    share, epsilon = Fraction(1, 4), Fraction(1, 5)
    shown = {
        "original": counts.astype(np.float64),
        "noisy cells, α₁ = 0.05": run(Laplace(), counts, share * epsilon, seed=1).counts,
    }
    for estimator in ("uniform", "least-squares", "weighted", "nonnegative"):
        mechanism = DPCube(cells_share=share, estimator=estimator)
        shown[f"DPCube {estimator}"] = run(mechanism, counts, epsilon, seed=1).counts
    return [
        {
            "figure": "Fig. 13: mean absolute error of a cell (α = 0.2)",
            "axis": "",
            "x": 0,
            "method": name,
            "value": float(np.abs(cells - counts).mean()),
            "cells": cells,
        }
        for name, cells in shown.items()
    ]


def _thresholds(epsilon: float) -> list[float]:
    return [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 2.0 / (0.25 * epsilon) ** 2]


def figure_14(records: people.Records, runs: int) -> list[Row]:
    """Weighted variance Σ xᵢ·Vᵢ inside the parts, against the threshold and the budget of phase one (α = 1)."""
    _, counts = _first(records, "age", "hours_per_week")

    def weighted(mechanism: DPCube) -> float:
        found = []
        for seed in range(runs):
            labels = run(mechanism, counts, 1, seed=seed).errors.tree.labels  # type: ignore[attr-defined]
            flat = counts.reshape(-1).astype(np.float64)
            size = np.bincount(labels)
            total = np.bincount(labels, flat)
            variance = np.bincount(labels, flat**2) / size - (total / size) ** 2
            found.append(float((total * variance).sum()))
        return float(np.mean(found))

    rows = []
    for threshold in _thresholds(1.0):
        mechanism = DPCube(cells_share=Fraction(1, 4), threshold=threshold, estimator="uniform")
        rows.append(
            _row("Fig. 14(a): weighted variance", "threshold ξ₀", threshold, "fixed ξ₀", weighted(mechanism))
        )
    automatic = DPCube(cells_share=Fraction(1, 4), estimator="uniform")
    rows.append(_row("Fig. 14(a): weighted variance", "threshold ξ₀", 0.0, "automatic", weighted(automatic)))
    for tenth in range(1, 10):
        share = Fraction(tenth, 10)
        fixed = DPCube(cells_share=share, threshold=3.0, estimator="uniform")
        for name, mechanism in (("ξ₀ = 3", fixed), ("automatic", replace(fixed, threshold="auto"))):
            rows.append(_row("Fig. 14(b): weighted variance", "α₁", float(share), name, weighted(mechanism)))
    return rows


def _row(figure: str, axis: str, x: float, method: str, value: float) -> Row:
    return {"figure": figure, "axis": axis, "x": x, "method": method, "value": value}


def _errors(
    mechanism: Mechanism, counts: NDArray[np.int64], epsilon: float | Fraction, workload: Workload, runs: int
) -> FloatArray:
    """Absolute errors of every query in every run."""
    truth = workload.answer(counts)
    answers = [workload.answer(run(mechanism, counts, epsilon, seed=seed).counts) for seed in range(runs)]
    return np.asarray(np.abs(np.array(answers) - truth), dtype=np.float64)


def rectangles(domain: Domain, count: int, largest: int | None = None) -> Workload:
    """Rectangles between two places drawn evenly on each axis, or small ones of at most ``largest`` cells."""
    draw = np.random.default_rng(5)  # noqa: TID251 -- public questions
    shape = np.array(domain.shape)
    if largest is None:
        ends = np.sort(draw.integers(0, shape, (2, count, shape.size)), axis=0)
        return Workload(domain, ends[0], ends[1] + 1)
    # Sides whose product is spread evenly over the sizes allowed, at any place where they fit.
    wanted = draw.integers(1, largest + 1, count).astype(np.float64)
    sides = np.ones((count, shape.size), dtype=np.int64)
    for axis in draw.permutation(shape.size)[:-1]:
        side = np.exp(draw.random(count) * np.log(np.maximum(wanted, 1.0)))
        sides[:, axis] = np.clip(side, 1, shape[axis])
        wanted = wanted / sides[:, axis]
    last = int(np.argmax((sides == 1).sum(axis=0)))
    sides[:, last] = np.clip(wanted, 1, shape[last])
    low = (draw.random(sides.shape) * (shape - sides + 1)).astype(np.int64)
    return Workload(domain, low, low + sides)


def figure_15(records: people.Records, runs: int, queries: int) -> list[Row]:
    """Mean absolute error of random rectangles against the threshold and the budget of phase one (α = 1)."""
    domain, counts = _first(records, "age", "hours_per_week")
    asked = rectangles(domain, queries)
    rows = []
    settings: list[tuple[str, float | str]] = [("fixed ξ₀", t) for t in _thresholds(1.0)] + [
        ("automatic", "auto")
    ]
    for name, threshold in settings:
        mechanism = DPCube(cells_share=Fraction(1, 4), threshold=threshold, estimator="uniform")  # type: ignore[arg-type]
        error = float(_errors(mechanism, counts, 1, asked, runs).mean())
        x = 0.0 if isinstance(threshold, str) else threshold
        rows.append(_row("Fig. 15(a): mean absolute error", "threshold ξ₀", x, name, error))
    for tenth in range(1, 10):
        for estimator in ("uniform", "weighted", "nonnegative"):
            mechanism = DPCube(cells_share=Fraction(tenth, 10), estimator=estimator)
            error = float(_errors(mechanism, counts, 1, asked, runs).mean())
            rows.append(_row("Fig. 15(b): mean absolute error", "α₁", tenth / 10, estimator, error))
    return rows


def figure_16(records: people.Records, runs: int, queries: int, quick: bool) -> list[Row]:
    """Median absolute error against α: 3-D and 2-D, random rectangles and small ones, beside other approaches."""
    methods: dict[str, Mechanism] = {
        "DPCube uniform": DPCube(estimator="uniform"),
        "DPCube weighted": DPCube(),
        "DPCube nonnegative": DPCube(estimator="nonnegative"),
        "Dwork (noisy cells)": Laplace(),
        "KD-hybrid": KDHybrid(),
        # By its own rule Privelet+ leaves axes this short untransformed, which is Dwork's method again.
        "Privelet, all axes": Privelet(plain=()),
        "hierarchical kd": HierarchicalKD(),
    }
    cases: list[tuple[str, tuple[str, ...], int]] = [("2-D", ("age", "education_num"), 500)]
    if not quick:
        cases.append(("3-D", ("age", "hours_per_week", "education_num"), 4_000))
    rows = []
    for title, names, largest in cases:
        domain, counts = _first(records, *names)
        loads = {"random rectangles": rectangles(domain, queries)}
        loads[f"1 to {largest} cells"] = rectangles(domain, queries, largest)
        for kind, asked in loads.items():
            figure = f"Fig. 16 {title}, {kind}: median absolute error"
            for epsilon in (0.05, 0.1, 0.25, 0.5, 1.0):
                for name, mechanism in methods.items():
                    error = float(np.median(_errors(mechanism, counts, epsilon, asked, runs)))
                    rows.append(_row(figure, "α", epsilon, name, error))
    return rows


# ---- showing -------------------------------------------------------------------------------------------------


def show(rows: list[Row]) -> None:
    """Print each figure as a table: a line for each point, a column for each method."""
    for figure in dict.fromkeys(row["figure"] for row in rows):
        mine = [row for row in rows if row["figure"] == figure]
        methods = list(dict.fromkeys(row["method"] for row in mine))
        say(f"\n{figure}")
        say(f"{mine[0]['axis']:>18} " + " ".join(f"{method:>{max(10, len(method))}}" for method in methods))
        for x in dict.fromkeys(row["x"] for row in mine):
            found = {row["method"]: row["value"] for row in mine if row["x"] == x}
            cells = (
                f"{found[m]:>{max(10, len(m))},.4g}" if m in found else " " * max(10, len(m)) for m in methods
            )
            say(f"{x:>18g} " + " ".join(cells))


def picture(number: str, rows: list[Row], folder: Path) -> None:
    """Draw a figure: lines for the methods, or a map of the cells."""
    import altair as alt

    folder.mkdir(parents=True, exist_ok=True)
    if "cells" in rows[0]:
        top = float(np.percentile(rows[0]["cells"], 99.5))
        values = [
            {"age": i, "hours": j, "count": float(c), "which": row["method"]}
            for row in rows
            for (i, j), c in np.ndenumerate(row["cells"])
        ]
        alt.data_transformers.disable_max_rows()
        chart: Any = (
            alt.Chart(alt.Data(values=values))
            .mark_rect()
            .encode(
                alt.X("age:O", axis=alt.Axis(values=list(range(0, 100, 20)))),
                alt.Y("hours:O", sort="descending", axis=alt.Axis(values=list(range(0, 100, 20)))),
                alt.Color("count:Q", scale=alt.Scale(domain=[0, top], clamp=True, scheme="viridis")),
            )
            .properties(width=220, height=220)
            .facet(alt.Facet("which:N", sort=[row["method"] for row in rows], title=None), columns=3)
        )
    else:
        charts = []
        for figure in dict.fromkeys(row["figure"] for row in rows):
            mine = [row for row in rows if row["figure"] == figure]
            spread = max(row["value"] for row in mine) > 30 * max(1e-9, min(row["value"] for row in mine))
            scale = alt.Scale(
                type="log" if spread and min(row["value"] for row in mine) > 0 else "linear", zero=False
            )
            charts.append(
                alt.Chart(alt.Data(values=mine))
                .mark_line(point=True)
                .encode(
                    alt.X("x:Q", title=mine[0]["axis"]),
                    alt.Y("value:Q", title=figure.rsplit(": ", 1)[-1], scale=scale),
                    alt.Color("method:N", sort=None, title=None, legend=alt.Legend(labelLimit=300)),
                )
                .properties(width=340, height=260, title=figure.rsplit(": ", 1)[0])
            )
        chart = alt.hconcat(*charts) if len(charts) < 3 else alt.concat(*charts, columns=2)
    path = folder / f"paper001-fig{number}.png"
    chart.save(str(path), scale_factor=2)
    say(f"saved {path}")


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
