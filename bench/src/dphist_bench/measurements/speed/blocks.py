"""Speed of the building blocks by number of bins; with ``--data DIR``, their error beside public implementations.

``DIR`` holds count vectors as ``NAME.csv`` (bin,count) and ``--peers`` a table of peers' errors; neither is part of
dphist. Errors are root mean squared, over every bin (identity) and every prefix sum (prefix).
"""

from __future__ import annotations

import csv
import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse
from dphist.model.workload import Workload
from dphist.testing import open_counts
from dphist_bench.data import files, sample, steps
from dphist_bench.measuring import Line
from dphist_bench.timing import peak_memory

IntArray = NDArray[np.int64]

# Largest size each is timed at: quadratic ones stop early.
SPEED = {
    "h": 1 << 20,
    "tree(fanout=2)": 1 << 20,
    "s2+h": 1 << 20,
    "s1+h": 1 << 20,
    "s-approx": 1 << 18,
    "s-approx+pmm": 1 << 18,
    "s2": 1 << 15,
    "o+s2": 1 << 15,
    "s1": 1 << 15,
    "s1(centre='median')": 1 << 15,
}
VECTORS = {
    "ADULT": "ADULT",
    "HEPTH": "HEPTH",
    "INCOME": "INCOME",
    "MEDCOST": "MEDCOST",
    "NETTRACE": "NETTRACE4096",
    "PATENT": "PATENT",
    "SEARCHLOGS": "SEARCHLOGS4096",
}
BESIDE = [
    "hb", "h", "tree(fanout='auto')", "boost", "greedyh", "ahp", "o+s2", "s-approx", "s2", "dawa",
    "dawa(centre='median')", "s1+h", "s2+h",
]  # fmt: skip


def measure(
    *,
    quick: bool,
    only: Annotated[tuple[str, ...], "time or compare these mechanisms"] = (),
    epsilon: str = "1",
    data: Annotated[Path | None, "directory of count vectors: compare errors instead"] = None,
    peers: Annotated[Path | None, "table of peers' errors (default: beside the directory)"] = None,
    trials: int = 3,
) -> Iterator[Line]:
    """Give CPU seconds and their growth; or, with data, errors beside public implementations."""
    if data is not None:
        yield from _errors(data, peers or data.parent / "peers.csv", only or tuple(BESIDE), trials, quick)
        return
    yield f"CPU seconds at epsilon = {epsilon}, and the growth from the size before"
    for name in only or SPEED:
        mechanism = parse(name)
        run(mechanism, steps(512, 10_000), epsilon)  # compiles
        before = None
        for n in (1 << k for k in ((10, 12) if quick else (10, 12, 15, 18, 20))):
            if n > SPEED.get(name, 1 << 20):
                continue
            spent = min(run(mechanism, steps(n, 100 * n), epsilon)[0] for _ in range(3 if n < 1 << 15 else 1))
            yield {"mechanism": name, "bins": n, "CPU s": spent, "times": before and spent / before}
            before = spent
    yield f"largest memory of the process: {peak_memory() / 1e6:.0f} MB"


def run(
    mechanism: Mechanism, counts: IntArray, epsilon: str, workload: str = ""
) -> tuple[float, NDArray[np.float64]]:
    """CPU seconds of one estimate with real noise, and the estimate."""
    right = open_counts(counts, epsilon)
    if workload:
        from dphist.testing.gates import as_histogram

        hint: Workload = getattr(Workload, workload)(as_histogram(counts).domain)
        right = open_counts(counts, epsilon, workload=hint)
    begun = time.process_time()
    estimate = mechanism.estimate(right)
    return time.process_time() - begun, estimate.counts


def _errors(folder: Path, peers: Path, names: Sequence[str], trials: int, quick: bool) -> Iterator[Line]:
    with peers.open() as file:
        known = {
            (r["dataset"], int(r["scale"]), float(r["eps"]), r["workload"]): r for r in csv.DictReader(file)
        }
    mechanisms = {name: parse(name) for name in names}
    ratios: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in names}
    for vector, file_name in list(VECTORS.items())[: 1 if quick else None]:
        weights = files.counts(folder / f"{file_name}.csv").astype(np.float64)
        for scale in (1_000, 100_000, 10_000_000):
            for epsilon in ("0.01", "0.1", "1"):
                for name, mechanism in mechanisms.items():
                    _compare(known, vector, weights, scale, epsilon, mechanism, trials, ratios[name])
    yield "geometric mean (worst) of error ÷ best private peer's, chosen per case with hindsight"
    for name in names:
        heads = ("identity", "identity AHP", "prefix", "prefix HB")
        yield {"mechanism": name, **{head: _summary(ratios[name][head]) for head in heads}}
    yield "'identity AHP': cases where AHP is the best private peer; 'prefix HB': where HB is"


def _compare(
    known: dict[tuple[str, int, float, str], dict[str, str]],
    vector: str,
    weights: NDArray[np.float64],
    scale: int,
    epsilon: str,
    mechanism: Mechanism,
    trials: int,
    ratios: dict[str, list[float]],
) -> None:
    for workload, hint in (("identity", "cells"), ("prefix", "prefixes")):
        squares = []
        for trial in range(trials):
            truth = sample(weights, scale, trial)
            error = run(mechanism, truth, epsilon, hint)[1] - truth
            squares.append(np.mean((error if workload == "identity" else np.cumsum(error)) ** 2))
        peer = known.get((vector, scale, float(epsilon), workload))
        if peer is None:
            continue
        ratio = math.sqrt(float(np.mean(squares))) / float(peer["rmse"])
        ratios[workload].append(ratio)
        ratios[f"{workload} {peer['best_excl_nonprivate']}"].append(ratio)


def _summary(ratios: list[float]) -> str:
    if not ratios:
        return "–"
    mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
    return f"{mean:.2f} ({max(ratios):.2f}) n={len(ratios)}"
