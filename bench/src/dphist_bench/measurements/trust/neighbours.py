"""Neighbours as tables: one person more, of any content, through every source, counted and compared.

For each pair the distance of the two histograms must not exceed the rows that the unit promises. A source may refuse
the larger table (that is told to whoever holds the data, see the threat model); such pairs are listed apart.
One pair in a hundred is compared by itself; the others share tables, many to a count (see `dphist_bench.records.towns`
for why that is sound). ``--postgres`` and ``--spark`` take some of the pairs to those engines, which are slower.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

from dphist.model.unit import Unit
from dphist.sources import open as opening
from dphist_bench.measuring import Failure, Line
from dphist_bench.records import sources
from dphist_bench.records.doors import DOORS
from dphist_bench.records.towns import compare_towns

UNITS = (
    Unit(rows=1, id="user"),
    Unit(rows=3, id="user"),
    Unit(id="user", cells=2, per_cell=1),
    Unit(id="user", cells=2, per_cell=2),
)


@contextmanager
def one_connection() -> Iterator[None]:
    """Let the sources of a campaign share one DuckDB: to open one takes longer than to count a small table."""
    shared, fresh = opening.connect(), opening.connect
    opening.connect = lambda path=":memory:": shared if path == ":memory:" else fresh(path)
    try:
        yield
    finally:
        opening.connect = fresh
        shared.close()


def measure(
    *,
    quick: Annotated[bool, "twenty pairs a source"],
    pairs: Annotated[int, "in total"] = 100_000,
    seed: int = 1,
    only: Annotated[tuple[str, ...], "sources by name"] = (),
    postgres: Annotated[str, "the address of a database to put tables in"] = "",
    spark: Annotated[int, "pairs through Spark"] = 0,
    seconds: Annotated[float, "a source at most"] = math.inf,
    towns: Annotated[int, "that share a table"] = 64,
    door: Annotated[tuple[str, ...], "what is made of the records"] = (),
) -> Iterator[Line]:
    """Give what came of the pairs, source by source; fail if one was beyond its promise."""
    passed = dict[str, tuple[int, float]]()
    doors = [each for each in DOORS if not door or each.name in door]
    with ExitStack() as stack:
        stack.enter_context(one_connection())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        every: dict[str, sources.Put] = {
            "pandas": sources.pandas_frame,
            "pandas concat": sources.pandas_joined,
            "polars": sources.polars_frame,
            "arrow": sources.arrow_table,
            "ibis memtable": sources.memtable,
            "ibis polars": sources.polars_table,
            "csv": sources.csv_lines(folder),
            "json": sources.json_lines(folder),
            "parquet": sources.parquet_files(folder),
            "duckdb": sources.duckdb_tables(),
            "sqlite": sources.sqlite_tables(),
        }
        if postgres:
            every["postgres"] = stack.enter_context(sources.postgres_tables(postgres))
        shares = dict.fromkeys(every, 20 if quick else -(-max(0, pairs - spark) // len(every)))
        if spark:
            from dphist.sources.databases.spark import local_session

            session = local_session("local[2]", spark_sql_shuffle_partitions="2")
            stack.callback(session.stop)
            every["spark"], shares["spark"] = sources.spark_frames(session), spark
        for place, (name, put) in enumerate(every.items()):
            if only and name not in only:
                continue
            begin, alone = seed * 1000 + place, -(-shares[name] // 100)
            found = compare_towns(put, alone, begin, UNITS, towns=1, seconds=seconds / 10)
            rest = max(0, shares[name] - found.pairs)
            found.add(compare_towns(put, rest, begin, UNITS, towns=towns, seconds=seconds, doors=doors))
            yield {
                "source": name, "pairs": found.pairs, "compared": found.compared, "refused": found.refused,
                "worst over promised": found.worst, "s": found.seconds,
            }  # fmt: skip
            if found.worst > 1 or not found.compared:
                yield Failure(f"{name}: a pair is beyond its promise, or none was compared")
            for through, (many, worst) in found.doors.items():
                known, largest = passed.get(through, (0, 0.0))
                passed[through] = known + many, max(largest, worst)
    for through, (many, worst) in passed.items():
        yield {"through": through, "pairs": many, "worst over promised": worst}
