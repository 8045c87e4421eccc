"""A column of Python objects is read object by object: whoever comes with another kind changes nobody else's."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

DOMAIN = Domain([Nominal("x", ["a", "b"])])
# What Arrow takes for texts where it is handed nothing else.
TEXTS = [
    "a",
    b"a",
    bytearray(b"a"),
    memoryview(b"a"),
    np.str_("a"),
    np.bytes_(b"a"),
    pa.scalar("a", pa.large_string()),
]
ODD = [5, 2.5, Decimal(1), b"\xff", "\ud800", object(), pd.Timestamp(0), True, ["a"]]


def objects(values: list[Any]) -> Any:
    series = pd.Series([None] * len(values), dtype=object)
    for place, value in enumerate(values):
        series.iat[place] = value
    return series


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: type(text).__name__)
def test_texts_of_others_stay_texts(text: Any) -> None:
    for odd in ODD:
        frames = [pd.DataFrame({"x": objects([text] * 50 + more)}) for more in ([], [odd])]
        assert [count(frame, DOMAIN).counts.tolist() for frame in frames] == [[50, 0], [50, 0]]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: type(text).__name__)
def test_ids_of_others_stay_ids(text: Any) -> None:
    for odd in (5, 2.5, b"\xff", object()):
        ids = [text, "b"] * 20
        frames = [
            pd.DataFrame({"x": ["a"] * (40 + len(more)), "id": objects([*ids, *more])})
            for more in ([], [odd])
        ]
        few, more = (count(frame, DOMAIN, Unit(rows=1, id="id")).counts for frame in frames)
        assert few.tolist() == [2, 0]
        assert np.abs(more - few).sum() <= 1


def test_types_that_duckdb_has_not_are_refused_by_name(tmp_path: Path) -> None:
    """Of decimals in files that are too long it would read the first bytes as if they were all."""
    domain = Domain([Ordinal("x", range(10))])
    half = pa.table({"x": pa.array([np.float16(1)], pa.float16())})
    long = pa.table({"x": pa.array([Decimal(1)], pa.decimal256(60, 0))})
    for table in (half, long):
        with pytest.raises(SourceError, match="a type that cannot be read"):
            count(table, domain)
    with pytest.raises(SourceError, match="a type that cannot be read"):
        count(pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)}), domain)
    path = tmp_path / "long.parquet"
    pq.write_table(long, path)
    with pytest.raises(SourceError, match="x holds decimals of 60 digits"):
        count(str(path), domain)


FAR = [10**5000, -(10**5000), Decimal("1e99999999"), Decimal("-1e-99999999"), Decimal("1e999999999999")]


@pytest.mark.parametrize("column", ["x", "id"])
@pytest.mark.parametrize("far", FAR, ids=range(len(FAR)))
def test_a_number_too_long_to_be_written_out_is_one_row_without_a_cell(far: Any, column: str) -> None:
    """Python refused to write it out, or did so until the memory was full: everybody's rows were given up for it."""
    frame = pd.DataFrame({"x": objects([1, 2, 1]), "id": objects([1, 2, 3])})
    frame[column] = objects([1, 2, far])
    domain = Domain([Ordinal("x", range(1, 4))])
    assert count(frame, domain, Unit(rows=1, id="id")).counts.tolist() == [1, 1, 0]


def test_how_long_a_number_may_be_is_not_for_the_interpreter_to_say() -> None:
    """Python's own limit is a setting of the process; where it is off, a long number is nobody's id all the same."""
    limit = sys.get_int_max_str_digits()
    frame = pd.DataFrame({"x": [1, 2, 1], "id": objects([1, 2, 10**5000])})
    sys.set_int_max_str_digits(0)
    try:
        counted = count(frame, Domain([Ordinal("x", range(1, 4))]), Unit(rows=1, id="id"))
    finally:
        sys.set_int_max_str_digits(limit)
    assert counted.counts.tolist() == [1, 1, 0]


def test_ids_that_are_uuids_are_ids_as_objects_too() -> None:
    people = [UUID(int=1), UUID(int=1), UUID(int=2)]
    domain = Domain([Ordinal("x", range(2))])
    for ids in (people, [*people, "a"], [*people, str(UUID(int=2))]):
        frame = pd.DataFrame({"x": [1] * len(ids), "id": objects(ids)})
        distinct = len({str(each) for each in ids})
        assert count(frame, domain, Unit(rows=1, id="id")).counts.tolist() == [0, distinct]


class Broken:
    """What a reader of somebody's left among the records."""

    @property
    def ndim(self) -> int:
        raise ZeroDivisionError("12345")


FAR = [
    pa.array([2**30], pa.int32()).view(pa.date32())[0],
    pa.array([2**60], pa.int64()).view(pa.timestamp("s"))[0],
    pa.array([0], pa.timestamp("us", tz="Nowhere/Place"))[0],
    Broken(),
]


@pytest.mark.parametrize("odd", FAR, ids=lambda odd: str(getattr(odd, "type", "broken")))
def test_an_object_that_cannot_be_asked_is_a_row_without_a_cell_and_nobody(odd: Any) -> None:
    """Python's calendar ends long before Arrow's: its error told the value, and gave up everybody's rows for it."""
    for others in (["a", "b", "a"], ["a", 5, "a"]):
        ids = pd.DataFrame({"x": ["a"] * 4, "id": objects([*others, odd])})
        assert count(pd.DataFrame({"x": objects([*others, odd])}), DOMAIN).counts[0] == 2
        assert count(ids, DOMAIN, Unit(rows=1, id="id")).counts.tolist() == [2, 0]


@pytest.mark.parametrize("category", [False, True])
def test_one_complex_number_makes_nobody_elses_complex(category: bool) -> None:
    def frame(odd: list[complex]) -> pd.DataFrame:
        values = [1.0, 2.5, 2.0, None, 2.0**60, *odd]
        column = pd.Categorical(values) if category else values
        return pd.DataFrame({"age": column, "user": list(range(len(values)))})

    ages = Domain([Ordinal("age", edges=[0, 1.5, 2.25, 3])])
    people = Unit(rows=1, id="user")
    for unit in (Unit(), people):
        for odd in (1 + 2j, complex("nan"), complex(0, float("inf"))):
            assert (
                count(frame([]), ages, unit).counts.tolist()
                == count(frame([odd]), ages, unit).counts.tolist()
            )
    # As ids they are nobody, and whole numbers are who they were.
    users = Domain([Ordinal("user", range(9))])
    for odds in ([], [1 + 2j]):
        ids = frame(odds).drop(index=4)
        assert count(ids, users, Unit(rows=1, id="age")).counts.sum() == 2
