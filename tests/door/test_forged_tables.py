"""Forgers of releases of very many columns: what they change in the file of tables is refused, as in any other."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_forgers import accepted, columns, edit_answer, forged, set_in, story

import dphist
from dphist.publishing.adding import add_tables
from dphist.publishing.checking import digest, verify_file
from dphist.release.release import Release

NAMES = tuple(f"q{place}" for place in range(18))
DOMAIN = dphist.Domain([dphist.Nominal(name, ["a", "b", "c"]) for name in NAMES])
ROWS = pd.DataFrame(
    {name: np.array(["a", "b", "c"])[np.arange(300) * (place + 1) % 3] for place, name in enumerate(NAMES)}
)
TOLD = "marginals:q0,q1;q1,q2"


@pytest.fixture(scope="module")
def releases() -> dict[str, Release]:
    first = dphist.publish(ROWS, DOMAIN, 1, "residuals", workload=TOLD, unattended=True)
    return {
        "residuals": first,
        "mixture": dphist.publish(
            ROWS, DOMAIN, 1, "mixture(classes=4, steps=10)", workload=TOLD, unattended=True
        ),
        "added": add_tables(first, ROWS, "marginals:q2,q3", 1, unattended=True),
    }


def moved(table: pa.Table) -> pa.Table:
    """One record from one cell to another of the same table."""
    place = table.schema.get_field_index("estimate")
    values = table.column(place).to_numpy().copy()
    values[-1], values[-2] = values[-1] + 1.0, values[-2] - 1.0
    return table.set_column(place, "estimate", pa.array(values))


FORGERIES: dict[str, Any] = {
    "a cell moved": columns(moved),
    "rows dropped": columns(lambda table: table.slice(0, table.num_rows - 1)),
    "rows in another order": columns(lambda table: table.take(list(reversed(range(table.num_rows))))),
    "a table's name": columns(
        lambda table: table.set_column(0, table.schema.field(0).name, pa.array(["q0"] * table.num_rows))
    ),
    # Of `mixture` the last one: the first, how many records there are, decides the recipe alone.
    "an answer edited": story(lambda told: edit_answer(told, -1)),
    "an answer dropped": story(lambda told: told["transcript"].pop()),
    "an answer twice": story(lambda told: told["transcript"].append(told["transcript"][-1])),
    "other tables": story(lambda told: told["tables"].__setitem__(1, [17])),
    "a table twice": story(lambda told: told["tables"].append(told["tables"][-1])),
    "no tables": story(set_in("tables", to="all")),
}


@pytest.mark.parametrize("name", ["residuals", "mixture", "added"])
def test_what_was_forged_is_refused(name: str, releases: dict[str, Release], tmp_path: Path) -> None:
    release = releases[name]
    assert accepted(forged(release, tmp_path / "as-it-is.parquet", lambda told, table: (told, table)))
    for forgery, forge in FORGERIES.items():
        assert not accepted(forged(release, tmp_path / "out.parquet", forge)), forgery


def test_the_parts_of_a_release_that_grew_cannot_be_claimed_for_less(releases: dict[str, Release]) -> None:
    from dataclasses import replace

    grown: Any = releases["added"]
    assert grown.budget.amount == 2
    for share in (Fraction(1, 3), Fraction(2, 3)):
        with pytest.raises(dphist.errors.DphistError):
            replace(grown, mechanism=replace(grown.mechanism, share=share)).verify()


def test_a_first_part_that_the_ledger_did_not_pay_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "grown.parquet"
    with dphist.Ledger.open(tmp_path / "book.db") as ledger:
        ledger.create("survey", 5)
        unpaid = dphist.publish(ROWS, DOMAIN, 3, "residuals", workload=TOLD, unattended=True)
        grown = add_tables(
            unpaid, ROWS, "marginals:q2,q3", 1, ledger=ledger, dataset="survey", unattended=True
        )
        grown.save(path)
        assert grown.receipt is not None
        ledger.complete(grown.receipt[1], digest(path))
        with pytest.raises(dphist.errors.VerificationError, match="no payment"):
            verify_file(path, ledger)


def test_one_payment_does_not_count_for_two_parts(tmp_path: Path) -> None:
    """Whoever claims for the first part what was paid for the second is found out, prices and digest being right."""
    path = tmp_path / "grown.parquet"
    with dphist.Ledger.open(tmp_path / "book.db") as ledger:
        ledger.create("survey", 5)
        unpaid = dphist.publish(ROWS, DOMAIN, 1, "residuals", workload=TOLD, unattended=True)
        paying: Any = {"ledger": ledger, "dataset": "survey", "unattended": True}
        grown = add_tables(unpaid, ROWS, "marginals:q2,q3", 1, **paying)
        assert grown.receipt is not None
        mechanism: Any = replace(grown.mechanism, paid=grown.receipt.payment)  # type: ignore[type-var]
        replace(grown, mechanism=mechanism).save(path)
        ledger.complete(grown.receipt.payment, digest(path))
        with pytest.raises(dphist.errors.VerificationError, match="counted already"):
            verify_file(path, ledger)


def test_another_ledger_neither_adds_to_a_release_nor_owns_to_it(tmp_path: Path) -> None:
    """Names of budgets and numbers of payments repeat from ledger to ledger."""
    path = tmp_path / "one.parquet"
    with dphist.Ledger.open(tmp_path / "a.db") as paid, dphist.Ledger.open(tmp_path / "b.db") as other:
        for book in (paid, other):
            book.create("survey", 5)
        release = dphist.publish(
            ROWS, DOMAIN, 1, "residuals", workload=TOLD, ledger=paid, dataset="survey", unattended=True
        )
        release.save(path)
        assert release.receipt is not None
        asked: Any = {"workload": "marginals:q2,q3", "epsilon": 1, "dataset": "survey", "unattended": True}
        with pytest.raises(dphist.errors.VerificationError, match="another ledger's"):
            add_tables(release, ROWS, ledger=other, **asked)
        assert other.spent("survey") == 0
        # The same number, price and unit, and the file's own digest.
        reservation = other.reserve("survey", 1, "something else", release.guarantee.unit)
        reservation.open()
        reservation.complete(digest(path))
        assert reservation.id == release.receipt.payment
        with pytest.raises(dphist.errors.VerificationError, match="another ledger's"):
            verify_file(path, other)
        paid.complete(release.receipt.payment, digest(path))
        verify_file(path, paid)


def test_values_of_an_attribute_that_no_table_has_are_not_written_out(tmp_path: Path) -> None:
    # Labels of all of them would take hours and hundreds of gigabytes, when the budget is gone.
    domain = dphist.Domain([*DOMAIN.attributes, dphist.Ordinal("income", edges=range(0, 2**32, 2))])
    rows = ROWS.assign(income=7)
    release = dphist.publish(rows, domain, 1, "residuals", workload=TOLD, unattended=True)
    release.save(tmp_path / "out.parquet")
    again = dphist.load(tmp_path / "out.parquet")
    again.verify()
    assert again.to_pandas()["income"].isna().all()
