"""What the judge looks at: data drawn by number, what is announced, in which currency, and what is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist.model.budget import Budget
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.workload import Workload
from dphist_bench.data.coverage import SHAPES, adult_cube, files, shape
from dphist_bench.data.drawn import drawn_cube, drawn_line, drawn_people, drawn_plane, drawn_space

FRESH, TUNING = 40_000, 50_000
"""The first number of the data that judge, and of those that constants may be chosen on."""
DRAWS = 16
"""Releases of a case of which nothing was announced; of others half as many."""
_QUESTIONS = 300
_SHORT = 16
_CELLS = 512
_DRAWN = {
    "line": (drawn_line, 24),
    "plane": (drawn_plane, 14),
    "space": (drawn_space, 8),
    "cube": (drawn_cube, 14),
    "people": (drawn_people, 14),
}
# Records of vectors and planes from files, and what is spent on them and on the hostile shapes.
_RECORDS, _EPSILON = 10**5, "0.1"
# Noise scales a cell of the hostile shapes, which hide from what is measured.
_SCALES = (3, 30)


@dataclass(frozen=True)
class Task:
    """One set of counts under one announcement in one currency: what a process takes at a time."""

    sort: str
    data: str
    announced: str
    currency: str
    draws: int
    folder: str = ""

    @property
    def ordinary(self) -> bool:
        """Whether the data were not made to mislead."""
        return self.sort != "hostile"


def tasks(first: int, folder: Path | None, *, quick: bool = False) -> Iterator[Task]:
    """List everything there is to do."""
    half = DRAWS // 2
    for sort, (_, many) in _DRAWN.items():
        for number in range(first, first + (1 if quick else many)):
            yield from _announced(sort, str(number), 2 if quick else DRAWS, 2 if quick else half)
    for name in SHAPES[:1] if quick else SHAPES:
        for scale in _SCALES[:1] if quick else _SCALES:
            yield Task("hostile", f"{name}, {scale} a cell", "", "epsilon", 2 if quick else DRAWS)
    if folder is not None and not quick:
        for each in files(folder, _RECORDS):
            yield from _announced(f"file {each.sort}", each.name, half, half // 2, str(folder))
        for attributes in (3, 5):
            yield from _announced("file cube", f"Adult {attributes}", half, half // 2, str(folder))


def _announced(sort: str, data: str, draws: int, fewer: int, folder: str = "") -> Iterator[Task]:
    yield Task(sort, data, "", "epsilon", draws, folder)
    yield Task(sort, data, "", "rho", fewer, folder)
    for told in ANNOUNCED[sort.removeprefix("file ")]:
        yield Task(sort, data, told, "epsilon", fewer, folder)


ANNOUNCED: Mapping[str, tuple[str, ...]] = {
    "line": ("cells", "prefixes", "ranges"),
    "plane": ("cells", "boxes"),
    "space": ("boxes",),
    "cube": ("cells", "two-way"),
    "people": ("one-way", "two-way"),
}


def counts_of(task: Task) -> tuple[Histogram, Budget]:
    """Draw or read the counts of a task, and say what is spent."""
    if task.sort == "hostile":
        histogram, epsilon = _hostile(task.data), _EPSILON
    elif task.folder:
        histogram, epsilon = _read(task), _EPSILON
    else:
        _, histogram, epsilon = _DRAWN[task.sort][0](int(task.data))
    spent = Fraction(epsilon)
    # A cell's noise then has the deviation 1/ε, where it is measured by itself.
    return histogram, Budget(spent if task.currency == "epsilon" else spent**2 / 2, task.currency)  # type: ignore[arg-type]


def _hostile(data: str) -> Histogram:
    name, _, scale = data.removesuffix(" a cell").rpartition(", ")
    draws = np.random.default_rng([7, 7, FRESH, SHAPES.index(name)])  # noqa: TID251 -- data only
    rates = shape(name, _CELLS, draws) * int(scale) / float(_EPSILON)
    return Histogram(Domain([Ordinal("x0", range(_CELLS))]), draws.poisson(rates).astype(np.int64))


def _read(task: Task) -> Histogram:
    folder = Path(task.folder)
    if task.sort == "file cube":
        return adult_cube(folder / "adult-records.csv", int(task.data.split()[-1]))
    return next(each.histogram for each in files(folder, _RECORDS) if each.name == task.data)


def questions(domain: Domain) -> dict[str, Workload]:
    """Give the kinds of questions that are asked about a domain: those of its number of attributes."""
    axes = len(domain.shape)
    asked = {"cells": Workload.cells(domain), "boxes": Workload.random(domain, _QUESTIONS, seed=13)}
    if axes == 1:
        asked["ranges"] = asked.pop("boxes")
        return asked | {"short ranges": _short(domain), "prefixes": Workload.prefixes(domain)}
    asked["one-way"] = Workload.marginals(domain, 1)
    asked |= {"short boxes": _short(domain)} if axes == 2 else {"two-way": Workload.marginals(domain, 2)}
    return asked


def _short(domain: Domain) -> Workload:
    """Boxes of at most 16 cells on a side, anywhere."""
    draws: np.random.Generator = np.random.default_rng(17)  # noqa: TID251 -- questions only
    sides: NDArray[np.int64] = np.array(domain.shape)
    long = np.minimum(draws.integers(1, _SHORT + 1, (_QUESTIONS, sides.size)), sides)
    low = np.floor(draws.random(long.shape) * (sides - long + 1)).astype(np.int64)
    return Workload(domain, low, low + long)
