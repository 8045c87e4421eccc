"""`dphist ledger …`: totals in each way of counting, raised, shown, verified and backed up."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import BudgetExhausted, DphistError, DroppedRows, InputError, LedgerError
from dphist.model.unit import Unit
from dphist.private.ledger import Ledger
from dphist.publishing.checking import verify_file
from dphist.release import load


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "budget.db")


def run(*words):
    done = CliRunner().invoke(app, ["ledger", *words])
    if isinstance(done.exception, DphistError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def test_totals_are_created_raised_and_shown(place):
    assert "epsilon 3" in run("create", place, "kids", "3")
    assert "delta 1e-9, which allows rho 1.09" in run(
        "create", place, "adults", "--epsilon", "10", "--delta", "1e-9"
    )
    assert "delta 1e-9 for discovered names" in run(
        "create", place, "wiki", "--rho", "0.015", "--delta", "1e-9"
    )
    with Ledger.open(place) as book:
        book.reserve("kids", 1, "pyramid")
        book.reserve("adults", "1/10", "first")
    told = run("show", place)
    assert "kids: spent 1 of 3, 2 left" in told
    # A quoted (ε, δ) has its ρ beside it.
    assert "epsilon 0.1 at delta 1e-09, rho 0.00499584" in told
    assert "publish one release with ε up to" in told
    assert "ρ up to 1.08" in told
    assert "pyramid" in told
    assert "delta 1e-09, which" not in run(
        "raise", place, "kids", "--delta", "1e-6", "--purpose", "the board"
    )
    (kids,) = json.loads(run("show", place, "kids", "--json"))
    assert (kids["currency"], kids["epsilon_spent"], kids["entries"][0]["purpose"]) == ("rho", "1", "pyramid")
    assert {"rho_spent", "epsilon_at_delta", "epsilon_left", "rho_left"} <= set(kids)


def test_amounts_are_decimals_where_these_are_exact_and_fractions_where_they_would_lie(place):
    """A budget of 2 of which 1.4 was spent was shown as 7/5 of 2."""
    run("create", place, "adults", "2")
    with Ledger.open(place) as book:
        book.reserve("adults", "0.1", "first")
        book.reserve("adults", 0.2, "second")
    assert "adults: spent 0.3 of 2, 1.7 left" in run("show", place)
    assert json.loads(run("show", place, "--json"))[0]["spent"] == "3/10"
    with Ledger.open(place) as book:
        book.reserve("adults", "1/3", "third")
    assert "adults: spent 19/30 (about 0.6333) of 2, 41/30 (about 1.367) left" in run("show", place)


def test_a_ledger_is_verified_against_a_noted_line_and_backed_up(place, tmp_path):
    run("create", place, "adults", "1")
    told = run("verify", place)
    noted = told.split()[-1]
    with Ledger.open(place) as book:
        book.reserve("adults", "1/2", "later")
    assert json.loads(run("verify", place, "--head", noted, "--json"))["number"] == 3
    # Line 0 is in no ledger: `0:anything` passed as a line that is still there.
    for wrong in (f"2:{'0' * 64}", f"9:{'0' * 64}", "0:", f"0:{'0' * 64}", f"1:{noted.partition(':')[2]}"):
        with pytest.raises(LedgerError, match=f"has no line {wrong}. Compare it with your note"):
            run("verify", place, "--head", wrong)
    with pytest.raises(InputError, match="NUMBER:HASH"):
        run("verify", place, "--head", "2")
    run("backup", place, str(tmp_path / "copy.db"))
    with Ledger.open(tmp_path / "copy.db") as copy:
        assert copy.remaining("adults") * 2 == 1
    with pytest.raises(DphistError, match="never written over"):
        run("backup", place, str(tmp_path / "copy.db"))


def test_refusals_name_the_command_to_run(place):
    for words in (["show"], ["verify"], ["raise", "x", "2", "--purpose", "p"], ["backup", "out.db"]):
        with pytest.raises(LedgerError, match=r"dphist ledger create"):
            run(words[0], place, *words[1:])
    run("create", place, "adults", "1")
    with pytest.raises(InputError, match=r"dphist ledger raise .* adults … --purpose"):
        run("create", place, "adults", "2")
    with Ledger.open(place) as book:
        with pytest.raises(BudgetExhausted, match=r"dphist ledger raise .* adults"):
            book.reserve("adults", 2, "too much")
        with pytest.raises(DphistError, match=r"dphist ledger create .* adlts TOTAL"):
            book.reserve("adlts", 1, "a slip")


@pytest.fixture
def publish(tmp_path):
    """Publish rows of users and their sex, by the command."""

    def command(rows, *words):
        (tmp_path / "people.csv").write_text("user,sex\n" + rows, encoding="utf-8")
        domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        (tmp_path / "people.toml").write_text(domain.to_toml(), encoding="utf-8")
        given = [str(tmp_path / "people.csv"), "--schema", str(tmp_path / "people.toml")]
        place = ["-o", str(tmp_path / "out.parquet")]
        return CliRunner().invoke(app, ["publish", *given, *place, *words], catch_exceptions=False)

    return command


def test_what_a_release_is_for_reaches_the_ledger(place, publish, tmp_path):
    run("create", place, "adults", "--epsilon", "1", "--delta", "1e-6")
    paying = ["--ledger", place, "--dataset", "adults", "--purpose", "the yearly table"]
    done = publish("1,F\n2,M\n" * 20, "--epsilon", "1/2", *paying)
    assert done.exit_code == 0, done.output
    with Ledger.open(place) as book:
        assert [entry.purpose for entry in book.entries("adults")] == ["the yearly table"]
        verify_file(tmp_path / "out.parquet", book)


def test_cells_of_a_person_are_bounded_on_the_command_line(publish, tmp_path):
    rows, words = "1,F\n" * 50 + "2,M\n" * 3, ["--epsilon", "1e6", "--id", "user", "--mechanism", "laplace"]
    with pytest.raises(DroppedRows):
        publish(rows, *words)
    words += ["--allow-dropped", "0.9", "--cells", "2"]
    done = publish(rows, *words, "--per-cell", "5")
    assert done.exit_code == 0, done.output
    release = load(tmp_path / "out.parquet")
    assert release.guarantee.unit == Unit(cells=2, per_cell=5, id="user")
    assert release.counts.tolist() == [5, 3]
    with pytest.raises(InputError, match="--rows and --cells"):
        publish(rows, *words, "--rows", "5")


def test_a_mistyped_ledger_makes_no_file(tmp_path, monkeypatch):
    """Whoever verifies or publishes needs one that is there; an empty one would only look as if it kept account."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text('[[attribute]]\nname = "x"\nkind = "ordinal"\nrange = [0, 8]\n')
    (tmp_path / "x.csv").write_text("x\n" + "3\n" * 50)
    histogram = dphist.Histogram(dphist.Domain([dphist.Ordinal("x", range(8))]), range(8))
    dphist.publish(histogram, epsilon=1, unattended=True).save("r.parquet")
    paying = ["--epsilon", "1", "--ledger", "budgte.db", "--dataset", "people"]
    for words in (
        ["verify", "r.parquet", "--ledger", "budgte.db"],
        ["publish", "x.csv", "--schema", "x.toml", *paying, "-o", "new.parquet"],
        ["uncounted", "x.csv", "--schema", "x.toml", *paying, "-o", "new.parquet"],
        ["schema", "suggest", "x.csv", "--column", "x", *paying],
        ["ledger", "show", "budgte.db"],
    ):
        refused = CliRunner().invoke(app, words)
        assert isinstance(refused.exception, LedgerError), words
        assert "there is no ledger budgte.db" in str(refused.exception)
    with pytest.raises(LedgerError, match="there is no ledger"):
        dphist.publish(histogram, epsilon=1, ledger="budgte.db", dataset="people")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.parquet", "x.csv", "x.toml"]
