"""Ibis expressions tell different values apart, whatever collation a column, a database or a type has for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

DOMAIN = Domain([Ordinal("age", range(100))])
ONE = Unit(rows=1, id="user")
ALL = Unit(rows=99, id="user")
PEOPLE = [("ann", 1), ("ANN", 1), ("Ann", 2), ("ann", 7)]


@contextmanager
def nocase_columns(text: str = "VARCHAR COLLATE NOCASE", default: str = "") -> Iterator[Any]:
    duck = ibis.duckdb.connect()
    duck.raw_sql(f"SET default_collation = '{default}'")
    duck.raw_sql(f"CREATE TABLE t (user {text}, age BIGINT)")
    duck.con.executemany("INSERT INTO t VALUES (?, ?)", PEOPLE)
    yield duck


def nocase_database() -> Any:
    return nocase_columns("VARCHAR", "nocase")


@contextmanager
def nocase_sqlite() -> Iterator[Any]:
    lite = ibis.sqlite.connect()
    lite.con.execute("CREATE TABLE t (user TEXT COLLATE NOCASE, age INTEGER COLLATE NOCASE)")
    lite.con.executemany("INSERT INTO t VALUES (?, ?)", PEOPLE)
    yield lite


@contextmanager
def any_case_of_postgres(address: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        try:
            connection.execute(
                "CREATE COLLATION IF NOT EXISTS anycase "
                "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.Error:
            pytest.skip("this PostgreSQL has no ICU")
        connection.execute('CREATE TABLE t ("user" TEXT COLLATE anycase, age BIGINT)')
        connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", PEOPLE)
        yield ibis.postgres.from_connection(connection)
        connection.execute("DROP TABLE t")


@contextmanager
def case_blind_spark(session: Any) -> Iterator[Any]:
    backend = ibis.pyspark.connect(session)
    session.createDataFrame(PEOPLE, "user STRING, age BIGINT").createOrReplaceTempView("plain")
    if session.version >= "4":
        session.sql("SELECT user COLLATE UTF8_LCASE AS user, age FROM plain").createOrReplaceTempView("t")
    else:
        session.table("plain").createOrReplaceTempView("t")
    yield backend


ENGINES = [
    "nocase_columns",
    "nocase_database",
    "nocase_sqlite",
    pytest.param("any_case_of_postgres", marks=pytest.mark.postgres),
    pytest.param(
        "case_blind_spark",
        marks=[
            pytest.mark.spark,
            pytest.mark.slow,
            pytest.mark.filterwarnings("ignore::ResourceWarning"),
            pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
        ],
    ),
]


@pytest.fixture(params=ENGINES)
def cased(request: pytest.FixtureRequest) -> Iterator[Any]:
    wants = {"any_case_of_postgres": "postgres_address", "case_blind_spark": "spark_session"}.get(
        request.param
    )
    with globals()[request.param](*([request.getfixturevalue(wants)] if wants else [])) as backend:
        yield backend


def counted(table: Any, unit: Unit, domain: Domain = DOMAIN) -> dict[int, int]:
    counts = count(table, domain, unit).counts
    return {int(cell): int(counts[cell]) for cell in np.flatnonzero(counts)}


def test_texts_of_different_people_are_different(cased: Any) -> None:
    table = cased.table("t")
    own = table.group_by("user").aggregate(age=table.count())
    assert counted(own, ONE) == {1: 2, 2: 1}
    least = table.group_by("user").aggregate(age=table.age.min())
    assert counted(least, ONE) == {1: 2, 2: 1}
    if table.get_backend().name == "pyspark":
        # A joined id is a column of its type still, which on Spark says its collation.
        with pytest.raises(SourceError, match="make it text"):
            count(table.join(table.view(), "user").select("user", "age"), DOMAIN, ALL)
        return
    pairs = table.join(own.rename(rows="age"), "user").select("user", "age")
    assert counted(pairs, ALL) == {1: 2, 2: 1, 7: 1}
    in_turn = table.join(table.view(), "user").select("user", "age")
    assert counted(in_turn, ALL) == {1: 3, 2: 1, 7: 2}
    assert counted(table.semi_join(table.filter(table.age == 2), "user"), ALL) == {2: 1}


def test_rows_that_differ_in_capitals_are_different(cased: Any) -> None:
    table = cased.table("t")
    names = Domain([Nominal("user", ["ann", "ANN", "Ann"])])
    assert counted(table.select("user").distinct(), Unit(), names) == {0: 1, 1: 1, 2: 1}
    assert counted(table.distinct(), Unit()) == {1: 2, 2: 1, 7: 1}
    united = table.union(table, distinct=True)
    assert counted(united, Unit(rows=2)) == {1: 2, 2: 1, 7: 1}


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
def test_the_least_of_a_persons_texts_is_one_text_in_every_order(engine: str) -> None:
    names = Domain([Nominal("name", ["ann", "ANN"])])
    for rows in ([(1, "ann"), (1, "ANN")], [(1, "ANN"), (1, "ann")]):
        backend = getattr(ibis, engine).connect()
        backend.con.execute("CREATE TABLE t (user BIGINT, name TEXT COLLATE NOCASE)")
        backend.con.executemany("INSERT INTO t VALUES (?, ?)", rows)
        table = backend.table("t")
        extremes = table.group_by("user").aggregate(name=table.name.min(), age=table.name.nunique())
        assert counted(extremes, ONE, names) == {1: 1}
        assert counted(extremes, ONE) == {2: 1}


def test_a_row_finds_no_more_partners_in_a_list_than_it_repeats_a_key(cased: Any) -> None:
    table = cased.table("t")
    listed = ibis.memtable({"user": ["ann", "ANN", "bob"], "place": [1, 2, 3]})
    assert counted(table.join(listed, "user").select("user", age="place"), Unit()) == {1: 2, 2: 1}


def test_an_expression_that_compares_nothing_is_left_as_it_is() -> None:
    from dphist.sources.databases.compared import compared_exactly

    with nocase_columns() as duck:
        plain = duck.table("t").filter(ibis._.age > 1).mutate(age=ibis._.age + 1)
        assert compared_exactly(plain, "duckdb") is plain


def test_of_two_zeros_and_two_kinds_of_nan_none_stands_for_the_other() -> None:
    """Who comes first would decide what a later step makes of both."""
    for first, second in ((0.0, -0.0), (float("nan"), -float("nan"))):
        found = []
        for values in ([first], [first, second], [second, first]):
            table = ibis.duckdb.connect().create_table(
                "t", pa.table({"x": values, "user": [1] * len(values)})
            )
            shown = table.select("x").distinct().mutate(text=ibis._.x.cast("string"))
            kinds = Domain([Nominal("text", ["0.0", "-0.0", "nan", "-nan"])])
            found.append(counted(shown, Unit(), kinds))
            extreme = table.group_by("user").aggregate(x=table.x.min()).mutate(text=ibis._.x.cast("string"))
            found.append(counted(extreme, ONE, kinds))
        assert all(each == found[0] for each in found)


@pytest.mark.postgres
def test_types_of_postgres_that_take_different_values_for_one(postgres_address: str) -> None:
    import psycopg

    with psycopg.connect(f"{postgres_address}/postgres", autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE odd_types (n NUMERIC, pause INTERVAL, notes JSONB, letters CHAR(5), age BIGINT)"
        )
        connection.execute(
            "INSERT INTO odd_types VALUES ('1.0', '1 day', '1', 'a', 1), ('1.00', '24 hours', '1.0', 'a ', 1)"
        )
        table = ibis.postgres.from_connection(connection).table("odd_types")
        texts = table.select("n").distinct().mutate(text=ibis._.n.cast("string"))
        assert counted(texts, Unit(), Domain([Nominal("text", ["1", "1.0", "1.00"])])) == {0: 1}
        assert counted(table.select("letters", "age").distinct(), Unit()) == {1: 1}
        for name in ("pause", "notes"):
            with pytest.raises(SourceError, match="different values may count as equal"):
                count(table.select(name, "age").distinct(), DOMAIN)
        connection.execute("DROP TABLE odd_types")


def test_a_key_of_intervals_is_no_key() -> None:
    """A month is as long as thirty days to DuckDB, and another value in the list."""
    duck = ibis.duckdb.connect()
    duck.raw_sql("CREATE TABLE t AS SELECT INTERVAL 1 MONTH AS pause, 1 AS age")
    table = duck.table("t")
    with pytest.raises(SourceError, match="different values may count as equal"):
        count(table.distinct(), DOMAIN)
    with pytest.raises(SourceError, match="pair different people"):
        count(table.mutate(user=1).join(table.mutate(user=1).view(), "pause"), DOMAIN, ALL)
