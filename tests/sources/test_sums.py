"""Clipped values in whole steps, added up in every cell: the same on every engine, within the bounds."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_engines import engine, postgres  # noqa: F401 -- fixtures

from dphist.errors import InputError, SourceError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.measure import Measure, Quantity, check_measures
from dphist.model.unit import Unit
from dphist.sources.coded import coded
from dphist.sources.count import count, count_and_sum
from dphist.sources.engine import Tallied
from dphist.sources.open import connect
from textbook import picked

DOMAIN = Domain([Ordinal("age", range(4)), Nominal("sex", ["F", "M"])])
COST = Measure("cost", "-10", 50, step="0.5")
FILLED = Measure("gain", 0, 1000, missing=10)


def records(seed: int = 0, rows: int = 300) -> pa.Table:
    random = np.random.default_rng(seed)
    cost = random.normal(20, 30, rows).round(2)
    costs = [
        None if i % 17 == 0 else math.nan if i % 19 == 0 else math.inf if i % 23 == 0 else float(v)
        for i, v in enumerate(cost)
    ]
    gains = [None if i % 11 == 0 else int(v) for i, v in enumerate(random.integers(-100, 3000, rows))]
    return pa.table(
        {
            "user": pa.array(random.integers(0, 40, rows), pa.int64()),
            "age": pa.array(random.integers(-1, 5, rows), pa.int64()),
            "sex": pa.array([["F", "M", None][i] for i in random.integers(0, 3, rows)], pa.string()),
            "cost": pa.array(costs, pa.float64()),
            "gain": pa.array(gains, pa.int64()),
        }
    )  # fmt: skip


def steps(measure: Measure, value: float | None) -> int | None:
    """What a row adds, from the statement and not from the product's code."""
    if value is None or math.isnan(value):
        return None if measure.missing is None else int(measure.missing / measure.step)  # type: ignore[operator]
    if value >= measure.high:  # type: ignore[operator]
        return measure.highest
    if value <= measure.low:  # type: ignore[operator]
        return measure.lowest
    return math.floor(value * float(1 / measure.size) + 0.5)


