"""What is measured beside other libraries: cost by size, the largest cube in a minute, error at equal ε."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dphist.memory import available_memory
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.experiment import Experiment
from dphist_bench.peers import outside
from dphist_bench.peers.verdicts import CLAIMS_COST, CLAIMS_ERROR, CLAIMS_LARGEST
from dphist_bench.peers.views import Beside, Versions
from dphist_bench.views import Table

_MINUTE = 60.0
_SKIPPED = "skipped: "
_RELEASES = 5  # of one process, for errors
_RUNS, _ENOUGH = 5, 2.0  # of one job, for costs: so many, or so many CPU seconds of them
_SLOW = ("Tumult Analytics",)  # takes minutes for each job, so it is tried on some only


def _out(name: str, number: int = 0) -> str:
    """Where a peer may write; what an earlier run left there is gone."""
    path = outside.scratch() / outside.out_name(name, number)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    return str(path)


def _readings(cost: outside.Cost) -> Iterator[Reading]:
    yield Reading("CPU s", cost.cpu)
    yield Reading("CPU s without start", cost.job_cpu)
    yield Reading("s on the clock", cost.wall)
    yield Reading("s on the clock without start", cost.job_wall)
    yield Reading("MB", cost.megabytes)
    yield Reading(f"version: {cost.version}", 1.0)


@dataclass(frozen=True)
class Costs:
    """The whole job, process and all, for every number of rows and of cells."""

    rows: Sequence[int]
    cells: Sequence[tuple[int, ...]]
    methods: Sequence[str]

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Order by the records, so that a file of records is made once; a quick run has our own way and one peer."""
        if setting.quick:
            return [Case("1,000 rows", name, "1", 64.0) for name in ("dphist, laplace", "OpenDP, vector")]
        return [
            Case(f"{rows:,} rows", name, "1", float(math.prod(sizes)))
            for rows in self.rows
            for sizes in self.cells
            for name in self.methods
            if name not in _SLOW or rows == self.rows[0] or sizes == self.cells[0]
        ]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Run the job in new processes and report the least: what else the machine does can only add."""
        rows = int(case.data.split()[0].replace(",", ""))
        sizes = next((one for one in self.cells if math.prod(one) == case.x), (8, 8))
        records = outside.records(rows, sizes)
        costs: list[outside.Cost] = []
        try:
            while len(costs) < (1 if setting.quick else _RUNS) and sum(cost.cpu for cost in costs) < _ENOUGH:
                costs.append(outside.run(case.method, records, sizes, case.epsilon, [_out(case.method)]))
        except outside.Skipped as reason:
            yield Reading(f"{_SKIPPED}{reason}", 1.0)
            return
        yield from _readings(min(costs, key=lambda cost: cost.cpu))


@dataclass(frozen=True)
class Largest:
    """Twice the cells, and again, until a minute does not suffice, or will not by a straight line, or memory ends."""

    rows: int
    methods: Sequence[str]
    first: int = 1 << 14
    last: int = 1 << 28

    def cases(self, setting: Setting) -> Sequence[Case]:
        """One case a method."""
        methods = ("dphist, laplace", "OpenDP, vector") if setting.quick else self.methods
        return [Case("three attributes", name, "1") for name in methods]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Search; sizes that a straight line from the last run puts well below the limit are jumped over."""
        rows, cells, last = (1_000, 64, 256) if setting.quick else (self.rows, self.first, self.last)
        # Four arrays of eight bytes a cell, and others want memory too.
        last = min(last, 1 << (available_memory() // 64).bit_length() - 1)
        done = 0
        version = ""
        while cells <= last:
            sizes = outside.shape(cells, 3)
            records = outside.records(rows, sizes)
            try:
                # A crowded machine slows the clock, so it gets leave; what counts is the lesser of clock and processor.
                cost = outside.run(
                    case.method, records, sizes, case.epsilon, [_out(case.method)], limit=4 * _MINUTE
                )
            except outside.Skipped as reason:
                if not done:
                    yield Reading(f"{_SKIPPED}{reason}", 1.0)
                    return
                break
            finally:
                _out(case.method)
            if cost.seconds > _MINUTE:
                break
            done, version = cells, cost.version
            yield Reading("CPU s", cost.cpu, float(cells))
            yield Reading("MB", cost.megabytes, float(cells))
            if cost.seconds > 0.6 * _MINUTE:
                # Twice the cells take twice as long or more, wherever it was tried.
                break
            jump = int(_MINUTE / (2 * max(cost.seconds, 0.1)))
            cells = min(cells * (1 << max(1, jump.bit_length() - 1)), max(last, 2 * cells))
        if done:
            yield Reading("largest cube in 60 s, cells", float(done))
            yield Reading(f"version: {version}", 1.0)


@dataclass(frozen=True)
class ErrorsAtEqualCost:
    """Error of single cells and of random ranges when all spend the same ε on the same records."""

    rows: int
    shapes: Sequence[tuple[int, ...]]
    epsilons: Sequence[str]
    methods: Sequence[str]

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Every method on every table at every ε."""
        shapes = ((64,),) if setting.quick else self.shapes
        epsilons = self.epsilons[:1] if setting.quick else self.epsilons
        methods = (
            ("dphist, laplace", "dphist, auto for cells", "OpenDP, vector") if setting.quick else self.methods
        )
        return [
            Case(" × ".join(map(str, sizes)) + " cells", name, epsilon)
            for sizes in shapes
            for epsilon in epsilons
            for name in methods
            if name not in _SLOW or (sizes, epsilon) == (shapes[0], epsilons[-1])
        ]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Release several times in one process and compare with the truth."""
        sizes = tuple(int(size) for size in case.data.removesuffix(" cells").split(" × "))
        rows = 1_000 if setting.quick else self.rows
        records, truth = outside.records(rows, sizes), outside.truth(rows, sizes)
        releases = 2 if setting.quick or case.method in _SLOW else _RELEASES
        outs = [_out(case.method, place) for place in range(releases)]
        try:
            cost = outside.run(case.method, records, sizes, case.epsilon, outs)
        except outside.Skipped as reason:
            yield Reading(f"{_SKIPPED}{reason}", 1.0)
            return
        domain = Domain([Ordinal(f"a{axis}", range(size)) for axis, size in enumerate(sizes)])
        ranges = Workload.random(domain, 2_000, seed=1)
        squares: dict[str, list[float]] = {"cells": [], "ranges": []}
        for out in outs:
            errors = outside.released(case.method, out, sizes) - truth
            squares["cells"].append(float(np.mean(errors**2)))
            squares["ranges"].append(float(np.mean(ranges.answer(errors) ** 2)))
            Path(out).unlink() if Path(out).is_file() else shutil.rmtree(out)
        for what, found in squares.items():
            yield Reading(f"RMSE of {what}", math.sqrt(float(np.mean(found))))
        yield Reading(f"version: {cost.version}", 1.0)


_METHODS = ("dphist, laplace", *outside.OTHERS)
_COSTS = Costs(
    rows=(10_000, 1_000_000, 10_000_000), cells=((1_024,), (128, 128), (64, 64, 64)), methods=_METHODS
)

EXPERIMENTS = (
    Experiment(
        name="peers/cost",
        title="Records to private counts: cost by rows and cells",
        work=_COSTS,
        trials=3,
        views=(
            Beside(title="CPU seconds of the whole process", measure="CPU s"),
            Beside(title="CPU seconds without starting up", measure="CPU s without start"),
            Beside(title="Seconds on the clock, whole process", measure="s on the clock"),
            Beside(title="Peak memory, MB", measure="MB"),
            Versions(title="Versions", measure="CPU s"),
        ),
        reported="The same job for all: a Parquet file of rows with one, two or three integer attributes (1,024 "
        "cells; 128 × 128; 64 × 64 × 64) goes in; a private count of every cell, empty ones too, comes "
        "out and is saved; ε = 1, one row added or removed. Each run is a new process in an environment "
        "of that library's own: `python -m dphist_bench.peers DIR` makes these, `DPHIST_PEERS=DIR` names "
        "them. The least of up to five runs counts, as many as fit in two CPU seconds. Each library is "
        "used in the fastest way that its documentation shows; Polars reads the records for all but "
        "Tumult, which has Spark do it. The others save a bare table of counts, we a release with labels,"
        " guarantee and transcript. CPU time is that of all threads and descendants; starting up is "
        "importing, and for Tumult starting Spark.",
        differs="Four rounds, each the least of up to five runs, beside other work: seconds on the clock are those "
        "of a crowded machine. PyDP 1.1.5 and Tumult Analytics 0.21.0 have no wheel for this one. One round on another "
        "(x86-64) had PyDP at 0.90 to 0.94 times our CPU seconds at 1,024 cells with 10,000 and 10⁶ rows, without "
        "starting up at 0.60 and 0.84; ours took less in all other comparisons, those with Tumult among them.",
        claims=CLAIMS_COST,
    ),
    Experiment(
        name="peers/largest",
        title="The largest cube in 60 seconds",
        work=Largest(rows=1_000_000, methods=_METHODS),
        trials=1,
        views=(
            Table(
                title="Cells of three attributes, one million rows, whole process",
                measure="largest cube in 60 s, cells",
                columns=(),
            ),
            Versions(title="Versions", measure="CPU s"),
        ),
        reported="Twice the cells until one run, process and all, takes more than 60 s. The lesser of processor "
        "time and time on the clock counts, so that neither a crowded machine nor the use of all cores "
        "tells against anybody; a size that a straight line puts above 72 s is not tried. We stop at "
        "268,435,456 cells, or earlier where memory does.",
        differs="Each search once, beside other work. On another machine PyDP reached 8,388,608 cells, Tumult 131,072.",
        claims=CLAIMS_LARGEST,
    ),
    Experiment(
        name="peers/error",
        title="Error at equal ε",
        work=ErrorsAtEqualCost(
            rows=100_000,
            shapes=((4_096,), (64, 64)),
            epsilons=("0.1", "1"),
            methods=("dphist, laplace", "dphist, auto for cells", "dphist, auto for ranges", *outside.OTHERS),
        ),
        trials=2,
        views=(
            Table(title="Root mean squared error of single cells", measure="RMSE of cells"),
            Table(title="Root mean squared error of 2,000 random ranges", measure="RMSE of ranges"),
        ),
        reported="100,000 rows, skewed like ages and incomes; the mean over releases with fresh noise. diffprivlib"
        " and PyDP round and cut in their own ways, which their figures include.",
        differs="Five releases a line in each of four trials (Tumult: two, one table): errors of ranges in one "
        "table share their noise, and those of equal mechanisms differ here by up to 1.3 times.",
        claims=CLAIMS_ERROR,
    ),
)
