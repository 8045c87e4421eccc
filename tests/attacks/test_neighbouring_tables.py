"""One person more, of any content, moves at most their own rows: tables as neighbours, through every source."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from dphist.errors import SourceError
from dphist.model.domain import Domain, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.duck.duck import Duck
from dphist.sources.open import open_source
from dphist_bench import catalogue
from dphist_bench.measurements.trust.neighbours import UNITS, one_connection
from dphist_bench.records import sources
from dphist_bench.records.towns import compare_towns

DOMAIN = Domain([Ordinal("age", range(100))])
ONE = Unit(rows=1, id="user")
NAMES = ["user", "age"]


def crowd(people: int = 200, rows: int = 5) -> list[dict[str, Any]]:
    draw = np.random.default_rng(4)
    return [
        {"user": user, "age": int(draw.integers(0, 100)), "other": int(draw.integers(0, 9))}
        for user in range(people)
        for _ in range(rows)
    ]


def distance(small: Any, large: Any, unit: Unit = ONE, domain: Domain = DOMAIN) -> int:
    first, second = count(small, domain, unit).counts, count(large, domain, unit).counts
    assert first.sum() >= 100
    return int(np.abs(first - second).sum())


ODD = {
    "missing age": {"user": 1000, "age": None, "other": 1},
    "missing elsewhere": {"user": 1000, "age": 5, "other": None},
    "decimal elsewhere": {"user": 1000, "age": 5, "other": Decimal("1.50")},
    "half elsewhere": {"user": 1000, "age": 5, "other": 2.5},
    "half age": {"user": 1000, "age": 2.5, "other": 1},
    "decimal age": {"user": 1000, "age": Decimal("5.125"), "other": 1},
    "missing id": {"user": None, "age": 5, "other": 1},
    "text elsewhere": {"user": 1000, "age": 5, "other": "x"},
    "one more column": {"user": 1000, "age": 5, "other": 1, "extra": "x"},
    "nanoseconds": {"user": 1000, "age": 5, "other": pd.Timestamp(1, unit="ns")},
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["pandas", "pandas concat", "polars", "arrow", "ibis list of dicts"])
def test_an_odd_person_in_a_frame(kind: str, odd: str) -> None:
    rows, person = crowd(), ODD[odd]

    def made(lines: list[dict[str, Any]]) -> Any:
        if kind == "pandas":
            return pd.DataFrame(lines)
        if kind == "pandas concat":
            return pd.concat([pd.DataFrame(rows), *([pd.DataFrame([person])] * (len(lines) > len(rows)))])
        if kind == "ibis list of dicts":
            return ibis.memtable(lines)
        names = list(dict.fromkeys(name for line in lines for name in line))
        columns = {name: [line.get(name) for line in lines] for name in names}
        if kind == "polars":
            return pl.DataFrame({name: pl.Series(name, v, strict=False) for name, v in columns.items()})
        arrays = {}
        for name, values in columns.items():
            try:
                arrays[name] = pa.array(values)
            except pa.ArrowException:
                exact = any(isinstance(v, Decimal) for v in values)
                arrays[name] = pa.array([v if v is None else (Decimal if exact else str)(v) for v in values])
        return pa.table(arrays)

    small, large = made(rows), made([*rows, person])  # type: ignore[list-item]
    for source in (small, large):
        assert type(open_source(source, NAMES, ONE)) is Duck
    assert distance(small, large) <= 1


def test_a_frame_of_read_csv_and_a_missing_age(tmp_path: Path) -> None:
    text = "user,age\n" + "".join(f"{row['user']},{row['age']}\n" for row in crowd())
    (tmp_path / "small.csv").write_text(text)
    (tmp_path / "large.csv").write_text(text + "1000,\n")
    assert distance(pd.read_csv(tmp_path / "small.csv"), pd.read_csv(tmp_path / "large.csv")) == 0
    (tmp_path / "large.csv").write_text(text + "1000,five\nbob,7\n")
    # One cell was text, so all are: the frame is refused or read alike.
    assert (
        distance(pd.read_csv(tmp_path / "small.csv", dtype=object), pd.read_csv(tmp_path / "small.csv")) == 0
    )


def test_json_lines_and_a_field_that_nobody_else_has(tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in crowd()]
    (tmp_path / "small.jsonl").write_text("\n".join(lines))
    (tmp_path / "large.jsonl").write_text("\n".join(['{"user": 1000, "age": 3, "more": [1]}', *lines]))
    assert distance(tmp_path / "small.jsonl", tmp_path / "large.jsonl") <= 1


@pytest.mark.parametrize(
    ("user", "age"),
    [
        (pa.array([1000]), pa.array([3.5])),
        (pa.array([1000.0]), pa.array([3])),
        (pa.array([1000], pa.int16()), pa.array([Decimal("3.25")])),
    ],
)
def test_a_parquet_file_of_other_types_that_comes_first(
    tmp_path: Path, user: pa.Array, age: pa.Array
) -> None:
    rows = crowd()
    # Half an age is no age: it must not be rounded to one because somebody's file says integer.
    halves = [row["age"] + 0.5 * (row["user"] % 2) for row in rows]
    table = pa.table({"user": [row["user"] for row in rows], "age": halves})
    pq.write_table(table, tmp_path / "b.parquet")
    small = count(tmp_path / "*.parquet", DOMAIN, ONE).counts
    pq.write_table(pa.table({"user": user, "age": age}), tmp_path / "a.parquet")
    assert np.abs(count(tmp_path / "*.parquet", DOMAIN, ONE).counts - small).sum() <= 1
    pq.write_table(pa.table({"user": ["x"], "age": [3]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="disagree on the type of the column user"):
        count(tmp_path / "*.parquet", DOMAIN, ONE)


def test_whole_numbers_that_floats_cannot_tell_apart_are_refused() -> None:
    large = 2**53
    domain = Domain([Ordinal("x", range(large, large + 100))])
    exact = pd.DataFrame({"x": [large + k for k in range(100)]})
    assert count(exact, domain).counts.tolist() == [1] * 100
    with pytest.raises(SourceError, match="Int64 in pandas"):
        count(pd.concat([exact, pd.DataFrame({"x": [None]})]), domain)
    people = pd.DataFrame({"user": [large + k for k in range(100)], "age": [1] * 100})
    assert count(people, DOMAIN, ONE).counts.sum() == 100
    with pytest.raises(SourceError, match=r"floats of 2\^53 or more"):
        count(pd.concat([people, pd.DataFrame({"user": [float("nan")], "age": [1]})]), DOMAIN, ONE)
    assert count(people.astype({"user": "Int64"}), DOMAIN, ONE).counts.sum() == 100


def test_ids_are_bytes_under_any_collation() -> None:
    """Upper and lower case are different people."""
    rows = [(("a" if k % 2 else "A") + str(k // 2), k % 90) for k in range(400)]
    duck = ibis.duckdb.connect()
    duck.raw_sql("CREATE TABLE t (user VARCHAR COLLATE NOCASE, age INTEGER)")
    duck.con.executemany("INSERT INTO t VALUES (?, ?)", rows)
    lite = ibis.sqlite.connect()
    lite.con.execute("CREATE TABLE t (user TEXT COLLATE NOCASE, age INTEGER)")
    lite.con.executemany("INSERT INTO t VALUES (?, ?)", rows)
    for backend in (duck, lite):
        assert type(open_source(backend.table("t"), NAMES, ONE)) is Duck
        assert count(backend.table("t"), DOMAIN, ONE).counts.sum() == 400


@pytest.mark.postgres
def test_ids_are_bytes_in_postgres(postgres_address: str) -> None:
    import psycopg

    from dphist.sources.databases.postgres import Postgres

    with psycopg.connect(f"{postgres_address}/postgres", autocommit=True) as connection:
        with sources.postgres_tables(f"{postgres_address}/postgres"):
            pass
        kind = connection.execute("SELECT count(*) FROM pg_collation WHERE collname = 'anycase'").fetchall()
        if kind == [(0,)]:
            pytest.skip("this PostgreSQL has no ICU")
        connection.execute('CREATE TABLE cased ("user" TEXT COLLATE anycase, age INTEGER)')
        connection.cursor().executemany(
            "INSERT INTO cased VALUES (%s, %s)", [("ann", 1), ("ANN", 1), ("Ann", 2)]
        )
        table = ibis.postgres.from_connection(connection).table("cased")
        assert type(open_source(table, NAMES, ONE)) is Postgres
        assert count(table, DOMAIN, ONE).counts.sum() == 3


def test_ids_of_other_types() -> None:
    times = pa.table({"user": pa.array([dt.datetime(2024, 1, 1)]), "age": [1]})
    with pytest.raises(SourceError, match="make it text"):
        count(times, DOMAIN, ONE)
    same = pd.DataFrame({"user": [7, 7.0, Decimal("7.00"), "7"], "age": [1, 1, 1, 1]}, dtype=object)
    assert count(same, DOMAIN, ONE).counts.sum() == 1
    nobody = pd.DataFrame(
        {"user": [7.5, None, float("inf"), Decimal("7.5"), [1]], "age": [1] * 5}, dtype=object
    )
    assert count(nobody, DOMAIN, ONE).counts.sum() == 0


def test_a_campaign_in_small() -> None:
    assert catalogue.measure("neighbours", ["--quick"]) == 0


@pytest.mark.postgres
def test_a_campaign_through_postgres(postgres_address: str) -> None:
    with sources.postgres_tables(f"{postgres_address}/postgres") as put:
        found = compare_towns(put, 40, 3, UNITS, towns=1)
    assert found.compared == 40
    assert found.worst <= 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_campaign_through_spark(spark_session: Any) -> None:
    found = compare_towns(sources.spark_frames(spark_session), 8, 3, UNITS, towns=1)
    assert found.compared == 8
    assert found.worst <= 1


def test_a_campaign_tells_a_source_that_lets_others_move(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pick by the number of all rows moves everybody when one person joins."""
    honest = Duck.start

    def leaky(self: Duck, person: str) -> str:
        ((rows,),) = self.connection.execute(f"SELECT count(*) FROM {self.relation}").fetchall()
        return f"({honest(self, person)} + {rows})"

    monkeypatch.setattr(Duck, "start", leaky)
    with one_connection():
        assert compare_towns(sources.pandas_frame, 20, 1, UNITS, towns=1).worst > 1
        assert compare_towns(sources.pandas_frame, 20, 1, UNITS[:1], towns=16).worst > 1


