"""``auto`` beside the best of what others published, picked with hindsight case by case.

Lines are asked for cells and prefixes, planes for rectangles, cells and marginals; ``auto`` is told which. Data are
drawn by number, each with its own records and ε, or read from a folder (``--data``) and drawn at several sizes. Peers
are our implementations of what was published, as their authors published it: no early stop, no projection away from
negative counts. The ratio is the root mean squared error of ``auto`` over that of the best peer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from dphist.errors import DphistError
from dphist.mechanisms.spec import parse
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing.gates import run
from dphist_bench.data.coverage import Data, drawn_data, files
from dphist_bench.measuring import Line
from dphist_bench.results import geometric_mean

PEERS = {
    "line": ("laplace", "uniform", "hb", "privelet", "ahp", "noisefirst", "dpcube"),
    "plane": (
        *("laplace", "uniform", "privelet", "ahp", "uniformgrid(nonnegative=False)"),
        *("adaptivegrid(nonnegative=False)", "kdhybrid(stop=0, nonnegative=False)"),
        *("quadtree(stop=0, nonnegative=False)", "tree(fanout='hb', root=False, nonnegative=False)"),
    ),
}
WORKLOADS: dict[str, dict[str, Callable[[Domain], Workload]]] = {
    "line": {"cells": Workload.cells, "prefixes": Workload.prefixes},
    "plane": {
        "rectangles": lambda domain: Workload.random(domain, 2000, seed=7),
        "cells": Workload.cells,
        "marginals": Workload.marginals,
    },
}
_SCALES, _EPSILONS = (10**3, 10**5, 10**7), ("0.01", "0.1", "1")


def measure(
    *,
    quick: Annotated[bool, "one line and one plane, one run: seconds"],
    data: Annotated[Path | None, "folder of count vectors (bin,count or row,col,count)"] = None,
    runs: Annotated[int, "of auto and of every peer, in each case"] = 4,
    drawn: Annotated[int, "how many data of each sort are drawn by number"] = 24,
    first: Annotated[int, "the first such number"] = 0,
    only: Literal["all", "line", "plane"] = "all",
) -> Iterator[Line]:
    """Give every case, then geometric means, worst cases and how many were lost."""
    found: dict[tuple[str, str], list[float]] = {}
    every = drawn_data(range(first, first + (1 if quick else drawn))) if data is None else _read(data)
    for some, epsilon in every:
        if some.sort not in WORKLOADS or only not in ("all", some.sort):
            continue
        for kind, make in WORKLOADS[some.sort].items():
            load = make(some.histogram.domain)
            peers = PEERS[some.sort][:4] if quick else PEERS[some.sort]
            errors = {
                name: _error(name, some.histogram, epsilon, load, 1 if quick else runs)
                for name in (*peers, "auto")
            }
            best = min(peers, key=errors.__getitem__)
            ratio = errors["auto"] / errors[best] if errors[best] else math.nan
            found.setdefault((some.sort, kind), []).append(ratio)
            yield {
                "data": some.name,
                "records": some.records,
                "ε": epsilon,
                "asked": kind,
                "best peer": best,
                "its error": errors[best],
                "auto": errors["auto"],
                "ratio": ratio,
            }
    for (sort, kind), ratios in found.items():
        yield {
            "questions": f"{sort}s: {kind}",
            "cases": len(ratios),
            "geometric mean": geometric_mean(ratios),
            "worst": max(ratios),
            "above 1": sum(ratio > 1 for ratio in ratios),
        }


def _read(folder: Path) -> Iterator[tuple[Data, str]]:
    for records, epsilon in product(_SCALES, _EPSILONS):
        yield from ((some, epsilon) for some in files(folder, records))


def _error(name: str, histogram: Histogram, epsilon: str, load: Workload, runs: int) -> float:
    """The root mean squared error over some runs; infinite for a peer that does not take this domain."""
    told = load if name == "auto" else None
    squares: Sequence[float] = []
    try:
        squares = [
            float(
                np.mean(
                    np.asarray(load.answer(counts.reshape(histogram.counts.shape) - histogram.counts)) ** 2
                )
            )
            for counts in (run(parse(name), histogram, epsilon, workload=told).counts for _ in range(runs))
        ]
    except DphistError:
        return math.inf
    return math.sqrt(float(np.mean(squares)))
