"""Speed of lossy compression: EFPA, P-HPartition, isotonic and MWEM from thousands to a million cells.

CPU seconds of one release (best of a few), beside a floor that any such method must pay: for EFPA one
double-precision FFT of the cells, which cannot give a proven answer; for P-HPartition one sort and ⌊log₂ n⌋ passes
over the cells; for MWEM the exponentials of its candidates; for isotonic one pass.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.spec import parse
from dphist.testing import run
from dphist_bench import data

IntArray = NDArray[np.int64]

RECIPES = ("efpa", "efpa(basis='cosine')", "efpa(basis='either')", "phpartition", "isotonic", "mwem")


def cpu(work: Callable[[], object], repeats: int) -> float:
    """Least CPU time of a few runs; the first, which compiles, is not counted."""
    work()
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return float(best)


def floor(recipe: str, counts: IntArray, repeats: int) -> float:
    """CPU time of the least that such a method must do."""
    if recipe.startswith("efpa"):
        return cpu(lambda: np.fft.rfft(counts.astype(np.float64)), repeats)
    if recipe == "phpartition":
        depth = counts.size.bit_length() - 1

        def passes() -> None:
            np.sort(counts)
            for _ in range(depth):
                np.cumsum(counts)

        return cpu(passes, repeats)
    if recipe == "mwem":
        # Ten rounds weigh some 2n boxes each.
        return cpu(lambda: [np.exp(np.zeros(2 * counts.size)) for _ in range(10)], repeats)
    return cpu(lambda: np.add(counts, 1), repeats)


def main(argv: list[str]) -> int:
    """Print CPU seconds, the floor, their ratio, and growth per doubling of the cells."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench compression", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="up to 4,096 cells")
    parser.add_argument("--epsilon", type=float, default=0.1)
    options = parser.parse_args(argv)
    sizes = [1_024, 4_096] if options.quick else [4_096, 16_384, 65_535, 65_536, 262_144, 1_048_576]
    sys.stdout.write(
        "| mechanism | cells | CPU s | floor, CPU s | ratio | time ÷ cells, ns |\n|---|---|---|---|---|---|\n"
    )
    for recipe in RECIPES:
        mechanism = parse(recipe)
        for n in sizes:
            counts = data.search_timeline(n, 10 * n)
            release = partial(run, mechanism, counts, options.epsilon)
            spent, least = cpu(release, options.repeats), floor(recipe, counts, options.repeats)
            each = f"{spent:.4f} | {least:.5f} | {spent / least:.0f} | {spent / n * 1e9:.0f}"
            sys.stdout.write(f"| {recipe} | {n:,} | {each} |\n")
            sys.stdout.flush()
    return 0
