"""The doors of keys, sums, tables and uncounted rows × every unit × both currencies: rows, noise, promise, payment.

As `test_every_door` does for cells: a unit that is lost on the way gives too little noise, and the release verifies.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.model.budget import Budget
from dphist.model.unit import Unit
from dphist.private.noise import Noise
from dphist.publishing.uncounted import publish_uncounted
from dphist.release.guarantee import Guarantee
from dphist.testing import RecordingNoise

UNITS = [
    Unit(),
    Unit(rows=3),
    Unit(replace=True),
    Unit(rows=2, id="user"),
    Unit(rows=2, id="user", replace=True),
    Unit(id="user", cells=2, per_cell=2),
]
# Written down once more: steps, the squared L2 move of cells, and that of questions with weights of one sign.
STEPS = dict(zip(UNITS, (1, 3, 2, 2, 4, 4), strict=True))
APART = dict(zip(UNITS, (1, 9, 2, 4, 8, 8), strict=True))
ALIKE = dict(zip(UNITS, (1, 9, 2, 4, 8, 16), strict=True))
AMOUNT = Fraction(2)
# In the order of their texts, as keys that are discovered are.
REGION = dphist.Domain([dphist.Nominal("region", ["e", "n", "s", "w"])])

each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: str(unit).removeprefix("Unit"))
each_currency = pytest.mark.parametrize("currency", ["epsilon", "rho"])


def records() -> pa.Table:
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(90), rng.integers(1, 6, 90))
    size = users.size
    return pa.table(
        {
            "age": rng.integers(0, 6, size),
            "region": np.array(["n", "e", "s", "w"])[rng.integers(0, 4, size)],
            "user": [f"u{user}" for user in users],
            **{f"q{i}": np.array(["no", "yes"])[rng.integers(0, 2, size)] for i in range(24)},
        }
    )


def rows_kept(unit: Unit, *columns: str) -> int:
    """How many rows count: everybody's first, in whatever cells they lie."""
    table = records()
    people: dict[Any, Counter[Any]] = {}
    for line in table.to_pylist():
        people.setdefault(line["user"], Counter())[tuple(line[name] for name in columns)] += 1
    if unit.id is None:
        return int(table.num_rows)
    if unit.cells is None:
        return sum(min(cells.total(), unit.rows) for cells in people.values())
    # With at most so many rows in a cell it depends on which cells are chosen, unless nobody has more of them.
    return -1


@pytest.fixture
def noise(monkeypatch: pytest.MonkeyPatch) -> RecordingNoise:
    # Written down in memory; the draws are as good as any.
    made = RecordingNoise()
    values: list[Any] = []
    for name in ("add_laplace", "add_gaussian"):
        plain = getattr(made, name)

        def watched(given: Any, size: Fraction, out: Any = None, plain: Any = plain) -> Any:
            values.append(np.array(given))
            return plain(given, size, out)

        monkeypatch.setattr(made, name, watched)
    made.values = values  # type: ignore[attr-defined]
    monkeypatch.setattr(Noise, "system", classmethod(lambda _: made))
    return made


def paid(currency: str) -> dict[str, Any]:
    return {currency: AMOUNT}


def size(currency: str, steps: int, squared: int, share: Fraction | int = 1) -> Fraction:
    """The scale, or the variance, of noise for a share of the budget."""
    return steps / (AMOUNT * share) if currency == "epsilon" else squared / (2 * AMOUNT * share)


def ledger(path: Any, currency: str) -> dphist.Ledger:
    book = dphist.Ledger.open(path / "budget.db")
    book.create("people", **({"epsilon": 3} if currency == "epsilon" else {"rho": 3, "delta": "1/4"}))
    return book


def assert_promised(release: Any, book: Any, currency: str, unit: Unit) -> None:
    """The release promises, and the ledger was charged, what was asked for, and the unit is the same everywhere."""
    assert release.guarantee == Guarantee(Budget.of(**paid(currency)), unit)
    (entry,) = book.entries("people")
    assert (entry.epsilon if currency == "epsilon" else entry.rho) == AMOUNT
    assert book.unit("people") == unit
    release.verify()
    book.close()


