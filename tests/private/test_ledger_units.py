"""A budget has one unit: spends for others are converted, exactly, or refused before anything is paid."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import dphist
from dphist.errors import BudgetExhausted, InputError, LedgerError, UnitMismatch
from dphist.model.unit import Unit
from dphist.private.ledger import Ledger
from dphist.private.ledger.lines import Books, Line
from dphist.private.ledger.totals import Spend
from dphist.private.ledger.units import factor, read, written

HALF = Spend(epsilon=Fraction(1, 2))

ROWS = [Unit(), Unit(rows=10), Unit(replace=True), Unit(rows=3, replace=True)]
PEOPLE = [Unit(id="user"), Unit(rows=10, id="user"), Unit(rows=3, id="user", replace=True)]


@pytest.fixture
def ledger(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as book:
        yield book


def test_half_for_ten_rows_and_half_for_one_row_are_not_one(ledger):
    ledger.create("people", 1)
    ledger.reserve("people", "1/2", "ten rows", unit=Unit(rows=10))
    assert ledger.unit("people") == Unit(rows=10)
    with pytest.raises(BudgetExhausted, match="costs 5 for a group of up to 10 rows") as refusal:
        ledger.reserve("people", "1/2", "one row", unit=Unit())
    assert "ask for at most 0.05" in str(refusal.value)
    spend = ledger.reserve("people", "1/20", "one row", unit=Unit())
    assert (spend.epsilon, spend.cost) == (Fraction(1, 20), Fraction(1, 2))
    assert ledger.remaining("people") == 0
    assert [(e.epsilon, e.cost) for e in ledger.entries("people")] == [
        (Fraction(1, 2), Fraction(1, 2)),
        (Fraction(1, 20), Fraction(1, 2)),
    ]
    ledger.verify()


@pytest.mark.parametrize(
    ("budget", "spend", "expected"),
    [
        (Unit(), Unit(rows=10), Fraction(1, 10)),
        (Unit(rows=10), Unit(), Fraction(10)),
        (Unit(replace=True), Unit(), Fraction(2)),
        (Unit(rows=3), Unit(rows=2, replace=True), Fraction(3, 4)),
        # Whoever counts fewer rows of a person protects the person no less.
        (Unit(rows=10, id="user"), Unit(rows=1, id="user"), Fraction(1)),
        (Unit(rows=1, id="user"), Unit(rows=10, id="user"), Fraction(1)),
        (Unit(id="user", replace=True), Unit(rows=4, id="user"), Fraction(2)),
        (Unit(id="user"), Unit(rows=4, id="user", replace=True), Fraction(1, 2)),
        # One row may change which of its person's rows are kept.
        (Unit(), Unit(rows=4, id="user"), Fraction(2)),
        (Unit(rows=5, replace=True), Unit(id="user"), Fraction(20)),
        # A person may own any number of rows that are counted one by one.
        (Unit(rows=10, id="user"), Unit(rows=10), None),
        (Unit(id="user"), Unit(id="household"), None),
    ],
)
def test_the_factor_of_a_conversion(budget, spend, expected):
    assert factor(budget, spend) == expected


def moved(one: np.ndarray, other: np.ndarray) -> int:
    return int(np.abs(one - other).sum())


def counted(rows: list[tuple[int, int]], unit: Unit) -> np.ndarray:
    """Count (person, cell) rows as a unit does; which are kept depends on all rows of the person, and on no others."""
    counts = np.zeros(3, dtype=int)
    for person in range(3):
        own = [row for row in rows if row[0] == person]
        ranked = sorted((hash((row, len(own))), row[1]) for row in own)
        for _, cell in ranked if unit.id is None else ranked[: unit.rows]:
            counts[cell] += 1
    return counts


def changes(rows: list[tuple[int, int]], unit: Unit, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Another data set one protected unit away."""
    if unit.id is not None:
        gone = int(rng.integers(0, 3))
        rest = [row for row in rows if row[0] != gone]
        if unit.replace:
            return rest + [(gone, int(cell)) for cell in rng.integers(0, 3, rng.integers(0, 8))]
        return rest
    out = list(rows)
    for _ in range(int(rng.integers(0, unit.rows + 1))):
        if out:
            out.pop(int(rng.integers(0, len(out))))
        if unit.replace:
            out.append((int(rng.integers(0, 3)), int(rng.integers(0, 3))))
    return out


@pytest.mark.parametrize(("budget", "spend"), list(product([*ROWS, *PEOPLE], repeat=2)))
def test_no_change_of_a_budgets_unit_costs_more_than_was_charged(budget, spend):
    # A spend of ε loses ε ÷ steps a step; so (steps moved) ÷ steps must never exceed the factor.
    known = factor(budget, spend)
    if known is None:
        assert spend.id is None
        assert budget.id is not None
        return
    rng = np.random.default_rng(7)
    for _ in range(300):
        rows = [(int(p), int(c)) for p, c in rng.integers(0, 3, (rng.integers(0, 9), 2))]
        other = changes(rows, budget, rng)
        assert Fraction(moved(counted(rows, spend), counted(other, spend)), spend.steps) <= known


