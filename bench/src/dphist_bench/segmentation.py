"""How fast rows are segmented, beside the textbook dynamic programs, and how the cost grows.

``python -m dphist_bench segmentation`` prints, in CPU milliseconds of one thread (the best of several runs):

- a price per bucket (what NoiseFirst does), n from 2¹⁰ to 2²⁰, both losses, at the paper's price on counts
with noise
  of ε = 0.01, 0.1 and 1; the textbook O(n²) program on the same input as long as it is bearable;
- k = n/10 buckets (what StructureFirst does): the trusted integer form, squared and absolute loss, with the
textbook
  O(n²·k) program beside it.

``--large`` adds k = 3,277 buckets of 32,768 cells, with the peak of memory. ``--out DIR`` saves a picture of
it. ``--quick`` stops early, to check that everything runs.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.segmentation import Loss, Rows, segment
from dphist.kernels.segmentation import straightforward as textbook
from dphist_bench import data

IntArray = NDArray[np.int64]

_MAKERS = (data.spikes, data.steps, data.bell)
# The trusted integer form of StructureFirst, and both losses with real levels or medians.
_FORMS: tuple[tuple[Loss, bool], ...] = (("squared", True), ("squared", False), ("absolute", False))
# Compiled before anything is timed.
_WARM = np.array([3, 1, 2, 2, 5])


def main(argv: list[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench segmentation", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small inputs only")
    parser.add_argument("--large", action="store_true", help="add 3,277 buckets of 32,768 cells (minutes)")
    parser.add_argument("--out", type=Path, help="save the growth as growth.png here")
    options = parser.parse_args(argv)
    if options.large:
        # First, so that the peak of memory is its own.
        _large(32_768)
    grown = _growth(range(10, 13 if options.quick else 21, 2), bearable=2_048 if options.quick else 65_536)
    _fixed([512] if options.quick else [1_024, 4_096])
    if options.out is not None:
        _plot(grown, options.out)
    return 0


def noisy(counts: IntArray, epsilon: float, seed: int = 1) -> IntArray:
    """Add discrete Laplace noise from a plain generator: for timing only."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    p = 1.0 - np.exp(-epsilon)
    return counts + draw.geometric(p, counts.size) - draw.geometric(p, counts.size)


def cpu(call: Callable[[], Any], repeats: int) -> float:
    """Give the least CPU milliseconds of several calls."""
    least = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
    return 1e3 * least


def _growth(powers: range, bearable: int) -> list[dict[str, Any]]:
    _write(
        "A price per bucket (the paper's), CPU ms: least and most over three kinds of data and ε = 0.01, 0.1, 1"
    )
    _write(
        f"{'n':>9} {'squared':>17} {'absolute':>17} {'O(n²) squared':>14} {'O(n²) absolute':>15} {'times faster':>17}"
    )
    segment([1, 2], price=1)
    segment([1, 2], price=1, loss="absolute")
    textbook.penalised_squared(np.array([1, 2]), 1.0)
    textbook.penalised_absolute(textbook.absolute_costs(*_ranked(np.array([1, 2]))), 1)
    grown: list[dict[str, Any]] = []
    for power in powers:
        n = 2**power
        rows = [(noisy(make(n, 20 * n, 3), eps), eps) for make in _MAKERS for eps in (0.01, 0.1, 1.0)]
        repeats = 5 if n <= 2**16 else 1
        ours: dict[str, list[float]] = {
            "squared": [cpu(partial(segment, x, price=4 / e**2), repeats) for x, e in rows],
            "absolute": [cpu(partial(segment, x, price=3 / e, loss="absolute"), repeats) for x, e in rows],
        }
        line = f"{n:9,}"
        for loss, times in ours.items():
            line += f" {min(times):8.2f}–{max(times):8.2f}"
            grown += [{"n": n, "ms": t, "what": loss} for t in times]
        if n <= bearable:
            x, eps = rows[1]
            plain = cpu(partial(textbook.penalised_squared, x, 4 / eps**2), 1)
            grown.append({"n": n, "ms": plain, "what": "textbook squared"})
            line += f" {plain:14.1f}"
            ratio = f"{plain / ours['squared'][1]:,.0f}"
            if n <= 4_096:
                # Beyond, its table of bucket costs would fill gigabytes.
                slow = cpu(partial(_textbook_absolute, textbook.penalised_absolute, x, round(3 / eps)), 1)
                grown.append({"n": n, "ms": slow, "what": "textbook absolute"})
                ratio += f", {slow / ours['absolute'][1]:,.0f}"
                line += f" {slow:15.1f} {ratio:>17}"
            else:
                line += f" {'':15} {ratio:>17}"
        _write(line)
    return grown


