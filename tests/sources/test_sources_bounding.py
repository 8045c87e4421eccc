"""At most so many rows a person, chosen by that person's rows alone."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist.errors import InputError, SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.coded import coded
from dphist.sources.count import count_and_sum, keys_of, rows_of_people
from dphist.sources.duck import allowance
from dphist.sources.open import connect
from textbook import picked

DOMAIN = Domain([Ordinal("age", range(4)), Nominal("sex", ["F", "M"])])
row = st.tuples(
    st.sampled_from([None, 1, 2, 3, 4]),
    st.integers(-1, 4),
    st.sampled_from(["F", "M", None]),
    st.integers(0, 2),
)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    user, age, sex, extra = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "user": pa.array(user, pa.int64()),
            "age": pa.array(age, pa.int64()),
            "sex": pa.array(sex, pa.string()),
            "extra": pa.array(extra, pa.int64()),
        }
    )


def reference(given: pa.Table, rows: int) -> np.ndarray:
    """Each person by themselves, in plain Python."""
    people: dict[int, list[int]] = defaultdict(list)
    for line in given.to_pylist():
        if line["user"] is None or line["sex"] is None or not 0 <= line["age"] < 4:
            continue
        people[line["user"]].append(line["age"] * 2 + "FM".index(line["sex"]))
    counts = np.zeros(DOMAIN.size, dtype=np.int64)
    for person, cells in people.items():
        np.add.at(counts, picked(str(person), cells, rows), 1)
    return counts.reshape(DOMAIN.shape)


@settings(deadline=None, max_examples=25)
@given(st.lists(row, max_size=40), st.integers(1, 4))
def test_the_kept_rows_are_those_of_the_reference(rows: list[tuple[Any, ...]], limit: int) -> None:
    table = table_of(rows)
    counted = count(table, DOMAIN, Unit(rows=limit, id="user"))
    assert counted.counts.tolist() == reference(table, limit).tolist()


@settings(deadline=None, max_examples=25)
@given(st.lists(row, max_size=40), st.integers(1, 3), st.sampled_from([1, 2, 3, 4]))
def test_removing_a_person_takes_only_their_rows(rows: list[tuple[Any, ...]], limit: int, who: int) -> None:
    unit = Unit(rows=limit, id="user")
    everybody = count(table_of(rows), DOMAIN, unit).counts
    without = count(table_of([r for r in rows if r[0] != who]), DOMAIN, unit).counts
    alone = count(table_of([r for r in rows if r[0] == who]), DOMAIN, unit).counts
    assert np.array_equal(everybody, without + alone)
    assert alone.sum() <= limit


def test_identical_rows_count_up_to_the_limit() -> None:
    table = table_of([(1, 2, "F", 0)] * 10)
    assert count(table, DOMAIN, Unit(rows=3, id="user")).counts[2, 0] == 3


def test_rows_outside_do_not_use_up_the_limit() -> None:
    table = table_of(
        [(1, -1, "F", k) for k in range(20)] + [(1, 2, None, k) for k in range(20)] + [(1, 2, "F", 0)]
    )
    assert count(table, DOMAIN, Unit(rows=1, id="user")).counts[2, 0] == 1


def test_rows_of_nobody_are_dropped() -> None:
    table = table_of([(None, 1, "F", 0)] * 5 + [(7, 1, "F", 0)])
    assert count(table, DOMAIN, Unit(rows=4, id="user")).counts.sum() == 1
    floats = pa.table({"user": [float("nan"), float("nan"), 1.0], "age": [1, 1, 1], "sex": ["F", "F", "F"]})
    for source in (floats, ibis.memtable(floats)):
        assert count(source, DOMAIN, Unit(rows=4, id="user")).counts.sum() == 1


def test_an_id_that_is_not_there() -> None:
    with pytest.raises(SourceError, match="no column person"):
        count(table_of([(1, 1, "F", 0)]), DOMAIN, Unit(id="person"))


def test_the_id_may_be_text_or_an_attribute(tmp_path: Path) -> None:
    table = table_of([(1, 1, "F", 0), (1, 1, "M", 0), (2, 3, "F", 1)])
    by_sex = count(table, DOMAIN, Unit(rows=1, id="sex"))
    assert by_sex.counts.sum() == 2
    pq.write_table(table, tmp_path / "t.parquet")
    assert count(tmp_path / "t.parquet", DOMAIN, Unit(rows=1, id="sex")) == by_sex


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([0, -1, 2**63 - 1, -(2**63), 7], pa.int64()),
        pa.array([0, 1, 2, 100, 255], pa.uint8()),
        pa.array([0, 1, 2**63, 2**64 - 1, 2**53 + 1], pa.uint64()),
        pa.array([0.0, -0.0, 1.0, 2.0**52, -5.0], pa.float64()),
        pa.array([Decimal("1.00"), Decimal("2.50"), Decimal("-3.00"), Decimal("100.00"), Decimal("0.00")]),
        pa.array(["", "a", "A", "a\0", "a\0b"]),
        pa.array(["\0", "\0\0", "\x01", "ab", "a\x01"]),
        pa.array(["same start of a long id, 1", "same start of a long id, 2", "é", "e\u0301", "\U0001f600"]),
        pa.array(["1", "01", "1.0", " 1", "+1"]),
        pa.array([date(2024, 1, 1), date(1, 1, 1), date(9999, 12, 31), date(2024, 1, 2), date(1970, 1, 1)]),
        pa.array([True, False, None, True, False]),
        pa.array(["ann", "bob", "eve", "joe", "sue"]).dictionary_encode(),
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_ids_of_every_type_keep_the_rows_of_the_reference(ids: Any, limit: int) -> None:
    draw = np.random.default_rng(limit)
    places, ages = draw.integers(0, 5, 120), draw.integers(0, 9, 120)
    people: dict[str, list[int]] = defaultdict(list)
    for place, age in zip(places, ages, strict=True):
        value = ids[int(place)].as_py()
        if isinstance(value, bool):
            value = str(value).lower()
        elif isinstance(value, float | Decimal):
            value = str(int(value)) if value == int(value) else None
        if value is not None:
            people[str(value)].append(int(age))
    expected = np.zeros(9, dtype=np.int64)
    for person, cells in people.items():
        np.add.at(expected, picked(person, cells, limit), 1)
    table = pa.table({"user": ids.take(pa.array(places)), "age": ages})
    found = count(table, Domain([Ordinal("age", range(9))]), Unit(rows=limit, id="user"))
    np.testing.assert_array_equal(found.counts, expected)


def test_the_machine_is_respected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    monkeypatch.setenv("DPHIST_MEMORY", "300MB")
    monkeypatch.setenv("DPHIST_SPILL", str(tmp_path / "spill"))
    monkeypatch.setenv("DPHIST_THREADS", "1")
    connection = connect()
    settings = ("memory_limit", "temp_directory", "threads")
    ((memory, spill, threads),) = connection.execute(
        "SELECT " + ", ".join(f"current_setting('{name}')" for name in settings)
    ).fetchall()
    assert (memory, spill, threads) == ("286.1 MiB", str(tmp_path / "spill"), 1)
    monkeypatch.setenv("DPHIST_MEMORY", "plenty")
    with pytest.raises(InputError, match="DPHIST_MEMORY"):
        connect()
    monkeypatch.delenv("DPHIST_MEMORY")
    monkeypatch.setenv("DPHIST_PROGRESS", "1")
    monkeypatch.setattr(allowance, "_PATIENCE", 0.0)
    count(table_of([(1, 2, "F", 0)] * 10), DOMAIN)
    said = capsys.readouterr()
    assert said.out == ""


def test_half_a_number_is_nobody_whatever_holds_it(tmp_path: Path) -> None:
    """Else 1.4 and 1 would be one person in a column of floats and two in one of decimals."""
    ages, unit = {"age": [1, 1, 1], "sex": ["F"] * 3}, Unit(rows=3, id="user")
    for ids in (pa.array([1.4, 1.0, 2.0]), pa.array([Decimal("1.4"), Decimal(1), Decimal(2)])):
        table = pa.table({"user": ids, **ages})
        pq.write_table(table, tmp_path / "t.parquet")
        for source in (table, table.to_pandas(), tmp_path / "t.parquet"):
            assert count(source, DOMAIN, unit).counts.sum() == 2


def test_nan_among_objects_is_nobody() -> None:
    frame = pd.DataFrame({"user": [float("nan"), 1, "x"], "age": [1] * 3, "sex": ["F"] * 3}, dtype=object)
    assert count(frame, DOMAIN, Unit(rows=3, id="user")).counts.sum() == 2


def test_ids_that_floats_cannot_tell_apart_are_refused_by_every_door() -> None:
    """2⁵³ and 2⁵³ + 1 are one float: two people would share a limit, or one have two."""
    table = pd.DataFrame({"user": [2.0**53, 1.5, None], "age": [1, 2, 3], "page": ["a", "b", "c"]})
    domain, unit = Domain([Ordinal("age", range(5))]), Unit(rows=1, id="user")
    for door in (
        lambda: count(table, domain, unit),
        lambda: coded(table, domain, unit).tables([(0,)]),
        lambda: count_and_sum(table, domain, unit, [Quantity(Measure("age", 0, 5))]),
        lambda: keys_of(table, Domain([Nominal("page", discover=True)]), unit),
        lambda: rows_of_people(table, "user"),
    ):
        with pytest.raises(SourceError, match=r"floats of 2\^53"):
            door()
