"""One matrix over engines: the same rows give the same cube on every one of them, edge values included."""

from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal
from itertools import combinations
from itertools import count as counting
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from test_sources import DOMAIN, EDGES, people, with_other

from dphist.errors import SourceError
from dphist.model.domain import Attribute, Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram, sum_others
from dphist.model.unit import Unit
from dphist.sources import coded as coded_module
from dphist.sources import count
from dphist.sources.coded import coded

ENGINES = [
    "duckdb",
    "elsewhere",
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param(
        "spark",
        marks=[
            pytest.mark.spark,
            pytest.mark.slow,
            # PySpark leaves the sockets it collects through to the garbage collector.
            pytest.mark.filterwarnings("ignore::ResourceWarning"),
            pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
        ],
    ),
]
_numbers = counting()
_POSTGRES = {
    "int8": "SMALLINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "uint8": "SMALLINT",
    "uint16": "INTEGER", "uint32": "BIGINT", "uint64": "NUMERIC(20, 0)", "float": "REAL",
    "double": "DOUBLE PRECISION", "string": "TEXT", "large_string": "TEXT", "bool": "BOOLEAN",
    "date32[day]": "DATE", "date64[ms]": "DATE", "null": "TEXT",
}  # fmt: skip


class Postgres:
    """Puts Arrow tables into PostgreSQL and hands out Ibis tables."""

    def __init__(self, address: str) -> None:
        import ibis
        import psycopg

        self.address = f"{address}/postgres"
        self.connection = psycopg.connect(self.address, autocommit=True)
        self.backend = ibis.postgres.from_connection(self.connection)

    def kind(self, kind: pa.DataType) -> str:
        if pa.types.is_timestamp(kind):
            return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
        if pa.types.is_decimal(kind):
            return f"NUMERIC({kind.precision}, {kind.scale})"
        return _POSTGRES[str(kind)]

    def put(self, table: pa.Table) -> Any:
        name = f"t{os.getpid()}_{next(_numbers)}"
        columns = ", ".join(f'"{field.name}" {self.kind(field.type)}' for field in table.schema)
        self.connection.execute(f"CREATE TABLE {name} ({columns})")
        if table.schema.names:
            marks = ", ".join(["%s"] * table.num_columns)
            rows = list(zip(*(column.to_pylist() for column in _plain(table).columns), strict=True))
            with self.connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        return self.backend.table(name)


