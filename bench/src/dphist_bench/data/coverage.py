"""Counts on which intervals are tried: made-up lines and planes of every temper, files, and cubes of a census."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist_bench.data import census, sample
from dphist_bench.data.files import counts
from dphist_bench.data.planes import cascade, clusters, lone_peak, ridge, roads, sparse_peaks

FloatArray = NDArray[np.float64]

# Attributes of the census in the order in which cubes take them.
ADULT = ("age", "workclass", "education", "sex", "salary", "marital_status", "race", "relationship")
# A cube takes the first so many of them; with more than five, age has bins of ten years: cells stay countable.
ADULT_CUBES = (3, 4, 5, 6, 7, 8)
_FINE_AGE = 5


@dataclass(frozen=True)
class Data:
    """Counts with a name, and what sort they are: "line", "plane" or "cube"."""

    name: str
    sort: str
    histogram: Histogram


def lines(n: int) -> dict[str, FloatArray]:
    """Shapes of a line; the constants of calibrated intervals were chosen on shapes like these."""
    i = np.arange(n)
    draws = np.random.default_rng(11)  # noqa: TID251 -- data only
    shapes = {
        "flat": np.ones(n),
        "empty": np.zeros(n),
        "spike": np.where(i == n // 3, 1.0, 0.0),
        "spikes": np.where(draws.random(n) < 0.005, draws.pareto(1.0, n) + 0.1, 0.0),
        "steps": np.repeat(draws.exponential(size=16), -(-n // 16))[:n],
        "Zipf": 1.0 / (1.0 + i),
        "Zipf, shuffled": draws.permutation(1.0 / (1.0 + i) ** 1.2),
        "comb of 2": np.where(i % 2 == 0, 1.0, 0.0),
        "comb of 16": np.where(i % 16 == 0, 1.0, 0.0),
        "sawtooth": (i % 100) / 100.0,
        "smooth": np.exp(-0.5 * ((i - n / 3) / (n / 10)) ** 2)
        + 0.3 * np.exp(-0.5 * ((i - 0.7 * n) / (n / 30)) ** 2),
        "log-normal": np.exp(2.0 * draws.standard_normal(n)),
        "random walk": np.exp(0.15 * np.cumsum(draws.standard_normal(n))),
    }
    if not shapes["spikes"].any():
        shapes["spikes"][n // 5] = 1.0
    return shapes


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


def made_planes(n: int) -> dict[str, FloatArray]:
    """Shapes of a plane."""
    shape = (n, n)
    return {
        "flat": np.ones(shape),
        "empty": np.zeros(shape),
        "clusters": clusters(shape),
        "ridge": ridge(shape),
        "lone peak": lone_peak(shape),
        "roads": roads(shape),
        "cascade": cascade(shape),
        "sparse peaks": sparse_peaks(shape),
    }


def made_up_data(records: int, *, quick: bool) -> Iterator[Data]:
    """Every made-up line, plane and cube, with about so many records."""
    for sort, shapes in (
        ("line", lines(256 if quick else 4096)),
        ("plane", made_planes(32 if quick else 128)),
    ):
        chosen = list(shapes)[:4] if quick else list(shapes)
        for name in chosen:
            yield Data(name, sort, _drawn(shapes[name], records))


def files(folder: Path, records: int) -> Iterator[Data]:
    """Vectors and planes in a folder, drawn with so many records."""
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8") as file:
            if file.readline().strip() not in ("bin,count", "row,col,count"):
                continue
        weights = np.asarray(counts(path), dtype=np.float64)
        yield Data(path.stem, "line" if weights.ndim == 1 else "plane", _drawn(weights, records))


def cubes(folder: Path | None, *, quick: bool, smallest: int = 3, largest: int = 8) -> Iterator[Data]:
    """Cubes of three to eight attributes of the census records in the folder; else of made-up people."""
    path = None if folder is None else folder / "adult-records.csv"
    if quick or path is None or not path.is_file():
        people = np.asarray(census())
        while people.size > 200_000:
            people = people.sum(axis=int(np.argmax(people.shape)))
        yield Data("made-up people", "cube", Histogram(_axes(people.shape), people))
        return
    for count in ADULT_CUBES:
        if smallest <= count <= largest:
            yield Data(f"Adult, {count} attributes", "cube", adult_cube(path, count))


@lru_cache(maxsize=2)
def _records(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def adult_cube(path: Path, count: int) -> Histogram:
    """Counts over the first so many attributes of the census records in a file.

    Args:
        path: The records, with a line of names.
        count: How many attributes, at most eight.

    Returns:
        The cube; from six attributes on age has bins of ten years.
    """
    return _cube(path, ADULT[:count], "age", 10 if count > _FINE_AGE else 1)


def _cube(path: Path, names: tuple[str, ...], ordered: str, step: int) -> Histogram:
    """Count records by some of their columns, of which one is an age."""
    rows = _records(path)
    attributes: list[Ordinal | Nominal] = []
    columns = []
    for name in names:
        if name == ordered:
            attributes.append(Ordinal(name, range(100 // step)))
            columns.append([int(row[name]) // step for row in rows])
        else:
            values = sorted({row[name] for row in rows})
            attributes.append(Nominal(name, values))
            place = {value: number for number, value in enumerate(values)}
            columns.append([place[row[name]] for row in rows])
    domain = Domain(attributes)
    cube = np.zeros(domain.shape, dtype=np.int64)
    for cell, number in Counter(zip(*columns, strict=True)).items():
        cube[cell] = number
    return Histogram(domain, cube)


def _drawn(weights: FloatArray, records: int) -> Histogram:
    if not weights.any():
        drawn = np.zeros(weights.shape, dtype=np.int64)
    else:
        drawn = np.asarray(sample(weights / weights.sum(), records, 5), dtype=np.int64)
    return Histogram(_axes(weights.shape), drawn.reshape(weights.shape))


def _axes(shape: tuple[int, ...]) -> Domain:
    return Domain([Ordinal(f"x{axis}", range(size)) for axis, size in enumerate(shape)])
