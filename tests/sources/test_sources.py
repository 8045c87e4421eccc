"""Rows into cells: the same rows give the same counts from every kind of source."""

from __future__ import annotations

import datetime as dt
import json
import math
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist.errors import SourceError, TooLargeError
from dphist.model.domain import Attribute, Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.sources import count

NAN, INF = math.nan, math.inf
PLACES = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}
DOMAIN = Domain(
    [
        Ordinal("age", range(18, 30)),
        Ordinal("income", edges=[0, 10.5, 25, 100], other=True),
        Nominal("sex", ["F", "M", ""]),
        Nominal("place", PLACES, other=True),
        Ordinal("day", dates=("2024-01-15", "2024-06-01", "1mo")),
    ]
)


def people(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)

    def pick(values: list[Any]) -> list[Any]:
        return [values[i] for i in rng.integers(0, len(values), rows)]

    days = [dt.date(2024, 1, 14), dt.date(2024, 1, 15), dt.date(2024, 2, 14), dt.date(2024, 2, 15)]
    return pa.table(
        {
            "age": pa.array(pick([17, 18, 19, 29, 30, None]), pa.int32()),
            "income": pa.array(
                pick([-0.1, 0.0, 10.4, 10.5, 25.0, 99.9, 100.0, 100.1, NAN, INF, -INF, None]), pa.float64()
            ),
            "sex": pa.array(pick(["F", "M", "f", "", None]), pa.string()),
            "place": pa.array(pick(["a", "b", "c", "d", "e", "zz", None]), pa.string()),
            "day": pa.array(pick([*days, dt.date(2024, 5, 31), dt.date(2024, 6, 1), None]), pa.date32()),
            "user": pa.array(pick([*range(20), None]), pa.int64()),
        }
    )


def slow(table: pa.Table, domain: Domain) -> Histogram:
    counts = np.zeros(domain.shape, dtype=np.int64)
    cells = [a.cells(table.column(a.name).to_pylist()) for a in domain.attributes]
    for place in zip(*cells, strict=True):
        if min(place) >= 0:
            counts[place] += 1
    return Histogram(domain, counts)


def as_parquet(table: pa.Table, folder: Path) -> str:
    pq.write_table(table, folder / "t.parquet", row_group_size=37)
    return str(folder / "t.parquet")


def as_parquet_glob(table: pa.Table, folder: Path) -> str:
    for place in range(3):
        pq.write_table(table.slice(place * 100, 100 if place < 2 else None), folder / f"part{place}.parquet")
    return str(folder / "part*.parquet")


def as_csv(table: pa.Table, folder: Path) -> Path:
    pyarrow.csv.write_csv(table, folder / "t.csv")
    return folder / "t.csv"


def as_json(table: pa.Table, folder: Path) -> Path:
    # JSON knows neither NaN nor infinities; they are as much out of the domain as null.
    rows = [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        for row in table.to_pylist()
    ]
    (folder / "t.jsonl").write_text("\n".join(json.dumps(row, default=str) for row in rows))
    return folder / "t.jsonl"


def as_database(table: pa.Table, folder: Path) -> str:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute('CREATE TABLE "my table" AS SELECT * FROM given')
    return f"{folder / 't.duckdb'}::my table"


def as_ibis_file(table: pa.Table, folder: Path) -> Any:
    return ibis.duckdb.connect().read_parquet(as_parquet(table, folder))


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "parquet": as_parquet,
    "parquet glob": as_parquet_glob,
    "csv": as_csv,
    "json": as_json,
    "duckdb": as_database,
    "pandas": lambda t, _: t.to_pandas(),
    "pandas categories": lambda t, _: t.to_pandas().astype({"sex": "category", "place": "category"}),
    "polars": lambda t, _: pl.from_arrow(t),
    "polars lazy": lambda t, _: pl.from_arrow(t).lazy(),
    "pyarrow": lambda t, _: t,
    "pyarrow reader": lambda t, _: t.to_reader(13),
    "pyarrow dataset": lambda t, _: pyarrow.dataset.dataset(t),
    "ibis file": as_ibis_file,
    "ibis memtable": lambda t, _: ibis.memtable(t),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_counts_alike(kind: str, tmp_path: Path) -> None:
    table = people(500)
    expected = slow(table, DOMAIN)
    assert expected.counts.sum() > 50
    assert count(SOURCES[kind](table, tmp_path), DOMAIN) == expected


