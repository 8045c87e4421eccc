"""Tables II, III and Figures 4, 5 of the lossy compression paper (Acs, Castelluccia and Chen, 2012).

``python -m dphist.bench paper003`` measures everything on synthetic data of the paper's kinds and sizes
(`dphist.bench.data.paper_003`), with the corrected mechanisms. Beyond the paper's lines: EFPA as printed, which
is not private, to show what the correction costs; EFPA with cosines; EFPA in two dimensions. SPA is simulated
(`dphist.bench.competitors`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.bench import competitors, data
from dphist.mechanisms.spec import parse
from dphist.metrics import kl_divergence, sliding_range_error
from dphist.testing import run

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Method = Callable[[IntArray, float, int], FloatArray]
Row = dict[str, Any]


def _ours(text: str) -> Method:
    return partial(_run, text)


def _run(text: str, counts: IntArray, epsilon: float, seed: int) -> FloatArray:
    return run(parse(text), counts, epsilon, seed=seed).counts


METHODS: dict[str, Method] = {
    "EFPA": _ours("efpa"),
    "EFPA, cosines": _ours("efpa(basis='cosine')"),
    "EFPA, printed (leaks)": competitors.printed_efpa,
    "EFPA, printed, no 1/√n (leaks)": partial(competitors.printed_efpa, orthonormal=False),
    "P-HP": _ours("phpartition"),
    "SPA": competitors.spa,
    "LPA": _ours("laplace"),
    "MWEM": _ours("mwem"),
    "BoostMM": _ours("isotonic"),
    "BoostTree": _ours("boost"),
    "Privelet": _ours("privelet(plain=())"),
    "PrivH-Struct": _ours("structurefirst"),
    "PrivH-Noise": _ours("noisefirst"),
}

_LEAKY = ("EFPA, printed (leaks)", "EFPA, printed, no 1/√n (leaks)")
_TABLE_2 = ("EFPA", "EFPA, cosines", *_LEAKY, "P-HP", "SPA", "LPA", "MWEM")
_TABLE_3 = ("EFPA", "EFPA, cosines", *_LEAKY, "P-HP", "MWEM", "PrivH-Struct", "PrivH-Noise")
_FIGURE_4 = ("EFPA", "EFPA, cosines", "P-HP", "SPA", "BoostMM", "MWEM")
_FIGURE_5 = ("EFPA", *_LEAKY, "P-HP", "SPA", "LPA", "MWEM", "BoostTree", "Privelet")

# What the paper prints, to be read beside ours; its data and its treatment of empty estimates were others.
_PRINTED = {
    ("Location", "EFPA"): 0.57,
    ("Location", "P-HP"): 1.01,
    ("Location", "SPA"): 1.17,
    ("Location", "LPA"): 1.40,
    ("Location", "MWEM"): 1.98,
    ("Search Log", "EFPA"): 0.18,
    ("Search Log", "P-HP"): 0.27,
    ("Search Log", "SPA"): 0.49,
    ("Search Log", "LPA"): 2.30,
    ("Search Log", "MWEM"): 1.35,
    ("NetTrace", "EFPA"): 2.49,
    ("NetTrace", "P-HP"): 1.78,
    ("NetTrace", "SPA"): 4.96,
    ("NetTrace", "LPA"): 5.09,
    ("NetTrace", "MWEM"): 5.11,
    ("Rochdale", "EFPA"): 1.76,
    ("Rochdale", "P-HP"): 2.23,
    ("Rochdale", "MWEM"): 3.02,
    ("Rochdale", "PrivH-Struct"): 4.47,
    ("Rochdale", "PrivH-Noise"): 3.14,
}


def sets(quick: bool) -> dict[str, IntArray]:
    """The paper's four kinds of data; small ones for a quick look."""
    if not quick:
        return {name: make(0) for name, make in data.paper_003().items()}
    return {
        "Location": data.settlements((12, 20), 5_000),
        "Rochdale": data.household_survey(),
        "Search Log": data.search_timeline(512, 5_000),
        "NetTrace": data.ordered_hosts(1_024, 400),
    }


