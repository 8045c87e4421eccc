"""Tables added to a release later: paid for, fitted together, verified."""

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import DroppedRows, InputError, VerificationError
from dphist.mechanisms import Mixture, Residuals
from dphist.model.budget import Budget
from dphist.model.unit import Unit
from dphist.private.noise import Keystream, Noise
from dphist.publishing.adding import add_tables, added_release
from dphist.publishing.making import release_of
from dphist.release import load
from dphist.sources.coded import coded

NAMES = tuple(f"q{place}" for place in range(18))
DOMAIN = dphist.Domain([dphist.Nominal(name, ["a", "b", "c"]) for name in NAMES])


def rows(count=600):
    draw = np.random.default_rng(4)
    hidden = draw.integers(0, 3, count)
    return pd.DataFrame(
        {
            name: np.array(["a", "b", "c"])[
                np.where(draw.random(count) < 0.6, hidden, draw.integers(0, 3, count))
            ]
            for name in NAMES
        }
    )


def first(mechanism, budget, count=600):
    records = coded(rows(count), DOMAIN, Unit())
    noise = Noise(Keystream.for_tests(1))
    return records, release_of(
        records,
        budget,
        mechanism,
        Unit(),
        dphist.Workload.parse(DOMAIN, "marginals:q0,q1;q2,q3"),
        noise=noise,
    )


@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_a_table_measured_twice_is_known_as_by_both_and_everything_replays(currency):
    one, two = Budget(Fraction(1), currency), Budget(Fraction(3), currency)
    records, release = first(Residuals(), one)
    more: Any = added_release(release, records, ((0, 1), (1, 2)), two, noise=Noise(Keystream.for_tests(2)))
    more.verify()
    assert more.budget.amount == 4
    assert more.transcript.spent() <= 4
    assert set(more.cells.tables) >= {*release.cells.tables, (0, 1), (1, 2), (2, 3)}
    # Least squares: precisions of independent measurements of one residual add up.
    whole = more._estimate.errors.residuals
    parts = [Residuals(tables=((0, 1), (2, 3))), Residuals(tables=((0, 1), (1, 2)))]
    alone: list[Any] = [
        release_of(records, budget, part, Unit(), None, noise=Noise(Keystream.for_tests(3)))
        for budget, part in zip((one, two), parts, strict=True)
    ]
    for axes in ((0, 1), (1,), ()):
        precision = sum(each._estimate.errors.residuals.residuals[axes].precision for each in alone)
        assert whole.residuals[axes].precision == pytest.approx(precision)
    for axes in ((0, 1), (1, 2), (2, 3)):
        table = more.cells.tables[axes]
        assert table.min() >= 0
        assert np.allclose(table.sum(axis=1), more.cells.tables[axes[:1]], atol=1e-3)


@pytest.mark.parametrize("epsilon", ["1/20", "30"], ids=["singles", "planned"])
def test_a_model_is_fitted_anew_to_old_and_new_tables(epsilon):
    records, release = first(Mixture(classes=6, steps=30), Budget.of(epsilon))
    noise = Noise(Keystream.for_tests(2))
    more: Any = added_release(release, records, ((4, 5, 6),), Budget.of(50), noise=noise)
    more.verify()
    assert release.note.startswith("No pair") == (epsilon == "1/20")
    assert "No pair" not in more.note
    exact = records.tables([(4, 5, 6)])[0]
    assert 0.5 * np.abs(more.cells.tables[(4, 5, 6)] - exact).sum() < 0.2 * exact.sum()
    again: Any = added_release(more, records, ((7, 8),), Budget.of(50), noise=noise)
    again.verify()
    assert again.epsilon == Fraction(epsilon) + 100
    assert len(again.records(20)) == 20


