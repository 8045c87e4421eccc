"""``auto`` beside the best that anyone would have picked with hindsight, case by case.

One dimension: every cell and every prefix of count vectors at several scales and budgets, against errors of
public implementations read from a file (``--peers``), or made-up vectors against some mechanisms of ours. Two
dimensions: rectangles, small rectangles, cells and marginals against our own implementations of what was published.
The ratio is the root mean squared error of ``auto`` over that of the best peer, chosen per
case by its error.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing.gates import open_counts
from dphist_bench.data import (
    bell,
    files,
    level,
    sample,
    search_timeline,
    settlements,
    slope,
    spikes,
    steps,
    wave,
)
from dphist_bench.data.planes import planes
from dphist_bench.measuring import Line

IntArray = NDArray[np.int64]

EPSILONS = ("0.01", "0.1", "1")
LINE_SCALES = (10**3, 10**5, 10**7)
PLANE_SCALES = (10**4, 10**6, 10**8)
# The vectors whose peers were measured, and the files they are in.
CORE = {name: name for name in ("ADULT", "HEPTH", "INCOME", "MEDCOST", "PATENT")}
CORE |= {"NETTRACE": "NETTRACE4096", "SEARCHLOGS": "SEARCHLOGS4096"}
PLANES = ("GOWALLA", "ADULT-2D", "SF-CABS-E", "BJ-CABS-S")
LINE_PEERS = ("laplace", "uniform", "hb", "privelet", "ahp", "noisefirst", "dpcube")
# As their authors published them: no early stop, no projection away from negative counts.
PLANE_PEERS = (
    *("laplace", "uniform", "privelet", "ahp", "uniformgrid(nonnegative=False)"),
    *("adaptivegrid(nonnegative=False)", "kdhybrid(stop=0, nonnegative=False)"),
    *("quadtree(stop=0, nonnegative=False)", "tree(fanout='hb', root=False, nonnegative=False)"),
)


@dataclass(frozen=True)
class Outcome:
    """One case: what was asked of what, the best peer, and the ratio to it."""

    data: str
    scale: int
    epsilon: str
    workload: str
    peer: str
    peer_error: float
    error: float
    seconds: float

    @property
    def ratio(self) -> float:
        """Our error over the best peer's."""
        return self.error / self.peer_error if self.peer_error > 0 else math.nan

    def row(self) -> dict[str, object]:
        """One line of the table of cases."""
        return {
            "data": self.data,
            "workload": self.workload,
            "ε": self.epsilon,
            "scale": self.scale,
            "best peer": self.peer,
            "its error": self.peer_error,
            "auto": self.error,
            "ratio": self.ratio,
        }


@dataclass(frozen=True)
class Options:
    """What a user asked for."""

    quick: bool
    data: Path | None
    peers: Path | None
    trials: int
    peer_trials: int
    names: tuple[str, ...]

    def wanted(self, name: str) -> bool:
        """Whether a data set is among those asked for."""
        return not self.names or name in self.names


def measure(
    *,
    quick: Annotated[bool, "made-up data, one trial: seconds"],
    data: Annotated[Path | None, "folder of count vectors (bin,count or row,col,count)"] = None,
    peers: Annotated[Path | None, "errors of public implementations (default: beside the folder)"] = None,
    trials: Annotated[int, "runs of auto per case"] = 20,
    peer_trials: Annotated[int, "runs of each of our peers per case"] = 2,
    only: Literal["all", "1d", "2d"] = "all",
    names: Annotated[tuple[str, ...], "only these data sets"] = (),
) -> Iterator[Line]:
    """Rerun the comparison: every case, then geometric means, worst cases and misses."""
    if quick:
        trials, peer_trials = 1, 1
    options = Options(quick, data, peers, trials, peer_trials, tuple(names))
    kinds = {"1d": _lines, "2d": _planes}
    for kind in ("1d", "2d") if only == "all" else (only,):
        outcomes = []
        for outcome in kinds[kind](options):
            outcomes.append(outcome)
            yield outcome.row()
        yield from _summary(kind, outcomes)


def _lines(options: Options) -> Iterator[Outcome]:
    """Cells and prefixes against the public implementations' errors."""
    if options.quick or options.data is None:
        size = 256 if options.quick else 4096
        makers = {"bell": bell, "level": level, "spikes": spikes, "steps": steps, "timeline": search_timeline}
        if not options.quick:
            makers |= {"slope": slope, "wave": wave}
        made = {name: make(size, 10**6, 0).astype(np.float64) for name, make in makers.items()}
        scales, epsilons = ((10**4,), ("0.1",)) if options.quick else (LINE_SCALES, EPSILONS)
        yield from _against(made, scales, epsilons, _LINE_WORKLOADS, LINE_PEERS, options)
        return
    path = options.peers or options.data.parent / "peers.csv"
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] in CORE]
    for row in rows:
        if not options.wanted(row["dataset"]):
            continue
        weights = _weights(options.data / f"{CORE[row['dataset']]}.csv")
        kind = {"identity": "cells", "prefix": "prefixes"}[row["workload"]]
        scale, epsilon = int(row["scale"]), f"{float(row['eps']):g}"
        error, seconds = _errors(Auto(), weights, scale, epsilon, _LINE_WORKLOADS[kind], options.trials)
        yield Outcome(
            *(row["dataset"], scale, epsilon, kind, row["best_excl_nonprivate"], float(row["rmse"])),
            *(error, seconds),
        )