@pytest.mark.parametrize("kind", ["parquet", "pandas", "ibis memtable"])
def test_no_rows_is_a_histogram_of_zeros(kind: str, tmp_path: Path) -> None:
    assert count(SOURCES[kind](people(0), tmp_path), DOMAIN).counts.sum() == 0


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "ibis memtable"])
def test_a_column_of_nothing_is_all_out_of_the_domain(kind: str, tmp_path: Path) -> None:
    table = pa.table({name: pa.nulls(3) for name in DOMAIN.names})
    assert count(SOURCES[kind](table, tmp_path), DOMAIN).counts.sum() == 0
    truth = Domain([Nominal("age", [True], other=True), Nominal("sex", [3], other=True)])
    assert count(SOURCES[kind](table, tmp_path), truth).counts[-1, -1] == 3


HOME = "Europe/Paris"
# attribute, column, and the cell of each row (-1: dropped)
# In nanoseconds.
DAY = 86_400 * 10**9
EDGES: list[tuple[str, Attribute, pa.Array, list[int]]] = [
    ("integers", Ordinal("x", range(5)), pa.array([0, 4, 5, -1, None]), [0, 4, -1, -1, -1]),
    ("small integers", Ordinal("x", range(1000)), pa.array([0, 127, -128], pa.int8()), [0, 127, -1]),
    ("large integers", Ordinal("x", range(5)), pa.array([2**64 - 1, 3], pa.uint64()), [-1, 3]),
    ("negative bounds", Ordinal("x", range(-5, 5)), pa.array([2**63, 0], pa.uint64()), [-1, 5]),
    ("stepped", Ordinal("x", range(1, 20, 4)), pa.array([1, 2, 5, 17, 21, None]), [0, -1, 1, 4, -1, -1]),
    (
        "integers on floats",
        Ordinal("x", range(5)),
        pa.array([3.0, 3.5, -0.0, 4.000001, NAN, INF, -INF, None]),
        [3, -1, 0, -1, -1, -1, -1, -1],
    ),
    ("stepped on floats", Ordinal("x", range(1, 20, 4)), pa.array([5.0, 5.5, 6.0, NAN]), [1, -1, -1, -1]),
    ("32-bit floats", Ordinal("x", edges=[0, 0.5, 1]), pa.array([0.5, 1.0, 0.49], pa.float32()), [1, 1, 0]),
    (
        "uneven bins",
        Ordinal("x", edges=[0, 1.5, 3, 10]),
        pa.array([0.0, 1.4999, 1.5, 10.0, 10.0001, -1e-9, NAN, INF, None]),
        [0, 0, 1, 2, -1, -1, -1, -1, -1],
    ),
    (
        "uneven bins on integers",
        Ordinal("x", edges=[0, 1.5, 3, 9.5]),
        pa.array([0, 1, 2, 3, 9, 10]),
        [0, 0, 1, 2, 2, -1],
    ),
    (
        "even bins",
        Ordinal("x", edges=range(-10, 11, 5)),
        pa.array([-10.0, -5.0000001, -5.0, -5e-324, 10.0, 10.1, NAN, -INF]),
        [0, 0, 1, 1, 3, -1, -1, -1],
    ),
    (
        "even bins on integers",
        Ordinal("x", edges=range(-10, 11, 5)),
        pa.array([-10, -6, -5, 10, 11]),
        [0, 0, 1, 3, -1],
    ),
    (
        "wide bins",
        Ordinal("x", edges=[0, 2**60, 2**61]),
        pa.array([2**60 - 1, 2**60, 2**61, 2**61 + 1]),
        [0, 1, 1, -1],
    ),
    (
        "decimals",
        Ordinal("x", edges=[0, 0.1, 1]),
        pa.array([Decimal("0.10"), Decimal("0.09"), Decimal("1.00"), None], pa.decimal128(5, 2)),
        [1, 0, 1, -1],
    ),
    ("ordered texts", Ordinal("x", ["low", "", "it's"]), pa.array(["it's", "", "Low", None]), [2, 1, -1, -1]),
    (
        "many texts",
        Nominal("x", [f"c{i}" for i in range(200)]),
        pa.array(["c199", "c200", "", None]),
        [199, -1, -1, -1],
    ),
    ("whole categories", Nominal("x", [7, -3]), pa.array([7, -3, 0, None]), [0, 1, -1, -1]),
    (
        "many whole categories",
        Nominal("x", list(range(100))),
        pa.array([7.0, 7.5, NAN, INF, None]),
        [7, -1, -1, -1, -1],
    ),
    ("whole categories on floats", Nominal("x", [7, -3]), pa.array([7.0, 7.5, NAN, INF]), [0, -1, -1, -1]),
    ("truth", Nominal("x", [True, False]), pa.array([True, False, None]), [0, 1, -1]),
    (
        "days",
        Ordinal("x", dates=("2024-02-28", "2024-03-02", "1d")),
        pa.array(
            [dt.date(2024, 2, 27), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(2024, 3, 2), None]
        ),
        [-1, 1, 2, -1, -1],
    ),
    (
        "weeks before 1970",
        Ordinal("x", dates=("1960-01-01", "1961-01-01", "1w")),
        pa.array([dt.date(1959, 12, 31), dt.date(1960, 1, 7), dt.date(1960, 1, 8), dt.date(1960, 12, 31)]),
        [-1, 0, 1, 52],
    ),
    (
        "times",
        Ordinal("x", dates=("1969-12-30", "1970-01-02", "1d")),
        pa.array(
            [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2)]
        ),
        [1, 2, -1],
    ),
    (
        "nanoseconds",
        Ordinal("x", dates=("2024-01-01", "2025-01-01", "1mo")),
        pa.array([dt.datetime(2024, 1, 31, 23, 59, 59), dt.datetime(2024, 2, 1), None], pa.timestamp("ns")),
        [0, 1, -1],
    ),
    (
        # Half past midnight in Paris is still the day before in UTC, which is what a moment is counted by.
        "zoned times",
        Ordinal("x", dates=("2024-01-01", "2024-01-03", "1d")),
        pa.array(
            [
                dt.datetime(2024, 1, 1, 23, 30, tzinfo=dt.UTC),
                dt.datetime(2024, 1, 2, 0, 0, tzinfo=dt.UTC),
                dt.datetime(2023, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
                dt.datetime(2024, 1, 3, tzinfo=dt.UTC),
            ],
            pa.timestamp("us", HOME),
        ),
        [0, 1, -1, -1],
    ),
]


