"""Which of a person's rows are kept: χ² over many people on each engine, and what bounding costs.

Everybody has ten rows, one in each of ten cells, and some are kept. If the pick is fair every cell keeps the same
share up to chance; χ² of nine degrees of freedom is below 27.9 in 999 of 1,000 cases. For one row kept it is exact,
for more it errs on the safe side, since rows of one person exclude each other. No two engines are given the same ids,
so their draws are independent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np

from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count
from dphist_bench.measuring import Failure, Line
from dphist_bench.timing import seconds

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


def measure(
    *,
    quick: Annotated[bool, "twenty thousand people"],
    people: int = 1_000_000,
    postgres: Annotated[str, "the address of a database to put a table in"] = "",
    spark: bool = False,
    only: Annotated[str, "one engine by its name, and not what bounding costs"] = "",
) -> Iterator[Line]:
    """Give χ² by engine and the cost of bounding on DuckDB."""
    people = 20_000 if quick else people
    for name, source in _engines(people, only, postgres, spark):
        if only not in ("", name):
            continue
        for kept in (1, 3):
            found = chi_square(source, people, kept)
            yield {"engine": name, "people": people, "kept of 10 rows": kept, "χ²": found}
            if found > _LIMIT:
                yield Failure(f"{name} keeps some rows more often than others")
    if only:
        return
    import duckdb

    connection = duckdb.connect()
    rows = table(people)
    connection.register("given", rows)
    plain = seconds(
        lambda: connection.execute("SELECT person, count(*) AS n FROM given GROUP BY person").fetchnumpy()
    )
    bounded = seconds(lambda: count(rows, _DOMAIN, Unit(rows=2, id="person")))
    yield {"CPU s on DuckDB": "GROUP BY person", "plain": plain, "bounded": bounded, "ratio": bounded / plain}


def _engines(people: int, only: str, postgres: str, spark: bool) -> Any:
    """Each engine with people of its own."""
    if only in ("", "duckdb"):
        yield "duckdb", table(people)
    if only in ("", "pandas"):
        yield "pandas", table(people, people).to_pandas()
    if postgres:
        import ibis
        import psycopg

        with psycopg.connect(postgres, autocommit=True) as connection:
            grid = f"SELECT {2 * people} + g / {_CELLS} AS person, g % {_CELLS} AS cell"
            last = _CELLS * people - 1
            # The numbers are ours.
            connection.execute(
                f"CREATE TEMP TABLE fairness AS {grid} FROM generate_series(CAST(0 AS BIGINT), {last}) AS g"
            )
            yield "postgres", ibis.postgres.from_connection(connection).table("fairness")
    if spark:
        from dphist.sources.databases.spark import local_session

        session = local_session("local[2]", spark_driver_memory="2g", spark_sql_shuffle_partitions="8")
        ids = f"{3 * people} + id DIV {_CELLS} AS person"
        yield "spark", session.range(_CELLS * people).selectExpr(ids, f"id % {_CELLS} AS cell")
        session.stop()
