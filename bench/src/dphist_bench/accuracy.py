"""``auto`` beside the best that anyone would have picked with hindsight, case by case.

One dimension: every cell and every prefix of count vectors at several scales and budgets, against errors of
public implementations read from a file (``--peers``), or, with ``--only own``, against every mechanism
registered here that takes a line. Two dimensions: rectangles, small rectangles, cells and marginals against our
own implementations. The ratio is the root mean squared error of ``auto`` over that of the best peer, chosen per
case by its error.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError
from dphist.mechanisms import MECHANISMS
from dphist.mechanisms.auto import Auto
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import parse
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing.gates import open_counts
from dphist_bench.data import bell, level, planes, sample, search_timeline, settlements, spikes, steps

IntArray = NDArray[np.int64]

EPSILONS = ("0.01", "0.1", "1")
LINE_SCALES = (10**3, 10**5, 10**7)
PLANE_SCALES = (10**4, 10**6, 10**8)
# The vectors whose peers were measured, and the files they are in.
CORE = {name: name for name in ("ADULT", "HEPTH", "INCOME", "MEDCOST", "PATENT")}
CORE |= {"NETTRACE": "NETTRACE4096", "SEARCHLOGS": "SEARCHLOGS4096"}
PLANES = ("GOWALLA", "ADULT-2D", "SF-CABS-E", "BJ-CABS-S")
# Not peers on a line: ourselves, what needs several attributes or parts, and what refuses to be released.
NO_LINE_PEERS = {"auto", "marginals", "bypart", "spa"}
QUICK_LINE_PEERS = ("laplace", "uniform", "hb", "privelet", "ahp", "noisefirst", "dpcube")
PLANE_PEERS = (
    *("laplace", "uniform", "privelet", "ahp", "uniformgrid", "adaptivegrid", "kdhybrid", "quadtree", "hb"),
)
# The same as their authors published them: no early stop, no projection away from negative counts.
PLANE_PEERS_AS_PUBLISHED = (
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


def main(argv: list[str]) -> int:
    """Rerun the comparison and print geometric means, worst cases and misses."""
    options = _options().parse_args(argv)
    if options.quick:
        options.trials, options.peer_trials, options.finalists = 1, 1, 1
    kinds = {"1d": _lines, "2d": _planes, "own": _own}
    wanted = kinds if options.only == "all" else {options.only: kinds[options.only]}
    for kind, run in wanted.items():
        if kind == "own" and options.only == "all":
            continue
        outcomes = []
        for outcome in run(options):
            outcomes.append(outcome)
            if options.verbose:
                _say(_line(outcome))
        _summary(kind, outcomes)
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of count vectors (bin,count or row,col,count)")
    parser.add_argument(
        "--peers", type=Path, help="errors of public implementations (default: beside the folder)"
    )
    parser.add_argument("--trials", type=int, default=20, help="runs of auto per case")
    parser.add_argument("--peer-trials", type=int, default=2, help="runs of each of our peers per case")
    parser.add_argument(
        "--finalists",
        type=int,
        default=4,
        help="own: the best so many peers are run as often as auto before the best is named",
    )
    parser.add_argument(
        "--as-published", action="store_true", help="2-D peers without our improvements to them as well"
    )
    parser.add_argument("--only", choices=("all", "1d", "2d", "own"), default="all")
    parser.add_argument("--names", help="only these data sets, separated by commas")
    parser.add_argument("--verbose", action="store_true", help="print every case")
    parser.add_argument("--quick", action="store_true", help="made-up data, one trial: seconds")
    return parser


def _lines(options: argparse.Namespace) -> Iterator[Outcome]:
    """Cells and prefixes against the public implementations' errors."""
    if options.quick or options.data is None:
        yield from _own(options)
        return
    path = options.peers or options.data.parent / "peers.csv"
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] in CORE]
    for row in rows:
        if options.names and row["dataset"] not in options.names.split(","):
            continue
        weights = read_counts(options.data / f"{CORE[row['dataset']]}.csv")
        kind = {"identity": "cells", "prefix": "prefixes"}[row["workload"]]
        scale, epsilon = int(row["scale"]), f"{float(row['eps']):g}"
        error, seconds = _errors(Auto(), weights, scale, epsilon, _LINE_WORKLOADS[kind], options.trials)
        yield Outcome(
            *(row["dataset"], scale, epsilon, kind, row["best_excl_nonprivate"], float(row["rmse"])),
            *(error, seconds),
        )


