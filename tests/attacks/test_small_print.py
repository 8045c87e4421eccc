"""What only one line of the code stands for, and no attack from outside tells: bugs planted there went unseen."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from typing import Any

import ibis
import numpy as np
import pytest

from dphist.inference import guaranteed
from dphist.kernels.delimited import FINE, split_fields
from dphist.mechanisms import Marginals
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.sources import count
from dphist.sources.files.lines import readable
from dphist.sources.frames import _id, _text
from dphist.sources.people import whole_text
from dphist.testing import run
from dphist.tracebacks import closed

DOMAIN = Domain([Ordinal("age", range(10))])
ONE = Unit(rows=1, id="user")


def test_an_exception_leaves_a_door_without_those_that_it_came_from():
    @closed
    def door(counts: list[int]) -> None:
        try:
            raise KeyError(counts)
        except KeyError as error:
            raise ValueError("no") from error

    with pytest.raises(ValueError, match="no") as told:
        door([987654])
    assert told.value.__cause__ is None
    assert told.value.__context__ is None


def test_ids_are_written_in_one_way():
    alike = (7, 7.0, np.float64(7), np.int8(7), Decimal(7), Decimal("7.00"))
    assert {_id("user", value) for value in alike} == {"7"}
    assert _text(float("nan")) is None
    assert _text(np.float64("nan")) is None
    assert _id("user", 2.5) is None
    # A float stands for one whole number only below 2^53.
    assert whole_text(2.0**53 - 1) == "9007199254740991"
    assert whole_text(2.0**53) is None
    assert whole_text(-(2.0**60)) is None


def test_a_line_that_is_no_text_is_left_out_whole():
    assert readable(b"1,a\rb\xff\n2,c\n") == b"2,c\n"
    assert readable(b"\xff") == b""


def test_a_line_of_too_few_fields_makes_no_row():
    text = np.frombuffer(b"1,2\n3\n4,5\n", dtype=np.uint8)
    data, ends = np.zeros((2, 16), dtype=np.uint8), np.zeros((2, 8), dtype=np.int64)
    missing = np.zeros((2, 8), dtype=np.bool_)
    places = np.array([0, 1], dtype=np.int64)
    assert split_fields(text, ord(","), False, 1 << 20, places, data, ends, missing) == (2, FINE)
    assert bytes(data[0, ends[0, 1] : ends[0, 2]]) == b"4"


def test_rows_of_nobody_are_not_counted_through_ibis(tmp_path):
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (user TEXT, age INTEGER)")
        rows = [("a", 1), ("a", 1), (None, 2), (None, 2), (None, 3)]
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
    table = ibis.sqlite.connect(tmp_path / "t.db").table("t")
    assert count(table, DOMAIN, ONE).counts.tolist() == [0, 1] + [0] * 8


def test_a_rate_without_a_moment_generating_function_costs_without_end():
    # Variance, fourth moment and heaviest draw of a sum; at rate 3 the heaviest draw, of weight 1/2, has none. Where
    # boxes could be asked for again nothing was computed beyond 0.9 of that.
    noise = np.array([[1.0, 1.0, 0.5, 0.0], [1.0, 1.0, 0.5, 0.1]])
    costs = guaranteed._costs(np.array([[1.0, 1.9, 3.0]]), noise)
    assert np.isfinite(costs).tolist() == [[True, True, False], [True, False, False]]
    assert costs[1, 0] > costs[0, 0]


def test_what_was_not_measured_has_no_variance():
    domain = Domain([Ordinal(name, range(3)) for name in "abc"])
    histogram = Histogram(domain, np.full(domain.shape, 40))
    errors: Any = run(Marginals(tables=((0, 1), (1, 2))), histogram, 1, seed=3).errors
    spread = errors.spread(Workload.marginals(domain, [["a", "c"]]))
    assert np.isnan(spread.variance).all()
    assert np.isnan(spread.largest).all()
    assert np.isfinite(errors.spread(Workload.marginals(domain, [["a", "b"]])).variance).all()


@pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT", "UBIGINT"])
def test_wide_numbers_beside_a_long_list_are_told_apart(kind: str) -> None:
    """They were handed over as floats, or not at all."""
    large = 2**53
    duck = ibis.duckdb.connect()
    duck.raw_sql(f"CREATE TABLE t AS SELECT CAST(range + {large} AS {kind}) AS x FROM range(80)")
    duck.raw_sql(f"INSERT INTO t VALUES (CAST({2**64 - 1} AS {kind}))")
    domain = Domain([Nominal("x", list(range(large, large + 80)), other=True)])
    assert count(duck.table("t"), domain).counts.tolist() == [1] * 81
