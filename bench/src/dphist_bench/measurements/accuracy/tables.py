"""How often intervals hold in each table of one and of two attributes, and in each cell.

An average over all tables hides the one that people ask about. Cubes of the census records and of the census excerpt in
a folder (``--data``) and people drawn by number are published again and again, nothing announced or what
``--workload`` says; what was not measured together must hold as well, by its bounds. It fails where a table holds in
less than 0.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np

from dphist.mechanisms.auto import Auto
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.door import _release
from dphist_bench.data.coverage import adult_cube, excerpt_cubes
from dphist_bench.data.drawn import drawn_people
from dphist_bench.measuring import Failure, Line

# What each table must hold.
LEAST = 0.9
_ADULT = (3, 4, 5)


def measure(
    *,
    quick: bool,
    data: Annotated[Path | None, "folder of census records, with the census excerpt in crc/"] = None,
    draws: Annotated[int, "releases of each"] = 40,
    epsilon: Annotated[str, "what a release of the folder's people spends"] = "0.1",
    workload: Annotated[str | None, "what is announced, as `dphist publish` takes it"] = None,
    only: Annotated[str, "people whose name has this alone"] = "",
    drawn: Annotated[int, "so many sets of drawn people"] = 8,
    first: Annotated[int, "the first number of these"] = 50_000,
) -> Iterator[Line]:
    """Publish, ask every table, and count by table and by cell."""
    found: list[tuple[str, Histogram, str]] = []
    if data is not None and not quick:
        found += [
            (f"Adult, {many} attributes", adult_cube(data / "adult-records.csv", many), epsilon)
            for many in _ADULT
        ]
        found += [(name, cube, epsilon) for name, cube in excerpt_cubes(data)]
    for number in range(first, first + (1 if quick else drawn)):
        name, people, spent = drawn_people(number)
        found.append((f"people {number} ({name})", people, spent))
    short = 0
    for name, people, spent in found:
        if only not in name:
            continue
        for row in tables(people, spent, 2 if quick else draws, workload):
            short += not quick and float(str(row["held"])) < LEAST
            yield {"data": f"{name}, ε = {spent}", **row}
    said = f"{short} tables hold in less than {LEAST}"
    yield Failure(said) if short else said


def tables(
    people: Histogram, epsilon: str, draws: int, workload: str | None = None
) -> Iterator[dict[str, object]]:
    """Give how often each table of one or two attributes holds, over releases and cells, and its least cell.

    Args:
        people: The counts.
        epsilon: What a release spends.
        draws: How many releases.
        workload: What is announced, in words.

    Yields:
        A row for each table.
    """
    names = people.domain.names
    asked = {
        kept: Workload.parse(people.domain, f"marginals:{','.join(kept)}")
        for many in (1, 2)
        for kept in combinations(names, many)
    }
    announced = None if workload is None else Workload.parse(people.domain, workload)
    releases = [
        _release(people, Fraction(epsilon), Auto(), Unit(), announced, Noise(Keystream.for_tests(seed)))
        for seed in range(draws)
    ]
    for kept, load in asked.items():
        truth = np.asarray(load.answer(people.counts), dtype=np.float64)
        answers = [release.answer(load, confidence=0.95) for release in releases]
        held = np.mean([(each.low - 1e-6 <= truth) & (truth <= each.high + 1e-6) for each in answers], axis=0)
        error = np.mean([(each.value - truth) ** 2 for each in answers])
        yield {
            "table": " × ".join(kept),
            "held": round(float(held.mean()), 3),
            "least cell": round(float(held.min()), 3),
            "cells below": f"{int((held < LEAST).sum())} of {held.size}",
            "measured": round(float(np.mean([np.mean(each.measured) for each in answers])), 2),
            "half-width": round(float(np.mean([(each.high - each.low).mean() / 2 for each in answers])), 1),
            "error": round(float(np.sqrt(error)), 1),
        }
