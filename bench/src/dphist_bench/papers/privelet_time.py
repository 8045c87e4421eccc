"""Figures 13 and 14 of the Privelet paper: CPU time from records in memory to released cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.privelet import Privelet
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.testing import open_counts
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.claims import every, power
from dphist_bench.experiment import Claim, Experiment, Finding
from dphist_bench.results import Results, geometric_mean
from dphist_bench.timing import least
from dphist_bench.views import Lines

BASIC, PLUS, STAR = "Basic", "Privelet+", "Privelet*"
_BY_RECORDS, _BY_CELLS = "2²⁴ cells", "5 million records"
_TIMED: Mapping[str, Mechanism] = {
    BASIC: Laplace(),
    PLUS: Privelet(plain=(), calibration="paper"),
    STAR: Privelet(plain=(), calibration="paper", threshold=True),
}
_SECONDS = "CPU s"


@lru_cache(maxsize=1)
def _records(count: int, side: int) -> tuple[NDArray[np.int32], ...]:
    draw = np.random.default_rng(0)  # noqa: TID251 -- data only
    return tuple(draw.integers(0, side, count, dtype=np.int32) for _ in range(4))


@lru_cache(maxsize=1)
def _domain(side: int) -> Domain:
    """The synthetic tables of the paper's Figs. 13 and 14: four axes of one size, about √size groups in a hierarchy."""
    groups = min((g for g in range(1, side + 1) if side % g == 0), key=lambda g: abs(g - side**0.5))
    family = side // groups
    tree = {f"group {g}": [f"value {g * family + i}" for i in range(family)] for g in range(groups)}
    return Domain(
        [Ordinal("a", range(side)), Ordinal("b", range(side)), Nominal("c", tree), Nominal("d", tree)]
    )


@lru_cache(maxsize=8)
def _warm(method: str) -> None:
    """Run once on a small table, so that loading machine code is no part of the time."""
    _release(_records(1_000, 16), _domain(16), _TIMED[method])


def _release(table: Sequence[NDArray[np.int32]], domain: Domain, mechanism: Mechanism) -> None:
    """Count records in memory and release the counts."""
    flat = np.ravel_multi_index(tuple(table), domain.shape)
    counts = np.bincount(flat, minlength=domain.size).reshape(domain.shape)
    mechanism.estimate(open_counts(Histogram(domain, counts), 1))


@dataclass(frozen=True)
class Times:
    """CPU time from records in memory to released cells, every attribute transformed."""

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Against the number of records, then against the number of cells."""
        records = (10_000, 20_000) if setting.quick else [k * 1_000_000 for k in range(1, 6)]
        sides = [8, 10] if setting.quick else [round(2 ** (k / 4)) for k in range(22, 27)]
        cases = [Case(_BY_RECORDS, method, x=n) for n in records for method in _TIMED]
        return cases + [Case(_BY_CELLS, method, x=side**4) for side in sides for method in _TIMED]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Time one release."""
        x = int(case.x or 0)
        records, side = (x, 64) if case.data == _BY_RECORDS else (5_000_000, round(x**0.25))
        if setting.quick:
            records, side = min(records, 20_000), min(side, 10)
        _warm(case.method)
        domain, table = _domain(side), _records(records, side)
        yield Reading(_SECONDS, least(partial(_release, table, domain, _TIMED[case.method]), 1))


def _order(results: Results) -> Finding:
    """How much longer each method takes than the one before it."""
    ratios = [geometric_mean(results.ratios(_SECONDS, a, b)) for a, b in ((PLUS, BASIC), (STAR, PLUS))]
    return Finding(
        min(ratios) > 1,
        f"{PLUS} takes {ratios[0]:.2g} times as long as {BASIC}, {STAR} {ratios[1]:.2g} times as long as {PLUS}",
    )


def _with_records(results: Results) -> Finding:
    """Growth of time over five times the records: at most linear."""
    words, holds = [], True
    for method in _TIMED:
        line = sorted(
            (p.x or 0.0, p.value) for p in results.select(_SECONDS, method=method, data=_BY_RECORDS)
        )
        if len(line) < 2:
            return Finding(False, f"{method} was not measured")
        factor = line[-1][1] / line[0][1]
        holds &= factor <= 1.2 * line[-1][0] / line[0][0]
        words.append(f"{method} {factor:.2g}")
    return Finding(holds, f"over {line[-1][0] / line[0][0]:g} times the records: {', '.join(words)} times")


EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="privelet/figures13-14",
        title="Figures 13 and 14: CPU time against the number of records and of cells",
        work=Times(),
        trials=3,
        views=(
            Lines(
                title="Fig. 13: CPU seconds against the number of records, 2²⁴ cells",
                measure=_SECONDS,
                axis="records",
                where={"data": _BY_RECORDS},
                panels=(),
                log="",
            ),
            Lines(
                title="Fig. 14: CPU seconds against the number of cells, 5 million records",
                measure=_SECONDS,
                axis="cells",
                where={"data": _BY_CELLS},
                panels=(),
            ),
        ),
        reported="All three run in time linear in the records and almost linear in the cells; Privelet* takes longer "
        "than Privelet+, which takes longer than Basic.",
        differs="CPU seconds of all threads, from records in memory to released cells, on another machine. Sides are "
        "whole numbers, so 2²⁶ cells are 91⁴. Adding or removing a record costs the same time as replacing one.",
        claims=(
            Claim(
                says="Time grows at most linearly with the number of records",
                where="Fig. 13",
                check=_with_records,
            ),
            Claim(
                says="Time is almost linear in the number of cells, and no worse",
                where="Fig. 14",
                # Counting the records takes the same time whatever the cells, so the power may be below one.
                check=every(*(power(_SECONDS, method, (0.6, 1.15), data=_BY_CELLS) for method in _TIMED)),
            ),
            Claim(
                says="Privelet* takes longer than Privelet+, and that longer than Basic",
                where="§8.2",
                check=_order,
            ),
        ),
    ),
)
