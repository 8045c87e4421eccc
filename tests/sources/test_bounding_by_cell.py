"""At most so many rows in each of at most so many cells of a person: on every engine the same, fair, and one's own."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engines import engine, postgres  # noqa: F401 -- fixtures
from test_sources_bounding import DOMAIN, row, table_of

from dphist import publish
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.measure import Measure, Quantity
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.coded import coded
from dphist.sources.count import count_and_sum

UNITS = [Unit(cells=1, id="user"), Unit(cells=2, per_cell=1, id="user"), Unit(cells=3, per_cell=2, id="user")]


def start(person: str) -> int:
    digest = hashlib.md5(b"dphist|" + person.encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") >> 4


def walk(members: list[Any], most: int, first: int) -> list[Any]:
    """Every n-th seat of a circle on which each of n members has so many seats, from a seat on."""
    if len(members) <= most:
        return members
    return [each for each in members for _ in range(most)][first % len(members) :: len(members)]


def reference(lines: list[dict[str, Any]], unit: Unit, value: str | None = None) -> tuple[Any, Any]:
    """Each person by themselves, from the statement of the rule and not from the product's code."""
    people: dict[Any, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        if line["user"] is None or line["sex"] not in ("F", "M") or not 0 <= line["age"] < 4:
            continue
        people[line["user"]][line["age"] * 2 + "FM".index(line["sex"])].append(line[value] if value else 0)
    counts, sums = np.zeros(DOMAIN.size, dtype=np.int64), np.zeros(DOMAIN.size, dtype=np.int64)
    for person, cells in people.items():
        first = start(str(person))
        for cell in walk(sorted(cells), unit.cells or 1, first):
            chosen = walk(sorted(cells[cell]), unit.per_cell or 1, first // len(cells))
            counts[cell] += len(chosen)
            sums[cell] += sum(chosen)
    return counts.reshape(DOMAIN.shape), sums.reshape(DOMAIN.shape)


@settings(deadline=None, max_examples=25)
@given(st.lists(row, max_size=60), st.integers(1, 4), st.integers(1, 3))
def test_the_kept_rows_are_those_of_the_rule(rows: list[tuple[Any, ...]], cells: int, per_cell: int) -> None:
    unit, table = Unit(cells=cells, per_cell=per_cell, id="user"), table_of(rows)
    expected, _ = reference(table.to_pylist(), unit)
    assert count(table, DOMAIN, unit).counts.tolist() == expected.tolist()


@settings(deadline=None, max_examples=15)
@given(st.lists(row, max_size=60), st.sampled_from(UNITS), st.sampled_from([1, 2, 3, 4]))
def test_removing_a_person_takes_only_their_rows_and_no_more_than_both_norms(
    rows: list[tuple[Any, ...]], unit: Unit, who: int
) -> None:
    everybody = count(table_of(rows), DOMAIN, unit).counts
    without = count(table_of([r for r in rows if r[0] != who]), DOMAIN, unit).counts
    moved = everybody - without
    assert np.array_equal(moved, count(table_of([r for r in rows if r[0] == who]), DOMAIN, unit).counts)
    assert moved.sum() <= unit.steps
    assert (moved**2).sum() <= unit.squared


def people(rows: int, seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    # Few cells that hold many of a person's rows, and values that tell rows of one cell apart.
    return pa.table(
        {
            "user": pa.array(random.integers(0, 40, rows), pa.int64()),
            "age": pa.array(random.choice([0, 0, 0, 1, 2, 3, 7], rows), pa.int64()),
            "sex": pa.array(random.choice(["F", "F", "M", "x"], rows), pa.string()),
            "cost": pa.array(random.integers(0, 50, rows), pa.int64()),
        }
    )


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_every_engine_keeps_the_same_rows_by_cells(engine: Any, unit: Unit) -> None:  # noqa: F811
    table = people(600)
    put = engine.put(table)
    expected, sums = reference(table.to_pylist(), unit, "cost")
    assert np.array_equal(count(put, DOMAIN, unit).counts, expected)
    assert np.array_equal(coded(put, DOMAIN, unit).tables([(0, 1)])[0], expected)
    both = count_and_sum(put, DOMAIN, unit, [Quantity(Measure("cost", 0, 49))])
    assert np.array_equal(both[0].counts, expected)
    assert np.array_equal(np.asarray(both[1][0]).reshape(DOMAIN.shape), sums)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_every_engine_limits_what_the_kept_cells_of_a_person_add_up_to(engine: Any, unit: Unit) -> None:  # noqa: F811
    table = people(600)
    limited = [Quantity(Measure("cost", 0, 49, per_person=20))]

    def summed(source: Any) -> Any:
        return np.asarray(count_and_sum(source, DOMAIN, unit, limited)[1][0])

    everybody = summed(engine.put(table))
    assert np.array_equal(everybody, summed(table))
    users = np.asarray(table.column("user").to_pylist())
    for who in [each for each in dict.fromkeys(users.tolist()) if each is not None][:3]:
        alone = summed(engine.put(table.filter(pa.array(users == who))))
        others = summed(engine.put(table.filter(pa.array(users != who))))
        assert 0 < np.abs(alone).sum() <= 20
        assert np.array_equal(everybody, others + alone)


def test_cells_and_rows_are_kept_fairly() -> None:
    """Six cells of three rows each; two rows in each of two cells are kept: every row with probability 2/6 · 2/3."""
    domain, size = Domain([Ordinal("cell", range(6))]), 6000
    ids = np.repeat(np.arange(size), 18)
    table = pa.table(
        {
            "user": ids,
            "cell": np.tile(np.repeat(np.arange(6), 3), size),
            "cost": np.tile([1, 10, 100], 6 * size),
        }
    )
    histogram, sums = count_and_sum(
        table, domain, Unit(cells=2, per_cell=2, id="user"), [Quantity(Measure("cost", 0, 100))]
    )
    cells = histogram.counts / 2
    assert cells.sum() == 2 * size
    # Negatively correlated within a person, so this chi-square is conservative.
    assert ((cells - size / 3) ** 2 / (size / 3)).sum() < 25
    # Each of the three values stands in two thirds of the kept cells: no correlation with which cells are kept.
    kept = size / 3
    for total in np.asarray(sums[0]).ravel():
        assert abs(total - kept * 111 * 2 / 3) < 6 * 50 * kept**0.5


def test_cells_are_said_in_words_and_published_for_less_noise(tmp_path: Any) -> None:
    unit = Unit.parse("cells=3, per_cell=2, id=user")
    assert unit == Unit.parse({"cells": 3, "per_cell": 2, "id": "user"}) == UNITS[2]
    table = people(300)
    release = publish(
        table, DOMAIN, rho=10**6, mechanism="gaussian", unit="cells=3, per_cell=2, id=user", allow_dropped=1
    )
    assert np.allclose(release.counts, reference(table.to_pylist(), unit)[0])
    assert "at most 2 in each of 3 cells" in release.guarantee.describe()


def test_through_sqlite_coded_records_are_bounded_and_those_without_a_cell_left_out(tmp_path: Any) -> None:
    connection = ibis.sqlite.connect(tmp_path / "people.db")
    rows = [(user, age) for user in range(5) for age in (1, 2, 3, 1000)]
    table = pa.table({"user": [user for user, _ in rows], "age": [age for _, age in rows]})
    put = connection.create_table("people", table)
    # As many cells as a byte tells apart: a code of −1 would be the last of them.
    domain = Domain([Ordinal("age", range(256))])
    for unit, kept in (
        (Unit(), 15),
        (Unit(rows=2, id="user"), 10),
        (Unit(id="user", cells=1, per_cell=1), 5),
    ):
        (found,) = coded(put, domain, unit).tables([(0,)])
        assert found.sum() == kept
        assert found.tolist() == count(table, domain, unit).counts.tolist()
        assert found[[0, 255]].sum() == 0
    words = connection.create_table("words", pa.table({"word": ["w1", "none of these", "w2", None]}))
    named = Domain([Nominal("word", [f"w{i}" for i in range(256)])])
    (found,) = coded(words, named).tables([(0,)])
    assert (found.sum(), found[[0, 255]].sum()) == (2, 0)
