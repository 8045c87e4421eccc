"""What commands that are called again and again cost on a release of many cells: whole processes, with imports.

And what the first of every kind costs on a machine that has compiled nothing yet, publishing among them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.publishing.door import publish
from dphist_bench.measuring import Line
from dphist_bench.timing import run_python

ASKED: Mapping[str, tuple[str, ...]] = {
    "query": ("a0 between 3 and 20",),
    "show": (),
    "verify": (),
    "report": ("--output", "report.html"),
}
# Of every kind of release its mechanism, its shape and what was announced.
KINDS: Mapping[str, tuple[str, str, str | None]] = {
    "laplace, line": ("laplace", "line", None),
    "auto, line": ("auto", "line", None),
    "auto, plane": ("auto", "plane", None),
    "auto, line for cells": ("auto", "line", "cells"),
    "auto, cube": ("auto", "cube", None),
    "auto, tables": ("auto", "tables", "marginals:2"),
    "auto, wide tables": ("auto", "wide", "marginals:2"),
}
# Records of the wide one, whose cells nobody could write out.
_RECORDS = 20_000


def _domain(shape: str, cells: int) -> Domain:
    side, third = round(cells**0.5), round((cells / 10) ** 0.5)
    if shape == "line":
        return Domain([Ordinal("a0", range(cells))])
    if shape == "plane":
        return Domain([Ordinal("a0", range(side)), Ordinal("a1", range(side))])
    if shape == "cube":
        return Domain(
            [Ordinal("a0", range(third)), Ordinal("a1", range(third)), Nominal("a2", list("abcdefghij"))]
        )
    others = [8, 12, cells // (40 * 8 * 12)] if shape == "tables" else [2, 3, 5, 8] * 3 + [12, 20]
    return Domain([Ordinal("a0", range(40)), *(Nominal(f"a{i + 1}", range(n)) for i, n in enumerate(others))])


def _hills(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Two hills in a land that is nearly empty, and Poisson counts."""
    place = np.stack(np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij"))
    rate = sum(
        h * np.exp(-w * ((place - at) ** 2).sum(axis=0)) for h, w, at in ((20, 9, -0.4), (60, 90, 0.5))
    )
    return np.asarray(np.random.default_rng(1).poisson(rate + 0.2))  # noqa: TID251 -- made-up data


def release_of(kind: str, cells: int, path: str) -> None:
    """Publish made-up records and save the release: what a measured process does.

    Args:
        kind: One of `KINDS`.
        cells: How many there are, about.
        path: Where to save it.
    """
    mechanism, shape, announced = KINDS[kind]
    domain = _domain(shape, cells)
    if shape == "wide":
        import pyarrow as pa

        rng = np.random.default_rng(1)  # noqa: TID251 -- made-up data
        columns = {each.name: rng.integers(0, each.size, _RECORDS) for each in domain.attributes}
        table = pa.table(columns)
        release = publish(
            table, domain=domain, epsilon=1, mechanism=mechanism, workload=announced, unattended=True
        )
    else:
        histogram = Histogram(domain, _hills(domain.shape))
        release = publish(histogram, epsilon=1, mechanism=mechanism, workload=announced, unattended=True)
    release.save(path)


def measure(
    *,
    quick: bool,
    cells: int = 100_000,
    runs: Annotated[int, "processes a command; the least counts"] = 3,
    only: Annotated[tuple[str, ...], "releases of these kinds alone"] = (),
) -> Iterator[Line]:
    """Give the processor seconds of every command on releases of several kinds, beside those of what it must import.

    Machines that are used have compiled what is used there (`dphist.kernels.compile`). What every command takes that
    is the first on one that has compiled nothing comes after it.
    """
    cells, runs = (2_000, 0) if quick else (cells, runs)
    kinds = [kind for kind in KINDS if not only or kind in only]
    kinds = ["auto, plane"] if quick else kinds
    first: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        floor = ["-c", "import numpy, pyarrow.parquet"]
        yield f"beside them import numpy, pyarrow.parquet: {_least(floor, place, runs):.2f} CPU s"
        for kind in kinds:
            publishing = ["-c", _PUBLISHED, kind, str(cells)]
            row: dict[str, object] = {"release": kind}
            cold: dict[str, object] = {"nothing compiled": kind, "publish": _first(publishing, place)}
            for command, more in ASKED.items():
                if quick and command in ("show", "report"):
                    continue
                words = [command, "out.parquet", *more]
                if not quick:
                    cold[command] = _first(["-m", "dphist", *words], place)
                    _least(["-c", _COMPILED, *words], place, 0)
                row[f"{command}, CPU s"] = _least(["-m", "dphist", *words], place, runs)
            first.append(cold)
            yield row
    yield "the first of its kind, CPU s"
    yield from first


# A command with every kernel compiled that it calls; and a release.
_COMPILED = "from dphist.cli import main; from dphist.extras import process_is_ours;process_is_ours(); main()"
_PUBLISHED = (
    "import sys; from dphist_bench.measurements.speed.commands import release_of;"
    "release_of(sys.argv[1], int(sys.argv[2]), 'out.parquet')"
)
# Installed packages have bytecode, and so must a checkout that nobody has installed.
_AS_INSTALLED = {"PYTHONDONTWRITEBYTECODE": "", "NUMBA_NUM_THREADS": "1"}


def _least(arguments: list[str], place: Path, runs: int) -> float:
    """Processor seconds of a process: the least of some, after one that left bytecode and machine code behind."""
    took = [run_python(arguments, place=place, environment=_AS_INSTALLED).seconds for _ in range(runs + 1)]
    return min(took[1:] or took)


def _first(arguments: list[str], place: Path) -> float:
    """Processor seconds of a process that finds nothing compiled."""
    kept = {"NUMBA_CACHE_DIR": tempfile.mkdtemp(dir=place)}
    return run_python(arguments, place=place, environment=_AS_INSTALLED | kept).seconds
