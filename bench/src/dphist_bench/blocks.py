"""Speed of the building blocks by number of bins; with ``--data DIR``, their error beside public implementations.

``DIR`` holds count vectors as ``NAME.csv`` (bin,count) and ``--peers`` a table of peers' errors; neither is part of
dphist. Errors are root mean squared, over every bin (identity) and every prefix sum (prefix).
"""

from __future__ import annotations

import argparse
import csv
import math
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse
from dphist.model.workload import Workload
from dphist.testing import open_counts
from dphist_bench.data import sample, steps

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


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench blocks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--only", action="append", help="time or compare this mechanism (may be repeated)")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--data", type=Path, help="directory of count vectors: compare errors instead")
    parser.add_argument("--peers", type=Path, help="table of peers' errors")
    parser.add_argument("--trials", type=int, default=3)
    chosen = parser.parse_args(argv)
    if chosen.data is not None:
        peers = chosen.peers or chosen.data.parent / "peers.csv"
        return _errors(chosen.data, peers, chosen.only or BESIDE, chosen.trials, chosen.quick)
    return _speed(chosen.only or list(SPEED), chosen.epsilon, 1 << (12 if chosen.quick else 20))


def _speed(names: list[str], epsilon: str, largest: int) -> int:
    sizes = [1 << k for k in (10, 12, 15, 18, 20) if 1 << k <= largest]
    sys.stdout.write(f"CPU seconds at epsilon = {epsilon}, and the growth from the size before\n")
    sys.stdout.write(f"{'mechanism':22}" + "".join(f"{n:>18,}" for n in sizes) + "\n")
    for name in names:
        mechanism = parse(name)
        run(mechanism, steps(512, 10_000), epsilon)  # compiles
        cells, before = [], None
        for n in sizes:
            if n > SPEED.get(name, 1 << 20):
                cells.append(f"{'–':>18}")
                continue
            seconds = min(
                run(mechanism, steps(n, 100 * n), epsilon)[0] for _ in range(3 if n < 1 << 15 else 1)
            )
            growth = f" (×{seconds / before:.1f})" if before else ""
            cells.append(f"{f'{seconds:.4f}{growth}':>18}")
            before = seconds
        sys.stdout.write(f"{name:22}" + "".join(cells) + "\n")
        sys.stdout.flush()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"largest memory of the process: {memory:.0f} MB\n")
    return 0


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


def _errors(folder: Path, peers: Path, names: list[str], trials: int, quick: bool) -> int:
    with peers.open() as file:
        known = {
            (r["dataset"], int(r["scale"]), float(r["eps"]), r["workload"]): r for r in csv.DictReader(file)
        }
    mechanisms = {name: parse(name) for name in names}
    ratios: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in names}
    for vector, file_name in list(VECTORS.items())[: 1 if quick else None]:
        weights = np.loadtxt(folder / f"{file_name}.csv", delimiter=",", skiprows=1)[:, 1]
        for scale in (1_000, 100_000, 10_000_000):
            for epsilon in ("0.01", "0.1", "1"):
                for name, mechanism in mechanisms.items():
                    _compare(known, vector, weights, scale, epsilon, mechanism, trials, ratios[name])
    sys.stdout.write(
        "geometric mean (worst) of error ÷ best private peer's, chosen per case with hindsight\n"
    )
    heads = ["identity", "identity AHP", "prefix", "prefix HB"]
    sys.stdout.write(f"{'mechanism':24}" + "".join(f"{head:>20}" for head in heads) + "\n")
    for name in names:
        row = [_summary(ratios[name][head]) for head in heads]
        sys.stdout.write(f"{name:24}" + "".join(f"{cell:>20}" for cell in row) + "\n")
    sys.stdout.write("'identity AHP': cases where AHP is the best private peer; 'prefix HB': where HB is\n")
    return 0


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
