"""What an Ibis expression computes of a row hangs on that row, and not on a type or a statistic of everybody's."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ibis import _

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

NAN = float("nan")
TEXTS = Domain([Nominal("x", ["1", "2", "1.0", "2.0"])])
NUMBERS = Domain([Ordinal("x", range(4))])


def registered(frame: Any) -> Any:
    duck = ibis.duckdb.connect()
    duck.con.register("t", frame)
    return duck.table("t")


def written(kind: str, folder: Path, frame: pd.DataFrame) -> Any:
    place = folder / f"t.{kind}"
    frame.to_csv(place, index=False) if kind == "csv" else frame.to_json(place, orient="records", lines=True)
    return getattr(ibis.duckdb.connect(), f"read_{kind}")(place)


FRAMES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "memtable": lambda frame, folder: ibis.memtable(frame),
    "memtable of dicts": lambda frame, folder: ibis.memtable(frame.to_dict("records")),
    "memtable of polars": lambda frame, folder: ibis.memtable(pl.from_pandas(frame)),
    "polars": lambda frame, folder: ibis.polars.connect().create_table("t", pl.from_pandas(frame)),
    "pandas in duckdb": lambda frame, folder: registered(frame),
    "arrow in duckdb": lambda frame, folder: registered(pa.table(frame)),
    "csv in duckdb": lambda frame, folder: written("csv", folder, frame),
    "json in duckdb": lambda frame, folder: written("json", folder, frame),
}
BARE = [kind for kind in FRAMES if "duckdb" not in kind]


@pytest.mark.parametrize("kind", FRAMES)
def test_an_expression_over_a_frame_is_refused(kind: str, tmp_path: Path) -> None:
    """One row of 2.5 had turned everybody's "1" into "1.0"."""
    for rows in ([1, 2, 1], [1, 2, 1, 2.5]):
        table = FRAMES[kind](pd.DataFrame({"x": rows, "user": range(len(rows))}), tmp_path)
        for expression in (table.select(x=_.x.cast("string")), table.filter(_.x < 2)):
            with pytest.raises(SourceError, match="itself"):
                count(expression, TEXTS)


@pytest.mark.parametrize("kind", FRAMES)
def test_a_bare_frame_is_read_as_one_or_refused(kind: str, tmp_path: Path) -> None:
    rows = [1, 2, 1, None, 2.5]
    for unit in (Unit(), Unit(rows=1, id="user")):
        for many in range(3, 6):
            frame = pd.DataFrame({"x": rows[:many], "user": range(many)})
            table = FRAMES[kind](frame, tmp_path)
            if kind in BARE:
                assert count(table, NUMBERS, unit).counts.tolist() == [0, 2, 1, 0]
            else:
                with pytest.raises(SourceError, match="itself"):
                    count(table, NUMBERS, unit)


def test_a_view_over_a_frame_is_seen_through(tmp_path: Path) -> None:
    duck = ibis.duckdb.connect()
    duck.con.register("frame", pd.DataFrame({"x": [1, 2]}))
    duck.raw_sql("CREATE TABLE t AS SELECT 1 AS x UNION ALL SELECT 2")
    duck.raw_sql("CREATE TEMP VIEW shown AS SELECT x AS x FROM frame WHERE x > 0")
    duck.raw_sql("CREATE TEMP VIEW beside AS SELECT t.x FROM t JOIN shown USING (x)")
    duck.raw_sql("CREATE VIEW own AS SELECT x FROM t WHERE x > 0")
    for name in ("shown", "beside"):
        with pytest.raises(SourceError, match="PANDAS_SCAN"):
            count(duck.table(name), NUMBERS)
    assert count(duck.table("own").mutate(x=_.x + 1), NUMBERS).counts.tolist() == [0, 0, 1, 1]
    duck.raw_sql("SET explain_output = 'all'")
    assert count(duck.table("own"), NUMBERS).counts.tolist() == [0, 1, 1, 0]