def _planes(options: Options) -> Iterator[Outcome]:
    """Rectangles, small rectangles, cells and marginals against our own implementations of the peers."""
    if options.quick:
        weights = {"settlements": settlements((32, 32), 10**6, 0).astype(np.float64)}
    elif options.data is None:
        weights = planes()
    else:
        weights = {name: _weights(options.data / f"{name}.csv") for name in PLANES}
    scales, epsilons = ((10**4,), ("0.1",)) if options.quick else (PLANE_SCALES, EPSILONS)
    peers: tuple[str, ...] = ("laplace", "uniform", "privelet") if options.quick else PLANE_PEERS
    yield from _against(weights, scales, epsilons, _PLANE_WORKLOADS, peers, options)


def _against(
    weights: dict[str, NDArray[np.float64]],
    scales: tuple[int, ...],
    epsilons: tuple[str, ...],
    workloads: dict[str, Callable[[Domain], Workload]],
    peers: tuple[str, ...],
    options: Options,
) -> Iterator[Outcome]:
    """Run every peer once a trial and judge it on every workload; ``auto`` is told the workload."""
    for name, vector in weights.items():
        if not options.wanted(name):
            continue
        for scale, epsilon in product(scales, epsilons):
            squares = {kind: dict.fromkeys(peers, 0.0) for kind in workloads}
            for trial in range(options.peer_trials):
                histogram = _histogram(vector, scale, trial)
                for peer in peers:
                    counts = _run(parse(peer), histogram, epsilon)
                    for kind, make in workloads.items():
                        error = _squared(make(histogram.domain), counts, histogram) / options.peer_trials
                        squares[kind][peer] += error
            for kind, make in workloads.items():
                error, seconds = _errors(Auto(), vector, scale, epsilon, make, options.trials)
                peer = min(peers, key=squares[kind].__getitem__)
                best = math.sqrt(squares[kind][peer])
                yield Outcome(name, scale, epsilon, kind, peer, best, error, seconds)


def _run(
    mechanism: Mechanism, histogram: Histogram, epsilon: str, workload: Workload | None = None
) -> NDArray[np.float64]:
    try:
        right = open_counts(histogram, epsilon, workload=workload)
        return mechanism.estimate(right).counts.reshape(histogram.counts.shape)
    except DphistError:
        # A peer that does not take this domain is not the best one.
        return np.full(histogram.counts.shape, np.inf)


def _squared(workload: Workload, counts: NDArray[np.float64], histogram: Histogram) -> float:
    if not np.isfinite(counts).all():
        return math.inf
    return float(np.mean(np.asarray(workload.answer(counts - histogram.counts)) ** 2))


def _errors(
    mechanism: Mechanism,
    weights: NDArray[np.float64],
    scale: int,
    epsilon: str,
    make: Callable[[Domain], Workload],
    trials: int,
) -> tuple[float, float]:
    """Root mean squared error over fresh samples and fresh noise, and CPU seconds a run; the workload is told."""
    squared = seconds = 0.0
    for trial in range(trials):
        histogram = _histogram(weights, scale, trial)
        workload = make(histogram.domain)
        started = time.process_time()
        counts = _run(mechanism, histogram, epsilon, workload)
        seconds += (time.process_time() - started) / trials
        squared += _squared(workload, counts, histogram) / trials
    return math.sqrt(squared), seconds


def _histogram(weights: NDArray[np.float64], scale: int, trial: int) -> Histogram:
    counts = sample(weights, scale, trial)
    return Histogram(Domain([Ordinal(f"x{i}", range(n)) for i, n in enumerate(counts.shape)]), counts)


def _weights(path: Path) -> NDArray[np.float64]:
    return files.counts(path).astype(np.float64)


def _small_rectangles(domain: Domain) -> Workload:
    """Rectangles of 1 to 16 cells a side, the same every time."""
    generator = np.random.default_rng(7)  # noqa: TID251 -- public questions
    shape = np.array(domain.shape)
    sides = generator.integers(1, np.minimum(17, shape + 1), (2000, shape.size))
    low = (generator.random((2000, shape.size)) * (shape - sides + 1)).astype(np.int64)
    return Workload(domain, low, low + sides)


_LINE_WORKLOADS: dict[str, Callable[[Domain], Workload]] = {
    "cells": Workload.cells,
    "prefixes": Workload.prefixes,
}
_PLANE_WORKLOADS: dict[str, Callable[[Domain], Workload]] = {
    "rectangles": lambda domain: Workload.random(domain, 2000, seed=7),
    "small rectangles": _small_rectangles,
    "cells": Workload.cells,
    "marginals": Workload.marginals,
}


def _summary(kind: str, outcomes: list[Outcome]) -> Iterator[Line]:
    for workload in dict.fromkeys(outcome.workload for outcome in outcomes):
        mine = [o for o in outcomes if o.workload == workload and o.ratio > 0]
        ratios = [o.ratio for o in mine]
        yield {
            "workload": f"{kind} {workload}",
            "geometric mean": math.exp(sum(map(math.log, ratios)) / len(ratios)),
            "worst": max(ratios),
            "above 1": sum(r > 1 for r in ratios),
            "cases": len(ratios),
            "slowest, CPU ms": 1000 * max(o.seconds for o in mine),
        }
    for outcome in sorted((o for o in outcomes if o.ratio > 1), key=lambda o: -o.ratio):
        yield {"miss": outcome.data, **{k: v for k, v in outcome.row().items() if k != "data"}}
