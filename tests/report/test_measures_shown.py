"""What pages and commands say of measures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import DphistError, QueryError
from dphist.release.asking import read_request
from dphist.report.facts import budget_tree
from dphist.web.view import View

DOMAIN = dphist.Domain([dphist.Ordinal("age", range(12)), dphist.Nominal("sex", ["F", "M"])])


@pytest.fixture(scope="module")
def release() -> dphist.Release:
    random = np.random.default_rng(0)
    rows = 3000
    frame = pd.DataFrame(
        {
            "age": random.integers(0, 12, rows),
            "sex": random.choice(["F", "M"], rows),
            "cost": random.lognormal(3, 1, rows),
            "hours": random.integers(0, 80, rows),
        }
    )
    measures = [dphist.Measure("cost", 0, 200, squares=True), dphist.Measure("hours", 0, 80)]
    return dphist.publish(frame, DOMAIN, 2, measures=measures)


def test_questions_in_words(release: dphist.Release) -> None:
    assert release.query("mean cost where age < 6") == release.mean("cost", where={"age": (0, 5)})
    assert release.query("SUM(hours)") == release.sum("hours")
    assert release.query("std cost where sex = 'F'") == release.std("cost", where={"sex": "F"})
    assert release.query("variance(cost)") == release.variance("cost")
    assert release.query('ratio "cost" to hours') == release.ratio("cost", "hours")
    assert release.query("ratio(cost, hours) where sex = M") == release.ratio(
        "cost", "hours", where={"sex": "M"}
    )
    assert release.query("age < 6").value != release.query("sum cost where age < 6").value
    for text in ("mean = 3", "sum between 1 and 2", "age = 3", "", "ratio cost"):
        assert read_request(text) is None
    for wrong in ("mean nothing", "std hours", "ratio cost to cost", "mean cost where weight = 3"):
        with pytest.raises(QueryError):
            release.query(wrong)
    with pytest.raises(QueryError, match="guaranteed"):
        release.query("mean cost", interval="guaranteed")


def test_the_report_and_the_explorer_show_measures(release: dphist.Release) -> None:
    page = dphist.report.report_page(release, title="people")
    assert "The measures" in page
    assert "cost, clipped to 0 to 200" in page
    tree = budget_tree(release)
    assert tree.cost == 2
    assert [part.title for part in tree.parts] == [
        "counts",
        "sums of cost",
        "sums of hours",
        "squares of cost",
    ]
    shown = View.read(release, {"q": "age < 6"}).to_json()
    assert [line["name"] for line in shown["measures"]] == ["cost", "hours"]
    assert json.dumps(shown["measures"])


def test_the_commands(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"age": random.integers(0, 12, 500), "cost": random.integers(0, 99, 500)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = tmp_path / "s.toml"
    schema.write_text(
        '[[attribute]]\nname = "age"\nkind = "ordinal"\nrange = [0, 12]\n\n'
        '[[measure]]\nname = "cost"\nlow = 0\nhigh = 100\n'
    )
    run = CliRunner().invoke
    usual = ["publish", str(tmp_path / "t.csv"), "--schema", str(schema), "--epsilon", "5"]
    for number, more in enumerate(([], ["--measure", "cost"], ["--measure", "cost:0:50:2"])):
        path = str(tmp_path / f"r{number}.parquet")
        assert run(app, [*usual, "-o", path, *more]).exit_code == 0
        told = run(app, ["query", path, "mean cost where age < 6", "--json"])
        assert told.exit_code == 0
        assert 30 < json.loads(told.stdout)["value"] < 60
    assert isinstance(run(app, [*usual, "-o", path, "--measure", "other"]).exception, DphistError)
    assert isinstance(run(app, ["query", path, "mean cost", "--simultaneous"]).exception, DphistError)
    assert "cost, clipped to 0 to 50" in run(app, ["show", path]).stdout
