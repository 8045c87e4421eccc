"""What it costs to hold everybody to so many rows: processor time beside the engine's own GROUP BY person.

Rows of people drawn at random, five each on average, are counted in a thousand cells with at most ``limit`` rows a
person, and DuckDB is asked how many rows each person has. Both start from one Arrow table and end with NumPy arrays.
In the last line one person has a tenth of all rows.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.open import connect
from dphist_bench.measuring import Line

_DOMAIN = Domain([Ordinal("cell", range(1000))])


def measure(*, quick: bool, rows: int = 10_000_000, limit: int = 2, repeats: int = 3) -> Iterator[Line]:
    """Give the processor seconds of both, for ids of numbers, of text and skewed ones, and their ratio."""
    import pyarrow

    rows, repeats = (20_000, 1) if quick else (rows, repeats)
    draw = np.random.default_rng(1)  # noqa: TID251 -- data only
    person, cell = draw.integers(0, max(1, rows // 5), rows), draw.integers(0, 1000, rows)
    texts = pyarrow.array(person).cast(pyarrow.string())
    unit = Unit(rows=limit, id="person")
    skewed = np.where(draw.random(rows) < 0.1, 7, person)
    for kind, ids in (("numbers", person), ("text", texts), ("numbers, one has a tenth", skewed)):
        table = pyarrow.table({"person": ids, "cell": cell})
        with connect() as duck:
            duck.register("given", table)
            asked = "SELECT person, count(*) AS n FROM given GROUP BY person"
            plain = min(_cpu(lambda: duck.execute(asked).fetchnumpy()) for _ in range(repeats))  # noqa: B023
        bounded = min(_cpu(lambda: count(table, _DOMAIN, unit)) for _ in range(repeats))  # noqa: B023
        yield {
            "ids": kind,
            "rows": rows,
            "GROUP BY person, CPU s": plain,
            "bounded, CPU s": bounded,
            "ratio": bounded / plain,
        }


def _cpu(run: Callable[[], Any]) -> float:
    begun = resource.getrusage(resource.RUSAGE_SELF)
    run()
    ended = resource.getrusage(resource.RUSAGE_SELF)
    return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
