"""A stream of batches can be read once; whoever has to read it several times holds it."""

from __future__ import annotations

import gc
import weakref
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.publishing.suggest import suggest
from dphist.sources import coded as codes
from dphist.sources import open as opening
from dphist.sources.coded import Passes, coded

NAMES = [f"q{place}" for place in range(20)]
DOMAIN = dphist.Domain([dphist.Ordinal(name, range(3)) for name in NAMES])


def records() -> pa.Table:
    return pa.table({name: np.arange(3000) % 3 for name in NAMES})


def test_passes_over_a_stream_see_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where codes are not kept, every table is another pass: all but the first had counted nobody."""
    monkeypatch.setattr(codes, "_KEPT", 10)
    held = coded(records().to_reader(), DOMAIN)
    assert isinstance(held, Passes)
    for _ in range(2):
        (table,) = held.tables([(0, 1)])
        assert table.tolist() == [[1000, 0, 0], [0, 1000, 0], [0, 0, 1000]]


def test_bounds_are_learned_from_a_stream() -> None:
    table = pa.table({name: np.tile(np.arange(20, 60), 500) for name in ("hours", "days")})
    found = suggest(table.to_reader(), ["hours", "days"], epsilon=2)
    assert [Fraction(measure.high) >= 57 for measure in found.measures] == [True, True]


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "frame"])
def test_a_source_that_was_read_leaves_no_database_behind(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB kept the rows of a text file, and these its connection: each publication cost 2.5 MB for ever."""
    rows = {"csv": b"sex,hours\n" + b"F,7.5\nM,3\n" * 3000, "json": b'{"sex": "F", "hours": 7.5}\n' * 3000}
    path: Any = tmp_path / f"records.{kind}"
    table = pa.table({"sex": ["F", "M"] * 3000, "hours": [7.5, 3.0] * 3000})
    if kind in rows:
        path.write_bytes(rows[kind])
    elif kind == "parquet":
        pq.write_table(table, path)
    else:
        path = table
    alive: list[weakref.ref[Any]] = []
    connect = opening.connect

    def noted(*given: Any) -> Any:
        connection = connect(*given)
        alive.append(weakref.ref(connection))
        return connection

    monkeypatch.setattr(opening, "connect", noted)
    hours = dphist.Ordinal("hours", edges=[step / 8 for step in range(200)])
    domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"]), hours])
    for unit in (None, "rows=2, id=hours"):
        dphist.publish(path, domain, 1, "laplace", unit=unit, unattended=True, allow_dropped=1)
    gc.collect()
    assert len(alive) == 2
    assert [each() for each in alive] == [None, None]
