"""What commands that are called again and again cost on a release of many cells: whole processes, with imports."""

from __future__ import annotations

import os
import subprocess
import sys
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

ASKED: Mapping[str, tuple[str, ...]] = {
    "query": ("a0 between 3 and 20",),
    "show": (),
    "verify": (),
    "report": ("--output", "report.html"),
}


def _domains(cells: int) -> dict[str, Domain]:
    side, third = round(cells**0.5), round((cells / 10) ** 0.5)
    return {
        "line": Domain([Ordinal("a0", range(cells))]),
        "plane": Domain([Ordinal("a0", range(side)), Ordinal("a1", range(side))]),
        "cube": Domain(
            [Ordinal("a0", range(third)), Ordinal("a1", range(third)), Nominal("a2", list("abcdefghij"))]
        ),
    }


def _hills(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Two hills in a land that is nearly empty, and Poisson counts."""
    place = np.stack(np.meshgrid(*(np.linspace(-1, 1, n) for n in shape), indexing="ij"))
    rate = sum(
        h * np.exp(-w * ((place - at) ** 2).sum(axis=0)) for h, w, at in ((20, 9, -0.4), (60, 90, 0.5))
    )
    return np.asarray(np.random.default_rng(1).poisson(rate + 0.2))  # noqa: TID251 -- made-up data


def measure(
    *,
    quick: bool,
    cells: int = 100_000,
    runs: Annotated[int, "processes a command; the least counts"] = 3,
) -> Iterator[Line]:
    """Give the processor seconds of every command on releases of several kinds, beside those of what it must import.

    Machines that are used have compiled what is used there (`dphist.kernels.machine`); the first verification on one
    that has compiled nothing stands beside it.
    """
    cells, runs = (2_000, 0) if quick else (cells, runs)
    kinds: list[tuple[str, str, str | None]] = [
        ("auto", "plane", None),
        ("laplace", "line", None),
        ("auto", "line", None),
    ]
    kinds = kinds[:1] if quick else [*kinds, ("auto", "line", "cells"), ("auto", "cube", None)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        floor = ["-c", "import numpy, pyarrow.parquet"]
        yield f"beside them import numpy, pyarrow.parquet: {_least(floor, place, runs):.2f} CPU s"
        for mechanism, shape, announced in kinds:
            domain = _domains(cells)[shape]
            release = publish(
                Histogram(domain, _hills(domain.shape)),
                epsilon=1,
                mechanism=mechanism,
                workload=announced,
                unattended=True,
            )
            release.save(place / "out.parquet")
            row: dict[str, object] = {
                "release": f"{mechanism}, {shape}" + (f" for {announced}" if announced else ""),
                "cells": domain.size,
            }
            for command, more in ASKED.items():
                if quick and command in ("show", "report"):
                    continue
                if not quick:
                    _least(["-c", _COMPILED, command, "out.parquet", *more], place, 0)
                row[f"{command}, CPU s"] = _least(
                    ["-m", "dphist", command, "out.parquet", *more], place, runs
                )
            if not quick:
                row["first verify, CPU s"] = _least(
                    ["-m", "dphist", "verify", "out.parquet"], place, 0, cold=True
                )
            yield row


# A command with every kernel compiled that it calls.
_COMPILED = (
    "from dphist.cli import main; from dphist.kernels.compile import compile_at_once, process_is_ours;"
    "process_is_ours(); compile_at_once(); main()"
)


def _least(arguments: list[str], place: Path, runs: int, *, cold: bool = False) -> float:
    """Processor seconds of a process: the least of some, after one that left bytecode and machine code behind."""
    # Installed packages have bytecode, and so must a checkout that nobody has installed.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if cold:
        environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=place)
    took = []
    for _ in range(runs + 1):
        child = subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.DEVNULL,
            cwd=place,
            env=environment | {"NUMBA_NUM_THREADS": "1"},
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError("a measured process failed")
        took.append(used.ru_utime + used.ru_stime)
    return min(took[1:] or took)
