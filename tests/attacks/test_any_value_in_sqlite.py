"""SQLite keeps any value in any column: a row with one of another type is a row without it, and moves nobody else's."""

from __future__ import annotations

from typing import Any

import ibis
import numpy as np
import pytest

from dphist.errors import SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count

WORDS = ["ann", "bob", *(f"name{place}" for place in range(80))]
CROWD: dict[str, tuple[list[Any], list[Domain]]] = {
    "INTEGER": (
        [1, 2, 3, 4, 5, None],
        [
            Domain([Ordinal("x", range(10), other=True)]),
            Domain([Ordinal("x", edges=[0, 2.5, 5])]),
            Domain([Nominal("x", [1, 2, 3])]),
            Domain([Nominal("x", list(range(80)), other=True)]),
        ],
    ),
    "REAL": (
        [1.0, 2.5, 3.0, None],
        [
            Domain([Ordinal("x", range(10))]),
            Domain([Ordinal("x", edges=[0, 2.5, 5], other=True)]),
            Domain([Nominal("x", list(range(80)), other=True)]),
        ],
    ),
    "TEXT": (
        ["ann", "bob", "name7", "x", None],
        [Domain([Nominal("x", WORDS[:3], other=True)]), Domain([Nominal("x", WORDS, other=True)])],
    ),
    "BOOLEAN": ([0, 1, None], [Domain([Nominal("x", [False, True], other=True)])]),
    "DATE": (
        ["2020-01-02", "2020-01-05", None],
        [Domain([Ordinal("x", dates=("2020-01-01", "2020-01-12"))])],
    ),
    "TIMESTAMP": (
        ["2020-01-02 10:00:00", "2020-01-05 00:00:00.5", None],
        [Domain([Ordinal("x", dates=("2020-01-01", "2020-01-12"))])],
    ),
}
ODD: list[Any] = [
    "x", "", "1", 7, -5, 2**62, 1e300, float("inf"), -0.0, 2.5, b"", b"\xff", b"ann", "a\0b", "nan", "1e999",
    "10000-01-01", "-4713-01-01", "2020-13-45", "2020-01-03 25:00", "2020-01-03T10:00:00Z", "now", "2459000.5",
]  # fmt: skip


def lite(kind: str, values: list[Any], odd: list[Any]) -> Any:
    backend = ibis.sqlite.connect()
    backend.con.execute(f"CREATE TABLE t (user TEXT, x {kind})")
    rows = [(f"u{place % 7}", value) for place, value in enumerate(values * 6)]
    backend.con.executemany("INSERT INTO t VALUES (?, ?)", rows)
    for value in odd:
        # Bytes as a text, too: what is there need be no UTF-8.
        backend.con.execute("INSERT INTO t VALUES ('odd', ?)", (value,))
        if isinstance(value, bytes):
            backend.con.execute("INSERT INTO t VALUES ('odd', CAST(? AS TEXT))", (value,))
    return backend.table("t")


@pytest.mark.parametrize("kind", CROWD)
def test_a_value_of_another_type(kind: str) -> None:
    values, domains = CROWD[kind]
    for domain in domains:
        for unit in (Unit(), Unit(rows=2, id="user")):
            before = count(lite(kind, values, []), domain, unit).counts
            assert before.sum() >= 12
            # One by one without an id, since every row is a step; all at once where they are one person's.
            for odd in [ODD] if unit.id else [[each] for each in ODD]:
                after = count(lite(kind, values, odd), domain, unit).counts
                most = 2 if unit.id or isinstance(odd[0], bytes) else 1
                assert np.abs(after - before).sum() <= most, (domain, odd)


def test_half_a_number_is_none_of_the_whole_ones() -> None:
    assert count(lite("INTEGER", [2], [2.5]), Domain([Ordinal("x", range(10))])).counts.sum() == 6


def test_ids_of_another_type_are_nobody() -> None:
    """Beyond 2^63 SQLite makes floats of whole numbers, of which one may stand for several people."""
    domain, unit = Domain([Ordinal("age", range(9))]), Unit(rows=1, id="x")
    for kind, ids, people in (
        ("BIGINT", [1, 2, 2**63, 2**63 + 1, None], 2),
        ("BOOLEAN", [0, 1, None, "x", 2.5], 2),
        ("DATE", ["2020-01-02"], 1),
        ("TIMESTAMP", ["2020-01-02 10:00:00"], None),
        ("REAL", [1.0, "x", "y", 2.0], 2),
    ):
        backend = ibis.sqlite.connect()
        backend.con.execute(f"CREATE TABLE t (x {kind}, age INTEGER)")
        for each in ids:
            # Written out: Python's own numbers go no further than SQLite's.
            said = "NULL" if each is None else repr(each)
            backend.con.execute(f"INSERT INTO t VALUES ({said}, 1), ({said}, 2)")
        if people is None:
            with pytest.raises(SourceError, match="make it text"):
                count(backend.table("t"), domain, unit)
        else:
            assert count(backend.table("t"), domain, unit).counts.sum() == people


def test_a_column_of_no_type_is_refused_whoever_comes_first() -> None:
    domain = Domain([Nominal("x", ["1", "2"])])
    for first in (1, "1", None):
        backend = ibis.sqlite.connect()
        backend.con.execute("CREATE TABLE t (user INTEGER, x)")
        backend.con.executemany("INSERT INTO t VALUES (1, ?)", [(first,), ("2",), (2,)])
        backend.con.execute("CREATE VIEW shown AS SELECT user, x || '' AS x FROM t")
        for name in ("t", "shown"):
            with pytest.raises(SourceError, match="declares no type"):
                count(backend.table(name), domain)
        users = Domain([Ordinal("user", range(3))])
        assert count(backend.table("t"), users).counts.sum() == 3