def expected(table: pa.Table, unit: Unit, quantities: list[Quantity]) -> tuple[np.ndarray, list[np.ndarray]]:
    people: dict[Any, list[Any]] = defaultdict(list)
    for i, row in enumerate(table.to_pylist()):
        values: list[Any] = [steps(q.measure, row[q.measure.source]) for q in quantities]
        if not 0 <= row["age"] < 4 or row["sex"] is None or None in values:
            continue
        amounts = [
            (v - q.measure.middle) ** 2 if q.squared else v for v, q in zip(values, quantities, strict=True)
        ]
        person = i if unit.id is None else row["user"]
        people[person].append((2 * row["age"] + "FM".index(row["sex"]), *amounts))
    counts, sums = np.zeros(8, dtype=np.int64), [np.zeros(8, dtype=np.int64) for _ in quantities]
    for person, rows in people.items():
        for place, quantity in enumerate(quantities):
            kept: list[Any] = picked(str(person), sorted(rows), unit.rows) if unit.id else rows
            whole = sum(abs(row[1 + place]) for row in kept)
            for row in kept:
                value = row[1 + place]
                if quantity.measure.per_person is not None and whole > quantity.measure.limit:
                    value = int(math.copysign(abs(value) * quantity.measure.limit // whole, value))
                sums[place][row[0]] += value
        for row in kept:
            counts[row[0]] += 1
    return counts.reshape(4, 2), [total.reshape(4, 2) for total in sums]


def check(source: Any, table: pa.Table, unit: Unit, quantities: list[Quantity]) -> None:
    histogram, sums = count_and_sum(source, DOMAIN, unit, quantities)
    counts, wanted = expected(table, unit, quantities)
    assert histogram.counts.tolist() == counts.tolist()
    for found, right in zip(sums, wanted, strict=True):
        assert found.tolist() == right.tolist()


ASKED = [Quantity(COST), Quantity(COST, squared=True), Quantity(FILLED)]
LIMITED = [Quantity(Measure("cost", "-10", 50, step="0.5", per_person=60)), Quantity(FILLED)]
BOUND = Unit(rows=3, id="user")


def test_every_engine_adds_up_the_same(engine: Any) -> None:  # noqa: F811
    table = records()
    source = engine.put(table)
    check(source, table, Unit(), ASKED)
    check(source, table, BOUND, ASKED)
    check(source, table, BOUND, LIMITED)


def test_the_smallest_of_numbers_is_nothing_in_large_steps(engine: Any) -> None:  # noqa: F811
    """Its product with one over the step is too small for a float: PostgreSQL gave the whole table up for it."""
    domain = Domain([Nominal("sex", ["F", "M"])])
    costs = [5e-324, -5e-324, 249.9, -250.0, 500.0, 1e308, 3000.0]
    table = pa.table({"sex": ["F"] * len(costs), "cost": pa.array(costs, pa.float64())})
    for step in (1000, 10**9):
        quantity = Quantity(Measure("cost", -step, 2 * step, step=step))
        _, (found,) = count_and_sum(engine.put(table), domain, Unit(), [quantity])
        wanted = [math.floor(min(max(cost, -step), 2 * step) / step + 0.5) for cost in costs]
        assert found.tolist() == [sum(wanted), 0]


@pytest.mark.parametrize("unit", [Unit(), Unit(id="user")], ids=["row", "person"])
@pytest.mark.parametrize("other", [False, True])
def test_rows_without_a_value_are_among_those_that_are_not_counted(
    engine: Any,  # noqa: F811
    unit: Unit,
    other: bool,
) -> None:
    """Of rows alone PostgreSQL and Spark left them out of all: no stop before paying, and too few of them told."""
    domain = Domain([Nominal("sex", ["F", "M"], other=other)])
    table = pa.table(
        {
            "sex": ["F", "F", "M", "x", "F", None],
            "cost": pa.array([1.0, None, 2.0, 3.0, None, None], pa.float64()),
            "user": ["a", "b", "c", "d", None, "f"],
        }
    )
    for measure, lost in ((COST, True), (Measure("cost", -10, 50, missing=0), False)):
        source = engine.put(table)
        seen = Tallied(source)
        count_and_sum(seen, domain, unit, [Quantity(measure)])
        # Of the six the second, the fifth and the last lack a value; the fourth and the last a sex, the fifth a user.
        without = {1, 4, 5} if lost else set()
        without |= set() if other else {3, 5}
        without |= {4} if unit.id else set()
        assert (seen.tally.rows, seen.tally.dropped) == (6, len(without))
    nothing = ({3, 5} if not other else set()) | ({4} if unit.id else set())
    for read in (count, coded):
        seen = Tallied(source)
        read(seen, domain, unit)
        assert (seen.tally.rows, seen.tally.dropped) == (6, len(nothing))


def test_files_and_frames_add_up_the_same(tmp_path: Path) -> None:
    table = records(1)
    frame = table.to_pandas()
    pq.write_table(table, tmp_path / "t.parquet")
    # Written as they are read: an infinity is a number, nothing is nothing.
    frame.to_csv(tmp_path / "t.csv", index=False, na_rep="")
    lines = [
        {k: (repr(v) if isinstance(v, float) and not math.isfinite(v) else v) for k, v in row.items()}
        for row in table.to_pylist()
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    connection = connect()
    connection.register("t", table)
    connection.execute(f"ATTACH '{tmp_path}/t.duckdb' AS d; CREATE TABLE d.t AS SELECT * FROM t; DETACH d")
    for source in (
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        tmp_path / "t.jsonl",
        f"{tmp_path}/t.duckdb::t",
        frame,
        pd.DataFrame(table.to_pylist(), dtype=object),
        ibis.memtable(table),
    ):
        for unit in (Unit(), BOUND):
            check(source, table, unit, ASKED)
        check(source, table, BOUND, LIMITED)


def test_one_record_moves_one_cell_by_at_most_its_reach() -> None:
    """Brute force: every odd value a row can have, added to a table and taken away again."""
    domain = Domain([Nominal("sex", ["F", "M"])])
    odd = [
        0.0,
        -0.0,
        1e308,
        -1e308,
        5e-324,
        math.inf,
        -math.inf,
        math.nan,
        None,
        2.0**53,
        0.25,
        49.75,
        50.0,
        -10.0,
    ]
    base = pa.table({"sex": ["F", "M"], "cost": pa.array([3.0, 4.5], pa.float64())})
    for centre in (0, COST.middle):
        quantity = Quantity(COST, centre=centre)
        before = count_and_sum(base, domain, Unit(), [quantity])
        for value in odd:
            more = pa.concat_tables([base, pa.table({"sex": ["F"], "cost": pa.array([value], pa.float64())})])
            after = count_and_sum(more, domain, Unit(), [quantity])
            rows = after[0].counts - before[0].counts
            moved = after[1][0] - before[1][0]
            assert rows.tolist() in ([1, 0], [0, 0])
            assert moved[1] == 0
            assert abs(moved[0]) <= quantity.reach == quantity.in_steps(Unit()).steps
            assert (rows[0] == 0) == (value is None or math.isnan(value))


@pytest.mark.parametrize("unit", [Unit(), Unit(id="user")], ids=str)
def test_a_record_moves_a_large_sum_no_further_than_a_small_one(unit: Unit) -> None:
    """A cell whose values add up to more than 2⁶⁰ steps: centred one by one they do not, and nothing is cut."""
    measure = Measure("x", 2**40 - 10, 2**40)
    quantity = Quantity(measure, centre=2**40 - 5)
    domain, rows = Domain([Nominal("sex", ["F"])]), 2**20 + 64
    moved = []
    for more in (0, 1):
        table = pa.table(
            {
                "user": np.arange(rows + more),
                "sex": pa.array(["F"] * (rows + more)),
                "x": np.full(rows + more, 2**40, dtype=np.int64),
            }
        )
        _, (total,) = count_and_sum(table, domain, unit, [quantity])
        moved.append(int(total[0]))
    assert moved == [5 * rows, 5 * (rows + 1)]
    assert moved[1] - moved[0] <= quantity.reach


def test_sums_that_do_not_fit_are_cut_and_never_wrap() -> None:
    far, domain = 2**60, Domain([Nominal("sex", ["F"])])
    measure = Measure("x", -(2**40), 2**40)
    for sign in (1, -1):
        column = np.full(2**21, sign * 2**40, dtype=np.int64)
        table = pa.table({"sex": pa.array(["F"] * column.size), "x": column})
        _, (total,) = count_and_sum(table, domain, Unit(), [Quantity(measure)])
        assert total.tolist() == [sign * far]


@pytest.mark.parametrize(
    ("quantity", "unit", "steps"),
    [
        (Quantity(Measure("x", -10, 5)), Unit(), 10),
        (Quantity(Measure("x", -10, 5)), Unit(replace=True), 20),
        (Quantity(Measure("x", -10, 5), centre=-3), Unit(rows=4, id="user"), 32),
        (Quantity(Measure("x", 2, 5)), Unit(rows=3), 15),
        (Quantity(Measure("x", -10, 5, squares=True), squared=True), Unit(), 64),
        (Quantity(Measure("x", -10, 5, clipped=True), clipped=True), Unit(rows=3, id="user"), 3),
        (Quantity(Measure("x", -10, 5, per_person=30)), Unit(rows=9, id="user"), 30),
        (Quantity(Measure("x", -10, 5, per_person=30)), Unit(rows=9, id="user", replace=True), 60),
        # What is counted of a person's clipped records is not what they add up to.
        (
            Quantity(Measure("x", -10, 5, per_person=30, clipped=True), clipped=True),
            Unit(rows=90, id="user"),
            90,
        ),
        (Quantity(Measure("x", -10, 5)), Unit(id="user", cells=3, per_cell=2), 60),
    ],
)
def test_how_far_a_unit_moves_sums(quantity: Quantity, unit: Unit, steps: int) -> None:
    moved = quantity.in_steps(unit)
    assert (moved.steps, moved.squared) == (steps, steps**2)


def test_a_person_adds_no_more_than_the_limit() -> None:
    table = records(3, 200)
    measure = Measure("cost", "-10", 50, step="0.5", per_person=30)
    quantity = Quantity(measure)
    whole = count_and_sum(table, DOMAIN, BOUND, [quantity])[1][0]
    for person in range(0, 40, 7):
        rest = table.filter(pa.compute.not_equal(table["user"], person))
        moved = np.abs(whole - count_and_sum(rest, DOMAIN, BOUND, [quantity])[1][0]).sum()
        assert moved <= quantity.in_steps(BOUND).steps == 60


HELD = Domain(
    [
        Nominal("ward", ["icu", "north"]),
        Nominal("ill", [True, False]),
        Ordinal("size", ["small", "large"]),
        Ordinal("day", dates=("2024-01-01", "2025-01-01", "1mo")),
        Nominal("code", ["7", "none"]),
        Nominal("note", ["refused"], other=True),
        Ordinal("age", range(10)),
    ]
)


@pytest.mark.parametrize("name", ["code", "note", "age", "cost"])
def test_a_column_that_may_hold_numbers_by_the_domain_can_be_added_up(name: str) -> None:
    assert len(check_measures([Measure(name, 0, 5)], Unit(), HELD)) == 1


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Measure("", 0, 1), "name"),
        (lambda: Measure("x", 1, 1), "below high"),
        (lambda: Measure("x", 0, 1, step=0), "above zero"),
        (lambda: Measure("x", 0, "1.5"), "multiple of step"),
        (lambda: Measure("x", 0, float("nan")), "finite"),
        (lambda: Measure("x", 0, 2**41), "coarser step"),
        (lambda: Measure("x", 0, 2**30, squares=True), "squares"),
        (lambda: Measure("x", 0, 5, missing=6), "missing"),
        (lambda: Measure("x", 0, 5, per_person=0), "per_person"),
        (lambda: Measure.parse("x:1"), "name:low:high"),
        (lambda: Measure.from_json({"name": "x"}), "low and high"),
        (lambda: check_measures([Measure("x", 0, 5, per_person=6)], Unit()), "id"),
        (lambda: check_measures([Measure("x", 0, 5), Measure("x", 0, 6)], Unit()), "one name"),
        (lambda: check_measures([Measure("x", 0, 2**40)], Unit(rows=2**30)), "exceed 64 bits"),
        (lambda: check_measures([Measure("a", 0, 5, column="ward")], Unit(), HELD), "column ward holds text"),
        (lambda: check_measures([Measure("ill", 0, 5)], Unit(), HELD), "column ill holds text"),
        (lambda: check_measures([Measure("size", 0, 5)], Unit(), HELD), "column size holds text"),
        (lambda: check_measures([Measure("day", 0, 5)], Unit(), HELD), "column day holds dates"),
    ],
)
def test_what_cannot_be_a_measure_is_refused_by_name(made: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        made()


def test_a_measure_comes_back_from_json() -> None:
    measure = Measure("cost", "-10.5", 50, step="0.5", missing=0, squares=True, column="c")
    assert Measure.from_json(json.loads(json.dumps(measure.to_json()))) == measure
    assert Measure.parse("cost:0:50:1/2:squares") == Measure("cost", 0, 50, "1/2", squares=True)


def test_a_histogram_or_a_text_column_has_no_sums() -> None:
    with pytest.raises(SourceError, match="counts alone"):
        count_and_sum(Histogram(DOMAIN, np.zeros((4, 2), dtype=int)), None, Unit(), ASKED)
    words = records().append_column("word", pa.array(["7"] * 300))
    with pytest.raises(
        SourceError, match=r"measure word: the column word holds text \(VARCHAR\), and numbers alone"
    ):
        count_and_sum(words, DOMAIN, Unit(), [Quantity(Measure("word", 0, 9))])


def test_clipped_records_are_counted(engine: Any) -> None:  # noqa: F811
    table = records(5)
    measure = Measure("cost", "-10", 50, step="0.5", clipped=True)
    _, (found,) = count_and_sum(engine.put(table), DOMAIN, Unit(), [Quantity(measure, clipped=True)])
    wanted = np.zeros((4, 2), dtype=np.int64)
    for row in table.to_pylist():
        known = row["cost"] is not None and not math.isnan(row["cost"])
        if 0 <= row["age"] < 4 and row["sex"] is not None and known and not -10 <= row["cost"] <= 50:
            wanted[row["age"], "FM".index(row["sex"])] += 1
    assert found.tolist() == wanted.tolist()
