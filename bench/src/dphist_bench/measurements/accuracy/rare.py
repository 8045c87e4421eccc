"""How often the interval of a rare value holds it: seven people among tens of thousands, nothing announced.

The census records in a folder (``--data``), five attributes, published by `auto` again and again; of every attribute
its rarest value that anybody has (`Never-worked` among them: 7 of 32,561). Without a folder made-up people, of whom
seven have the last value of every attribute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dphist.mechanisms.spec import parse
from dphist.model.domain import Domain, Nominal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist.testing.gates import run
from dphist_bench.data.coverage import cubes
from dphist_bench.measuring import Line

_FEW = 7


def measure(
    *,
    quick: bool,
    data: Annotated[Path | None, "a folder with census records"] = None,
    releases: Annotated[int, "how often it is published"] = 100,
    epsilon: Annotated[str, "what each release spends"] = "1",
    mechanism: Annotated[str, "who publishes"] = "auto",
) -> Iterator[Line]:
    """Publish, ask for the rarest value of every attribute, count."""
    real = data is not None and not quick
    people = next(iter(cubes(data, quick=False, smallest=5, largest=5))).histogram if real else _people()
    domain, names, asked = people.domain, [], []
    for axis, attribute in enumerate(people.domain.attributes):
        line = people.counts.sum(axis=tuple(a for a in range(people.counts.ndim) if a != axis))
        rarest = int(np.argmin(np.where(line > 0, line, line.max() + 1)))
        low, high = np.zeros(len(domain.shape), dtype=np.int64), np.array(domain.shape)
        low[axis], high[axis] = rarest, rarest + 1
        asked.append((low, high))
        names.append(f"{attribute.name}: {attribute.labels[rarest]}")
    questions = Workload(domain, np.stack([low for low, _ in asked]), np.stack([high for _, high in asked]))
    truth = np.asarray(questions.answer(people.counts), dtype=np.float64)
    held, width, square = np.zeros(truth.size), np.zeros(truth.size), np.zeros(truth.size)
    runs = 2 if quick else releases
    for seed in range(runs):
        found = run(parse(mechanism), people, epsilon, seed=40_000 + seed)
        summed = np.asarray(questions.answer(found.counts.reshape(domain.shape)), dtype=np.float64)
        answer = found.errors.answer(questions, summed)
        bounds = found.errors.interval(questions, answer, 0.95)
        held += (bounds.low - 1e-6 <= truth) & (truth <= bounds.high + 1e-6)
        width += bounds.high - bounds.low
        square += (answer - truth) ** 2
    for place, name in enumerate(names):
        yield {
            "value": name,
            "people": int(truth[place]),
            "releases": runs,
            "held at 95 %": int(held[place]),
            "mean width": round(float(width[place]) / runs, 1),
            "error": round(math.sqrt(square[place] / runs), 1),
        }


def _people() -> Histogram:
    """Some thousand people, seven with the last value of each attribute."""
    shape = (8, 5, 3)
    domain = Domain([Nominal(f"x{n}", [str(value) for value in range(n)]) for n in shape])
    counts: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
    counts[:-1, :-1, :-1] = 100
    counts[-1, -1, -1] = _FEW
    return Histogram(domain, counts)
