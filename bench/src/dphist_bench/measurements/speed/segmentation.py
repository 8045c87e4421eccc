"""How fast rows are segmented, beside the textbook dynamic programs, and how the cost grows.

In CPU milliseconds of one thread (the best of several runs):

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

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.segmentation import Loss, Rows, segment
from dphist_bench import data, textbook
from dphist_bench.measuring import Line
from dphist_bench.timing import least, peak_memory

IntArray = NDArray[np.int64]

_MAKERS = (data.spikes, data.steps, data.bell)
# The trusted integer form of StructureFirst, and both losses with real levels or medians.
_FORMS: tuple[tuple[Loss, bool], ...] = (("squared", True), ("squared", False), ("absolute", False))
# Compiled before anything is timed.
_WARM = np.array([3, 1, 2, 2, 5])


def measure(
    *,
    quick: bool,
    large: Annotated[bool, "add 3,277 buckets of 32,768 cells (minutes)"] = False,
    out: Annotated[Path | None, "save the growth as growth.png here"] = None,
) -> Iterator[Line]:
    """Give the tables."""
    if large:
        # First, so that the peak of memory is its own.
        yield from _large(32_768)
    grown: list[dict[str, Any]] = []
    yield from _growth(range(10, 13 if quick else 21, 2), 2_048 if quick else 65_536, grown)
    yield from _fixed([512] if quick else [1_024, 4_096])
    if out is not None:
        _plot(grown, out)
        yield f"saved {out / 'growth.png'}"


def noisy(counts: IntArray, epsilon: float, seed: int = 1) -> IntArray:
    """Add discrete Laplace noise from a plain generator: for timing only."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    p = 1.0 - np.exp(-epsilon)
    return counts + draw.geometric(p, counts.size) - draw.geometric(p, counts.size)


def cpu(call: Callable[[], object], repeats: int) -> float:
    """Give the least CPU milliseconds of several calls."""
    return 1e3 * least(call, repeats)


def _growth(powers: range, bearable: int, grown: list[dict[str, Any]]) -> Iterator[Line]:
    yield (
        "A price per bucket (the paper's), CPU ms: least and most over three kinds of data and ε = 0.01, 0.1, 1"
    )
    segment([1, 2], price=1)
    segment([1, 2], price=1, loss="absolute")
    textbook.penalised_squared(np.array([1, 2]), 1.0)
    textbook.penalised_absolute(textbook.absolute_costs(*_ranked(np.array([1, 2]))), 1)
    for power in powers:
        n = 2**power
        rows = [(noisy(make(n, 20 * n, 3), eps), eps) for make in _MAKERS for eps in (0.01, 0.1, 1.0)]
        repeats = 5 if n <= 2**16 else 1
        ours: dict[str, list[float]] = {
            "squared": [cpu(partial(segment, x, price=4 / e**2), repeats) for x, e in rows],
            "absolute": [cpu(partial(segment, x, price=3 / e, loss="absolute"), repeats) for x, e in rows],
        }
        grown += [{"n": n, "ms": t, "what": loss} for loss, times in ours.items() for t in times]
        x, eps = rows[1]
        # Beyond 4,096 cells a table of bucket costs would fill gigabytes.
        slow: dict[str, float | None] = {
            "squared": cpu(partial(textbook.penalised_squared, x, 4 / eps**2), 1) if n <= bearable else None,
            "absolute": cpu(partial(_textbook_absolute, textbook.penalised_absolute, x, round(3 / eps)), 1)
            if n <= min(bearable, 4_096)
            else None,
        }
        grown += [{"n": n, "ms": t, "what": f"textbook {loss}"} for loss, t in slow.items() if t is not None]
        line: dict[str, object] = {"n": n}
        for loss, times in ours.items():
            plain = slow[loss]
            line |= {
                loss: min(times),
                f"{loss}, most": max(times),
                f"O(n²) {loss}": plain,
                f"{loss}, times faster": None if plain is None else plain / times[1],
            }
        yield line


def walk(values: IntArray, bins: int, loss: Loss, lattice: bool) -> None:
    """Fill the rows and walk back along the best boundaries, as StructureFirst does along drawn ones."""
    rows = Rows(values, loss=loss, lattice=lattice).descend(bins - 1)
    right = values.size
    j, costs = next(rows)
    while j > 1:
        right = j + int(np.argmin(costs[j:right]))
        j, costs = rows.send(right)


def _fixed(sizes: list[int]) -> Iterator[Line]:
    yield "k = n/10 buckets, CPU ms: all rows and the walk back"
    for loss, lattice in _FORMS:
        walk(_WARM, 3, loss, lattice)
    textbook.fixed_squared(_WARM, 2)
    textbook.fixed_absolute(textbook.absolute_costs(*_ranked(_WARM)), 2)
    for n in sizes:
        k = n // 10
        for make in _MAKERS:
            x = make(n, 20 * n, 3)
            times = [cpu(partial(walk, x, k, loss, lattice), 3) for loss, lattice in _FORMS]
            plain = slow = None
            if make is data.steps:
                plain = cpu(partial(textbook.fixed_squared, x, k), 1)
                slow = cpu(partial(_textbook_absolute, textbook.fixed_absolute, x, k), 1)
            yield {
                "data": make.__name__,
                "n": n,
                "k": k,
                **dict(zip(("squared, trusted", "squared", "absolute"), times, strict=True)),
                "O(n²k) squared": plain,
                "O(n²k) absolute": slow,
                "times faster": plain and plain / times[0],
                "absolute, times faster": slow and slow / times[2],
            }


def _large(n: int) -> Iterator[Line]:
    yield f"n = {n:,}, k = {n // 10:,}: CPU seconds, and the peak of memory of the process so far"
    for loss, lattice in _FORMS[::2]:
        walk(_WARM, 3, loss, lattice)
    for make in _MAKERS:
        x = make(n, 20 * n, 3)
        times = [cpu(partial(walk, x, n // 10, loss, lattice), 1) / 1e3 for loss, lattice in _FORMS[::2]]
        peak = peak_memory() / 1e6
        yield {"data": make.__name__, "squared, s": times[0], "absolute, s": times[1], "MB": peak}


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
