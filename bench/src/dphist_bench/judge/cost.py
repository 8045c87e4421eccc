"""CPU and memory of what people do, as ratios to a loop that is timed in the same run."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from dphist_bench.timing import run_python

# What every warm job finds at hand; each is called once to load and compile, then timed.
_BEGIN = """
import json, sys, time, warnings, pathlib
import numpy as np
import dphist
from dphist_bench.timing import least, peak_memory
warnings.simplefilter("ignore")
draw = np.random.default_rng(1)
place = pathlib.Path(".")
told = dict(epsilon=1, unattended=True)
def domain(*shape):
    return dphist.Domain([dphist.Ordinal(f"x{a}", range(n)) for a, n in enumerate(shape)])
def counts(*shape, mean=20.0):
    places = np.meshgrid(*(np.linspace(-2, 2, n) for n in shape), indexing="ij")
    hills = mean * np.exp(-sum(place**2 for place in places))
    return dphist.Histogram(domain(*shape), draw.poisson(hills))
def released(*shape, **more):
    return dphist.publish(counts(*shape), **(told | more))
def timed(work, times=3):
    work()
    print(json.dumps([least(work, times), peak_memory() / 1e6]))
"""
JOBS: dict[str, str] = {
    "laplace, a line of 1,024": "h = counts(1024); timed(lambda: dphist.publish(h, mechanism='laplace', **told))",
    "laplace, 10⁷ cells": "h = counts(200, 250, 200); timed(lambda: dphist.publish(h, mechanism='laplace', **told), 2)",
    "auto, a line of 1,024": "h = counts(1024); timed(lambda: dphist.publish(h, **told))",
    "auto, a line of 4,096, cells announced": (
        "h = counts(4096); timed(lambda: dphist.publish(h, workload='cells', **told))"
    ),
    "auto, a line of 65,536": "h = counts(65536); timed(lambda: dphist.publish(h, **told))",
    "auto, 64 × 64": "h = counts(64, 64); timed(lambda: dphist.publish(h, **told))",
    "auto, 256 × 256": "h = counts(256, 256); timed(lambda: dphist.publish(h, **told))",
    "auto, a cube of five attributes": "h = counts(60, 9, 16, 2, 2); timed(lambda: dphist.publish(h, **told))",
    "auto, 10⁷ cells": "h = counts(200, 250, 200, mean=0.5); timed(lambda: dphist.publish(h, **told), 1)",
    "noisefirst, 1,024": "h = counts(1024); timed(lambda: dphist.publish(h, mechanism='noisefirst', **told))",
    "structurefirst, 512": "h = counts(512); timed(lambda: dphist.publish(h, mechanism='structurefirst', **told))",
    "dpcube, 64 × 64": "h = counts(64, 64); timed(lambda: dphist.publish(h, mechanism='dpcube', **told))",
    "privelet, 10⁶ cells": "h = counts(1000, 1000); timed(lambda: dphist.publish(h, mechanism='privelet', **told), 2)",
    "efpa, 4,096": "h = counts(4096); timed(lambda: dphist.publish(h, mechanism='efpa', **told))",
    "mixture, 15 columns × 20,000 rows, all pairs": """
import pyarrow as pa
wide = dphist.Domain([dphist.Ordinal(f"c{a}", range(2 + a % 9)) for a in range(15)])
rows = pa.table({f"c{a}": draw.integers(0, 2 + a % 9, 20_000) for a in range(15)})
timed(lambda: dphist.publish(rows, wide, workload='marginals:2', **told), 2)
""",
    "CSV of 10⁶ rows into 100 × 12 cells": """
import pyarrow as pa, pyarrow.csv
table = pa.table({"x0": draw.integers(0, 100, 10**6), "x1": draw.integers(0, 12, 10**6)})
pyarrow.csv.write_csv(table, place / "rows.csv")
timed(lambda: dphist.publish("rows.csv", domain(100, 12), mechanism="laplace", **told), 2)
""",
    "1,000 ranges with intervals, auto, a line of 4,096": """
