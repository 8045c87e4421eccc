"""DPCube on large cubes: CPU and memory up to ten million cells; and two-dimensional error beside other mechanisms.

Without options growth up to 10⁷ cells in 3-D; with ``--data FOLDER`` the error on 256 × 256 sets (CSV: row,col,count).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.dpcube import DPCube
from dphist.mechanisms.grids import AdaptiveGrid, UniformGrid
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spatialtrees import HierarchicalKD, KDHybrid, QuadTree
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.door import _release
from dphist.release import Release
from dphist.testing import run
from dphist_bench.data import files, sample
from dphist_bench.measuring import Line
from dphist_bench.timing import peak_memory

SETS = ("GOWALLA", "ADULT-2D", "SF-CABS-E", "BJ-CABS-S")
METHODS: dict[str, Mechanism] = {
    "Laplace": Laplace(),
    # By its own rule Privelet+ leaves axes of 256 untransformed, which is Laplace again.
    "Privelet": Privelet(plain=()),
    "DPCube": DPCube(),
    "uniform": DPCube(estimator="uniform"),
    "nonneg.": DPCube(estimator="nonnegative"),
    "KDHybrid": KDHybrid(),
    "QuadTree": QuadTree(),
    "Hier.KD": HierarchicalKD(),
    "Unif.Grid": UniformGrid(),
    "Ad.Grid": AdaptiveGrid(),
}


def measure(
    *,
    quick: bool,
    data: Annotated[Path | None, "folder with 256 × 256 sets: errors instead"] = None,
    largest: Annotated[int, "cells of the largest cube"] = 10_000_000,
    runs: int = 3,
    coverage: Annotated[bool, "count how often intervals hold the truth"] = False,
) -> Iterator[Line]:
    """Give growth, or with ``--data`` errors, or coverage."""
    if data is not None:
        yield from errors(data, runs, quick)
    elif coverage:
        yield from covered(2 if quick else 25)
    else:
        yield from growth(100_000 if quick else largest)


def cube(side: int, records: int, kind: str) -> NDArray[np.int64]:
    """Records in a cube: two smooth hills, or a scatter of heavy single cells on an empty ground."""
    if kind == "hills":
        place = np.indices((side, side, side)) / side
        near = np.exp(-((place - 0.4) ** 2).sum(axis=0) * 30.0)
        far = np.exp(-((place - 0.7) ** 2).sum(axis=0) * 200.0)
        return sample(near + 0.5 * far, records, 1)
    draw = np.random.default_rng(2)  # noqa: TID251 -- data only
    counts = np.zeros(side**3, dtype=np.int64)
    places = draw.integers(0, counts.size, max(1, counts.size // 500))
    np.add.at(counts, places, (draw.pareto(1.0, places.size) * 20).astype(np.int64))
    return counts.reshape(side, side, side)


def growth(largest: int) -> Iterator[Line]:
    """Time DPCube end to end: noise on the cells, tree, noise on the leaves, estimate."""
    yield "DPCube end to end, 3-D, ε = 1: CPU seconds, microseconds a cell, leaves, peak memory of the process"
    for kind in ("hills", "scatter"):
        for estimator in ("weighted", "uniform", "nonnegative"):
            mechanism = DPCube(estimator=estimator)
            run(mechanism, cube(8, 1000, kind), 1, seed=1)
            size = min(10_000, largest)
            while size <= largest:
                counts = cube(math.ceil(size ** (1 / 3) - 1e-9), size, kind)
                start = time.process_time()
                estimate = run(mechanism, counts, 1)
                spent = time.process_time() - start
                yield {
                    "data": kind,
                    "estimator": estimator,
                    "cells": counts.size,
                    "CPU s": spent,
                    "µs/cell": 1e6 * spent / counts.size,
                    "leaves": estimate.errors.leaves()[0].shape[0],  # type: ignore[attr-defined]
                    "GB": peak_memory() / 1e9,
                }
                size *= 10


def errors(folder: Path, runs: int, quick: bool) -> Iterator[Line]:
    """Root mean squared error of random rectangles and of cells, per set, scale and ε."""
    domain = Domain([Ordinal("row", range(256)), Ordinal("col", range(256))])
    loads = {"rectangles": Workload.random(domain, 2_000, seed=3), "cells": Workload.cells(domain)}
    scales = (10_000,) if quick else (10_000, 1_000_000, 100_000_000)
    for kind, workload in loads.items():
        ratios: dict[str, list[float]] = {name: [] for name in METHODS}
        yield f"{kind}: root mean squared error"
        for name in SETS:
            path = folder / f"{name}.csv"
            if not path.is_file():
                yield f"{name} is not in {folder}"
                continue
            for records in scales:
                counts = sample(files.counts(path).astype(np.float64), records, 1)
                truth = workload.answer(counts)
                for epsilon in ("0.1", "1"):
                    found = []
                    for mechanism in METHODS.values():
                        estimates = [
                            run(mechanism, Histogram(domain, counts), epsilon, seed=seed).counts
                            for seed in range(runs)
                        ]
                        squares = [np.mean((workload.answer(each) - truth) ** 2) for each in estimates]
                        found.append(math.sqrt(float(np.mean(squares))))
                    for method, error in zip(METHODS, found, strict=True):
                        ratios[method].append(error / found[0])
                    yield {
                        "set": name,
                        "records": records,
                        "ε": epsilon,
                        **dict(zip(METHODS, found, strict=True)),
                    }
        if any(ratios.values()):
            means = [math.exp(float(np.mean(np.log(np.maximum(each, 1e-9))))) for each in ratios.values()]
            yield {"geometric mean of the ratio to Laplace": kind, **dict(zip(METHODS, means, strict=True))}


def covered(runs: int) -> Iterator[Line]:
    """Count how often 95 % intervals of random rectangles hold the truth: bias inside boxes is not covered."""
    place = np.indices((48, 48)) / 48
    weights = 60 * np.exp(-((place - 0.4) ** 2).sum(axis=0) * 40)
    weights[30:33, 5:40] += 25
    counts = sample(weights, round(float(weights.sum())), 1)
    domain = Domain([Ordinal("row", range(48)), Ordinal("col", range(48))])
    workload = Workload.random(domain, 200, seed=2)
    truth = workload.answer(counts)
    yield "95 % intervals of 200 random rectangles, 48 × 48, ε = 1: share that hold the truth, half-width, error"
    for name, mechanism in (METHODS | {"printed": DPCube(estimator="least-squares")}).items():
        held, wide, missed = [], [], []
        for seed in range(runs):
            answers = _seeded(Histogram(domain, counts), mechanism, seed).answer(workload)
            held.append(np.mean((answers.low <= truth) & (truth <= answers.high)))
            wide.append(np.mean(answers.high - answers.low) / 2)
            missed.append(np.mean((answers.value - truth) ** 2))
        yield {
            "mechanism": name,
            "held": float(np.mean(held)),
            "half-width": float(np.mean(wide)),
            "error": math.sqrt(float(np.mean(missed))),
        }


def _seeded(histogram: Histogram, mechanism: Mechanism, seed: int) -> Release:
    """A release at ε = 1 with repeatable noise, for measuring only: it refuses to be saved."""
    return _release(histogram, Fraction(1), mechanism, Unit(), None, Noise(Keystream.for_tests(seed)))
