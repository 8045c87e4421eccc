"""What outgrows memory: fifty million rows into a cube, two rows a person at most, a trillion cells.

Each measurement is a process of its own, imports included: processor time (user and system, all threads), wall time
and peak memory. ``--spark`` also bounds rows on Spark; its Java is a process beside the one that is measured, so only
its wall time says something.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from dphist_bench.counting import _measure

_ROWS = """
COPY (
  SELECT
    CAST(hash(i, 5) % {people} AS BIGINT) AS person,
    CAST(hash(i) % 100 AS BIGINT) AS age,
    exp(8.5 + 3 * ((hash(i, 1) % 1000003 + hash(i, 2) % 1000003) / 1000003.0 - 0.5)) AS income,
    CASE WHEN hash(i, 3) % 2 = 0 THEN 'F' ELSE 'M' END AS sex,
    ['north', 'south', 'east', 'west', 'isles'][CAST(1 + hash(i, 4) % 5 AS BIGINT)] AS place
  FROM range({rows}) AS r(i)
) TO '{path}' (FORMAT parquet)
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
from dphist.sources.spark import local_session
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


def main(argv: list[str]) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench engines", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--cells", type=int, default=1_000_000, help="occupied cells of the trillion")
    parser.add_argument("--only", choices=["cube", "bounded", "sparse"], action="append")
    parser.add_argument("--spark", type=int, metavar="ROWS", help="also bound so many rows on Spark")
    parser.add_argument("--quick", action="store_true", help="a hundred thousand rows, a thousand cells")
    options = parser.parse_args(argv)
    rows, cells = (100_000, 1_000) if options.quick else (options.rows, options.cells)
    wanted = options.only or ["cube", "bounded", "sparse"]
    head = f"{'':44}{'CPU s':>9}{'wall s':>9}{'MB':>7}  {'':10}\n"
    sys.stdout.write(f"{rows:,} rows × 5 columns of Parquet, {max(1, rows // 5):,} people\n\n{head}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "cube" in wanted or "bounded" in wanted:
            path = _make(folder / "rows.parquet", _ROWS, rows=rows, people=max(1, rows // 5))
        if "cube" in wanted:
            plain = _line("the cube in plain SQL", _PLAIN.format(path=path, keys=_KEYS))
            ours = _line("the cube by dphist", _COUNT.format(path=path, domain=_DOMAIN, unit=""))
            sys.stdout.write(f"{'  ratio of CPU':44}{ours / plain:9.2f}\n")
        if "bounded" in wanted:
            unit = 'rows=2, id="person"'
            _line("the cube, at most 2 rows a person", _COUNT.format(path=path, domain=_DOMAIN, unit=unit))
        if options.spark:
            some = _make(
                folder / "some.parquet", _ROWS, rows=options.spark, people=max(1, options.spark // 5)
            )
            script = _SPARK.format(path=some, domain=_DOMAIN, unit='rows=2, id="person"')
            _line(f"the same of {options.spark:,} rows on Spark", script)
        if "sparse" in wanted:
            spots = _make(folder / "spots.parquet", _SCATTERED, cells=cells)
            script = _SPARSE.format(path=spots, threshold=20, out=str(folder / "out.parquet"))
            _line(f"10¹² cells, {cells:,} occupied, released", script, "cells published")
    return 0


def _make(path: Path, sql: str, **numbers: int) -> str:
    import duckdb

    duckdb.connect().execute(sql.format(path=path, **numbers))
    return str(path)


def _line(title: str, script: str, what: str = "rows counted") -> float:
    begun = time.monotonic()
    seconds, megabytes, said = _measure(script)
    wall = time.monotonic() - begun
    sys.stdout.write(f"{title:44}{seconds:9.2f}{wall:9.1f}{megabytes:7.0f}  {int(said):,} {what}\n")
    sys.stdout.flush()
    return seconds