def walk(values: IntArray, bins: int, loss: Loss, lattice: bool) -> None:
    """Fill the rows and walk back along the best boundaries, as StructureFirst does along drawn ones."""
    rows = Rows(values, loss=loss, lattice=lattice).descend(bins - 1)
    right = values.size
    j, costs = next(rows)
    while j > 1:
        right = j + int(np.argmin(costs[j:right]))
        j, costs = rows.send(right)


def _fixed(sizes: list[int]) -> None:
    _write("")
    _write("k = n/10 buckets, CPU ms: all rows and the walk back")
    _write(
        f"{'n':>7} {'k':>5} {'data':>8} {'squared, trusted':>17} {'squared':>9} {'absolute':>9}"
        f" {'O(n²k) squared':>15} {'absolute':>9} {'times faster':>17}"
    )
    for loss, lattice in _FORMS:
        walk(_WARM, 3, loss, lattice)
    textbook.fixed_squared(_WARM, 2)
    textbook.fixed_absolute(textbook.absolute_costs(*_ranked(_WARM)), 2)
    for n in sizes:
        k = n // 10
        for make in _MAKERS:
            x = make(n, 20 * n, 3)
            times = [cpu(partial(walk, x, k, loss, lattice), 3) for loss, lattice in _FORMS]
            line = f"{n:7,} {k:5} {make.__name__:>8} {times[0]:17.1f} {times[1]:9.1f} {times[2]:9.1f}"
            if make is data.steps:
                plain = cpu(partial(textbook.fixed_squared, x, k), 1)
                slow = cpu(partial(_textbook_absolute, textbook.fixed_absolute, x, k), 1)
                line += f" {plain:15.0f} {slow:9.0f} {plain / times[0]:8.0f}, {slow / times[2]:7.0f}"
            _write(line)


def _large(n: int) -> None:
    _write(f"n = {n:,}, k = {n // 10:,}: CPU seconds, and the peak of memory of the process so far")
    for loss, lattice in _FORMS[::2]:
        walk(_WARM, 3, loss, lattice)
    for make in _MAKERS:
        x = make(n, 20 * n, 3)
        times = [cpu(partial(walk, x, n // 10, loss, lattice), 1) / 1e3 for loss, lattice in _FORMS[::2]]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        _write(f"{make.__name__:>8}: squared {times[0]:.1f} s, absolute {times[1]:.1f} s, {peak:.0f} MB")
    _write("")


def _textbook_absolute(program: Callable[[IntArray, int], object], values: IntArray, setting: int) -> object:
    return program(textbook.absolute_costs(*_ranked(values)), setting)


def _ranked(values: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    levels, ranks = np.unique(values, return_inverse=True)
    return values, ranks.astype(np.int64), levels


def _plot(grown: list[dict[str, Any]], folder: Path) -> None:
    import altair as alt

    rows = [{**row, "ms": max(row["ms"], 1e-3)} for row in grown]
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("n:Q", scale=alt.Scale(type="log", base=2), title="cells"),
        y=alt.Y("ms:Q", scale=alt.Scale(type="log"), title="CPU milliseconds"),
        color=alt.Color("what:N", title=None),
    )
    line = base.mark_line().encode(
        y=alt.Y("median(ms):Q", scale=alt.Scale(type="log"), title="CPU milliseconds")
    )
    chart = (base.mark_point(size=18) + line).properties(
        width=480, height=320, title="One segmentation at a price per bucket"
    )
    folder.mkdir(parents=True, exist_ok=True)
    chart.save(folder / "growth.png", scale_factor=2)
    _write(f"saved {folder / 'growth.png'}")


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
