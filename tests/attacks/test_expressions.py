"""An Ibis table is counted by its name alone, and its types are those that it declares."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from ibis import _

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

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


@pytest.mark.parametrize("name", ["datafusion", "mysql", "snowflake"])
def test_an_engine_that_is_not_tested_is_refused_by_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DataFusion drops -0.0, and to MySQL f is F."""
    from dphist.sources.databases import opening

    monkeypatch.setattr(opening, "backend_of", lambda table: SimpleNamespace(name=name))
    table = ibis.duckdb.connect().create_table("t", pa.table({"x": [1]}))
    for expression in (table, table.filter(_.x > 0)):
        with pytest.raises(SourceError, match=f"on {name}.*Histogram"):
            count(expression, NUMBERS)