@pytest.mark.parametrize("through", ["duckdb", "ibis"])
def test_a_nul_in_a_category_is_a_letter(through: str) -> None:
    # It ended DuckDB's statement, and the table was said not to be complete. (PostgreSQL has no such texts.)
    table = pa.table({"x": ["a\0'b", "a", "a\0c", None]})
    source = table if through == "duckdb" else connected(through).create_table("nul", table, overwrite=True)
    for more in ([], [f"c{i}" for i in range(200)]):
        domain = Domain([Nominal("x", ["a", "a\0'b", "a\0", *more])])
        assert count(source, domain).counts[:3].tolist() == [1, 1, 0]


def test_a_nanosecond_before_1970_lies_where_it_is_written(tmp_path: Path) -> None:
    moments = pa.array([-1, -999, -1_000, -DAY - 1, 0, 1, DAY - 1, DAY], pa.int64())
    plain, zoned = (pa.table({"x": moments.cast(pa.timestamp("ns", zone))}) for zone in (None, "UTC"))
    pq.write_table(plain, tmp_path / "ns.parquet")
    pq.write_table(
        plain.cast(pa.schema([("x", pa.timestamp("us"))]), safe=False).slice(8), tmp_path / "us.parquet"
    )
    written = "".join(f"{moment}\n" for moment in plain["x"].to_numpy())
    (tmp_path / "x.csv").write_text(f"x\n{written}")
    frame = plain.to_pandas()
    domain = Domain([Ordinal("x", dates=("1969-12-30", "1970-01-03", "1d"))])
    for source in (
        tmp_path / "x.csv",
        tmp_path / "ns.parquet",
        tmp_path / "*s.parquet",  # files of two types, of which one has no rows
        zoned,
        zoned.to_pandas(),
        connected("ibis elsewhere").create_table("plain", plain, overwrite=True),
        frame,
        # One row of another kind makes objects of all: it moves no other.
        frame.astype(object),
    ):
        assert count(source, domain).counts.tolist() == [1, 3, 3, 1]


def test_a_time_beyond_all_microseconds_in_a_file_is_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([0, 2**62]).cast(pa.timestamp("ms"))}), tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="after the year 294,246") as caught:
        count(tmp_path / "x.parquet", Domain([Ordinal("x", dates=("1970-01-01", "1970-01-03", "1d"))]))
    assert str(2**62) not in str(caught.value)