def divergences(
    counts: IntArray, methods: Sequence[str], epsilon: float, runs: int, table: IntArray | None = None
) -> dict[str, float]:
    """Mean KL-divergence of each method on flat counts; on the ``table`` they come from, also of EFPA in 2-D."""
    found = {
        name: float(
            np.mean([kl_divergence(counts, METHODS[name](counts, epsilon, seed)) for seed in range(runs)])
        )
        for name in methods
    }
    if table is not None and table.ndim == 2:
        for name in ("EFPA", "EFPA, cosines"):
            found[f"{name}, 2-D"] = float(
                np.mean([kl_divergence(table, METHODS[name](table, epsilon, seed)) for seed in range(runs)])
            )
    return found


def table_2(chosen: Mapping[str, IntArray], runs: int) -> list[Row]:
    """KL-divergence of attributed histograms at ε = 0.01."""
    return [
        {"data": name, "method": method, "KL": value, "paper": _PRINTED.get((name, method))}
        for name in ("Location", "Search Log", "NetTrace")
        for method, value in divergences(chosen[name].reshape(-1), _TABLE_2, 0.01, runs, chosen[name]).items()
    ]


def table_3(chosen: Mapping[str, IntArray], runs: int) -> list[Row]:
    """KL-divergence of the small attributed histogram at ε = 0.01."""
    counts = chosen["Rochdale"]
    return [
        {"data": "Rochdale", "method": method, "KL": value, "paper": _PRINTED.get(("Rochdale", method))}
        for method, value in divergences(counts.reshape(-1), _TABLE_3, 0.01, runs, counts).items()
    ]


def figure_4(chosen: Mapping[str, IntArray], runs: int, epsilons: Sequence[float]) -> list[Row]:
    """KL-divergence of unattributed histograms against ε."""
    return [
        {"data": name, "method": method, "ε": epsilon, "KL": value}
        for name, counts in chosen.items()
        for epsilon in epsilons
        for method, value in divergences(np.sort(counts, axis=None), _FIGURE_4, epsilon, runs).items()
    ]


def figure_5(chosen: Mapping[str, IntArray], runs: int, epsilons: Sequence[float]) -> list[Row]:
    """Mean squared error of all ranges of 2, 4, 8, … cells of attributed histograms."""
    rows: list[Row] = []
    for name, table in chosen.items():
        counts = table.reshape(-1)
        sizes = [2**i for i in range(1, counts.size.bit_length())]
        for epsilon in epsilons:
            for method in _FIGURE_5:
                estimates = [METHODS[method](counts, epsilon, seed) for seed in range(runs)]
                for size in sizes:
                    error = np.mean([sliding_range_error(counts, estimate, size) for estimate in estimates])
                    rows.append(
                        {
                            "data": name,
                            "method": method,
                            "ε": epsilon,
                            "range size": size,
                            "MSE": float(error),
                        }
                    )
    return rows