r = released(4096); asked = dphist.Workload.random(r.domain, 1000, seed=1); timed(lambda: r.answer(asked))
""",
    "every cell's interval, auto, 300 × 300": """
r = released(300, 300); asked = dphist.Workload.cells(r.domain); timed(lambda: r.answer(asked))
""",
    "a mean, auto, a line of 10⁵": "r = released(100_000); timed(lambda: r.mean('x0'))",
    "10⁷ cells saved, laplace": """
r = released(200, 250, 200, mechanism='laplace'); timed(lambda: r.save(place / "out.parquet"), 1)
""",
    "10⁵ cells loaded and asked, auto, 300 × 300": """
released(300, 300).save(place / "out.parquet")
timed(lambda: dphist.load(place / "out.parquet").answer("x0 between 3 and 90"))
""",
    "10⁵ cells verified, auto, 300 × 300": """
released(300, 300).save(place / "out.parquet"); timed(lambda: dphist.load(place / "out.parquet").verify())
""",
}
# Whole processes, after one that left bytecode and machine code behind.
COMMANDS: dict[str, list[str]] = {
    "import dphist": ["-c", "import dphist"],
    "dphist --help": ["-m", "dphist", "--help"],
    "dphist query, 10⁵ cells": ["-m", "dphist", "query", "kept.parquet", "x0 between 3 and 90"],
    "dphist show, 10⁵ cells": ["-m", "dphist", "show", "kept.parquet"],
    "dphist verify, 10⁵ cells": ["-m", "dphist", "verify", "kept.parquet"],
    "dphist report, 10⁵ cells": ["-m", "dphist", "report", "kept.parquet", "--output", "kept.html"],
    "laplace on 1,024 cells with start-up": [
        "-c",
        "import dphist, numpy; dphist.publish(dphist.Histogram(dphist.Domain([dphist.Ordinal('x', range(1024))]), "
        "numpy.ones(1024, int)), epsilon=1, mechanism='laplace', unattended=True)",
    ],
}
_KEEP = _BEGIN + "released(300, 300).save(place / 'kept.parquet')"
# Whole numbers, floats, and memory: what a second of this machine is worth.
_REFERENCE = """
import time, numpy as np
a, start = np.arange(200_000, dtype=float), time.process_time()
for turn in range(60):
    a = np.sort(np.cumsum(np.sin(a) + turn))[::-1].copy()
s = 0
for i in range(2_000_000):
    s = (s * 31 + i) & 0xFFFFFFFF
print(time.process_time() - start)
"""
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}


def costs(*, quick: bool = False) -> Iterator[tuple[str, float, float]]:
    """Run every job in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        loops = [_reference(place)]
        found: list[tuple[str, float, float]] = []
        for name, work in list(JOBS.items())[: 2 if quick else None]:
            cost = run_python(["-c", _BEGIN + work], place=place, environment=_ENVIRONMENT)
            seconds, megabytes = json.loads(cost.output.splitlines()[-1])
            found.append((name, seconds, megabytes))
            loops.append(_reference(place))
        run_python(["-c", _KEEP], place=place, environment=_ENVIRONMENT)
        for name, arguments in list(COMMANDS.items())[: 1 if quick else None]:
            runs = [run_python(arguments, place=place, environment=_ENVIRONMENT) for _ in range(4)]
            found.append((name, min(each.seconds for each in runs[1:]), max(each.megabytes for each in runs)))
            loops.append(_reference(place))
    one = median(loops)
    yield "the reference loop, CPU s", one, 0.0
    for name, seconds, megabytes in found:
        yield name, seconds / one, megabytes


def _reference(place: Path) -> float:
    return float(run_python(["-c", _REFERENCE], place=place, environment=_ENVIRONMENT).output)