def test_towns_that_share_a_table_are_compared_many_at_a_time(tmp_path: Path) -> None:
    with one_connection():
        found = compare_towns(sources.csv_lines(tmp_path), 30, 2, UNITS, towns=16)
    assert found.compared > 0
    assert found.pairs >= 30
    assert found.worst <= 1


TABLE = {"user": [1, 1, 2, 3], "age": [1, 2, 3, 4]}


def test_expressions_are_refused() -> None:
    """One row may move others in them, and be repeated: a view of the database says the same, for you to vouch for."""
    connection = ibis.duckdb.connect()
    table = connection.create_table("t", pa.table(TABLE))
    expressions = [
        table.limit(2),
        table.limit(2).alias("named"),
        table.alias("named"),
        table.mutate(age=table.age - table.age.min()),
        table.filter(table.age > 2),
        table.select("user", "age"),
        table.join(table.view(), "age").select("user", "age"),
        table.view(),
        table.union(table),
        table.sql("SELECT * FROM t LIMIT 1"),
        table.limit(2).cache(),
    ]
    for expression in expressions:
        for unit in (Unit(), ONE):
            with pytest.raises(SourceError, match="no table by its name"):
                count(expression, DOMAIN, unit)
    connection.create_view("vouched", table.filter(table.age > 2))
    assert count(connection.table("vouched"), DOMAIN).counts.sum() == 2


def test_every_row_of_a_person_is_as_likely_to_be_kept() -> None:
    """χ² of nine degrees of freedom, below 27.88 in 999 of 1,000 cases; rows of one person exclude each other."""
    people, cells = 20_000, Domain([Ordinal("cell", range(10))])
    person, cell = np.divmod(np.arange(10 * people), 10)
    rows = pa.table({"person": person, "cell": cell})
    for kept in (1, 3):
        expected = people * kept / 10
        counts = count(rows, cells, Unit(rows=kept, id="person")).counts
        assert counts.sum() == people * kept
        assert ((counts - expected) ** 2 / expected).sum() < 27.88
