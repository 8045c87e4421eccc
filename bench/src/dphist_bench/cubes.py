"""DPCube on large cubes: CPU and memory up to ten million cells; and two-dimensional error beside other mechanisms.

python -m dphist_bench cubes                    growth up to 10⁷ cells in 3-D
python -m dphist_bench cubes --data FOLDER      error on 256 × 256 sets (CSV: row,col,count)
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from fractions import Fraction
from pathlib import Path

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
from dphist_bench.data import sample

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


def main(argv: list[str]) -> int:
    """Show growth, or with ``--data`` errors."""
    options = argparse.ArgumentParser(prog="python -m dphist_bench cubes", description=__doc__)
    options.add_argument("--data", type=Path, help="folder with 256 × 256 sets")
    options.add_argument("--largest", type=int, default=10_000_000, help="cells of the largest cube")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--coverage", action="store_true", help="count how often intervals hold the truth")
    options.add_argument("--quick", action="store_true", help="a cube of a hundred thousand cells")
    given = options.parse_args(argv)
    if given.data is not None:
        return errors(given.data, given.runs, given.quick)
    if given.coverage:
        return coverage(2 if given.quick else 25)
    return growth(100_000 if given.quick else given.largest)


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


def growth(largest: int) -> int:
    """Time DPCube end to end: noise on the cells, tree, noise on the leaves, estimate."""
    say("DPCube end to end, 3-D, ε = 1: CPU seconds, microseconds a cell, leaves, peak memory of the process")
    say(f"{'data':>8} {'estimator':>12} {'cells':>12} {'CPU s':>8} {'µs/cell':>8} {'leaves':>10} {'GB':>6}")
    for kind in ("hills", "scatter"):
        for estimator in ("weighted", "uniform", "nonnegative"):
            mechanism = DPCube(estimator=estimator)
            run(mechanism, cube(8, 1000, kind), 1, seed=1)
            size = min(10_000, largest)
            while size <= largest:
                side = math.ceil(size ** (1 / 3) - 1e-9)
                counts = cube(side, size, kind)
                start = time.process_time()
                estimate = run(mechanism, counts, 1)
                spent = time.process_time() - start
                leaves = estimate.errors.leaves()[0].shape[0]  # type: ignore[attr-defined]
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
                say(
                    f"{kind:>8} {estimator:>12} {counts.size:>12,} {spent:>8.2f} "
                    f"{1e6 * spent / counts.size:>8.3f} {leaves:>10,} {peak:>6.2f}"
                )
                size *= 10
    return 0


def errors(folder: Path, runs: int, quick: bool) -> int:
    """Root mean squared error of random rectangles and of cells, per set, scale and ε."""
    domain = Domain([Ordinal("row", range(256)), Ordinal("col", range(256))])
    loads = {"rectangles": Workload.random(domain, 2_000, seed=3), "cells": Workload.cells(domain)}
    scales = (10_000,) if quick else (10_000, 1_000_000, 100_000_000)
    for kind, workload in loads.items():
        ratios: dict[str, list[float]] = {name: [] for name in METHODS}
        say(f"\n{kind}: root mean squared error")
        say(f"{'set':>10} {'records':>9} {'ε':>5} " + " ".join(f"{name:>9}" for name in METHODS))
        for name in SETS:
            path = folder / f"{name}.csv"
            if not path.is_file():
                say(f"{name:>10} is not in {folder}")
                continue
            for records in scales:
                counts = sample(read(path), records, 1)
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
                    say(f"{name:>10} {records:>9.0e} {epsilon:>5} " + " ".join(f"{e:>9,.3g}" for e in found))
        if any(ratios.values()):
            means = [math.exp(float(np.mean(np.log(np.maximum(each, 1e-9))))) for each in ratios.values()]
            say(f"{'geometric mean of the ratio to Laplace':>26} " + " ".join(f"{m:>9.2f}" for m in means))
    return 0


def coverage(runs: int) -> int:
    """Count how often 95 % intervals of random rectangles hold the truth: bias inside boxes is not covered."""
    place = np.indices((48, 48)) / 48
    weights = 60 * np.exp(-((place - 0.4) ** 2).sum(axis=0) * 40)
    weights[30:33, 5:40] += 25
    counts = sample(weights, round(float(weights.sum())), 1)
    domain = Domain([Ordinal("row", range(48)), Ordinal("col", range(48))])
    workload = Workload.random(domain, 200, seed=2)
    truth = workload.answer(counts)
    say(
        "95 % intervals of 200 random rectangles, 48 × 48, ε = 1: share that hold the truth, half-width, error"
    )
    for name, mechanism in (METHODS | {"printed": DPCube(estimator="least-squares")}).items():
        held, wide, missed = [], [], []
        for seed in range(runs):
            answers = _seeded(Histogram(domain, counts), mechanism, seed).answer(workload)
            held.append(np.mean((answers.low <= truth) & (truth <= answers.high)))
            wide.append(np.mean(answers.high - answers.low) / 2)
            missed.append(np.mean((answers.value - truth) ** 2))
        say(
            f"{name:>10} {np.mean(held):>7.1%} {np.mean(wide):>9.1f} {math.sqrt(float(np.mean(missed))):>9.1f}"
        )
    return 0


def _seeded(histogram: Histogram, mechanism: Mechanism, seed: int) -> Release:
    """A release at ε = 1 with repeatable noise, for measuring only: it refuses to be saved."""
    return _release(histogram, Fraction(1), mechanism, Unit(), None, Noise(Keystream.for_tests(seed)))


def read(path: Path) -> NDArray[np.float64]:
    """A sparse plane: row, column, count."""
    rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64, ndmin=2)
    plane = np.zeros((256, 256))
    np.add.at(plane, (rows[:, 0], rows[:, 1]), rows[:, 2])
    return plane


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
