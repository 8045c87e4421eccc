"""What is measured beside other libraries: cost by size, error at equal ε; how it is shown, and what must show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.claims import checking
from dphist_bench.experiment import Claim, Experiment, Finding
from dphist_bench.peers import outside
from dphist_bench.results import Results
from dphist_bench.views import Table, short

OURS = "dphist, laplace"
_SKIPPED = "skipped: "
_RELEASES = 5  # of one process, for errors
_RUNS, _ENOUGH = 5, 2.0  # of one job, for costs: so many, or so many CPU seconds of them


@dataclass(frozen=True)
class Costs:
    """The whole job, process and all, for every number of rows and of cells."""

    rows: Sequence[int]
    cells: Sequence[tuple[int, ...]]

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Order by the records, so that a file of records is made once; a quick run has our own way and one peer."""
        if setting.quick:
            return [Case("1,000 rows", name, "1", 64.0) for name in (OURS, "OpenDP, vector")]
        return [
            Case(f"{rows:,} rows", name, "1", float(math.prod(sizes)))
            for rows in self.rows
            for sizes in self.cells
            for name in (OURS, *outside.OTHERS)
        ]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Run the job in new processes and report the least: what else the machine does can only add."""
        rows = int(case.data.split()[0].replace(",", ""))
        sizes = next((one for one in self.cells if math.prod(one) == case.x), (8, 8))
        records, out = outside.records(rows, sizes), outside.out_of(case.method)
        costs: list[outside.Cost] = []
        try:
            while len(costs) < (1 if setting.quick else _RUNS) and sum(cost.cpu for cost in costs) < _ENOUGH:
                costs.append(outside.run(case.method, records, sizes, case.epsilon, [out]))
        except outside.Skipped as reason:
            yield Reading(f"{_SKIPPED}{reason}", 1.0)
            return
        cost = min(costs, key=lambda cost: cost.cpu)
        yield Reading("CPU s", cost.cpu)
        yield Reading("CPU s without start", cost.job_cpu)
        yield Reading("s on the clock", cost.wall)
        yield Reading("s on the clock without start", cost.job_wall)
        yield Reading("MB", cost.megabytes)
        yield Reading(f"version: {cost.version}", 1.0)


@dataclass(frozen=True)
class ErrorsAtEqualCost:
    """Error of single cells and of random ranges when all spend the same ε on the same records."""

    rows: int
    shapes: Sequence[tuple[int, ...]]
    epsilons: Sequence[str]

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Every method on every table at every ε."""
        shapes, epsilons, methods = self.shapes, self.epsilons, tuple(outside.PEERS)
        if setting.quick:
            shapes, epsilons, methods = (
                ((64,),), epsilons[:1], (OURS, "dphist, auto for cells", "OpenDP, vector"),
            )  # fmt: skip
        return [
            Case(" × ".join(map(str, sizes)) + " cells", name, epsilon)
            for sizes in shapes
            for epsilon in epsilons
            for name in methods
        ]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Release several times in one process and compare with the truth."""
        sizes = tuple(int(size) for size in case.data.removesuffix(" cells").split(" × "))
        rows = 1_000 if setting.quick else self.rows
        records, truth = outside.records(rows, sizes), outside.truth(rows, sizes)
        outs = [outside.out_of(case.method, place) for place in range(2 if setting.quick else _RELEASES)]
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
            Path(out).unlink()
        for what, found in squares.items():
            yield Reading(f"RMSE of {what}", math.sqrt(float(np.mean(found))))
        yield Reading(f"version: {cost.version}", 1.0)


# ---- how it is shown ----


@dataclass(frozen=True, kw_only=True)
class Versions(Table):
    """Which version of each library was measured, or why it was not."""

    def markdown(self, results: Results, folder: Path, stem: str) -> str:
        """Give a list."""
        found: dict[str, set[str]] = {}
        for point in results.points:
            words = found.setdefault(point.method, set())
            if point.measure.startswith(("version: ", _SKIPPED)):
                words.add(point.measure.removeprefix("version: "))
        lines = [f"- {name}: {'; '.join(sorted(words))}" for name, words in found.items()]
        return "\n".join([f"**{self.title}**", "", *lines, ""])


# ---- what must show ----


@checking
def _cheaper(results: Results, measure: str) -> Finding:
    """Whether ours costs less than every other library at every size, and where not."""
    mine = {(p.data, p.x): p.value for p in results.select(measure, method=OURS)}
    ratios = [
        (point.value / mine[point.data, point.x], point)
        for point in results.select(measure)
        if point.method != OURS and mine.get((point.data, point.x), 0) > 0
    ]
    if not ratios:
        return Finding(False, "no other library was measured")
    lost = sorted((pair for pair in ratios if pair[0] <= 1), key=lambda pair: pair[0])
    least, most = (end(ratio for ratio, _ in ratios) for end in (min, max))
    words = f"ahead in {len(ratios) - len(lost)} of {len(ratios)} comparisons; "
    words += f"theirs from {short(least)} to {short(most)} times ours"
    if lost:
        places = (f"{p.method} at {p.data}, {p.x:,.0f} cells ({short(ratio)} ×)" for ratio, p in lost)
        words += f"; behind {', '.join(places)}"
    return Finding(not lost, words)


@checking
def _closer(results: Results, measure: str, ours: str) -> Finding:
    """Whether our error is below every other library's."""
    others = dict.fromkeys(p.method for p in results.select(measure) if not p.method.startswith("dphist"))
    ratios = [ratio for name in others for ratio in results.ratios(measure, name, ours)]
    if not ratios:
        return Finding(False, "no other library was measured")
    return Finding(
        min(ratios) > 1,
        f"the others' {measure} is {short(min(ratios))} to {short(max(ratios))} times that of {ours}",
    )


