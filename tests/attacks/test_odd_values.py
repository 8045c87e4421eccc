"""One person's odd number neither fails a release nor moves anybody else's rows, with an id and without."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

CROWD = [(place % 20, float(place % 10), float(place * 7 % 10)) for place in range(100)]
ODD = [
    "1e999",
    "-1e999",
    "nan",
    "1e300",
    "9223372036854775808",
    "-9223372036854775809",
    "1e-999",
    "2.5",
    "",
    "x",
]
# Every way in which a number becomes a cell; in two columns, so that one is odd while the other has a cell.
DOMAINS = [
    Domain([Ordinal("x", range(10)), Ordinal("y", range(10), other=True)]),
    Domain([Ordinal("x", range(0, 10, 2), other=True), Ordinal("y", range(10))]),
    Domain([Ordinal("x", edges=[0, 2.5, 5, 10]), Ordinal("y", edges=range(0, 11, 2))]),
    Domain([Nominal("x", [0, 3, 5], other=True), Nominal("y", list(range(80)))]),
]
Put = Callable[[list[tuple[int, Any, Any]]], Any]


def number(value: Any) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def arrow(rows: list[tuple[int, Any, Any]]) -> pa.Table:
    user, x, y = zip(*rows, strict=True)
    return pa.table({"user": user, "x": list(map(number, x)), "y": list(map(number, y))})


def check(put: Put, odd: list[str] = ODD) -> None:
    for domain in DOMAINS:
        for unit in (Unit(), Unit(rows=2, id="user")):
            before = count(put(CROWD), domain, unit).counts
            for rows in ([(77, value, 3) for value in odd], [(77, 3, value) for value in odd]):
                # One by one without an id, since every row is a step; all at once where they are one person's.
                for person in [rows] if unit.id else [[row] for row in rows]:
                    after = count(put([*person, *CROWD]), domain, unit).counts
                    assert np.abs(after - before).sum() <= unit.steps, (domain, unit, person)


def test_in_a_csv_file(tmp_path: Path) -> None:
    def put(rows: list[tuple[int, Any, Any]]) -> Path:
        lines = ["user,x,y", *(",".join(map(str, row)) for row in rows)]
        (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
        return tmp_path / "t.csv"

    check(put)


def test_in_a_json_file(tmp_path: Path) -> None:
    def put(rows: list[tuple[int, Any, Any]]) -> Path:
        lines = [json.dumps({"user": user, "x": x, "y": y}) for user, x, y in rows]
        (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
        return tmp_path / "t.jsonl"

    check(put)


def test_in_a_parquet_file(tmp_path: Path) -> None:
    def put(rows: list[tuple[int, Any, Any]]) -> Path:
        pq.write_table(arrow(rows), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    check(put)


def test_in_frames() -> None:
    check(lambda rows: arrow(rows).to_pandas(), ODD[:5])


def test_in_sqlite() -> None:
    backend = ibis.sqlite.connect()

    def put(rows: list[tuple[int, Any, Any]]) -> Any:
        backend.con.execute("DROP TABLE IF EXISTS t")
        backend.con.execute("CREATE TABLE t (user BIGINT, x DOUBLE, y DOUBLE)")
        backend.con.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [(u, number(x), number(y)) for u, x, y in rows]
        )
        return backend.table("t")

    check(put)


@pytest.mark.postgres
def test_in_postgres(postgres_address: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(
        f"{postgres_address}/postgres", autocommit=True, prepare_threshold=None
    ) as connection:
        backend = ibis.postgres.from_connection(connection)

        def put(rows: list[tuple[int, Any, Any]]) -> Any:
            connection.execute("DROP TABLE IF EXISTS odd")
            connection.execute('CREATE TABLE odd ("user" BIGINT, x DOUBLE PRECISION, y NUMERIC)')
            values = [
                (u, number(x), y if number(y) is not None and math.isfinite(number(y) or 0) else None)
                for u, x, y in rows
            ]
            connection.cursor().executemany("INSERT INTO odd VALUES (%s, %s, %s)", values)
            return backend.table("odd")

        check(put, ODD[:5])


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_on_spark(spark_session: Any) -> None:
    kinds = "user BIGINT, x DOUBLE, y FLOAT"
    domain = DOMAINS[0]
    odd = [(77, number(value), number(value)) for value in ODD[:8]]
    for unit in (Unit(rows=8), Unit(rows=2, id="user")):
        before, after = (
            count(spark_session.createDataFrame(rows, kinds), domain, unit).counts
            for rows in (CROWD, CROWD + odd)
        )
        assert np.abs(after - before).sum() <= unit.steps


def bytes_of_nobody(many: int) -> pa.Array:
    """Texts whose one byte is no UTF-8."""
    places = np.arange(many + 1, dtype=np.int32).tobytes()
    return pa.Array.from_buffers(
        pa.string(), many, [None, pa.py_buffer(places), pa.py_buffer(b"\xff" * many)]
    )


def as_dictionary(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        pa.array(range(len(column)), pa.int32()), pa.concat_arrays(column.chunks)
    )


@pytest.mark.parametrize("kind", ["plain", "dictionary", "dataset", "memtable"])
def test_bytes_that_are_no_text_are_no_id(kind: str) -> None:
    ids = pa.chunked_array([["a", "b", "b"], bytes_of_nobody(2)])
    table = pa.table({"age": [0, 1, 1, 1, 0], "id": as_dictionary(ids) if kind == "dictionary" else ids})
    source = {"dataset": pa.dataset.dataset, "memtable": ibis.memtable}.get(kind, lambda same: same)(table)
    domain = Domain([Ordinal("age", range(2))])
    for unit in (Unit(rows=1, id="id"), Unit(cells=1, per_cell=1, id="id")):
        assert count(source, domain, unit).counts.tolist() == [1, 1]
    # Without an id they are rows like others.
    assert count(source, domain).counts.tolist() == [2, 3]


def test_bytes_that_are_no_text_are_nobodys_id_in_sqlite() -> None:
    backend = ibis.sqlite.connect()
    backend.con.execute("CREATE TABLE t (id TEXT, age INTEGER)")
    for person, age in [("'a'", 0), ("'a'", 0), ("x'ff'", 1), ("x'ff'", 1), ("x'fe'", 1)]:
        backend.con.execute(f"INSERT INTO t VALUES (CAST({person} AS TEXT), {age})")
    counted = count(backend.table("t"), Domain([Ordinal("age", range(2))]), Unit(rows=1, id="id"))
    assert counted.counts.tolist() == [1, 0]


@pytest.mark.parametrize("unit", [Unit(), Unit(rows=1, id="id")])
def test_bytes_that_are_no_text_are_no_key_that_is_shown(unit: Unit) -> None:
    pages = pa.chunked_array([["home"] * 300, bytes_of_nobody(300)])
    table = pa.table({"page": pages, "id": [f"p{place}" for place in range(600)]})
    domain = Domain([Nominal("page", discover=True)])
    release = dphist.publish(table, domain, 1, delta="1/1000000", unit=unit, allow_dropped=1)
    assert [attribute.labels for attribute in release.domain.attributes] == [("home",)]
