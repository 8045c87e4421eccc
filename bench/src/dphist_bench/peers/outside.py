"""Our side of a measurement: makes the records, finds each peer's Python, runs the job and reads what came out."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Where the peers' environments are: DIR/<environment>/bin/python. `python -m dphist_bench.peers DIR` makes them.
FOLDER = "DPHIST_PEERS"


WAYS = Path(__file__).with_name("ways.py")


@dataclass(frozen=True)
class Peer:
    """One way to do the job, the package it needs, the environment that has it, and what kind of file it writes."""

    way: str
    package: str
    environment: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    writes: str = "npy"
    file: Path = WAYS


PEERS: dict[str, Peer] = {
    "dphist, laplace": Peer("Ours", "dphist", writes="parquet"),
    "dphist, auto for cells": Peer(
        "Ours", "dphist", options={"mechanism": "auto", "asked": "cells"}, writes="parquet"
    ),
    "dphist, auto for ranges": Peer(
        "Ours", "dphist", options={"mechanism": "auto", "asked": "all_ranges"}, writes="parquet"
    ),
    "OpenDP, vector": Peer("OpenDP", "opendp", "opendp"),
    "OpenDP, Polars": Peer("OpenDPPolars", "opendp", "opendp", writes="parquet"),
    "diffprivlib": Peer("Diffprivlib", "diffprivlib", "diffprivlib"),
}
OTHERS = tuple(name for name, peer in PEERS.items() if peer.package != "dphist")


@dataclass(frozen=True)
class Cost:
    """What a run cost: processor seconds and seconds on the clock, with and without starting up, and memory."""

    cpu: float
    job_cpu: float
    wall: float
    job_wall: float
    megabytes: float
    version: str


class Skipped(Exception):  # noqa: N818 -- a reason, not a fault
    """A peer that could not do the job, and why, in a few words."""


def interpreter(peer: Peer) -> str:
    """Find a Python that has the peer, or say why there is none."""
    if not peer.environment:
        return sys.executable
    folder = os.environ.get(FOLDER)
    if folder:
        python = Path(folder) / peer.environment / "bin" / "python"
        if python.is_file():
            # Not resolved: a link in an environment stands for that environment.
            return str(python.absolute())
    if find_spec(peer.package) is not None:
        return sys.executable
    raise Skipped(f"{peer.package} is not installed; {FOLDER} names no environment with it")


def run(
    name: str,
    records: str,
    sizes: Sequence[int],
    epsilon: str,
    outs: Sequence[str],
    limit: float = 600.0,
) -> Cost:
    """Do the job in a new process; ``limit`` is in seconds on the clock."""
    peer = PEERS[name]
    request = {
        "file": str(peer.file),
        "way": peer.way,
        "records": records,
        "sizes": list(sizes),
        "epsilon": epsilon,
        "outs": list(outs),
        "options": dict(peer.options),
    }
    command = [interpreter(peer), str(Path(__file__).with_name("inside.py")), json.dumps(request)]
    # Another Python must not be led to our packages.
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))
    }
    started = time.monotonic()
    try:
        # A session of its own, so that whatever it starts can be ended with it.
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=scratch(),
            start_new_session=True,
        )
        output, complaint = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.communicate()
        raise Skipped(f"not done in {limit:.0f} s") from None
    wall = time.monotonic() - started
    if child.returncode != 0:
        raise Skipped(_last_words(complaint))
    found = json.loads(output.strip().splitlines()[-1])
    return Cost(
        cpu=found["cpu"],
        job_cpu=found["cpu"] - found["start_cpu"],
        wall=wall,
        job_wall=found["job_wall"],
        megabytes=found["megabytes"],
        version=found["version"],
    )


def _last_words(complaint: str) -> str:
    """The kind of error a process ended with: its words may hold paths."""
    lines = [line for line in complaint.strip().splitlines() if line and not line[0].isspace()]
    return f"failed: {lines[-1].partition(':')[0][:60]}" if lines else "failed"


def released(name: str, out: str, sizes: Sequence[int]) -> FloatArray:
    """Read what a peer saved, as counts in the order of the cells."""
    if PEERS[name].package == "dphist":
        from dphist.release import load

        return np.asarray(load(out).counts, dtype=np.float64)
    if out.endswith(".npy"):
        return np.asarray(np.load(out), dtype=np.float64).reshape(tuple(sizes))
    import pyarrow.parquet as pq

    table = pq.read_table(out)
    columns = [table.column(f"a{axis}").to_numpy() for axis in range(len(sizes))]
    counts = np.full(tuple(sizes), np.nan)
    counts[tuple(columns)] = table.column("len").to_numpy()
    return counts


def out_of(name: str, number: int = 0) -> str:
    """Where a peer may write; the ending says how it is read."""
    return str(scratch() / f"out{number}.{PEERS[name].writes}")


@cache
def scratch() -> Path:
    """A folder for records and outputs that goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="dphist-peers-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def records(rows: int, sizes: tuple[int, ...]) -> str:
    """A Parquet file of rows with an integer column for each attribute, skewed like ages and incomes; made once."""
    path = scratch() / f"{rows}-{'x'.join(map(str, sizes))}.parquet"
    if not path.is_file():
        # The last one has served: large files do not pile up.
        for old in scratch().glob("*-*.parquet"):
            old.unlink()
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = _columns(rows, sizes)
        pq.write_table(pa.table({f"a{axis}": column for axis, column in enumerate(columns)}), path)
    return str(path)


def truth(rows: int, sizes: tuple[int, ...]) -> IntArray:
    """The counts of those records."""
    flat = np.ravel_multi_index(tuple(_columns(rows, sizes)), sizes)
    return np.bincount(flat, minlength=int(np.prod(sizes))).reshape(sizes)


def _columns(rows: int, sizes: tuple[int, ...]) -> list[IntArray]:
    draw = np.random.default_rng(0)  # noqa: TID251 -- data only
    return [np.minimum((draw.beta(2, 5, rows) * size).astype(np.int64), size - 1) for size in sizes]