def test_a_unit_that_cannot_be_compared_is_refused_before_paying(ledger):
    ledger.create("people", 1, unit=Unit(rows=2, id="user"))
    before = ledger.head()
    for unit in (Unit(), Unit(rows=2), Unit(id="household"), "in my own words"):
        with pytest.raises(UnitMismatch, match="Nothing was spent"):
            ledger.reserve("people", "1/2", "x", unit=unit)
        with pytest.raises(UnitMismatch):
            ledger.check("people", "1/2", unit)
    histogram = dphist.Histogram(dphist.Domain([dphist.Ordinal("x", range(3))]), np.array([1, 2, 3]))
    with pytest.raises(UnitMismatch):
        dphist.publish(histogram, epsilon="1/2", ledger=ledger, dataset="people")
    assert ledger.head() == before
    assert UnitMismatch.exit_code == 3


def test_a_spend_that_says_nothing_is_in_the_budgets_unit(ledger):
    ledger.create("people", 1)
    ledger.reserve("people", "1/4", "silent")
    assert ledger.unit("people") is None
    ledger.reserve("people", "1/4", "first to say", unit=Unit(rows=2))
    assert ledger.unit("people") == Unit(rows=2)
    ledger.reserve("people", "1/4", "silent again")
    ledger.create("others", 1)
    ledger.reserve("others", "1/4", "own words", unit="one household")
    assert ledger.unit("others") == "one household"
    ledger.reserve("others", "1/4", "own words", unit="one household")
    with pytest.raises(InputError, match="brace"):
        ledger.reserve("others", "1/4", "x", unit='{"rows": 1}')


def test_units_are_read_back(ledger, tmp_path):
    for number, unit in enumerate([*ROWS, *PEOPLE]):
        ledger.create(f"d{number}", 1, unit=unit)
        assert read(written(unit, HALF)) == (unit, HALF)
        # A description is words like any other: it says nothing that could be converted.
        assert read(unit.describe()) == (unit.describe(), None)
    with Ledger.open(tmp_path / "budget.db") as again:
        assert [again.unit(f"d{number}") for number in range(7)] == [*ROWS, *PEOPLE]


def history(*spends: tuple[str, str]) -> Books:
    """Follow the lines of a budget of nine: each spend by its amount and what the line says of its unit."""
    books = Books()
    lines = [Line(number=1, kind="began"), Line(number=2, kind="created", dataset="d", amount="9")]
    lines += [
        Line(
            number=3 + i,
            kind="reserved",
            dataset="d",
            amount=amount,
            unit=unit,
            time="2025-01-01T00:00:00+00:00",
        )
        for i, (amount, unit) in enumerate(spends)
    ]
    for line in lines:
        books.follow(line.sealed(books.head.hash))
    return books


def test_a_history_whose_spends_were_not_converted_is_refused():
    good = written(Unit(rows=10), HALF)
    history(("1/2", good), ("5", written(Unit(), HALF)))
    with pytest.raises(ValueError, match="not converted"):
        history(("1/2", good), ("1/2", written(Unit(), HALF)))
    # A unit that says nothing of what was asked for it could hide a conversion.
    with pytest.raises(ValueError, match="not converted"):
        history(("1/2", written(Unit(rows=10))))
    with pytest.raises(ValueError, match="not converted"):
        history(("1/2", good), ("1/2", "household of my own"))
    with pytest.raises(ValueError, match="cannot be read"):
        history(("1/2", '{"rows":0}'))


def test_words_of_the_users_own_are_a_unit():
    books = history(("1/2", ""), ("1/2", "household of my own"))
    assert books.budgets["d"].unit == "household of my own"


def test_a_tampered_unit_is_noticed(ledger, tmp_path):
    ledger.create("people", 1, unit=Unit(rows=10))
    ledger.close()
    import sqlite3

    with sqlite3.connect(tmp_path / "budget.db") as raw:
        raw.execute("DROP TRIGGER lines_are_not_changed")
        raw.execute("UPDATE lines SET unit = ? WHERE number = 2", (written(Unit()),))
    raw.close()
    with pytest.raises(LedgerError, match="changed after it was written"):
        Ledger.open(tmp_path / "budget.db")


@pytest.mark.postgres
def test_postgres_alike(postgres_address, tmp_path):
    with Ledger.open(f"{postgres_address}/postgres#units", witness=tmp_path / "w") as book:
        book.create("units", 1, unit=Unit(rows=10))
        spend = book.reserve("units", "1/20", "one row", unit=Unit())
        assert spend.cost == Fraction(1, 2)
        with pytest.raises(UnitMismatch):
            book.reserve("units", "1/20", "mine", unit="one household")
        book.backup(tmp_path / "copy.db")
    with Ledger.open(tmp_path / "copy.db", witness=False) as copy:
        assert copy.unit("units") == Unit(rows=10)
        assert copy.spent("units") == Fraction(1, 2)
