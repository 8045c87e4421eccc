"""Which of a person's rows are kept: χ² over many people on each engine, and what bounding costs.

Everybody has ten rows, one in each of ten cells, and some are kept. If the pick is fair every cell keeps the same
share up to chance; χ² of nine degrees of freedom is below 27.9 in 999 of 1,000 cases. For one row kept it is exact,
for more it errs on the safe side, since rows of one person exclude each other. No two engines are given the same ids,
so their draws are independent.
"""

from __future__ import annotations

import argparse
import resource
import sys
from typing import Any

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

_CELLS = 10
_LIMIT = 27.88  # the quantile 0.999 of χ² with nine degrees of freedom
_DOMAIN = Domain([Ordinal("cell", range(_CELLS))])


def chi_square(source: Any, people: int, rows: int = 1) -> float:
    """χ² of the rows that a source keeps.

    Args:
        source: a table with the columns ``person`` and ``cell``, ten rows a person.
        people: how many people it has.
        rows: how many rows are kept of each.

    Returns:
        The sum over cells of (kept − expected)² / expected.
    """
    counts = count(source, _DOMAIN, Unit(rows=rows, id="person")).counts
    if counts.sum() != people * rows:
        return float("inf")
    expected = people * rows / _CELLS
    return float(((counts - expected) ** 2 / expected).sum())


def table(people: int, first: int = 0) -> Any:
    """Ten rows a person, one in each cell; ids are whole numbers from the first."""
    import pyarrow

    person = np.repeat(np.arange(first, first + people), _CELLS)
    return pyarrow.table({"person": person, "cell": np.tile(np.arange(_CELLS), people)})


def main(argv: list[str]) -> int:
    """Print χ² by engine and the cost of bounding on DuckDB."""
    parser = argparse.ArgumentParser(prog="dphist bench run fairness", description=__doc__)
    parser.add_argument("--people", type=int, default=1_000_000)
    parser.add_argument("--postgres", metavar="URL", help="a database to put a table in")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--only", help="one engine by its name, and not what bounding costs")
    parser.add_argument("--quick", action="store_true", help="twenty thousand people")
    options = parser.parse_args(argv)
    people = 20_000 if options.quick else options.people
    failed = False
    for name, source in _engines(people, options):
        if options.only not in (None, name):
            continue
        for kept in (1, 3):
            found = chi_square(source, people, kept)
            failed |= found > _LIMIT
            sys.stdout.write(f"{name:12}{people:>12,} people, {kept} of 10 rows kept: χ² {found:8.2f}\n")
            sys.stdout.flush()
    if options.only is not None:
        return 1 if failed else 0
    import duckdb

    connection = duckdb.connect()
    rows = table(people)
    connection.register("given", rows)
    plain = _cpu(
        lambda: connection.execute("SELECT person, count(*) AS n FROM given GROUP BY person").fetchnumpy()
    )
    bounded = _cpu(lambda: count(rows, _DOMAIN, Unit(rows=2, id="person")))
    sys.stdout.write(
        f"CPU on DuckDB: GROUP BY person {plain:.2f} s, bounded {bounded:.2f} s: {bounded / plain:.1f}\n"
    )
    return 1 if failed else 0


def _engines(people: int, options: argparse.Namespace) -> Any:
    """Each engine with people of its own."""
    if options.only in (None, "duckdb"):
        yield "duckdb", table(people)
    if options.only in (None, "pandas"):
        yield "pandas", table(people, people).to_pandas()
    if options.postgres:
        import ibis
        import psycopg

        with psycopg.connect(options.postgres, autocommit=True) as connection:
            grid = f"SELECT {2 * people} + g / {_CELLS} AS person, g % {_CELLS} AS cell"
            last = _CELLS * people - 1
            # The numbers are ours.
            connection.execute(
                f"CREATE TEMP TABLE fairness AS {grid} FROM generate_series(CAST(0 AS BIGINT), {last}) AS g"
            )
            yield "postgres", ibis.postgres.from_connection(connection).table("fairness")
    if options.spark:
        from dphist.sources.databases.spark import local_session

        session = local_session("local[2]", spark_driver_memory="2g", spark_sql_shuffle_partitions="8")
        ids = f"{3 * people} + id DIV {_CELLS} AS person"
        yield "spark", session.range(_CELLS * people).selectExpr(ids, f"id % {_CELLS} AS cell")
        session.stop()


def _cpu(run: Any) -> float:
    begun = resource.getrusage(resource.RUSAGE_SELF)
    run()
    ended = resource.getrusage(resource.RUSAGE_SELF)
    return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime
