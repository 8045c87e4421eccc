"""The paths that are used most, beside the same paths of another source tree, to see what a change made slower.

Each tree runs in processes of its own, the two in turn, so that what else the machine does falls on both alike. A path
that is called is warmed up first and timed by processor seconds of the process (all threads); a path that is a command
is a whole process, imports included. The table shows the least of all runs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

from dphist_bench.measuring import Failure, Line
from dphist_bench.timing import Cost, run_python

# What may be read into a ratio: below a twentieth it is the machine.
SLOWER = 1.05

_LINE = """
import numpy as np, dphist
def line(n, top=50):
    return dphist.Histogram(dphist.Domain([dphist.Ordinal("x", range(n))]), np.arange(n) * 7919 % top)
"""

# Name: what stands before the clock, and what is timed.
CALLS: Mapping[str, tuple[str, str]] = {
    "publish auto, 100 cells": ("h = line(100)", 'dphist.publish(h, epsilon=1, mechanism="auto")'),
    "publish laplace, 10⁶ cells": ("h = line(10**6)", 'dphist.publish(h, epsilon=1, mechanism="laplace")'),
    "publish auto, 4,096 cells": ("h = line(4096)", 'dphist.publish(h, epsilon=1, mechanism="auto")'),
    "publish auto, 256 × 256 cells": (
        'd = dphist.Domain([dphist.Ordinal("x", range(256)), dphist.Ordinal("y", range(256))])\n'
        "h = dphist.Histogram(d, np.arange(65536).reshape(256, 256) * 7919 % 50)",
        'dphist.publish(h, epsilon=1, mechanism="auto")',
    ),
    "publish privelet, 2¹⁶ cells": (
        "h = line(1 << 16)",
        'dphist.publish(h, epsilon=1, mechanism="privelet")',
    ),
    "count 10⁶ rows of Arrow": (
        "import pyarrow as pa\nfrom dphist.sources import count\nd = line(1000).domain\n"
        't = pa.table({"x": np.arange(10**6) * 7919 % 1000})',
        "count(t, d)",
    ),
    "save, load, verify 10⁵ cells": (
        'r = dphist.publish(line(10**5), epsilon=1, mechanism="laplace")\n'
        'def work():\n    r.save("saved.parquet")\n    dphist.load("saved.parquet").verify()',
        "work()",
    ),
    "answer 1,000 ranges": (
        'h = line(4096)\nr = dphist.publish(h, epsilon=1, mechanism="tree")\n'
        "w = dphist.Workload.random(h.domain, 1000)",
        "r.answer(w)",
    ),
}
COMMANDS: Mapping[str, list[str]] = {
    "import dphist": ["-c", "import dphist"],
    "dphist --help": ["-m", "dphist", "--help"],
    "dphist query": ["-m", "dphist", "query", "asked.parquet", "x between 10 and 20"],
}

# Quick calls are repeated until a fifth of a second is full, slow ones three times.
_TIMED = """
import json, time
def once():
    start = time.process_time()
    {work}
    return time.process_time() - start
once()
took = [once() for _ in range(3)]
took += [once() for _ in range(min(200, int(0.2 / max(min(took), 1e-4))))]
print(json.dumps(min(took)))
"""
_ASKED = 'dphist.publish(line(100), epsilon=1, mechanism="laplace").save("asked.parquet")'


def measure(
    *,
    quick: bool,
    before: Annotated[
        Path | None, "a second source tree (the folder that holds dphist), to compare with"
    ] = None,
    runs: Annotated[int, "processes a tree and path; the least counts"] = 3,
) -> Iterator[Line]:
    """Give the processor seconds of every path in this tree and in the one before, and their ratio."""
    import dphist

    now = Path(dphist.__file__).resolve().parents[1]
    trees = {"before": before.resolve() if before is not None else now, "after": now}
    runs = 1 if quick else runs
    paths = ["import dphist", "dphist query", "answer 1,000 ranges"] if quick else [*COMMANDS, *CALLS]
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder) / name for name in trees}
        for name, place in places.items():
            place.mkdir()
            _run(trees[name], place, ["-c", f"{_LINE}\n{_ASKED}"])
        yield f"processor seconds, least of {runs} processes a tree in turn" + (
            "" if before is not None else "; no tree to compare with: both are this one"
        )
        for path in paths:
            took = {name: float("inf") for name in trees}
            for _ in range(runs):
                for name, tree in trees.items():
                    took[name] = min(took[name], seconds(path, tree, places[name]))
            ratio = took["after"] / took["before"]
            yield {
                "path": path,
                "before, s": took["before"],
                "after, s": took["after"],
                "after/before": ratio,
            }
            if before is not None and not quick and ratio > SLOWER:
                yield Failure(f"{path}: {ratio:.2f} times what it took before")


def seconds(path: str, tree: Path, place: Path) -> float:
    """Processor seconds of one path in one tree: a whole process for a command, the call alone otherwise."""
    if path in COMMANDS:
        return min(_run(tree, place, COMMANDS[path]).seconds for _ in range(3))
    ready, work = CALLS[path]
    return float(
        json.loads(_run(tree, place, ["-c", f"{_LINE}\n{ready}\n{_TIMED.format(work=work)}"]).output)
    )


def _run(tree: Path, place: Path, arguments: list[str]) -> Cost:
    """Run Python on a tree, in a folder of its own."""
    return run_python(arguments, place=place, environment={"PYTHONPATH": str(tree)})
