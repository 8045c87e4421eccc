"""Counts on which intervals are tried: drawn by number, shapes made to mislead, files, and cubes of a census."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.testing.gates import as_histogram
from dphist_bench.data import sample
from dphist_bench.data.drawn import drawn_cube, drawn_line, drawn_plane
from dphist_bench.data.files import counts

FloatArray = NDArray[np.float64]

# Attributes of the census in the order in which cubes take them.
ADULT = ("age", "workclass", "education", "sex", "salary", "marital_status", "race", "relationship")
# A cube takes the first so many of them; with more than five, age has bins of ten years: cells stay countable.
_FINE_AGE = 5


@dataclass(frozen=True)
class Data:
    """Counts with a name, and what sort they are: "line", "plane" or "cube"."""

    name: str
    sort: str
    histogram: Histogram

    @property
    def records(self) -> int:
        """How many there are."""
        return int(self.histogram.counts.sum())


# What is asked wherever intervals are printed, on few cells (`shape`).
SHAPES = (
    "level", "empty", "tall cell", "comb of 2", "comb of 7", "comb of 16", "comb of 32", "bell", "Zipf", "log-normal",
    "bursts", "islands", "steps", "Zipf, shuffled",
)  # fmt: skip


def shape(name: str, n: int, draws: np.random.Generator) -> FloatArray:  # noqa: TID251 -- data only
    """Expected counts of n cells, one on average but for what is empty."""
    x = np.arange(n)
    border = max(4, n // 16)
    if name == "islands":
        made = np.full(n, 0.03)
        for _ in range(max(4, n // 25)):
            start = int(draws.integers(0, n - 5))
            made[start : start + int(draws.integers(1, 6))] = 1.0
    elif name.startswith("comb of "):
        made = np.where(x % int(name.removeprefix("comb of ")) == 0, 1.0, 0.0)
    elif name == "steps":
        made = draws.gamma(1.0, 1.0, 8)[np.minimum(x * 8 // n, 7)] + 0.01
    else:
        made = {
            "level": np.ones(n),
            "empty": np.zeros(n),
            "tall cell": np.where(x == n // 3, 1.0, 0.0),
            "bell": np.exp(-0.5 * ((x / n - 0.4) / 0.12) ** 2) + 0.01,
            "Zipf": 1.0 / (1.0 + x),
            "log-normal": np.exp(-0.5 * (np.log((x + 1) / (n / 5)) / 0.7) ** 2) / (x + 1),
            "bursts": 0.1 + 8.0 * ((x % border == 0) | (x % border == border - 1)),
            "Zipf, shuffled": draws.permutation(1.0 / (1.0 + x)),
        }[name]
    return np.asarray(made / max(float(made.mean()), 1e-9), dtype=np.float64)


def drawn_data(numbers: range) -> Iterator[tuple[Data, str]]:
    """Lines, planes and cubes that nobody chose, each with its own ε."""
    for sort, make in (("line", drawn_line), ("plane", drawn_plane), ("cube", drawn_cube)):
        for number in numbers:
            name, histogram, epsilon = make(number)
            shape = " × ".join(map(str, histogram.domain.shape))
            yield Data(f"{sort} {number} ({shape}: {name})", sort, histogram), epsilon


def files(folder: Path, records: int) -> Iterator[Data]:
    """Vectors and planes in a folder, drawn with so many records."""
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8") as file:
            if file.readline().strip() not in ("bin,count", "row,col,count"):
                continue
        weights = np.asarray(counts(path), dtype=np.float64)
        yield Data(path.stem, "line" if weights.ndim == 1 else "plane", _drawn(weights, records))


def cubes(folder: Path) -> Iterator[Data]:
    """Cubes of three to eight attributes of the census records in the folder, if they are there."""
    path = folder / "adult-records.csv"
    for count in range(3, len(ADULT) + 1) if path.is_file() else ():
        yield Data(f"Adult, {count} attributes", "cube", adult_cube(path, count))


@lru_cache(maxsize=2)
def _records(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def adult_cube(path: Path, count: int) -> Histogram:
    """Counts over the first so many attributes of the census records in a file."""
    rows, step = _records(path), 10 if count > _FINE_AGE else 1
    attributes: list[Ordinal | Nominal] = [Ordinal("age", range(100 // step))]
    columns = [np.array([int(row["age"]) // step for row in rows])]
    for name in ADULT[1:count]:
        values, codes = np.unique([row[name] for row in rows], return_inverse=True)
        attributes.append(Nominal(name, values.tolist()))
        columns.append(codes)
    domain = Domain(attributes)
    cube = np.zeros(domain.shape, dtype=np.int64)
    np.add.at(cube, tuple(columns), 1)
    return Histogram(domain, cube)


def _drawn(weights: FloatArray, records: int) -> Histogram:
    if not weights.any():
        return as_histogram(np.zeros(weights.shape, dtype=np.int64))
    return as_histogram(np.asarray(sample(weights / weights.sum(), records, 5), dtype=np.int64))
