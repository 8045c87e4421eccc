"""Five attributes of a census: what ``auto`` is off by on every kind of question, whatever was announced.

Root mean squared errors over a few releases of `adult_cube` (``--data``; else made-up people), beside those that plain
noise is expected to have: a few releases of that differ by a third on large sums, of which there are few. A column says
what is wanted where something is: of Adult at ε = 1, and of announced cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np

from dphist.mechanisms.auto import Auto
from dphist.mechanisms.protocol import Mechanism
from dphist.model.domain import Domain
from dphist.model.histogram import Histogram
from dphist.model.law import NoiseLaw
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.door import _release
from dphist_bench.data import sample
from dphist_bench.data.coverage import adult_cube
from dphist_bench.measurements.accuracy import matrix
from dphist_bench.measuring import Line

# What is wanted at ε = 1, in people; of announced cells that no sum is further off than plain noise's by this factor.
WANTED: Mapping[str, Mapping[str, float]] = {
    "nothing": {
        "one-way": 35.0,
        "two-way": 25.0,
        "three-way": 18.0,
        "boxes": 40.0,
        "ranges of two": 90.0,
        "cells": 0.9,
    },
    "pairs": {"one-way": 16.0, "two-way": 14.0},
}
BESIDE_LAPLACE = 1.05
_BOXES = 1_000
_PEOPLE = 32_561


def measure(
    *,
    quick: bool,
    data: Annotated[Path | None, "a folder with census records"] = None,
    releases: Annotated[int, "how often each is published"] = 3,
    epsilon: Annotated[str, "what a release spends"] = "1",
) -> Iterator[Line]:
    """Publish for every announcement, ask everything, and set it beside plain noise and what is wanted."""
    real = data is not None and not quick and epsilon == "1"
    people = made_up() if data is None or quick else adult_cube(data / "adult-records.csv", 5)
    asked = questions(people.domain)
    told = {
        "nothing": None,
        "cells": asked["cells"],
        "pairs": asked["two-way"],
        "single attributes": asked["one-way"],
    }
    runs = 1 if quick else releases
    plain = expected(epsilon, asked)
    for announced, workload in told.items():
        found = errors(Auto(), people, epsilon, workload, asked, runs)
        for kind, error in found.items():
            wanted = WANTED.get(announced, {}).get(kind) if real else None
            if announced == "cells":
                wanted = BESIDE_LAPLACE * plain[kind]
            yield {
                "announced": announced,
                "asked": kind,
                "auto": error,
                "laplace": plain[kind],
                "wanted": math.nan if wanted is None else wanted,
                "met": "" if wanted is None else "yes" if error <= wanted else "no",
            }


def made_up() -> Histogram:
    """As many people in groups, of five attributes too."""
    domain = matrix.domain_of(5)
    return Histogram(domain, sample(matrix.people(domain.shape)["groups"], _PEOPLE, 1))


def questions(domain: Domain) -> dict[str, Workload]:
    """Kinds of questions about a cube, sums first."""
    return {
        "one-way": Workload.marginals(domain, 1),
        "two-way": Workload.marginals(domain, 2),
        "three-way": Workload.marginals(domain, 3),
        "boxes": Workload.random(domain, _BOXES, seed=5),
        "ranges of two": matrix.ranges_of_two(domain),
        "cells": Workload.cells(domain),
    }


def expected(epsilon: str, asked: Mapping[str, Workload]) -> dict[str, float]:
    """Root mean squared errors of sums of cells with exact discrete Laplace noise, in closed form."""
    variance = NoiseLaw("laplace", 1 / Fraction(epsilon)).drawn_variance
    return {
        kind: math.sqrt(variance * float(np.mean(load.answer(np.ones(load.domain.shape)))))
        for kind, load in asked.items()
    }


def errors(
    mechanism: Mechanism,
    people: Histogram,
    epsilon: str,
    told: Workload | None,
    asked: Mapping[str, Workload],
    releases: int,
) -> dict[str, float]:
    """Root mean squared errors of every kind of question, over some releases."""
    squares = dict.fromkeys(asked, 0.0)
    for seed in range(releases):
        noise = Noise(Keystream.for_tests(70_000 + seed))
        release = _release(people, Fraction(epsilon), mechanism, Unit(), told, noise)
        for kind, load in asked.items():
            summed = np.asarray(load.answer(release.counts), dtype=np.float64)
            answer = release._estimate.errors.answer(load, summed)
            squares[kind] += float(np.mean((answer - load.answer(people.counts)) ** 2)) / releases
    return {kind: math.sqrt(square) for kind, square in squares.items()}