def _print_table(title: str, rows: list[Row], key: str, across: str, value: str) -> str:
    """A Markdown table: one line for each method, a column for each value of ``across``."""
    columns = list(dict.fromkeys(row[across] for row in rows))
    lines = [
        f"### {title}",
        "",
        f"| {key} | " + " | ".join(map(str, columns)) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for name in dict.fromkeys(row[key] for row in rows):
        cells = []
        for column in columns:
            found = [row for row in rows if row[key] == name and row[across] == column]
            text = "" if not found else f"{found[0][value]:.3g}"
            if found and found[0].get("paper") is not None:
                text += f" (paper {found[0]['paper']})"
            cells.append(text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def _cost_of_privacy(rows: list[Row], value: str, by: Sequence[str]) -> str:
    """How the corrected EFPA compares with the printed, leaky ones: geometric mean of the ratio over settings."""
    error = {(row["method"], *(row.get(k) for k in by)): row[value] for row in rows}
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows if "leaks" in row["method"]):
        ratios = np.array([error["EFPA", *key[1:]] / error[key] for key in error if key[0] == name])
        lines.append(
            f"EFPA, corrected ÷ {name}, {value}: geometric mean {np.exp(np.mean(np.log(ratios))):.2f}, "
            f"from {ratios.min():.2g} to {ratios.max():.2g}"
        )
    return "\n".join([*lines, ""])


def _chart(rows: list[Row], x: str, y: str, facet: str, path: Path) -> None:
    import altair as alt

    names = {"ε": "epsilon", "range size": "size"}
    plain = [{names.get(k, k): v for k, v in row.items()} for row in rows]
    chart = (
        alt.Chart(alt.Data(values=plain))
        .mark_line(point=True)
        .encode(
            x=alt.X(
                f"{names.get(x, x)}:Q",
                title=x,
                scale=alt.Scale(type="log", base=2 if x == "range size" else 10),
            ),
            y=alt.Y(f"{y}:Q", title=y, scale=alt.Scale(type="log")),
            color=alt.Color("method:N", title="method"),
            strokeDash=alt.StrokeDash("method:N"),
        )
        .properties(width=320, height=220)
    )
    facets = chart.facet(facet=alt.Facet(f"{facet}:N", title=None), columns=2).resolve_scale(y="independent")
    facets.save(path, scale_factor=2)


def main(argv: list[str]) -> int:
    """Regenerate the paper's tables and figures; ``--out`` also writes Markdown and pictures."""
    parser = argparse.ArgumentParser(prog="python -m dphist.bench paper003", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs averaged (the paper: 100)")
    parser.add_argument("--only", default="table2,table3,figure4,figure5", help="comma-separated parts")
    parser.add_argument("--quick", action="store_true", help="small data, two runs")
    parser.add_argument("--out", type=Path, help="folder for Markdown and pictures")
    options = parser.parse_args(argv)
    chosen, runs = sets(options.quick), 2 if options.quick else options.runs
    epsilons = (0.01, 0.1) if options.quick else (0.01, 0.025, 0.05, 0.1)
    parts = set(options.only.split(","))
    text: list[str] = []
    pictures: dict[str, tuple[list[Row], str, str]] = {}
    if "table2" in parts:
        rows = table_2(chosen, runs)
        text.append(
            _print_table("Table II: KL-divergence, attributed, ε = 0.01", rows, "method", "data", "KL")
        )
        text.append(_cost_of_privacy(rows, "KL", ("data",)))
    if "table3" in parts:
        rows = table_3(chosen, runs)
        text.append(
            _print_table("Table III: KL-divergence, attributed, ε = 0.01", rows, "method", "data", "KL")
        )
        text.append(_cost_of_privacy(rows, "KL", ("data",)))
    if "figure4" in parts:
        rows = figure_4(chosen, runs, epsilons)
        for name in chosen:
            part = [row for row in rows if row["data"] == name]
            text.append(
                _print_table(f"Figure 4: KL-divergence, unattributed, {name}", part, "method", "ε", "KL")
            )
        pictures["figure4"] = (rows, "ε", "KL")
    if "figure5" in parts:
        rows = figure_5(chosen, runs, (0.1, 0.01))
        for name in chosen:
            for epsilon in (0.1, 0.01):
                part = [row for row in rows if row["data"] == name and row["ε"] == epsilon]
                title = f"Figure 5: mean squared error by range size, {name}, ε = {epsilon}"
                text.append(_print_table(title, part, "method", "range size", "MSE"))
                for row in part:
                    row["panel"] = f"{name}, ε = {epsilon}"
        text.append(_cost_of_privacy(rows, "MSE", ("data", "ε", "range size")))
        pictures["figure5"] = (rows, "range size", "MSE")
    sys.stdout.write("\n".join(text))
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "paper003.md").write_text("\n".join(text), encoding="utf-8")
        for name, (rows, x, y) in pictures.items():
            _chart(rows, x, y, "panel" if name == "figure5" else "data", options.out / f"paper003-{name}.png")
    return 0