def test_an_array_among_objects_has_no_cell_and_is_nobody() -> None:
    frame = pd.DataFrame({"x": pd.Series([1, 1, np.array([1, 2]), np.array([True])], dtype=object)})
    assert count(frame, Domain([Ordinal("x", range(3))])).counts.tolist() == [0, 2, 0]
    frame["y"] = 0
    assert count(frame, Domain([Ordinal("y", range(1))]), Unit(id="x")).counts.tolist() == [1]


def test_narrow_floats_among_objects_are_no_ids_either() -> None:
    frame = pd.DataFrame({"x": pd.Series([np.float32(2**24), "ann"], dtype=object), "y": 0})
    with pytest.raises(SourceError, match="2\\^24"):
        count(frame, Domain([Ordinal("y", range(1))]), Unit(id="x"))


@pytest.mark.parametrize(("unit", "day"), [("s", 86_400), ("ms", 86_400_000)])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_beyond_all_microseconds_have_no_cell(
    unit: str, day: int, zone: str | None, tmp_path: Path
) -> None:
    # After the year 294,247 there are none, and the least number of seconds has no opposite one.
    far = pa.array([0, day, 2**62, -(2**63), 2**63 - 1, None], pa.int64())
    table = pa.table({"x": far.cast(pa.timestamp(unit, zone), safe=False)})
    domain = Domain([Ordinal("x", dates=("1970-01-01", "1970-01-03", "1d"), other=True)])
    assert count(table, domain).counts.tolist() == [1, 1, 4]
    if zone is None:
        with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE t AS FROM given")
        assert count(f"{tmp_path / 'x.duckdb'}::t", domain).counts.tolist() == [1, 1, 4]


@cache
def connected(through: str) -> Any:
    connection = ibis.duckdb.connect()
    if through == "ibis elsewhere":
        connection.raw_sql("SET TimeZone = 'Pacific/Kiritimati'")
    return connection


def with_other(attribute: Attribute) -> Attribute:
    from dphist.model.domain.space import attribute_from_json, attribute_to_json

    return attribute_from_json({**attribute_to_json(attribute), "other": True})


def test_no_key_lies_outside_its_range(tmp_path: Path) -> None:
    from dphist.sources.count import occupied

    table = pa.table({"x": [2.0**53, 2.0**53 + 2, 0.0, NAN]})
    path, domain = as_parquet(table, tmp_path), Domain([Ordinal("x", range(2**53 + 2))])
    cells, rows, _ = occupied(path, domain, Unit())
    assert sorted(zip(cells.tolist(), rows.tolist(), strict=True)) == [(0, 1), (2**53, 1)]
    with pytest.raises(SourceError, match="floats"):
        occupied(connected("ibis").read_parquet(path), domain, Unit())


def test_infinite_dates_are_out_of_the_domain() -> None:
    domain = Domain([Ordinal("x", dates=("2024-01-01", "2024-02-01", "1d"), other=True)])
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
        connection = ibis.duckdb.connect()
        connection.raw_sql(
            f"CREATE TABLE t AS SELECT unnest(['infinity', '-infinity', '2024-01-05'])::{kind} AS x"
        )
        counts = count(connection.table("t"), domain).counts
        assert counts[-1] == 2
        assert counts.sum() == 3


def test_text_files_are_read_as_declared_whatever_comes_first(tmp_path: Path) -> None:
    domain = Domain(
        [Ordinal("x", range(10), other=True), Nominal("s", ["1", "x y"]), Nominal("b", [True, False])]
    )
    rows = ["7,1,true\n"] * 30_000 + [
        "n/a,x y,false\n",
        " 8 ,1,TRUE\n",
        "8.5,1,true\n",
        "1e0,1,true\n",
        ",1,true\n",
    ]
    path = tmp_path / "t.csv"
    path.write_text("x,s,b\n" + "".join(rows))
    forward = count(path, domain)
    path.write_text("x,s,b\n" + "".join(reversed(rows)))
    assert count(path, domain) == forward
    assert forward.counts[7, 0, 0] == 30_000
    assert forward.counts[8, 0, 0] == 1
    assert forward.counts[1, 0, 0] == 1
    assert forward.counts[10].sum() == 3