CLAIMS_COST = (
    Claim(
        says="Ours takes less processor time than every peer at every size, starting up included",
        where="whole processes",
        check=_cheaper("CPU s"),
        why="The smallest jobs are nearly all importing: Python, NumPy, and Arrow or Polars.",
    ),
    Claim(
        says="Ours takes less processor time than every peer at every size, starting up left out",
        where="warm processes",
        check=_cheaper("CPU s without start"),
        why="In the smallest jobs half of the time goes into saving: ours is a release that has reached the disk, "
        "theirs an array.",
    ),
)
CLAIMS_ERROR = tuple(
    Claim(
        says=f"Our error on {what} is below every peer's at equal ε",
        where=f"mechanism auto, told that {asked} will be asked",
        check=_closer(f"RMSE of {asked}", f"dphist, auto for {asked}"),
    )
    for what, asked in (("single cells", "cells"), ("ranges", "ranges"))
)
EXPERIMENTS = (
    Experiment(
        name="peers/cost",
        title="Records to private counts: cost by rows and cells",
        work=Costs(rows=(10_000, 1_000_000, 10_000_000), cells=((1_024,), (128, 128), (64, 64, 64))),
        trials=3,
        views=(
            *(
                Table(title=f"{title}, by rows and cells", measure=measure, columns=("data", "x"))
                for title, measure in {
                    "CPU seconds of the whole process": "CPU s",
                    "CPU seconds without starting up": "CPU s without start",
                    "Seconds on the clock, whole process": "s on the clock",
                    "Peak memory in MB": "MB",
                }.items()
            ),
            Versions(title="Versions", measure="CPU s"),
        ),
        reported="The same job for all: a Parquet file of rows with one, two or three integer attributes (1,024 "
        "cells; 128 × 128; 64 × 64 × 64) goes in; a private count of every cell, empty ones too, comes "
        "out and is saved; ε = 1, one row added or removed. Each run is a new process in an environment "
        "of that library's own: `python -m dphist_bench.peers DIR` makes these, `DPHIST_PEERS=DIR` names "
        "them. The least of up to five runs counts, as many as fit in two CPU seconds. Each library is "
        "used in the fastest way that its documentation shows; Polars reads the records for all. The others save a "
        "bare table of counts, we a release with labels, guarantee and transcript. CPU time is that of all threads; "
        "starting up is importing.",
        differs="Four rounds, each the least of up to five runs, beside other work: seconds on the clock are those "
        "of a crowded machine.",
        claims=CLAIMS_COST,
    ),
    Experiment(
        name="peers/error",
        title="Error at equal ε",
        work=ErrorsAtEqualCost(rows=100_000, shapes=((4_096,), (64, 64)), epsilons=("0.1", "1")),
        trials=2,
        views=(
            Table(title="Root mean squared error of single cells", measure="RMSE of cells"),
            Table(title="Root mean squared error of 2,000 random ranges", measure="RMSE of ranges"),
        ),
        reported="100,000 rows, skewed like ages and incomes; the mean over releases with fresh noise. diffprivlib"
        " rounds and cuts in its own way, which its figures include.",
        differs="Five releases a line in each of four trials: errors of ranges in one "
        "table share their noise, and those of equal mechanisms differ here by up to 1.3 times.",
        claims=CLAIMS_ERROR,
    ),
)
