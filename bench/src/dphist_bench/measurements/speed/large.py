"""Large dense cubes, from records to a saved file: seconds, processor seconds and memory of every phase.

Ten to the ninth cells: ``dphist bench run large --cells 1000000000``, for which Privelet's file takes 11 GB of disk.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np

import dphist.release.file.writing  # noqa: F401 -- part of starting up, not of a phase
from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.publishing.door import publish
from dphist.release import load
from dphist.sources import count
from dphist_bench.measuring import Line
from dphist_bench.timing import forget_peak, peak_memory

Made = TypeVar("Made")


def measure(
    *,
    quick: bool,
    cells: Annotated[int, "of a cube of three attributes"] = 100_000_000,
    mechanisms: Annotated[tuple[str, ...], "which mechanisms"] = ("laplace", "privelet"),
    verify: Annotated[bool, "read the file and verify it, too"] = False,
) -> Iterator[Line]:
    """Give a row a phase; the kernels are compiled on a small cube first."""
    for mechanism in mechanisms:
        with tempfile.TemporaryDirectory(prefix="dphist-large-") as folder:
            # The least cube that is written as large ones are; what it compiles is kept.
            for _ in _phases(mechanism, 200_000 if quick else 1 << 24, Path(folder), verify):
                pass
            yield from _phases(mechanism, 200_000 if quick else cells, Path(folder), verify)


def _phases(mechanism: str, cells: int, folder: Path, verify: bool) -> Iterator[Line]:
    # Axes of a thousand are the shortest that Privelet transforms.
    shape = (1000, 1000, cells // 10**6) if cells >= 10**6 else (100, 100, cells // 10**4)
    domain = Domain([Ordinal(f"a{axis}", range(size)) for axis, size in enumerate(shape)])
    path = folder / "out.parquet"
    clock = _Clock({"mechanism": mechanism, "cells": domain.size})
    _saved(_records(folder, shape), domain, mechanism, path, clock)
    clock.rows.append(clock.total() | {"file, GB": path.stat().st_size / 1e9})
    if verify:
        again = clock.phase("load", partial(load, path))
        clock.phase("verify", again.verify)
    yield from clock.rows


def _records(folder: Path, shape: tuple[int, ...]) -> str:
    """A million records, skewed like ages and incomes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(0)  # noqa: TID251 -- data only
    columns = {f"a{axis}": (draw.beta(2, 5, 1_000_000) * size).astype(int) for axis, size in enumerate(shape)}
    pq.write_table(pa.table(columns), folder / "records.parquet")
    return str(folder / "records.parquet")


def _saved(records: str, domain: Domain, mechanism: str, path: Path, clock: _Clock) -> None:
    """What a custodian does; nothing of it is held afterwards."""
    histogram = clock.phase("count a million records", partial(count, records, domain, Unit()))
    release = clock.phase(
        "publish", partial(publish, histogram, epsilon=1, mechanism=mechanism, unattended=True)
    )
    clock.phase("save", partial(release.save, path))


@dataclass
class _Clock:
    """What each phase took."""

    same: dict[str, Any]
    rows: list[dict[str, Any]] = field(default_factory=list)

    def phase(self, name: str, work: Callable[[], Made]) -> Made:
        """Do some work, and write down what it took."""
        forget_peak()
        wall, cpu = time.monotonic(), time.process_time()
        made = work()
        spent = {"s": time.monotonic() - wall, "CPU s": time.process_time() - cpu}
        self.rows.append({**self.same, "phase": name, **spent, "GB at most": peak_memory() / 1e9})
        return made

    def total(self) -> dict[str, Any]:
        """All phases so far."""
        whole = {name: sum(row[name] for row in self.rows) for name in ("s", "CPU s")}
        return {**self.same, "phase": "all", **whole, "GB at most": max(r["GB at most"] for r in self.rows)}