def _plain(table: pa.Table) -> pa.Table:
    """Nanoseconds as microseconds, which Python's times hold."""
    fields = [
        pa.field(f.name, pa.timestamp("us", f.type.tz)) if pa.types.is_timestamp(f.type) else f
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


class Duckdb:
    def put(self, table: pa.Table) -> Any:
        return table


class Elsewhere:
    """Puts Arrow tables into somebody's own DuckDB, which sorts downwards and lives far away."""

    def __init__(self) -> None:
        import ibis

        self.backend = ibis.duckdb.connect()
        self.backend.raw_sql("SET TimeZone = 'Pacific/Kiritimati'; SET default_order = 'DESC'")

    def put(self, table: pa.Table) -> Any:
        return self.backend.create_table(f"t{next(_numbers)}", table)


class Sqlite:
    """Puts Arrow tables into SQLite, which has texts for days and times, and NULL for NaN."""

    # What it has no types for.
    lacks = ("large integers", "negative bounds", "zoned times")

    def __init__(self) -> None:
        import ibis

        self.backend = ibis.sqlite.connect()

    def kind(self, kind: pa.DataType) -> str:
        if pa.types.is_timestamp(kind):
            return "TIMESTAMP"
        if pa.types.is_date(kind):
            return "DATE"
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return "REAL"
        return "BOOLEAN" if pa.types.is_boolean(kind) else "INTEGER" if pa.types.is_integer(kind) else "TEXT"

    def put(self, table: pa.Table) -> Any:
        name = f"t{next(_numbers)}"
        columns = ", ".join(f'"{field.name}" {self.kind(field.type)}' for field in table.schema)
        self.backend.con.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" * table.num_columns)
        rows = zip(*(map(self.value, column.to_pylist()) for column in _plain(table).columns), strict=True)
        self.backend.con.executemany(f"INSERT INTO {name} VALUES ({marks})", list(rows))
        return self.backend.table(name)

    def value(self, value: Any) -> Any:
        if isinstance(value, dt.date):
            return str(value)
        return float(value) if isinstance(value, Decimal) else value


class Spark:
    """Puts Arrow tables into Spark and hands out its data frames."""

    def __init__(self, session: Any) -> None:
        self.session = session

    def put(self, table: pa.Table) -> Any:
        # Spark has no unsigned integers, and takes times through Arrow as microseconds.
        wider = {
            "uint8": pa.int16(),
            "uint16": pa.int32(),
            "uint32": pa.int64(),
            "uint64": pa.decimal128(20, 0),
        }
        plain = _plain(table)
        fields = [pa.field(f.name, wider.get(str(f.type), f.type)) for f in plain.schema]
        if any(str(f.type) == "null" for f in fields):
            fields = [pa.field(f.name, pa.string()) if str(f.type) == "null" else f for f in fields]
        frame = self.session.createDataFrame(plain.cast(pa.schema(fields)))
        # Spark takes times without a zone as the session's own; they are meant as what the clock shows.
        for field in table.schema:
            if pa.types.is_timestamp(field.type) and field.type.tz is None:
                frame = frame.withColumn(field.name, frame[field.name].cast("timestamp_ntz"))
        return frame


@pytest.fixture
def postgres(postgres_address: str) -> Any:
    engine = Postgres(postgres_address)
    yield engine
    engine.connection.close()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    if request.param == "postgres":
        return request.getfixturevalue("postgres")
    if request.param == "spark":
        return Spark(request.getfixturevalue("spark_session"))
    return {"duckdb": Duckdb, "elsewhere": Elsewhere, "sqlite": Sqlite}[request.param]()


def test_edge_values(engine: Any) -> None:
    """Every edge value of every kind of attribute, with and without an other cell."""
    wrong = []
    for name, attribute, column, cells in EDGES:
        for other in (False, True) if name not in getattr(engine, "lacks", ()) else ():
            asked: Attribute = with_other(attribute) if other else attribute
            expected = np.zeros(asked.size, dtype=np.int64)
            for cell in cells:
                if cell >= 0 or other:
                    expected[cell] += 1
            found = count(engine.put(pa.table({"x": column})), Domain([asked])).counts
            if found.tolist() != expected.tolist():
                wrong.append((name, other))
    assert not wrong


def test_a_cube_of_everything(engine: Any) -> None:
    table = people(1500, seed=3)
    assert count(engine.put(table), DOMAIN) == count(table, DOMAIN)


def test_no_rows(engine: Any) -> None:
    assert count(engine.put(people(0)), DOMAIN) == Histogram(DOMAIN, np.zeros(DOMAIN.shape, dtype=np.int64))


def test_coded_records_give_the_tables_of_the_cube(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes, and tables counted from them in memory, by streaming or by the engine, are those of the counted cube."""
    every = [axes for order in range(4) for axes in combinations(range(5), order)]
    table = people(1500, seed=5)
    put = engine.put(table)
    for unit in (Unit(), Unit(rows=2, id="user"), Unit(cells=2, per_cell=2, id="user")):
        cube = count(table, DOMAIN, unit).counts
        held = coded(put, DOMAIN, unit)
        monkeypatch.setattr(coded_module, "_KEPT", 0)
        for way in (held, coded(put, DOMAIN, unit)):
            for axes, found in zip(every, way.tables(every), strict=True):
                assert np.array_equal(found, sum_others(cube, axes)), axes
            assert np.array_equal(way.tables([(3, 1)])[0], sum_others(cube, (1, 3)).T)
        monkeypatch.undo()
    for name, attribute, column, cells in EDGES:
        if attribute.size < 100 and name not in getattr(engine, "lacks", ()):
            asked = Domain([with_other(attribute)])
            expected = np.bincount([cell % asked.size for cell in cells], minlength=asked.size)
            assert (
                coded(engine.put(pa.table({"x": column})), asked).tables([(0,)])[0].tolist()
                == expected.tolist()
            ), name


@pytest.mark.parametrize("limit", [1, 2, 12])
def test_bounding_keeps_its_promise(engine: Any, limit: int) -> None:
    """Every engine keeps the same rows: those that `dphist.sources.people` says."""
    table = people(900, seed=4)
    unit = Unit(rows=limit, id="user")
    domain = Domain(
        [Ordinal("age", range(10, 40), other=True), Nominal("sex", ["F", "M", "f", ""], other=True)]
    )

    def cube(rows: pa.Table) -> np.ndarray[Any, Any]:
        return count(engine.put(rows), domain, unit).counts

    users = table.column("user").to_numpy(zero_copy_only=False)
    everybody = cube(table)
    sizes = [min(limit, int((users == who).sum())) for who in range(20)]
    assert everybody.sum() == sum(sizes)
    assert np.array_equal(everybody, count(table, domain, unit).counts)
    for who in (0, 7):
        alone = cube(table.filter(pa.array(users == who)))
        assert alone.sum() == sizes[who]
        assert np.array_equal(everybody, cube(table.filter(pa.array(users != who))) + alone)
    # Nor does it matter in what order the rows lie.
    assert np.array_equal(everybody, cube(table.take(pa.array(np.arange(900)[::-1]))))


def test_rows_of_nobody_and_identical_rows(engine: Any) -> None:
    domain = Domain([Ordinal("age", range(4))])
    table = pa.table(
        {"user": pa.array([None] * 5 + [1.0] * 9 + [float("nan")] * 3), "age": pa.array([1] * 17)}
    )
    assert count(engine.put(table), domain, Unit(rows=3, id="user")).counts.tolist() == [0, 3, 0, 0]


def test_floats_too_large_to_tell_people_apart_are_refused(engine: Any) -> None:
    table = pa.table({"user": [1.0, 2.0**53], "age": [1, 1]})
    with pytest.raises(SourceError, match="may stand for several people"):
        count(engine.put(table), Domain([Ordinal("age", range(4))]), Unit(id="user"))


@pytest.mark.postgres
def test_words_of_postgres_are_not_passed_on(postgres: Any) -> None:
    postgres.connection.execute(
        "CREATE OR REPLACE VIEW torn AS SELECT CAST(n AS INTEGER) AS age FROM (VALUES ('alice')) t (n)"
    )
    for unit in (Unit(), Unit(id="age")):
        with pytest.raises(SourceError, match="PostgreSQL could not count the table") as refused:
            count(postgres.backend.table("torn"), Domain([Ordinal("age", range(4))]), unit)
        assert "alice" not in str(refused.value)


def test_a_column_of_another_type_is_named(engine: Any) -> None:
    with pytest.raises(SourceError, match="the column age holds"):
        count(engine.put(pa.table({"age": ["x"]})), Domain([Ordinal("age", range(4))]))


@pytest.mark.postgres
def test_numerics_beyond_floats_are_beyond_the_bounds(postgres: Any) -> None:
    engine = postgres
    engine.connection.execute("CREATE TABLE IF NOT EXISTS wide (x NUMERIC)")
    engine.connection.execute("TRUNCATE wide")
    engine.connection.execute(
        "INSERT INTO wide VALUES ('1e400'), ('-1e400'), ('1e-400'), ('-1e-400'), ('NaN'), ('Infinity'), (0.5), (NULL)"
    )
    domain = Domain([Ordinal("x", edges=[0, 0.25, 1], other=True)])
    assert count(engine.backend.table("wide"), domain).counts.tolist() == [1, 1, 6]


@pytest.mark.postgres
def test_an_address_and_a_table(postgres: Any) -> None:
    engine = postgres
    engine.connection.execute("CREATE SCHEMA IF NOT EXISTS town")
    engine.connection.execute("DROP TABLE IF EXISTS town.folk")
    engine.connection.execute("CREATE TABLE town.folk AS SELECT 1 AS age UNION ALL SELECT 3")
    domain = Domain([Ordinal("age", range(4))])
    assert count(f"{engine.address}::town.folk", domain).counts.tolist() == [0, 1, 0, 1]
    for source, says in [
        (engine.address, "which table"),
        (f"{engine.address}::nobody", "no table nobody"),
        ("postgresql://me:secret@127.0.0.1:1/x::t", "cannot be reached"),
    ]:
        with pytest.raises(SourceError, match=says) as refusal:
            count(source, domain)
        assert "secret" not in str(refusal.value)


@pytest.mark.postgres
def test_counting_is_read_only(postgres: Any) -> None:
    engine = postgres
    engine.connection.execute("CREATE SEQUENCE IF NOT EXISTS taken")
    # A view that writes when it is read: PostgreSQL refuses it to us.
    engine.connection.execute("CREATE OR REPLACE VIEW sly AS SELECT CAST(nextval('taken') AS BIGINT) AS age")
    with pytest.raises(SourceError, match="PostgreSQL could not count"):
        count(engine.backend.table("sly"), Domain([Ordinal("age", range(4))]))


def test_days_of_a_zone(engine: Any) -> None:
    """Moments lie in the same days on every engine, whatever zone its session has; 2,000 years away in none."""
    from test_zones import ZONES, moments

    if isinstance(engine, Sqlite):
        engine.backend.con.execute("CREATE TABLE zoned (t TIMESTAMPTZ)")
        with pytest.raises(SourceError, match="zone"):
            count(engine.backend.table("zoned"), Domain([Ordinal("t", dates=("2013-01-01", "2013-01-05"))]))
        return
    for zone, first, last in ZONES:
        found = [*moments(zone, first, last), dt.datetime(1, 1, 2, tzinfo=dt.UTC), None]
        table = pa.table({"x": pa.array(found, pa.timestamp("us", "UTC"))})
        for step in ("1d", "1mo"):
            attribute = Ordinal("x", dates=(first, last, step), zone=zone)
            cells = attribute.cells(found)
            expected = np.bincount(cells[cells >= 0], minlength=attribute.size).tolist()
            assert count(engine.put(table), Domain([attribute])).counts.tolist() == expected, zone
    other = with_other(attribute)
    assert count(engine.put(table), Domain([other])).counts.tolist() == [
        *expected,
        len(found) - sum(expected),
    ]
    nothing = pa.table({"x": pa.array([None, None], pa.null())})
    if isinstance(engine, Duckdb):
        assert count(engine.put(nothing), Domain([other])).counts.tolist() == [0] * attribute.size + [2]