def test_the_same_budget_pays_and_a_file_verifies(tmp_path):
    frame = rows()
    book = tmp_path / "book.db"
    with dphist.Ledger.open(book) as ledger:
        ledger.create("survey", 3)
        release = dphist.publish(
            frame,
            DOMAIN,
            1,
            "residuals",
            workload="marginals:q0,q1",
            ledger=ledger,
            dataset="survey",
            unattended=True,
        )
        with pytest.raises(InputError, match="paid from the budget 'survey'"):
            add_tables(release, frame, "marginals:q1,q2", 1, unattended=True)
        ledger.create("another", 3)
        with pytest.raises(InputError, match="paid from the budget 'survey'"):
            add_tables(release, frame, "marginals:q1,q2", 1, ledger=ledger, dataset="another")
        with pytest.raises(InputError, match="another currency"):
            add_tables(release, frame, "marginals:q1,q2", rho=1, ledger=ledger, dataset="survey")
        with pytest.raises(InputError, match="name the tables"):
            add_tables(release, frame, "cells", 1, ledger=ledger, dataset="survey")
    release.save(tmp_path / "one.parquet")
    frame.to_parquet(tmp_path / "rows.parquet")
    made = CliRunner().invoke(
        app,
        ["add", str(tmp_path / "one.parquet"), str(tmp_path / "rows.parquet"), "-o", str(tmp_path / "two.parquet"),
         "--marginals", "q1,q2", "--epsilon", "1.5", "--ledger", str(book), "--dataset", "survey"],
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    with dphist.Ledger.open(book) as ledger:
        assert ledger.remaining("survey") == Fraction(1, 2)
    more = load(tmp_path / "two.parquet")
    more.verify()
    assert more.epsilon == Fraction(5, 2)
    checked = CliRunner().invoke(app, ["verify", str(tmp_path / "two.parquet"), "--ledger", str(book)])
    assert checked.exit_code == 0, checked.output


def test_a_changed_answer_of_either_part_is_found_out():
    records, release = first(Residuals(), Budget.of(1))
    more: Any = added_release(release, records, ((1, 2),), Budget.of(1), noise=Noise(Keystream.for_tests(2)))
    for place in range(len(more.transcript)):
        entry = more.transcript[place]
        object.__setattr__(entry, "answer", entry.answer + 1)
        with pytest.raises(VerificationError):
            more.verify()
        object.__setattr__(entry, "answer", entry.answer - 1)
    more.verify()


def test_only_releases_of_tables_grow():
    small = dphist.Domain([dphist.Ordinal("x", range(3))])
    release = dphist.publish(dphist.Histogram(small, np.array([3, 4, 5])), epsilon=1, mechanism="laplace")
    with pytest.raises(InputError, match="tables of few attributes only"):
        add_tables(release, pd.DataFrame({"x": [1]}), "marginals:x", 1)


def test_nothing_is_added_when_rows_would_be_dropped(tmp_path):
    frame = rows(50)
    with dphist.Ledger.open(tmp_path / "book.db") as ledger:
        ledger.create("survey", 3)
        release = dphist.publish(
            frame, DOMAIN, 1, "residuals", workload="marginals:q0,q1", ledger=ledger, dataset="survey"
        )
        frame.loc[:20, "q2"] = "elsewhere"
        with pytest.raises(DroppedRows):
            add_tables(release, frame, "marginals:q1,q2", 1, ledger=ledger, dataset="survey")
        assert ledger.remaining("survey") == 2


def test_ranges_are_asked_of_what_is_added_too(tmp_path):
    domain = dphist.Domain([dphist.Ordinal("age", range(64)), *DOMAIN.attributes])
    frame = rows().assign(age=np.arange(600) % 64)
    with dphist.Ledger.open(tmp_path / "book.db") as ledger:
        ledger.create("survey", rho=3)
        paying: Any = {"rho": 1, "ledger": ledger, "dataset": "survey"}
        asked = "marginals:age,q0 ranges:age"
        release = dphist.publish(frame, domain, mechanism="residuals", workload=asked, **paying)
        more = add_tables(release, frame, "marginals:age,q1", **paying)
        more.verify()
        assert ledger.remaining("survey") == 1


def test_what_fails_when_all_is_joined_fails_on_nobody_first(tmp_path, monkeypatch):
    frame = rows(50)
    with dphist.Ledger.open(tmp_path / "book.db") as ledger:
        ledger.create("survey", 3)
        paying: Any = {"ledger": ledger, "dataset": "survey"}
        release = dphist.publish(frame, DOMAIN, 1, "residuals", workload="marginals:q0,q1", **paying)

        def refused(*_):
            raise VerificationError("cannot be joined")

        monkeypatch.setattr("dphist.mechanisms.added.noise_after", refused)
        with pytest.raises(VerificationError, match="cannot be joined"):
            add_tables(release, frame, "marginals:q1,q2", 1, **paying)
        assert ledger.remaining("survey") == 2


def test_tables_of_a_histogram_are_added():
    domain = dphist.Domain(DOMAIN.attributes[:3])
    cube = dphist.Histogram(domain, np.full((3, 3, 3), 40))
    release = release_of(
        coded(cube), Budget.of(1), Residuals(), Unit(), dphist.Workload.parse(domain, "marginals:q0,q1"),
        noise=Noise(Keystream.for_tests(1)),
    )  # fmt: skip
    more: Any = add_tables(release, cube, "marginals:q1,q2", 50)
    assert more.cells.tables[(1, 2)].sum() == pytest.approx(1080, abs=20)


@pytest.mark.parametrize("mechanism", ["marginals", "auto"])
def test_nothing_is_added_to_tables_that_were_measured_one_by_one(mechanism):
    domain = dphist.Domain([dphist.Ordinal(name, range(40)) for name in "abc"])
    people = dphist.Histogram(domain, np.ones(domain.shape, dtype=np.int64))
    release = dphist.publish(people, epsilon=1, mechanism=mechanism, workload="marginals:a;b;c")
    assert release.cells.form == "tables"
    with pytest.raises(InputError, match="measured one by one"):
        add_tables(release, people, "marginals:a,b", epsilon=1)
