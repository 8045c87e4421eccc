"""Rows into a cube and into a release: what they cost beside the GROUP BY that a person would write.

Each measurement is a process of its own, imports included: processor time (user and system, all threads) and peak
memory. Plain SQL and dphist read the same Parquet file in turn; the table shows the least of a few runs, since
what else the machine does can only add.
"""

# ruff: noqa: S608 -- the SQL and the scripts below are built from constants of this file

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dphist_bench.measuring import Failure, Line
from dphist_bench.timing import run_python

# Four columns whose values come from DuckDB's hash of the row number, so the file is the same every time.
COLUMNS = """
    CAST(hash(i) % 100 AS BIGINT) AS age,
    exp(8.5 + 3 * ((hash(i, 1) % 1000003 + hash(i, 2) % 1000003) / 1000003.0 - 0.5)) AS income,
    CASE WHEN hash(i, 3) % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
    ['north', 'south', 'east', 'west', 'isles'][CAST(1 + hash(i, 4) % 5 AS BIGINT)] AS place
"""
_MAKE = f"COPY (SELECT {COLUMNS} FROM range({{rows}}) AS r(i)) TO '{{path}}' (FORMAT parquet)"

_NOMINAL = 'Nominal("sex", ["F", "M"]), Nominal("place", ["north", "south", "east", "west", "isles"])'
_EDGES = [0, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 50_000, 80_000, 100_000, 1_000_000]


@dataclass(frozen=True)
class Case:
    """One cube: its domain in Python, and the plain SQL for the same counts."""

    name: str
    attributes: str
    keys: str
    where: str


_CHAIN = " ".join(f"WHEN income < {edge} THEN {place}" for place, edge in enumerate(_EDGES[1:]))
CASES = [
    Case(
        "1,000 cells, 2 columns binned",
        f'Ordinal("age", edges=range(0, 101, 10)), Ordinal("income", edges={_EDGES}), {_NOMINAL}',
        f"age // 10, CASE {_CHAIN} ELSE {len(_EDGES) - 2} END, sex, place",
        f"age BETWEEN 0 AND 100 AND income BETWEEN 0 AND {_EDGES[-1]}",
    ),
    Case(
        "160,000 cells, 1 column binned",
        f'Ordinal("age", range(100)), Ordinal("income", edges=range(0, 160_001, 1_000)), {_NOMINAL}',
        "age, CAST(floor(income / 1000) AS INTEGER), sex, place",
        "age BETWEEN 0 AND 99 AND income BETWEEN 0 AND 160000",
    ),
    Case(
        "1,000 cells, columns as they are",
        f'Ordinal("age", range(100)), {_NOMINAL}',
        "age, sex, place",
        "age BETWEEN 0 AND 99",
    ),
]

_PLAIN = """
import duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
answer = connection.execute({sql!r}).fetchnumpy()
print(int(answer["n"].sum()))
"""

_OURS = """
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.sources import count
histogram = count({path!r}, Domain([{attributes}]))
print(int(histogram.counts.sum()))
"""

_RELEASE = """
import dphist
from dphist import Domain, Nominal, Ordinal
release = dphist.publish({path!r}, Domain([{attributes}]), 1, "laplace")
release.save({out!r})
"""


def measure(*, quick: bool, rows: int = 10_000_000, runs: int = 3) -> Iterator[Line]:
    """Give seconds and memory of plain SQL, of counting and of a whole release, cube by cube."""
    rows, runs = (100_000, 1) if quick else (rows, runs)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "rows.parquet")
        _make(path, rows)
        yield f"{rows:,} rows × 4 columns, Parquet; least of {runs} runs, whole processes"
        for case in CASES:
            sql = f"SELECT {case.keys}, count(*) AS n FROM '{path}' WHERE {case.where} GROUP BY ALL"
            scripts = (
                _PLAIN.format(sql=sql),
                _OURS.format(path=path, attributes=case.attributes),
                _RELEASE.format(path=path, attributes=case.attributes, out=str(Path(folder) / "out.parquet")),
            )
            # In turn, so that what else the machine does falls on all alike.
            measured = [[run_python(["-c", script]) for script in scripts] for _ in range(runs)]
            if measured[0][0].output != measured[0][1].output:
                yield Failure("the two ways count differently")
            plain, count, release = (min(run[way].seconds for run in measured) for way in range(3))
            memory = [min(run[way].megabytes for run in measured) for way in range(3)]
            yield {
                "cube": case.name,
                "plain SQL, s": plain,
                "count, s": count,
                "ratio of count": count / plain,
                "release, s": release,
                "ratio of release": release / plain,
                **dict(zip(("plain MB", "count MB", "release MB"), memory, strict=True)),
            }


def _make(path: str, rows: int) -> None:
    import duckdb

    duckdb.connect().execute(_MAKE.format(rows=rows, path=path))
