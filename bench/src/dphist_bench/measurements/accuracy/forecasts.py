"""Forecasts beside what then happens: every row that `dphist plan` prints, over the error measured on the data.

Data are two vectors and the census cube in a folder (``--data``), or made-up ones like them, and the tutorial's
visits. A forecast has seen none of them: only the domain, and how many records there are, to within a factor of two.
Wanted is a ratio between 0.8 and 1.25. Where made-up populations do not agree on a figure `plan` prints a range alone,
and the measured error is to lie in it; the ratio of their median is given all the same. So every row is judged twice:
whether the median is within the band, and whether what is printed holds (the figure within the band, or the range).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.spec import parse
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.planning.forecast import BAND, MECHANISMS, Forecast, plan
from dphist.planning.populations import questions
from dphist.testing.gates import run
from dphist_bench.data import bell, spikes
from dphist_bench.data.files import adult_records, counts
from dphist_bench.measuring import Line

_LARGE = 1 << 13
_SILENT = "auto, nothing announced"


def measure(
    *,
    quick: bool,
    data: Annotated[Path | None, "a folder with vectors and census records"] = None,
    runs: Annotated[
        int, "draws of the noise each error is measured with; an eighth of it from 8,192 cells on"
    ] = 32,
    vectors: Annotated[tuple[str, ...], "which vectors of the folder"] = ("HEPTH", "MEDCOST"),
    only: Annotated[tuple[str, ...], "only these data"] = (),
) -> Iterator[Line]:
    """Forecast, publish, compare."""
    good = held = figures = rows = 0
    for name, histogram in _data(data, vectors, quick=quick):
        if only and name not in only:
            continue
        tables = len(histogram.domain.shape) > 1
        # Questions about long ranges share their noise: it takes many draws to tell an error of one's own from luck.
        draws = runs if histogram.domain.size < _LARGE else max(2, runs // 8)
        for workload in ("cells", "ranges", *(("marginals", "marginals:2") if tables else ("prefixes",))):
            for forecast in _rows(histogram, workload, quick=quick):
                error = _measured(histogram, workload, forecast, 2 if quick else draws)
                ratio = (forecast.error or math.nan) / error
                fits = 1.0 / BAND <= ratio <= BAND
                inside = bool(forecast.cases) and (forecast.best or 0.0) <= error <= (forecast.worst or 0.0)
                figure = forecast.agreed
                good, rows, figures = good + fits, rows + 1, figures + figure
                held += fits if figure else inside
                yield {
                    "data": name,
                    "questions": workload,
                    "mechanism": forecast.mechanism,
                    "known": forecast.basis.replace(":", " ").split()[0],
                    "printed": forecast.shown,
                    "median": round(forecast.error or 0.0, 2),
                    "measured": round(error, 2),
                    "ratio": round(ratio, 2),
                    "in the band": "yes" if fits else "no",
                    "in the range": "yes" if inside else "no" if forecast.cases else "–",
                    "as printed": "holds" if (fits if figure else inside) else "fails",
                }
    yield (
        f"{good} of {rows} medians within {1 / BAND:g} to {BAND:g} of the error; as printed {held} of {rows} hold "
        f"({figures} figures, {rows - figures} ranges)"
    )


def _rows(histogram: Histogram, workload: str, *, quick: bool) -> list[Forecast]:
    """What `dphist plan` prints, and for whom it has a figure; the number of records is known to a power of two."""
    records = 1 << round(math.log2(max(1, int(histogram.counts.sum()))))
    names: Sequence[str] = ("laplace", "tree", "auto") if quick else MECHANISMS
    found = plan(histogram.domain, 1, workload, mechanisms=names, records=records, runs=1 if quick else None)
    silent = plan(
        histogram.domain,
        1,
        workload,
        mechanisms=["auto"],
        records=records,
        announced=False,
        runs=1 if quick else None,
    )
    found += [replace(each, mechanism=_SILENT) for each in silent]
    return [forecast for forecast in found if forecast.error is not None]


def _measured(histogram: Histogram, workload: str, forecast: Forecast, runs: int) -> float:
    silent = forecast.mechanism == _SILENT
    mechanism = parse("auto" if silent else forecast.mechanism)
    told, asked = questions(histogram.domain, workload)
    truth = asked.answer(histogram.counts)
    squares = []
    for seed in range(runs):
        hint = None if silent else told
        found = run(mechanism, histogram, 1, seed=90_000 + seed, workload=hint)
        summed = np.asarray(asked.answer(found.counts.reshape(histogram.domain.shape)), dtype=np.float64)
        squares.append(float(np.mean((found.errors.answer(asked, summed) - truth) ** 2)))
    return math.sqrt(sum(squares) / runs)


def _data(folder: Path | None, vectors: tuple[str, ...], *, quick: bool) -> Iterator[tuple[str, Histogram]]:
    yield "visits", _visits()
    if folder is None or quick:
        for name, made in (("bell", bell(256, 20_000)), ("spikes", spikes(256, 20_000))):
            yield name, Histogram(Domain([Ordinal("x", range(made.size))]), made)
        return
    for name in vectors:
        made = counts(folder / f"{name}.csv")
        yield name, Histogram(Domain([Ordinal("x", range(made.size))]), made)
    records = adult_records(folder)
    if records is not None:
        yield "Adult", _adult(records)


def _visits() -> Histogram:
    """The tutorial's twenty thousand visits by age, sex and hour."""
    domain = Domain([Ordinal("age", range(100)), Nominal("sex", ["F", "M"]), Ordinal("hour", range(24))])
    made = np.zeros(domain.shape, dtype=np.int64)
    for i in range(20_000):
        spread = (i * 7919 % 1000) / 1000
        age = int(45 + 28 * math.sin(math.pi * (spread - 0.5)) + 15 * math.sin(i))
        hour = int(13 + 4 * math.sin(i * 1.7) + 3 * math.sin(i * 0.3))
        made[max(0, min(99, age)), 0 if i % 5 >= 2 else 1, hour % 24] += 1
    return Histogram(domain, made)


def _adult(records: dict[str, NDArray[Any]]) -> Histogram:
    names = ("workclass", "education", "sex", "salary")
    values = {name: sorted(set(records[name].tolist())) for name in names}
    domain = Domain([Ordinal("age", range(100)), *(Nominal(name, values[name]) for name in names)])
    made = np.zeros(domain.shape, dtype=np.int64)
    columns = [np.clip(records["age"], 0, 99)]
    for name in names:
        place = {value: number for number, value in enumerate(values[name])}
        columns.append(np.array([place[value] for value in records[name].tolist()]))
    np.add.at(made, tuple(columns), 1)
    return Histogram(domain, made)
