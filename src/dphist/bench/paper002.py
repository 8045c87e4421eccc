"""Table 2 and Figures 3–18 of the building blocks paper: time against error, error against ε and against length.

On synthetic data of the paper's four kinds and sizes. ``--cap N`` shortens histograms to N cells (all-bucket S₁ is
quadratic: the full Log takes most of the time); ``--out DIR`` saves the tables as Markdown and the figures as PNG.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist.bench.blocks import run
from dphist.bench.data import paper_002
from dphist.mechanisms.spec import parse
from dphist.metrics import sliding_range_error
from dphist.skyline import skyline

FloatArray = NDArray[np.float64]

# Scheme and how often it is on a skyline in the paper's Table 2 (16 experiments).
PRINTED = {
    "s1": 2, "s-approx": 8, "s2": 1, "o+s1": 0, "o+s-approx": 4, "o+s2": 0, "s1+mm": 0, "s-approx+mm": 0, "s2+mm": 0,
    "s1+pmm": 2, "s-approx+pmm": 2, "s2+pmm": 0, "h": 1, "s1+h": 6, "s2+h": 15,
}  # fmt: skip
BEST_OF_GROUP = ["s-approx", "o+s-approx", "s1+pmm", "h", "s2+h"]
LENGTHS = [1, 2, 4, 8, 16, 32, 64]
SMALL, LARGE = "0.01", "1"


@dataclass
class Result:
    """Means over the trials of one scheme on one histogram at one ε."""

    seconds: float = 0.0
    errors: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def mean_interval_error(error: FloatArray) -> float:
    """Mean squared error over all intervals: Σ_{i<j} (E_j − E_i)² = (n + 1) ΣE² − (ΣE)² for running sums E."""
    sums = np.concatenate([[0.0], np.cumsum(error)])
    sums -= sums.mean()
    n = error.size
    return float((n + 1) * (sums**2).sum() / (n * (n + 1) / 2))


def main(argv: list[str]) -> int:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m dphist.bench paper002", description=__doc__)
    parser.add_argument("--cap", type=int, default=0, help="shorten histograms to this many cells")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="256 cells, one trial")
    parser.add_argument("--out", type=Path, help="save tables and figures here")
    chosen = parser.parse_args(argv)
    cap, trials = (256, 1) if chosen.quick else (chosen.cap, chosen.trials)
    results = _measure(cap, trials)
    pages = [_time_against_error(results), _against_epsilon(results), _against_length(results)]
    text = "\n".join(pages)
    sys.stdout.write(text)
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        (chosen.out / "paper002.md").write_text(text, encoding="utf-8")
        _draw(results, chosen.out)
    return 0


def _measure(cap: int, trials: int) -> dict[tuple[str, str, str], Result]:
    results: dict[tuple[str, str, str], Result] = {}
    for scheme in PRINTED:
        run(parse(scheme), paper_002()["Rome"](200, 0), "1")  # compiles
    for name, make in paper_002().items():
        truth = make(0, 0)
        if cap and truth.size > cap:
            truth = make(cap, 0)
        for scheme in PRINTED:
            epsilons = [SMALL, "0.05", "0.1", "0.5", LARGE] if scheme in BEST_OF_GROUP else [SMALL, LARGE]
            for epsilon in epsilons:
                result = results[name, scheme, epsilon] = Result()
                for _ in range(trials):
                    seconds, counts = run(parse(scheme), truth, epsilon)
                    error = counts - truth
                    result.seconds += seconds / trials
                    result.errors["point"] += float(np.mean(error**2)) / trials
                    result.errors["interval"] += mean_interval_error(error) / trials
                    for percent in LENGTHS:
                        length = max(1, truth.size * percent // 100)
                        result.errors[f"{percent}%"] += sliding_range_error(truth, counts, length) / trials
        sys.stderr.write(f"{name}: {truth.size:,} cells done\n")
    return results


def _time_against_error(results: dict[tuple[str, str, str], Result]) -> str:
    lines = ["## Table 2 and Figures 3–10: who is on the skyline of time and mean squared error\n"]
    times = dict.fromkeys(PRINTED, 0)
    for name in paper_002():
        for epsilon in (SMALL, LARGE):
            lines.append(f"\n### {name}, ε = {epsilon}\n")
            lines.append("| scheme | CPU s | point | interval |\n|---|---|---|---|")
            best = {kind: _skyline(results, name, epsilon, kind) for kind in ("point", "interval")}
            for scheme in PRINTED:
                result = results[name, scheme, epsilon]
                cells = []
                for kind in ("point", "interval"):
                    mark = "**" if scheme in best[kind] else ""
                    times[scheme] += bool(mark)
                    cells.append(f"{mark}{result.errors[kind]:.4g}{mark}")
                lines.append(f"| {scheme} | {result.seconds:.4f} | {cells[0]} | {cells[1]} |")
    lines.append("\n### Times on a skyline, of 16\n")
    lines.append("| scheme | here | the paper (S₁ and S̃ with noise that is not private) |\n|---|---|---|")
    lines += [f"| {scheme} | {times[scheme]} | {printed} |" for scheme, printed in PRINTED.items()]
    return "\n".join(lines) + "\n"


def _skyline(results: dict[tuple[str, str, str], Result], name: str, epsilon: str, kind: str) -> list[str]:
    rows = [(s, results[name, s, epsilon].seconds, results[name, s, epsilon].errors[kind]) for s in PRINTED]
    return skyline(rows)


def _against_epsilon(results: dict[tuple[str, str, str], Result]) -> str:
    lines = ["\n## Figures 11–14: mean squared error against ε\n"]
    epsilons = [SMALL, "0.05", "0.1", "0.5", LARGE]
    for name in paper_002():
        for kind in ("point", "interval"):
            lines.append(f"\n### {name}, {kind}\n")
            lines.append("| scheme | " + " | ".join(epsilons) + " |\n|" + "---|" * (len(epsilons) + 1))
            for scheme in BEST_OF_GROUP:
                cells = [f"{results[name, scheme, e].errors[kind]:.4g}" for e in epsilons]
                lines.append(f"| {scheme} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _against_length(results: dict[tuple[str, str, str], Result]) -> str:
    lines = ["\n## Figures 15–18: mean squared error against the length of the interval\n"]
    for name in paper_002():
        for epsilon in ("0.1" if name == "PUMS" else SMALL, LARGE):
            lines.append(f"\n### {name}, ε = {epsilon}\n")
            lines.append(
                "| scheme | " + " | ".join(f"{p}%" for p in LENGTHS) + " |\n|" + "---|" * (len(LENGTHS) + 1)
            )
            for scheme in BEST_OF_GROUP:
                cells = [f"{results[name, scheme, epsilon].errors[f'{p}%']:.4g}" for p in LENGTHS]
                lines.append(f"| {scheme} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _draw(results: dict[tuple[str, str, str], Result], folder: Path) -> None:
    from dphist.bench.paper002_plots import against, time_against_error

    for first, epsilon in ((3, SMALL), (4, LARGE)):
        for place, name in enumerate(paper_002()):
            rows = [
                {
                    "scheme": scheme,
                    "seconds": max(results[name, scheme, epsilon].seconds, 1e-5),
                    "error": results[name, scheme, epsilon].errors[kind],
                    "queries": kind,
                    "skyline": scheme in _skyline(results, name, epsilon, kind),
                }
                for kind in ("point", "interval")
                for scheme in PRINTED
            ]
            number = first + 2 * place
            time_against_error(rows, f"Fig. {number}: {name}, ε = {epsilon}", folder / f"fig{number:02}.png")
    for place, name in enumerate(paper_002()):
        by_epsilon = [
            {"scheme": s, "x": float(e), "error": results[name, s, e].errors[kind], "panel": kind}
            for kind in ("point", "interval")
            for s in BEST_OF_GROUP
            for e in (SMALL, "0.05", "0.1", "0.5", LARGE)
        ]
        against(by_epsilon, "ε", f"Fig. {11 + place}: {name}", folder / f"fig{11 + place}.png")
        low = "0.1" if name == "PUMS" else SMALL
        by_length = [
            {"scheme": s, "x": p, "error": results[name, s, e].errors[f"{p}%"], "panel": f"ε = {e}"}
            for e in (low, LARGE)
            for s in BEST_OF_GROUP
            for p in LENGTHS
        ]
        against(
            by_length,
            "length of the interval, %",
            f"Fig. {15 + place}: {name}",
            folder / f"fig{15 + place}.png",
        )
