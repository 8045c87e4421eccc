"""Which price per bucket NoiseFirst should ask: measured error of single cells, price by price.

For several sizes and over synthetic data of seven kinds, three
densities and three budgets, the root mean squared error is given relative to the best price of each case: geometric
mean and worst. Prices are in noise variances (mean) and noise scales (median).

With ``--data DIR --peers FILE`` it also measures the default beside public implementations: FILE has a row
per data set, scale and ε with the error of the best of them chosen with hindsight (``best_rmse``), and of
the best that is private (``rmse``); DIR has the count vectors, from which records are drawn. The default was
chosen on the synthetic data and on these; other vectors may differ.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from math import exp, log
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.noisefirst import NoiseFirst
from dphist.testing import run
from dphist_bench import data as makers
from dphist_bench.data import files
from dphist_bench.measuring import Line

IntArray = NDArray[np.int64]

_KINDS = (
    makers.search_timeline,
    makers.network_hosts,
    makers.social_degrees,
    makers.steps,
    makers.spikes,
    makers.bell,
    makers.level,
)


def measure(
    *,
    quick: bool,
    repeats: int = 4,
    data: Annotated[Path | None, "a folder with count vectors, bin,count"] = None,
    peers: Annotated[Path | None, "errors of public implementations on them"] = None,
) -> Iterator[Line]:
    """Give the tables."""
    yield "Error relative to the best price of each case: geometric mean, and worst"
    for n in (128,) if quick else (128, 1_024, 16_384):
        yield from _prices(n, 1 if quick else repeats)
    if data is not None and peers is not None:
        yield from _beside(data, peers, repeats)


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


def _prices(n: int, repeats: int) -> Iterator[Line]:
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
    for name, values in ratios.items():
        yield {"price": name, "n": n, "mean": exp(float(np.mean(values))), "worst": exp(max(values))}


def _error(mechanism: NoiseFirst, counts: IntArray, epsilon: float, repeats: int) -> float:
    squares = [
        np.mean((run(mechanism, counts, epsilon, seed=s).counts - counts) ** 2) for s in range(repeats)
    ]
    return float(np.sqrt(np.mean(squares)))


def _beside(folder: Path, peers: Path, repeats: int) -> Iterator[Line]:
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
        shape = files.counts(path).astype(np.float64)
        counts = [makers.sample(shape, int(float(row["scale"])), seed) for seed in range(repeats)]
        for name, mechanism in methods.items():
            squares = [
                np.mean((run(mechanism, x, row["eps"], seed=s).counts - x) ** 2) for s, x in enumerate(counts)
            ]
            error = float(np.sqrt(np.mean(squares)))
            private[name].append(log(error / float(row["rmse"])))
            every[name].append(log(error / float(row["best_rmse"])))
    cases = len(next(iter(private.values())))
    yield f"Beside the best public implementation of each of {cases} cases: geometric mean, and worst"
    for name in methods:
        a, b = private[name], every[name]
        yield {
            "mechanism": name,
            "of the private ones": exp(float(np.mean(a))),
            "worst": exp(max(a)),
            "of all": exp(float(np.mean(b))),
            "worst of all": exp(max(b)),
        }