def test_empty_text_in_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,s\n1,""\n1,\n1,F\n')
    assert count(path, Domain([Nominal("s", ["", "F"], other=True)])).counts.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "name", ["no.csv", "no*.csv", "no*.parquet", "no?.jsonl", "no{1,2}.csv", "\0*.csv", f"{'n' * 300}.csv"]
)
def test_a_pattern_that_names_no_file_says_so(name: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        count(tmp_path / name, Domain([Nominal("s", ["F"])]))


def test_a_tab_separates_the_fields_of_a_tsv_file_however_its_name_is_written(tmp_path: Path) -> None:
    for name in ("t.tsv", "T.TSV"):
        (tmp_path / name).write_text("a,b,c\ts\n1,2\tF\n")
        assert count(tmp_path / name, Domain([Nominal("s", ["F"])])).counts.tolist() == [1]


def test_a_moment_beyond_the_calendar_is_one_row_without_a_cell() -> None:
    west, east = (dt.timezone(dt.timedelta(hours=hours)) for hours in (-5, 5))
    moments = [dt.datetime.max.replace(tzinfo=west), dt.datetime.min.replace(tzinfo=east)]
    frame = pd.DataFrame({"d": pd.Series([*moments, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], dtype=object)})
    assert count(frame, Domain([Ordinal("d", dates=("2024-01-01", "2024-01-03"))])).counts.tolist() == [1, 0]


def test_truth_values_of_numpy_are_truth_values() -> None:
    frame = pd.DataFrame({"b": pd.Series([np.True_, True, np.False_, None], dtype=object)})
    assert count(frame, Domain([Nominal("b", ["true", "false"])])).counts.tolist() == [2, 1]


@settings(deadline=None, max_examples=8)
@given(st.permutations(range(300)), st.integers(1, 4), st.integers(20, 120))
def test_order_chunks_and_threads_do_not_matter(order: list[int], threads: int, chunk: int) -> None:
    table = people(300)
    shuffled = table.take(order)
    rechunked = pa.Table.from_batches(shuffled.to_batches(max_chunksize=chunk))
    connection = ibis.duckdb.connect(threads=threads)
    plain = connection.create_table("plain", table)
    mixed = connection.create_table("mixed", rechunked)
    for unit in (Unit(), Unit(rows=2, id="user")):
        assert count(rechunked, DOMAIN, unit) == count(table, DOMAIN, unit)
        # Which rows are kept may differ from one way of hashing to another, not from one order to another.
        assert count(mixed, DOMAIN, unit) == count(plain, DOMAIN, unit)


@pytest.mark.parametrize(
    ("attribute", "column", "says"),
    [
        (Ordinal("x", range(5)), pa.array(["1", "2"]), "VARCHAR.*numbers"),
        (Ordinal("x", edges=[0, 1]), pa.array([True]), "BOOLEAN.*numbers"),
        (Nominal("x", ["a"]), pa.array([1]), "BIGINT.*text"),
        (Nominal("x", ["secret"]), pa.array([1]).cast(pa.float64()), "DOUBLE.*text"),
        (Nominal("x", [1]), pa.array(["secret"]).dictionary_encode(), "(ENUM|VARCHAR).*numbers"),
        (Nominal("x", [True]), pa.array([1]), "truth"),
        (Ordinal("x", dates=("2024-01-01", "2025-01-01")), pa.array(["2024-01-01"]), "VARCHAR.*dates"),
        (Ordinal("x", range(5)), pa.array([[1]]), "list.*numbers"),
    ],
)
def test_a_column_of_another_type(attribute: Attribute, column: pa.Array, says: str) -> None:
    with pytest.raises(SourceError, match=says) as caught:
        count(pa.table({"x": column}), Domain([attribute]))
    assert "secret" not in str(caught.value)
    with pytest.raises(SourceError, match="x"):
        count(ibis.memtable(pa.table({"x": column})), Domain([attribute]))


def test_what_cannot_be_read(tmp_path: Path) -> None:
    domain = Domain([Ordinal("age", range(5))])
    table = pa.table({"years": [1], "user": [2]})
    (tmp_path / "bad.parquet").write_text("not parquet, but 777")
    (tmp_path / "bad.duckdb").write_text("not a database, but 777")
    (tmp_path / "bad.jsonl").write_text('{"age": 777\n')
    with closing(sqlite3.connect(tmp_path / "lite.db")) as lite:
        lite.execute("CREATE TABLE t AS SELECT 777 AS age")
        lite.commit()
    as_database(table, tmp_path)
    cases: list[tuple[Any, str]] = [
        (table, r"no column age \(an attribute of the domain\); `dphist schema new`"),
        (ibis.memtable(table), r"no column age \(an attribute of the domain\); `dphist schema new`"),
        (tmp_path / "none.csv", "no file"),
        (tmp_path / "none*.parquet", "no file"),
        (tmp_path / "bad.parquet", "cannot be read"),
        (tmp_path / "bad.jsonl", "neither one JSON object a line"),
        (f"{tmp_path / 'bad.duckdb'}::t", "cannot be opened"),
        (
            f"{tmp_path / 'lite.db'}::t",
            r"lite.db is an SQLite database; give its table by Ibis.*sqlite.connect",
        ),
        (f"{tmp_path / 't.duckdb'}::t", "no table t"),
        (f"{tmp_path / 't.duckdb'}", "which table"),
        (f"{tmp_path / 't.duckdb'}::", "which table"),
        (tmp_path / "t.xlsx", "must end in"),
        ([1, 2, 3], "expected"),
        (pa.table([pa.array([1]), pa.array([2])], names=["age", "age"]), "two columns"),
    ]
    for source, says in cases:
        with pytest.raises(SourceError, match=says) as caught:
            count(source, domain)
        assert "777" not in str(caught.value)
        assert caught.value.__cause__ is None


def test_an_engines_own_words_are_not_passed_on() -> None:
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE VIEW t AS SELECT CAST(s AS INTEGER) AS age FROM (VALUES ('secret')) v(s)")
    with pytest.raises(SourceError) as caught:
        count(connection.table("t"), Domain([Ordinal("age", range(5))]))
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_histogram_passes_through() -> None:
    histogram = count(people(50), DOMAIN)
    assert count(histogram) is histogram
    assert count(histogram, DOMAIN) is histogram
    with pytest.raises(SourceError, match="another"):
        count(histogram, DOMAIN.project(["age"]))
    with pytest.raises(SourceError, match="ids"):
        count(histogram, unit=Unit(id="user"))
    with pytest.raises(SourceError, match="domain"):
        count(people(5))


def test_too_large_is_said_before_anything_is_allocated() -> None:
    domain = Domain([Ordinal("x", range(10**7)), Ordinal("y", range(10**7))])
    with pytest.raises(TooLargeError, match=r"100,000,000,000,000 combinations .* 800,000,000,000,000 bytes"):
        count(people(1), domain)


def test_importing_sources_loads_no_engine() -> None:
    names = "('ibis', 'duckdb', 'pandas', 'polars', 'pyarrow', 'numba', 'tomlkit')"
    code = f"import dphist.sources, sys; sys.exit(' '.join(m for m in {names} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "\n"


def test_many_uneven_edges_are_counted_as_few_are(tmp_path: Path) -> None:
    """A list too long for a CASE is searched while the rows pass by: the same cells, alone, beside others, bounded."""
    rng = np.random.default_rng(3)
    edges = np.sort(np.concatenate([[0.0, 50.0], rng.uniform(0, 50, 198)])).tolist()
    x = rng.uniform(-2, 52, 5000)
    x[::11], x[1], x[2], x[3] = np.nan, edges[7], edges[-1], edges[0]
    whole = rng.integers(-3, 5000, 5000)
    table = pa.table(
        {
            "x": pa.array(x, from_pandas=True),
            "whole": pa.array(whole, mask=rng.random(5000) < 0.1),
            "s": rng.choice(["a", "FROM records"], 5000),
            "id": rng.integers(0, 900, 5000),
        }
    )
    wholes = sorted({0, 5000, *rng.integers(1, 4999, 150).tolist()})
    domain = Domain(
        [
            Ordinal("x", edges=edges),
            Ordinal("whole", edges=wholes),
            Nominal("s", ["a", "FROM records"]),
        ]
    )
    rows = table.to_pandas()
    rows = rows[(rows.x >= 0) & (rows.x <= 50) & (rows.whole >= 0) & (rows.whole <= 5000)]
    wanted = np.zeros(domain.shape, dtype=np.int64)
    places = [
        np.minimum(np.searchsorted(each, rows[name], side="right") - 1, len(each) - 2)
        for name, each in (("x", edges), ("whole", wholes))
    ]
    np.add.at(wanted, (*places, (rows.s != "a").to_numpy().astype(int)), 1)
    pq.write_table(table, tmp_path / "rows.parquet")
    table.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    sources: list[Any] = [table, tmp_path / "rows.parquet", tmp_path / "rows.csv", table.to_pandas()]
    for source in sources:
        np.testing.assert_array_equal(count(source, domain).counts, wanted)
        held = count(source, domain, Unit(rows=1, id="id")).counts
        assert held.sum() == rows.id.nunique()
        assert (held <= wanted).all()
    np.testing.assert_array_equal(
        count(ibis.duckdb.connect().create_table("t", table), domain).counts, wanted
    )
