"""What it costs to hold everybody to so many rows: processor time beside the engine's own GROUP BY person.

Rows of people drawn at random, five each on average, are counted in a thousand cells with at most ``limit`` rows a
person (``--by rows``), in at most ``limit`` cells with one row or two each (``cells``, ``two a cell``), or with the
values of a measure added up (``measures``; ``limited``: also at most so much a person); and the engine is asked how
many rows each person has. On DuckDB both start from one Arrow table and end with NumPy arrays; on PostgreSQL
(``--postgres``, a server on this machine) and Spark (``--spark``, a session of its own with two threads) the engine's
processes are measured, and its GROUP BY hands back one line, not the people. Ways take turns after a first round that
loads and compiles; each has the least of its rounds. Where ids are *skewed* one person has a tenth of all rows, but no
more than a million.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.count import count_and_sum
from dphist.sources.open import connect
from dphist_bench.measuring import Line
from dphist_bench.timing import descendants, of_processes

_DOMAIN = Domain([Ordinal("cell", range(1000))])
Clock = Callable[[], float]
Bounded = Mapping[str, Callable[[Any], object]]


def measure(
    *,
    quick: bool,
    rows: int = 10_000_000,
    limit: int = 2,
    repeats: int = 3,
    duckdb: Annotated[bool, "measure DuckDB"] = True,
    postgres: Annotated[
        str | None, "URL of a PostgreSQL database on this machine, to make a table in"
    ] = None,
    spark: Annotated[bool, "measure Spark"] = False,
    only: tuple[Literal["numbers", "text", "skewed"], ...] = ("numbers", "text", "skewed"),
    by: Annotated[
        tuple[Literal["rows", "cells", "two a cell", "measures", "limited"], ...], "what is bounded"
    ] = ("rows",),
) -> Iterator[Line]:
    """Give the processor seconds of both, for ids of numbers, of text and skewed ones, and their ratio."""
    rows, repeats = (20_000, 1) if quick else (rows, repeats)
    kinds: Sequence[str] = ("rows", "two a cell", "limited") if quick else by
    bounded = {each: _bounded(each, limit) for each in kinds}
    if duckdb:
        yield from _duckdb(rows, bounded, repeats, only)
    if postgres:
        yield from _postgres(postgres, rows, bounded, repeats, only)
    if spark:
        yield from _spark(rows, bounded, repeats, only)


def _bounded(by: str, limit: int) -> Callable[[Any], object]:
    """Count a source with everybody held to a bound of this kind."""
    if by in ("rows", "cells", "two a cell"):
        each = 2 if by == "two a cell" else 1
        unit = (
            Unit(rows=limit, id="person") if by == "rows" else Unit(cells=limit, per_cell=each, id="person")
        )
        return lambda source: count(source, _DOMAIN, unit)
    quantity = Quantity(Measure("amount", 0, 99, per_person=120 if by == "limited" else None))
    return lambda source: count_and_sum(source, _DOMAIN, Unit(rows=limit, id="person"), [quantity])


def _duckdb(rows: int, bounded: Bounded, repeats: int, only: Sequence[str]) -> Iterator[Line]:
    import pyarrow

    draw = np.random.default_rng(1)  # noqa: TID251 -- data only
    person, cell = draw.integers(0, max(1, rows // 5), rows), draw.integers(0, 1000, rows)
    for kind in only:
        made: Any = person
        if kind == "text":
            made = pyarrow.array(person).cast(pyarrow.string())
        elif kind == "skewed":
            made = np.where(draw.random(rows) < min(0.1, 1e6 / rows), 7, person)
        table = pyarrow.table({"person": made, "cell": cell, "amount": cell % 100})
        with connect() as duck:
            duck.register("given", table)
            asked = "SELECT person, count(*) AS n FROM given GROUP BY person"
            for by, run in bounded.items():
                yield _beside(
                    (f"DuckDB, {kind}", by),
                    rows,
                    repeats,
                    lambda: duck.execute(asked).fetchnumpy(),  # noqa: B023 -- called here
                    lambda: run(table),  # noqa: B023
                    time.process_time,
                )


def _postgres(address: str, rows: int, bounded: Bounded, repeats: int, only: Sequence[str]) -> Iterator[Line]:
    import ibis
    import psycopg

    name = f"dphist_bounding_{os.getpid()}"
    with psycopg.connect(address, autocommit=True) as connection:
        ((server,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
        # One process does all, so that its processor time is all.
        connection.execute("SET max_parallel_workers_per_gather = 0")
        for kind, person in _kinds("(hashint8(i) & 2147483647)", "CAST({} AS TEXT)", rows, only):
            # Names and numbers are ours.
            connection.execute(
                f"CREATE TABLE {name} AS SELECT {person} AS person, (hashint8(-i) & 2147483647) % 1000 AS cell, "  # noqa: S608
                f"(hashint8(-i) & 2147483647) % 100 AS amount FROM generate_series(1::bigint, {rows}) AS i"
            )
            try:
                connection.execute(f"ANALYZE {name}")
                table = ibis.postgres.from_connection(connection).table(name)
                asked = f"SELECT count(*), max(n) FROM (SELECT person, count(*) AS n FROM {name} GROUP BY person) AS p"  # noqa: S608
                for by, run in bounded.items():
                    yield _beside(
                        (f"PostgreSQL, {kind}", by),
                        rows,
                        repeats,
                        lambda: connection.execute(asked).fetchall(),  # noqa: B023
                        lambda: run(table),  # noqa: B023
                        lambda: of_processes([server]),
                    )
            finally:
                connection.execute(f"DROP TABLE {name}")


def _spark(rows: int, bounded: Bounded, repeats: int, only: Sequence[str]) -> Iterator[Line]:
    from dphist.sources.databases.spark import local_session

    session = local_session("local[2]", spark_driver_memory="2g")
    java = session.sparkContext._gateway.proc.pid
    try:
        with tempfile.TemporaryDirectory() as folder:
            for kind, person in _kinds("abs(xxhash64(i) % 2147483647)", "CAST({} AS STRING)", rows, only):
                path = f"{folder}/{kind}"
                made = session.range(1, rows + 1).toDF("i")
                made.selectExpr(
                    f"{person} AS person",
                    "abs(xxhash64(-i) % 1000) AS cell",
                    "abs(xxhash64(-i) % 100) AS amount",
                ).write.parquet(path)
                frame = session.read.parquet(path)
                frame.createOrReplaceTempView("given")
                asked = (
                    "SELECT count(*), max(n) FROM (SELECT person, count(*) AS n FROM given GROUP BY person)"
                )
                for by, run in bounded.items():
                    yield _beside(
                        (f"Spark, {kind}", by),
                        rows,
                        repeats,
                        lambda: session.sql(asked).collect(),  # noqa: B023
                        lambda: run(frame),  # noqa: B023
                        lambda: of_processes([java, *descendants(java)]) + time.process_time(),
                    )
    finally:
        session.stop()


def _kinds(number: str, text: str, rows: int, only: Sequence[str]) -> list[tuple[str, str]]:
    """Kinds of ids, in SQL."""
    person = f"{number} % {max(1, rows // 5)}"
    every = max(10, rows // 1_000_000)
    known = {
        "numbers": person,
        "text": text.format(person),
        "skewed": f"CASE WHEN i % {every} = 0 THEN 7 ELSE {person} END",
    }
    return [(kind, known[kind]) for kind in only]


def _beside(
    what: tuple[str, str],
    rows: int,
    repeats: int,
    plain: Callable[[], Any],
    bounded: Callable[[], Any],
    clock: Clock,
) -> Line:
    """Both in turn: the first round loads and compiles."""
    least = [math.inf, math.inf]
    for turn in range(repeats + 1):
        for place, run in enumerate((plain, bounded)):
            begun = clock()
            run()
            if turn:
                least[place] = min(least[place], clock() - begun)
    return {
        "engine, ids": what[0],
        "bounded": what[1],
        "rows": rows,
        "GROUP BY person, CPU s": least[0],
        "bounded, CPU s": least[1],
        # Processes of others are measured in ticks, of which a small job may take none.
        "ratio": least[1] / max(least[0], 0.01),
    }
