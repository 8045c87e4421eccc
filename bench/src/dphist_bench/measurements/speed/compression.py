"""Speed of lossy compression: EFPA, P-HPartition, isotonic and MWEM from thousands to a million cells.

CPU seconds of one release (best of a few), beside a floor that any such method must pay: for EFPA one
double-precision FFT of the cells, which cannot give a proven answer; for P-HPartition one sort and ⌊log₂ n⌋ passes
over the cells; for MWEM the exponentials of its candidates; for isotonic one pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.spec import parse
from dphist.testing import run
from dphist_bench import data
from dphist_bench.measuring import Line
from dphist_bench.timing import least

IntArray = NDArray[np.int64]

RECIPES = ("efpa", "efpa(basis='cosine')", "efpa(basis='either')", "phpartition", "isotonic", "mwem")


def floor(recipe: str, counts: IntArray, repeats: int) -> float:
    """CPU time of the least that such a method must do."""
    if recipe.startswith("efpa"):
        return least(lambda: np.fft.rfft(counts.astype(np.float64)), repeats)
    if recipe == "phpartition":
        depth = counts.size.bit_length() - 1

        def passes() -> None:
            np.sort(counts)
            for _ in range(depth):
                np.cumsum(counts)

        return least(passes, repeats)
    if recipe == "mwem":
        # Ten rounds weigh some 2n boxes each.
        return least(lambda: [np.exp(np.zeros(2 * counts.size)) for _ in range(10)], repeats)
    return least(lambda: np.add(counts, 1), repeats)


def measure(*, quick: bool, repeats: int = 3, epsilon: float = 0.1) -> Iterator[Line]:
    """Give CPU seconds, the floor, their ratio, and time by cell, mechanism by mechanism, size by size."""
    sizes = [1_024, 4_096] if quick else [4_096, 16_384, 65_535, 65_536, 262_144, 1_048_576]
    for recipe in RECIPES:
        mechanism = parse(recipe)
        for n in sizes:
            counts = data.search_timeline(n, 10 * n)
            release = partial(run, mechanism, counts, epsilon)
            release()  # compiles
            spent, lowest = least(release, repeats), floor(recipe, counts, repeats)
            yield {
                "mechanism": recipe,
                "cells": n,
                "CPU s": spent,
                "floor, CPU s": lowest,
                "ratio": spent / lowest,
                "time ÷ cells, ns": spent / n * 1e9,
            }