def test_decimals_of_every_scale_are_the_same_floats() -> None:
    """What a DuckDB that is not ours holds may have been made of a frame, by the finest of all decimals."""
    numbers = [Decimal(each) / 100 for each in range(1, 1_000)]
    domain = Domain([Ordinal("x", edges=[cell / 100 for cell in range(1, 1_001)])])
    found = []
    for kind in (pa.decimal128(6, 2), pa.decimal128(38, 30)):
        table = ibis.duckdb.connect().create_table("t", pa.table({"x": pa.array(numbers, kind)}))
        found.append(count(table, domain).counts.tolist())
    assert found[0] == found[1]


VALUES = [5.0, *[NAN] * 500]
CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "<=": lambda t: t.filter(t.x <= 10),
    "<": lambda t: t.filter(t.x < 10.5),
    ">": lambda t: t.filter(t.x > 10),
    ">=": lambda t: t.filter(t.x >= 10),
    "not": lambda t: t.filter(~(t.x <= 10)),
    "between": lambda t: t.filter(t.x.between(0, 10)),
    "mutate": lambda t: t.mutate(town=(t.x <= 10).ifelse(1, 0)),
    "narrow": lambda t: t.filter(t.x.cast("float32") <= 10),
    "one of several": lambda t: t.filter((t.x > 10) | (t.town == 0)),
    "structure": lambda t: t.filter(t.s["v"] <= 10),
    "structure of structures": lambda t: t.filter(t.deep["s"]["v"] > 10),
    "structure passed through": lambda t: t.select("user", "town", "s").filter(_.s["v"] <= 10),
    "text": lambda t: t.filter(t.text.cast("float64") <= 10),
    "sum": lambda t: t.filter(t.x + t.s["v"] <= 20),
    "filled": lambda t: t.filter(t.x.fill_null(7.0) <= 10),
    "after a step": lambda t: t.mutate(y=t.x * 2).filter(_.y <= 20),
}
TOWNS = Domain([Ordinal("town", range(2))])


def in_parquet(more: list[float], place: Path) -> str:
    values = [*VALUES, *more]
    inside = [{"v": value} for value in values]
    columns = {
        "x": values,
        "s": inside,
        "deep": [{"s": each} for each in inside],
        "text": [str(value) for value in values],
        "town": [1] * len(values),
        "user": list(range(len(values))),
    }
    pq.write_table(pa.table(columns), place / "t.parquet")
    return str(place / "t.parquet")


def one_moves_itself(read: Callable[[list[float]], Any], condition: str) -> None:
    """Whoever comes, nobody else's row is let through or stopped."""
    unit = Unit(rows=2, id="user")
    before = count(CONDITIONS[condition](read([])), TOWNS, unit).counts
    for more in ([11.0], [-5.0], [float("inf")], [NAN]):
        after = count(CONDITIONS[condition](read(more)), TOWNS, unit).counts
        assert np.abs(after - before).sum() <= 2


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_of_ones_own_looks_at_one_row(condition: str, tmp_path: Path) -> None:
    """One record of 11 had removed 500 others: by what a file states of a column a NaN lies below 10, or not."""
    duck = ibis.duckdb.connect()
    one_moves_itself(lambda more: duck.read_parquet(in_parquet(more, tmp_path)), condition)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("condition", [">", "not", "structure of structures"])
def test_so_does_one_on_spark(condition: str, tmp_path: Path, spark_session: Any) -> None:
    backend = ibis.pyspark.connect(spark_session)
    one_moves_itself(lambda more: backend.read_parquet(in_parquet(more, tmp_path)), condition)


def test_numbers_beside_nan_are_counted_as_before(tmp_path: Path) -> None:
    table = ibis.duckdb.connect().read_parquet(in_parquet([], tmp_path))
    assert count(table.filter(_.x <= 10), TOWNS).counts.tolist() == [0, 1]
    assert count(table.filter(_.x.isnull()), TOWNS).counts.tolist() == [0, 500]


@pytest.mark.parametrize("name", ["datafusion", "mysql", "snowflake"])
def test_an_engine_that_is_not_tested_is_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DataFusion drops -0.0, and to MySQL f is F."""
    from dphist.sources.databases import opening

    monkeypatch.setattr(opening, "backend_of", lambda table: SimpleNamespace(name=name))
    table = ibis.duckdb.connect().create_table("t", pa.table({"x": [1]}))
    for expression in (table, table.filter(_.x > 0)):
        with pytest.raises(SourceError, match=f"on {name}.*Histogram"):
            count(expression, NUMBERS)