def _own(options: argparse.Namespace) -> Iterator[Outcome]:
    """Cells and prefixes against all of our own mechanisms, on made-up or given vectors.

    Every mechanism is told the workload, as ``auto`` is; the one that ``auto`` hands over to is left out, as it would
    only be a second draw of the same. The least of forty errors of two runs each would be small by luck; so the few
    best are run again, as often as ``auto``, and the best of these runs counts.
    """
    size = 256 if options.quick else 4096
    makers = {"bell": bell, "level": level, "spikes": spikes, "steps": steps, "timeline": search_timeline}
    weights = {name: make(size, 10**6, 0).astype(np.float64) for name, make in makers.items()}
    if options.data is not None:
        names = options.names.split(",") if options.names else CORE
        weights = {name: read_counts(options.data / f"{CORE.get(name, name)}.csv") for name in names}
    scales, epsilons = ((10**4,), ("0.1",)) if options.quick else (LINE_SCALES, EPSILONS)
    peers = QUICK_LINE_PEERS if options.quick else tuple(n for n in MECHANISMS if n not in NO_LINE_PEERS)
    for name, vector in weights.items():
        if options.names and name not in options.names.split(","):
            continue
        for scale, epsilon, kind in product(scales, epsilons, _LINE_WORKLOADS):
            case = (vector, scale, epsilon, _LINE_WORKLOADS[kind])
            histogram = _histogram(vector, scale, 0)
            told = open_counts(histogram, epsilon, workload=case[3](histogram.domain))
            chosen, _ = Auto().choose(told)
            others = [peer for peer in peers if parse(peer) != chosen]
            first = {peer: _errors(parse(peer), *case, options.peer_trials)[0] for peer in others}
            best = sorted(others, key=first.__getitem__)[: options.finalists]
            last = {peer: _errors(parse(peer), *case, options.trials)[0] for peer in best}
            peer = min(best, key=last.__getitem__)
            yield Outcome(
                name, scale, epsilon, kind, peer, last[peer], *_errors(Auto(), *case, options.trials)
            )


def _planes(options: argparse.Namespace) -> Iterator[Outcome]:
    """Rectangles, small rectangles, cells and marginals against our own implementations of the peers."""
    if options.quick:
        weights = {"settlements": settlements((32, 32), 10**6, 0).astype(np.float64)}
    elif options.data is None:
        weights = planes()
    else:
        weights = {name: read_counts(options.data / f"{name}.csv") for name in PLANES}
    scales, epsilons = ((10**4,), ("0.1",)) if options.quick else (PLANE_SCALES, EPSILONS)
    peers: tuple[str, ...] = ("laplace", "uniform", "privelet") if options.quick else PLANE_PEERS
    published = () if options.quick or not options.as_published else PLANE_PEERS_AS_PUBLISHED
    yield from _against(weights, scales, epsilons, _PLANE_WORKLOADS, peers, options, published)


def _against(
    weights: dict[str, NDArray[np.float64]],
    scales: tuple[int, ...],
    epsilons: tuple[str, ...],
    workloads: dict[str, Callable[[Domain], Workload]],
    peers: tuple[str, ...],
    options: argparse.Namespace,
    published: tuple[str, ...] = (),
) -> Iterator[Outcome]:
    """Run every peer once a trial and judge it on every workload; ``auto`` is told the workload.

    With ``published`` the same runs of ``auto`` are compared with these as well, in a row of its own.
    """
    everybody = tuple(dict.fromkeys(peers + published))
    for name, vector in weights.items():
        if options.names and name not in options.names.split(","):
            continue
        for scale, epsilon in product(scales, epsilons):
            squares = {kind: dict.fromkeys(everybody, 0.0) for kind in workloads}
            for trial in range(options.peer_trials):
                histogram = _histogram(vector, scale, trial)
                for peer in everybody:
                    counts = _run(parse(peer), histogram, epsilon)
                    for kind, make in workloads.items():
                        error = _squared(make(histogram.domain), counts, histogram) / options.peer_trials
                        squares[kind][peer] += error
            for kind, make in workloads.items():
                error, seconds = _errors(Auto(), vector, scale, epsilon, make, options.trials)
                for row, among in ((kind, peers), (f"{kind}, as published", published)):
                    if among:
                        peer = min(among, key=squares[kind].__getitem__)
                        best = math.sqrt(squares[kind][peer])
                        yield Outcome(name, scale, epsilon, row, peer, best, error, seconds)


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


def read_counts(path: Path) -> NDArray[np.float64]:
    """Read ``bin,count`` or sparse ``row,col,count``; planes have sides that are powers of two."""
    table = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int64)
    if table.shape[1] == 2:
        return table[:, 1].astype(np.float64)
    side = 1 << int(table[:, :2].max()).bit_length()
    plane = np.zeros((side, side))
    plane[table[:, 0], table[:, 1]] = table[:, 2]
    return plane


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


def _summary(kind: str, outcomes: list[Outcome]) -> None:
    for workload in dict.fromkeys(outcome.workload for outcome in outcomes):
        mine = [o for o in outcomes if o.workload == workload and o.ratio > 0]
        ratios = [o.ratio for o in mine]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        slowest = max(o.seconds for o in mine)
        _say(
            f"{kind} {workload:30} geometric mean {mean:.3f}  worst {max(ratios):.2f}  "
            f"above 1: {sum(r > 1 for r in ratios)} of {len(ratios)}  slowest {slowest * 1000:.0f} ms CPU"
        )
        for outcome in sorted(mine, key=lambda o: -o.ratio):
            if outcome.ratio > 1:
                _say("    miss " + _line(outcome))


def _line(o: Outcome) -> str:
    return (
        f"{o.data:11} scale {o.scale:<9} ε {o.epsilon:5} {o.workload:16} "
        f"{o.peer:12} {o.peer_error:12.4g}  auto {o.error:12.4g}  ratio {o.ratio:.2f}"
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
