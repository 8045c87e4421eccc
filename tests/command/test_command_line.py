"""The command line as a user meets it: exit codes, output, and nothing left behind."""

import io
import json
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from types import SimpleNamespace

import numpy as np
import pytest

from dphist.cli import main

SCHEMA = """
[[attribute]]
name = "age"
kind = "ordinal"
range = [0, 100]

[[attribute]]
name = "sex"
kind = "nominal"
categories = ["F", "M"]
"""

PUBLISH = ["publish", "visits.csv", "--schema", "visits.toml", "--epsilon", "1", "-o", "x.parquet"]


def dphist(*words, cwd="."):
    """Run a command in this process: starting one costs more than most of them do."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["dphist", *map(str, words)])
        patch.setenv("COLUMNS", "200")
        with pytest.raises(SystemExit) as left:
            main()
    out.flush()
    said = out.buffer.getvalue().decode()
    return SimpleNamespace(returncode=left.value.code or 0, stdout=said, stderr=err.getvalue())


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    folder = tmp_path_factory.mktemp("room")
    rng = np.random.default_rng(1)
    rows = ["age,sex"] + [
        f"{a},{'FM'[s]}" for a, s in zip(rng.integers(0, 105, 4000), rng.integers(0, 2, 4000), strict=True)
    ]
    (folder / "visits.csv").write_text("\n".join(rows) + "\n")
    (folder / "visits.toml").write_text(SCHEMA)
    return folder


@pytest.fixture(scope="module")
def published(room):
    assert dphist("ledger", "create", "others.db", "others", "1", cwd=room).returncode == 0
    for ledger, code, said in (("nowhere.db", 1, "there is no ledger"), ("others.db", 3, "visits")):
        done = dphist(
            "publish", "visits.csv", "--schema", "visits.toml", "--epsilon", "1", "--mechanism", "laplace",
            "--ledger", ledger, "--dataset", "visits", "-o", "first.parquet", cwd=room,
        )  # fmt: skip
        assert done.returncode == code, "a budget that was never opened must refuse"
        assert said in done.stderr
        assert not (room / "first.parquet").exists()
    assert not (room / "nowhere.db").exists()
    assert dphist("ledger", "create", "budget.db", "visits", "3/2", cwd=room).returncode == 0
    done = dphist(
        "publish", "visits.csv", "--schema", "visits.toml", "--epsilon", "1", "--mechanism", "laplace",
        "--ledger", "budget.db", "--dataset", "visits", "-o", "out.parquet", cwd=room,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return room / "out.parquet"


def test_a_release_is_published_asked_verified_and_shown(room, published):
    asked = dphist("query", published, "age between 30 and 39 and sex = 'F'")
    assert asked.returncode == 0
    assert "95% interval" in asked.stdout
    read = json.loads(dphist("query", published, "age between 30 and 39 and sex = 'F'", "--json").stdout)
    assert read["low"] <= read["value"] <= read["high"]
    assert read["value"] == pytest.approx(4000 / 120 * 10 / 2, abs=80)
    verified = dphist("verify", published)
    assert verified.returncode == 0
    assert "verified: 1 paid answer, spent 1 of 1" in verified.stdout
    shown = dphist("show", published)
    assert "differential privacy" in shown.stdout
    assert "█" in shown.stdout
    assert json.loads(dphist("show", published, "--json").stdout)["mechanism"] == "laplace"


def test_one_bad_question_costs_no_answer_to_the_others(published):
    asked = ("query", published, "age < 30", "weight = 3", "sex = 'F'")
    done = dphist(*asked)
    assert done.returncode == 2
    lines = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == list(asked[2:])
    assert "95% interval" in lines[0]
    assert "not answered" in lines[1]
    assert "weight" in lines[1]
    assert "95% interval" in lines[2]
    assert "1 of 3 questions not answered" in done.stderr
    told = json.loads(dphist(*asked, "--json").stdout)
    assert [sorted(each) == ["error"] for each in told] == [False, True, False]
    alone = json.loads(dphist("query", published, "sex = 'F'", "--json").stdout)
    assert told[2] == alone


def test_the_ledger_remembers_and_refuses(room, published):
    facts = json.loads(dphist("ledger", "show", "budget.db", "--json", cwd=room).stdout)
    assert (facts[0]["spent"], facts[0]["remaining"]) == ("1", "1/2")
    assert [entry["status"] for entry in facts[0]["entries"]] == ["published"]
    again = dphist(
        "publish", "visits.csv", "--schema", "visits.toml", "--epsilon", "1", "--ledger", "budget.db",
        "--dataset", "visits", "-o", "second.parquet", cwd=room,
    )  # fmt: skip
    assert again.returncode == 3
    assert not (room / "second.parquet").exists()
    assert json.loads(dphist("ledger", "show", "budget.db", "--json", cwd=room).stdout) == facts


def test_records_are_written_as_csv(room, published, tmp_path):
    assert dphist("records", published, "25").stdout.splitlines()[0] == "age,sex"
    assert dphist("records", published, "25", "-o", tmp_path / "made.csv").returncode == 0
    for name in ("made.xlsx", "made.txt", "made"):
        refused = dphist("records", published, "25", "-o", tmp_path / name)
        assert (refused.returncode, "must end in .csv or .parquet" in refused.stderr) == (2, True)
        assert not (tmp_path / name).exists()
    assert dphist("records", published, "25", "-o", tmp_path / "made.PARQUET").returncode == 0
    assert (tmp_path / "made.PARQUET").read_bytes()[:4] == b"PAR1"
    assert len((tmp_path / "made.csv").read_text().splitlines()) == 26


def test_nothing_is_written_over_a_release_or_unasked_over_a_file(room, published, tmp_path):
    """Synthetic records, and tables, would naturally go by the name that the true records have."""
    records = tmp_path / "visits.csv"
    for command in (("records", published, "25", "-o"), ("export", published, "-o")):
        records.write_text("the true ones")
        refused = dphist(*command, records)
        assert refused.returncode == 1
        assert "exists already" in refused.stderr
        assert records.read_text() == "the true ones"
        assert dphist(*command, records, "--force").returncode == 0
        assert records.read_text() != "the true ones"
    paid = tmp_path / "paid.parquet"
    paid.write_bytes((room / published).read_bytes())
    for words in (("records", paid, "5", "--force", "-o"), ("report", paid, "-o")):
        refused = dphist(*words, paid)
        assert refused.returncode == 1
        assert "the release itself" in refused.stderr
        assert paid.read_bytes() == (room / published).read_bytes()


def test_a_schema_is_drafted_without_looking_at_values(room):
    drafted = dphist("schema", "new", "visits.csv", cwd=room)
    assert drafted.returncode == 0
    assert "age" in drafted.stdout
    assert "119" not in drafted.stdout
    checked = dphist("schema", "check", "visits.toml", cwd=room)
    assert "200 combinations" in checked.stdout


def test_mechanisms_are_listed_with_their_options():
    rows = json.loads(dphist("mechanisms", "--json").stdout)
    assert {"laplace", "uniform"} <= {row["name"] for row in rows}
    assert all(row["summary"] for row in rows)
    assert rows[0]["name"] == "auto"
    assert rows[0]["status"] == "default"
    by = {row["name"]: row["authors"] for row in rows}
    assert (by["auto"], by["quadtree"], by["hb"]) == (
        "dphist's own",
        "Cormode et al. 2012",
        "Qardaji et al. 2013",
    )


def test_the_few_to_reach_for_come_first_and_all_on_demand():
    short, long = dphist("mechanisms").stdout, dphist("mechanisms", "--all").stdout
    assert short.index("auto (default)") < short.index("laplace") < short.index("noisefirst")
    assert "h (= tree)" in short
    assert "spa (comparison only)" in short
    assert "statistic=mean" not in short
    assert "statistic=mean" in long


def test_an_audit_passes_the_baseline():
    done = dphist("audit", "laplace", "--runs", "300", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["passed"] is True


def test_an_audit_attacks_the_claim_that_is_named():
    done = dphist("audit", "gaussian", "--rho", "1/2", "--runs", "30", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["rho"] == 0.5


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([*PUBLISH, "--epsilon", "0"], 2, "epsilon"),
        ([*PUBLISH, "--epsilon", "-1"], 2, "epsilon"),
        ([*PUBLISH, "--epsilon", "nan"], 2, "epsilon"),
        ([*PUBLISH, "--epsilon", "lots"], 2, "epsilon"),
        (["publish", "missing.csv", *PUBLISH[2:]], 2, "missing.csv"),
        ([*PUBLISH, "--schema", "missing.toml"], 2, "missing.toml"),
        ([*PUBLISH, "-o", "no/such/x.parquet"], 1, "folder"),
        ([*PUBLISH, "-o", "."], 1, "folder"),
        ([*PUBLISH, "--schema", "wrong.toml"], 2, "weight"),
        ([*PUBLISH, "--schema", "huge.toml"], 2, "counts together"),
        ([*PUBLISH, "--schema", "broken.toml"], 2, "broken.toml"),
        ([*PUBLISH, "--mechanism", "laplas"], 2, "laplace"),
        ([*PUBLISH, "--mechanism", "laplace(size=1)"], 2, "size"),
        ([*PUBLISH, "--ledger", "b.db"], 2, "dataset"),
        ([*PUBLISH, "--rows", "0"], 2, "rows"),
        (PUBLISH[:4] + PUBLISH[6:], 2, "such as epsilon=1 (--epsilon 1)"),
        ([*PUBLISH, "--id", "passport"], 2, "there is no column passport (the id of the unit: id, --id)"),
        ([*PUBLISH, "--measure", "cots:0:9"], 2, "no column cots (what a measure adds up: measures, --measure)"),
        (["query", "out.parquet", "weight = 3"], 2, "weight"),
        (["query", "out.parquet", "age = = 3"], 2, "age between"),
        (["query", "visits.csv", ""], 2, "visits.csv"),
        (["query", "missing.parquet", ""], 2, "missing.parquet"),
        (["query", "out.parquet", "", "--confidence", "7"], 2, "confidence"),
        (["verify", "visits.csv"], 2, "visits.csv"),
        (["ledger", "show", "missing.db"], 1, "missing.db"),
        (["ledger", "create", "new.db", "visits", "-3"], 2, "total"),
        (["audit", "nonsense"], 2, "nonsense"),
        (["audit", "gaussian", "--rho", "1", "--epsilon", "1"], 2, "one claim at a time"),
        (["no-such-command"], 2, "no-such-command"),
    ],
)  # fmt: skip
def test_bad_input_is_named_with_its_exit_code_and_leaves_nothing(
    room, published, words, code, said, capsys, monkeypatch
):
    (room / "wrong.toml").write_text(SCHEMA.replace('"age"', '"weight"'))
    (room / "huge.toml").write_text(SCHEMA.replace("100", "100000000000000"))
    (room / "broken.toml").write_text("[[attribute]\nname = ")
    before = sorted(child.name for child in room.iterdir())
    monkeypatch.chdir(room)
    monkeypatch.setattr(sys, "argv", ["dphist", *words])
    with pytest.raises(SystemExit) as left:
        main()
    shown = capsys.readouterr()
    assert left.value.code == code, shown
    assert said in shown.err
    after = sorted(child.name for child in room.iterdir() if not child.name.startswith("new.db"))
    assert [name for name in after if name not in before] == []


def test_the_demo_runs_and_draws(tmp_path):
    done = dphist("demo", "demo", "--rows", "20000", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the same release" in done.stdout
    assert "age (5 values to a bar)" in done.stdout
    assert dphist("verify", tmp_path / "demo" / "release.parquet").returncode == 0


def test_a_demo_whose_budget_is_spent_names_another_folder(tmp_path):
    from dphist import Ledger
    from dphist.cli.demo import SCHEMA

    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "visits.toml").write_text(SCHEMA)
    with Ledger.open(folder / "budget.db") as book:
        book.create("visits", 10)
        book.reserve("visits", "19/2", "earlier ones")
    done = dphist("demo", "demo", "--rows", "2000", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "earlier demos" in done.stderr
    assert "dphist demo demo-again" in done.stderr


def test_a_command_builds_only_itself():
    from dphist.cli.application import app, asked_for
    from dphist.cli.commands import app as whole

    assert whole is app
    narrow = asked_for(whole, ["query", "x.parquet"])
    assert [each.callback.__name__ for each in narrow.registered_commands if each.callback] == ["query"]
    assert not narrow.registered_groups
    assert [each.name for each in asked_for(whole, ["ledger", "show"]).registered_groups] == ["ledger"]
    for arguments in ([], ["--help"], ["nothing"], ["--version"]):
        assert asked_for(whole, arguments) is whole
    assert len(whole.registered_commands) > 10
