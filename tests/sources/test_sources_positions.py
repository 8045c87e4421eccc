"""Counting by position instead of by hash: the same counts, and never more room than there is."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.sources import count
from dphist.sources.duck import allowance, duck


@pytest.fixture
def records(tmp_path):
    """Enough rows for 16-bit positions, with values outside the domain and missing ones."""
    draw = np.random.default_rng(0)
    rows = 200_000
    age, place = draw.integers(-3, 203, rows), draw.integers(0, 260, rows)
    sex = np.array(["F", "M", "X"])[draw.integers(0, 3, rows)]
    missing = draw.random(rows) < 0.01
    path = tmp_path / "records.parquet"
    pq.write_table(pa.table({"age": pa.array(age, mask=missing), "place": place, "sex": sex}), path)
    inside = ~missing & (age >= 0) & (age < 200) & (place < 250) & (sex != "X")
    truth = np.zeros((200, 250, 2), dtype=np.int64)
    np.add.at(truth, (age[inside], place[inside], (sex[inside] == "M").astype(int)), 1)
    return str(path), truth


DOMAIN = Domain([Ordinal("age", range(200)), Ordinal("place", range(250)), Nominal("sex", ["F", "M"])])


def test_counts_are_those_of_numpy(records):
    path, truth = records
    np.testing.assert_array_equal(count(path, DOMAIN).counts, truth)


def test_it_makes_no_difference_to_the_counts(records, monkeypatch):
    path, truth = records
    asked = []
    monkeypatch.setattr(duck, "count_by_position", lambda connection, rows: asked.append(rows))
    np.testing.assert_array_equal(count(path, DOMAIN).counts, truth)
    assert asked == [200_000]


@pytest.mark.parametrize(
    ("rows", "threads", "memory", "bits"),
    [
        (100, 2, "4GB", 12),  # few rows: as DuckDB has it
        (1 << 17, 2, "4GB", 16),  # fewer positions than rows
        (1 << 40, 2, "4GB", 22),  # never more than that
        (1 << 40, 64, "4GB", 18),  # many threads share the room
        (1 << 40, 2, "64MB", 17),  # and it is an eighth of what DuckDB may take
    ],
)
def test_positions_fit_the_machine(rows, threads, memory, bits, monkeypatch):
    monkeypatch.setattr(allowance, "available_memory", lambda: 1 << 40)
    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    connection.execute(f"SET memory_limit = '{memory}'")
    allowance.count_by_position(connection, rows)
    ((found,),) = connection.execute("SELECT current_setting('perfect_ht_threshold')").fetchall()
    assert int(found) == bits
