"""Readings on disk and in hand: one Parquet file an experiment, one row a reading, what made them in its metadata."""

from __future__ import annotations

import json
import math
import os
import platform
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dphist.errors import InputError
from dphist.release.atomic import atomic
from dphist_bench.cases import Case, Reading

_SCHEMA = pa.schema(
    [
        pa.field("data", pa.string()),
        pa.field("method", pa.string()),
        pa.field("epsilon", pa.string()),
        pa.field("case_x", pa.float64()),
        pa.field("trial", pa.int32()),
        pa.field("measure", pa.string()),
        pa.field("x", pa.float64()),
        pa.field("value", pa.float64()),
    ]
)
_ABOUT = b"dphist_bench"
_VERSIONS = ("dphist", "numpy", "scipy", "numba", "duckdb")


@dataclass(frozen=True)
class Row:
    """One reading of one trial of one case."""

    case: Case
    trial: int
    reading: Reading


@dataclass(frozen=True)
class Point:
    """The mean of a reading over its trials, and how sure that mean is."""

    data: str
    method: str
    epsilon: str
    x: float | None
    measure: str
    value: float
    error: float
    trials: int


class Results:
    """All readings of one experiment, averaged over trials."""

    def __init__(self, rows: Iterable[Row], about: dict[str, Any]) -> None:
        """Take rows as they are, and what is known of how they were made."""
        self.rows = list(rows)
        self.about = about

    @cached_property
    def points(self) -> list[Point]:
        """Means over trials, in the order in which cases were first met."""
        found: dict[tuple[str, str, str, float | None, str], list[float]] = defaultdict(list)
        for row in self.rows:
            x = row.case.x if row.reading.x is None else row.reading.x
            found[row.case.data, row.case.method, row.case.epsilon, x, row.reading.measure].append(
                row.reading.value
            )
        return [Point(*key, *_mean(values)) for key, values in found.items()]

    def select(self, measure: str, **where: Any) -> list[Point]:
        """Give the points of a measure whose named facts have these values (or one of them, given a tuple)."""
        return [
            point
            for point in self.points
            if point.measure == measure and all(_fits(getattr(point, k), v) for k, v in where.items())
        ]

    def value(self, measure: str, **where: Any) -> float:
        """Give the one mean that fits."""
        points = self.select(measure, **where)
        if len(points) != 1:
            raise InputError(f"{len(points)} points fit {measure} with {where}, and one was expected")
        return points[0].value

    def ratios(self, measure: str, method: str, other: str, **where: Any) -> list[float]:
        """Give one method's mean over another's wherever both were measured."""
        mine = {(p.data, p.epsilon, p.x): p.value for p in self.select(measure, method=method, **where)}
        theirs = {(p.data, p.epsilon, p.x): p.value for p in self.select(measure, method=other, **where)}
        return [mine[key] / theirs[key] for key in mine if key in theirs and theirs[key] > 0]

    def trials_of(self) -> dict[Case, set[int]]:
        """Say which trials of each case are done."""
        done: dict[Case, set[int]] = defaultdict(set)
        for row in self.rows:
            done[row.case].add(row.trial)
        return done


def geometric_mean(values: Iterable[float]) -> float:
    """Average ratios as ratios."""
    logs = [math.log(value) for value in values if value > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def _mean(values: list[float]) -> tuple[float, float, int]:
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, math.nan, 1
    spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(spread / len(values)), len(values)


def _fits(have: Any, want: Any) -> bool:
    return have in want if isinstance(want, tuple | list | set | frozenset) else have == want


def machine() -> dict[str, Any]:
    """Say what readings were taken on: processor, cores, memory, versions. No host, no user, no path."""
    versions = {}
    for name in _VERSIONS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
        if hasattr(os, "sysconf")
        else None,
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.is_file():
        for line in facts.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def save(path: Path, rows: Iterable[Row], about: dict[str, Any]) -> None:
    """Write readings and what made them, whole or not at all."""
    flat = [
        (*astuple(row.case), row.trial, row.reading.measure, row.reading.x, row.reading.value) for row in rows
    ]
    columns = (
        dict(zip(_SCHEMA.names, zip(*flat, strict=True), strict=True))
        if flat
        else dict.fromkeys(_SCHEMA.names, ())
    )
    schema = _SCHEMA.with_metadata({_ABOUT: json.dumps(about, ensure_ascii=False).encode()})
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic(path) as temporary:
        pq.write_table(pa.table(columns, schema=schema), temporary, compression="zstd")


def load(path: Path) -> Results:
    """Read what `save` wrote."""
    table = pq.read_table(path)
    about = (table.schema.metadata or {}).get(_ABOUT)
    if about is None or table.schema.names != _SCHEMA.names:
        raise InputError(f"{path} holds no readings of an experiment; give another results folder")
    return Results(_rows(table), json.loads(about))


def _rows(table: pa.Table) -> Iterator[Row]:
    columns = (table.column(name).to_pylist() for name in _SCHEMA.names)
    for data, method, epsilon, case_x, trial, measure, x, value in zip(*columns, strict=True):
        yield Row(Case(data, method, epsilon, case_x), trial, Reading(measure, value, x))
