"""Which price per bucket NoiseFirst should ask: measured error of single cells, price by price.

``python -m dphist_bench noisefirst`` prints, for several sizes and over synthetic data of seven kinds, three
densities and three budgets, the root mean squared error relative to the best price of each case: geometric
mean and worst. Prices are in noise variances (mean) and noise scales (median).

With ``--data DIR --peers FILE`` it also measures the default beside public implementations: FILE has a row
per data set, scale and ε with the error of the best of them chosen with hindsight (``best_rmse``), and of
the best that is private (``rmse``); DIR has the count vectors, from which records are drawn. The default was
chosen on the synthetic data and on these; other vectors may differ.
"""

from __future__ import annotations

import argparse
import csv
import sys
from fractions import Fraction
from math import exp, log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.noisefirst import NoiseFirst
from dphist.testing import run
from dphist_bench import data

IntArray = NDArray[np.int64]

_KINDS = (
    data.search_timeline,
    data.network_hosts,
    data.social_degrees,
    data.steps,
    data.spikes,
    data.bell,
    data.level,
)


def main(argv: list[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench noisefirst", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small size")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--data", type=Path, help="a folder with count vectors, bin,count")
    parser.add_argument("--peers", type=Path, help="errors of public implementations on them")
    options = parser.parse_args(argv)
    _write("Error relative to the best price of each case: geometric mean (worst)")
    for n in (128,) if options.quick else (128, 1_024, 16_384):
        _prices(n, 1 if options.quick else options.repeats)
    if options.data is not None and options.peers is not None:
        _beside(options.data, options.peers, options.repeats)
    return 0


def candidates(n: int) -> dict[str, NoiseFirst]:
    """Give the prices compared: the paper's, and multiples of ln n."""
    mean = {f"mean {c:g} ln n": NoiseFirst(price=_price(c * log(n))) for c in (1.0, 2.0, 2.5, 3.0, 3.5, 5.0)}
    median = {
        f"median {c:g} ln n": NoiseFirst(statistic="median", price=_price(c * log(n)))
        for c in (0.5, 0.7, 0.9, 1.1)
    }
    return {
        "mean, paper's": NoiseFirst(price="paper"),
        **mean,
        "median, paper's": NoiseFirst(statistic="median", price="paper"),
        **median,
    }


def _price(value: float) -> Fraction:
    return Fraction(value).limit_denominator(1_000)


def _prices(n: int, repeats: int) -> None:
    tried = candidates(n)
    ratios: dict[str, list[float]] = {name: [] for name in tried}
    for make in _KINDS:
        for density in (1, 30, 1_000):
            counts = make(n, n * density, 3)
            for epsilon in (0.01, 0.1, 1.0):
                error = {
                    name: _error(mechanism, counts, epsilon, repeats) for name, mechanism in tried.items()
                }
                best = min(error.values())
                for name, value in error.items():
                    ratios[name].append(log(value / best))
    _write(f"\nn = {n:,}")
    for name, values in ratios.items():
        _write(f"  {name:18} {exp(float(np.mean(values))):6.2f} ({exp(max(values)):.1f})")


def _error(mechanism: NoiseFirst, counts: IntArray, epsilon: float, repeats: int) -> float:
    squares = [
        np.mean((run(mechanism, counts, epsilon, seed=s).counts - counts) ** 2) for s in range(repeats)
    ]
    return float(np.sqrt(np.mean(squares)))


def _beside(folder: Path, peers: Path, repeats: int) -> None:
    with peers.open(encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["workload"] == "identity"]
    methods = {
        "NoiseFirst()": NoiseFirst(),
        "NoiseFirst(statistic='median')": NoiseFirst(statistic="median"),
        "NoiseFirst(price='paper')": NoiseFirst(price="paper"),
    }
    private: dict[str, list[float]] = {name: [] for name in methods}
    every: dict[str, list[float]] = {name: [] for name in methods}
    for row in rows:
        path = next(
            (p for p in (folder / f"{row['dataset']}{e}.csv" for e in ("", "4096")) if p.exists()), None
        )
        if path is None:
            continue
        shape = np.loadtxt(path, delimiter=",", skiprows=1)[:, 1]
        counts = [data.sample(shape, int(float(row["scale"])), seed) for seed in range(repeats)]
        for name, mechanism in methods.items():
            squares = [
                np.mean((run(mechanism, x, row["eps"], seed=s).counts - x) ** 2) for s, x in enumerate(counts)
            ]
            error = float(np.sqrt(np.mean(squares)))
            private[name].append(log(error / float(row["rmse"])))
            every[name].append(log(error / float(row["best_rmse"])))
    cases = len(next(iter(private.values())))
    _write(f"\nBeside the best public implementation of each of {cases} cases: geometric mean (worst)")
    for name in methods:
        a, b = private[name], every[name]
        _write(
            f"  {name:32} of the private ones {exp(float(np.mean(a))):.2f} ({exp(max(a)):.1f}),"
            f" of all {exp(float(np.mean(b))):.2f} ({exp(max(b)):.1f})"
        )


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