@each_currency
@each_unit
def test_discovered_keys(currency: str, unit: Unit, noise: Any, tmp_path: Any) -> None:
    domain = dphist.Domain([dphist.Nominal("region", discover=True)])
    book = ledger(tmp_path, "rho")  # only these pay for a δ
    release = dphist.publish(
        records(), domain, delta="1/10", unit=unit, ledger=book, dataset="people",
        mechanism="laplace" if currency == "epsilon" else "gaussian", allow_dropped=1, **paid(currency),
    )  # fmt: skip
    assert release.domain == REGION
    (draw,) = noise.drawn
    assert draw.amounts == (size(currency, STEPS[unit], APART[unit]),)
    kept = rows_kept(unit, "region")
    assert kept < 0 or noise.values[0].sum() == kept
    expected = dphist.sources.count(records(), REGION, unit).counts
    assert sorted(noise.values[0].reshape(-1)) == sorted(expected)
    assert release.guarantee.unit == unit
    assert release.guarantee.budget == Budget.of(**paid(currency))
    (entry,) = book.entries("people")
    assert (entry.epsilon if currency == "epsilon" else entry.rho) == AMOUNT
    assert book.account("people").delta_spent == Fraction(1, 10)
    assert book.unit("people") == unit
    release.verify()
    book.close()


@each_currency
@each_unit
def test_counts_and_sums(currency: str, unit: Unit, noise: Any, tmp_path: Any) -> None:
    book = ledger(tmp_path, currency)
    release = dphist.publish(
        records(), REGION, unit=unit, ledger=book, dataset="people", measures=[dphist.Measure("age", 0, 5)],
        mechanism="laplace" if currency == "epsilon" else "gaussian", allow_dropped=1, **paid(currency),
    )  # fmt: skip
    counts, sums = noise.drawn
    assert counts.amounts == (size(currency, STEPS[unit], APART[unit], Fraction(2, 5)),)
    (added,) = release.sums
    moved = STEPS[unit] * max(added.quantity.centre, 5 - added.quantity.centre)
    assert sums.amounts == (size(currency, moved, moved**2, Fraction(3, 5)),)
    kept = rows_kept(unit, "region")
    assert kept < 0 or noise.values[0].sum() == kept
    assert_promised(release, book, currency, unit)


@each_currency
@each_unit
def test_tables(currency: str, unit: Unit, noise: Any, tmp_path: Any) -> None:
    names = [f"q{i}" for i in range(24)]
    domain = dphist.Domain([dphist.Nominal(name, ["no", "yes"]) for name in names])
    book = ledger(tmp_path, currency)
    release = dphist.publish(
        records(), domain, mechanism="residuals", workload="marginals:1", unit=unit, ledger=book, dataset="people",
        allow_dropped=1, **paid(currency),
    )  # fmt: skip
    told = release.transcript
    # Every table has its share of one question; of all of them one row moves each by at most one.
    assert [entry.path for entry in told] == ["root"]
    shares = [Fraction(share) for share in told[0].question["shares"]]
    assert sum(shares) <= 1
    signed = any(told[0].question.get("differences", ())) or told[0].question["ask"] == "RangedTables"
    squared = STEPS[unit] ** 2 if signed else ALIKE[unit]
    # As many times the noise of a single row as the unit has steps, or the square of its move.
    times = STEPS[unit] if currency == "epsilon" else squared
    sizes = [draw.amounts[0] for draw in noise.drawn]
    counted = list(noise.values)
    noise.drawn.clear()
    dphist.publish(records(), domain, mechanism="residuals", workload="marginals:1", **paid(currency))
    assert sizes == [times * draw.amounts[0] for draw in noise.drawn]
    assert min(sizes) >= size(currency, STEPS[unit], squared, max(shares))
    kept = rows_kept(unit, *names)
    if kept >= 0:
        assert max(int(np.abs(values).max()) for values in counted) == kept
    assert_promised(release, book, currency, unit)


@each_currency
@pytest.mark.parametrize("unit", UNITS[:3], ids=str)
def test_uncounted_rows(currency: str, unit: Unit, noise: Any, tmp_path: Any) -> None:
    book = ledger(tmp_path, currency)
    few = dphist.Domain([dphist.Ordinal("age", range(4))])
    release = publish_uncounted(records(), few, unit=unit, ledger=book, dataset="people", **paid(currency))
    (draw,) = noise.drawn
    assert draw.amounts == (size(currency, STEPS[unit], APART[unit]),)
    assert noise.values[0].tolist() == [sum(age > 3 for age in records()["age"].to_pylist())]
    assert release.guarantee.unit == unit
    (entry,) = book.entries("people")
    assert (entry.epsilon if currency == "epsilon" else entry.rho) == AMOUNT
    book.close()


def test_uncounted_rows_of_people_are_refused() -> None:
    # Rows without a cell may all be one person's: a bound on the rows in each cell says nothing of them, either.
    for unit in ("rows=2, id=user", "cells=5, per_cell=2"):
        with pytest.raises(dphist.errors.InputError, match="any number of rows"):
            publish_uncounted(records(), REGION, rho="1/10", unit=unit)
