"""What outgrows memory: fifty million rows into a cube, two rows a person at most, a trillion cells.

Each measurement is a process of its own, imports included: processor time (user and system, all threads), wall time
and peak memory. ``--spark`` also bounds rows on Spark; its Java is a process beside the one that is measured, so only
its wall time says something. ``--executors 1 2 4`` shares the same work among executors
(`dphist_bench.measurements.speed.executors`).
"""

# ruff: noqa: S608 -- the SQL below is built from constants

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from dphist_bench.measurements.speed.counting import COLUMNS
from dphist_bench.measurements.speed.executors import shared
from dphist_bench.measuring import Line
from dphist_bench.timing import run_python

_ROWS = f"""
COPY (
  SELECT CAST(hash(i, 5) % {{people}} AS BIGINT) AS person, {COLUMNS}
  FROM range({{rows}}) AS r(i)
) TO '{{path}}' (FORMAT parquet)
"""
_SCATTERED = """
COPY (
  SELECT CAST(hash(i) % 1000000 AS BIGINT) AS x, CAST(hash(i, 1) % 1000000 AS BIGINT) AS y
  -- one cell in ten holds thirty records, the others three
  FROM range({cells}) AS r(i), range(30) AS s(j) WHERE j < CASE WHEN i % 10 = 0 THEN 30 ELSE 3 END
) TO '{path}' (FORMAT parquet)
"""
_DOMAIN = (
    'Domain([Ordinal("age", range(100)), Ordinal("income", edges=range(0, 160_001, 1_000)), '
    'Nominal("sex", ["F", "M"]), Nominal("place", ["north", "south", "east", "west", "isles"])])'
)
_KEYS = "age, CAST(floor(income / 1000) AS INTEGER), sex, place"
_PLAIN = """
import duckdb
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
answer = connection.execute("SELECT {keys}, count(*) AS n FROM '{path}' WHERE age BETWEEN 0 AND 99 "
    "AND income BETWEEN 0 AND 160000 GROUP BY ALL").fetchnumpy()
print(int(answer["n"].sum()))
"""
_COUNT = """
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.sources import count
from dphist.model.unit import Unit
print(int(count({path!r}, {domain}, Unit({unit})).counts.sum()))
"""
_SPARK = """
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.sources import count
from dphist.sources.databases.spark import local_session
from dphist.model.unit import Unit
session = local_session("local[2]", spark_driver_memory="1g", spark_sql_shuffle_partitions="64")
print(int(count(session.read.parquet({path!r}), {domain}, Unit({unit})).counts.sum()))
session.stop()
"""
_SPARSE = """
import dphist
domain = dphist.Domain([dphist.Ordinal("x", range(10**6)), dphist.Ordinal("y", range(10**6))])
release = dphist.publish({path!r}, domain, 1, "sparselaplace(threshold={threshold})")
release.save({out!r})
print(len(release.cells))
"""


def measure(
    *,
    quick: bool,
    rows: int = 50_000_000,
    cells: Annotated[int, "occupied cells of the trillion"] = 1_000_000,
    only: tuple[Literal["cube", "bounded", "sparse"], ...] = ("cube", "bounded", "sparse"),
    spark: Annotated[int | None, "also bound so many rows on Spark"] = None,
    executors: Annotated[
        tuple[int, ...], "so many of Spark's executors share 3,000,000 rows; nothing else runs"
    ] = (),
) -> Iterator[Line]:
    """Give processor seconds, wall seconds and memory, job by job."""
    if executors:
        yield from shared(20_000 if quick else 3_000_000, 50 if quick else 10_000, executors)
        return
    rows, cells = (100_000, 1_000) if quick else (rows, cells)
    yield f"{rows:,} rows × 5 columns of Parquet, {max(1, rows // 5):,} people"
    two = 'rows=2, id="person"'
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "cube" in only or "bounded" in only:
            path = _make(folder / "rows.parquet", _ROWS, rows=rows, people=max(1, rows // 5))
        if "cube" in only:
            yield _line("the cube in plain SQL", _PLAIN.format(path=path, keys=_KEYS))
            yield _line("the cube by dphist", _COUNT.format(path=path, domain=_DOMAIN, unit=""))
        if "bounded" in only:
            script = _COUNT.format(path=path, domain=_DOMAIN, unit=two)
            yield _line("the cube, at most 2 rows a person", script)
        if spark:
            some = _make(folder / "some.parquet", _ROWS, rows=spark, people=max(1, spark // 5))
            script = _SPARK.format(path=some, domain=_DOMAIN, unit=two)
            yield _line(f"the same of {spark:,} rows on Spark", script)
        if "sparse" in only:
            spots = _make(folder / "spots.parquet", _SCATTERED, cells=cells)
            script = _SPARSE.format(path=spots, threshold=20, out=str(folder / "out.parquet"))
            yield _line(f"10¹² cells, {cells:,} occupied, released", script)


def _make(path: Path, sql: str, **numbers: int) -> str:
    import duckdb

    duckdb.connect().execute(sql.format(path=path, **numbers))
    return str(path)


def _line(title: str, script: str) -> Line:
    begun = time.monotonic()
    cost = run_python(["-c", script])
    wall = time.monotonic() - begun
    return {
        "job": title,
        "CPU s": cost.seconds,
        "wall s": wall,
        "MB": cost.megabytes,
        "rows or cells": int(cost.output),
    }
