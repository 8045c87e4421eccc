"""Every measurement runs on the one runner: options from its signature, tables printed, rows kept with the machine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pytest
from typer.testing import CliRunner

from dphist.errors import InputError
from dphist_bench import catalogue, measuring
from dphist_bench.command import app
from dphist_bench.data import files
from dphist_bench.measuring import Failure, Line

# Options beside --quick, and words that must be printed.
QUICK = {
    "replicates": ("--sort line", ["ten largest", "sums: long"]),
    "ledger": ("", ["race", "race, rho", "kill -9", "lost"]),
    "composition": ("", ["226", "above the total"]),
    "precision": ("", ["s1", "on one side only"]),
}
# Run quickly by a file of tests of its own.
ELSEWHERE = {
    "coverage": "test_bench_coverage.py",
    "textfuzz": "test_textfuzz.py",
    "neighbours": "../attacks/test_neighbouring_tables.py",
}


@pytest.mark.parametrize("name", QUICK)
def test_every_measurement_runs_quickly_and_is_kept(name, tmp_path, capsys):
    options, words = QUICK[name]
    assert catalogue.measure(name, ["--quick", *options.split()], tmp_path) == 0
    printed = capsys.readouterr().out
    for word in words:
        assert word in printed, word
    kept = json.loads((tmp_path / "quick" / "measurements" / f"{name}.json").read_text())
    assert kept["options"]["quick"] is True
    assert kept["versions"]["numpy"] == np.__version__
    assert kept["processor"]
    assert any(isinstance(line, dict) for line in kept["lines"])


def test_the_list_is_whole():
    here = Path(measuring.__file__).parent / "measurements"
    modules = {path.stem for path in here.glob("*/*.py")} - {"__init__", "spenders"}
    assert modules == {*QUICK, *ELSEWHERE}
    assert not {*QUICK} & {*ELSEWHERE}
    for name, file in ELSEWHERE.items():
        words = (Path(__file__).parent / file).read_text(encoding="utf-8")
        assert re.search(rf"measurements\.\w+(\.| import ){name}\b", words), file
    assert modules <= set(catalogue.MEASUREMENTS)


def test_one_reader_of_counts(tmp_path):
    (tmp_path / "plane.csv").write_text("row,col,count\n0,9,4\n255,255,1\n")
    plane = files.counts(tmp_path / "plane.csv")
    assert plane.shape == (256, 256)
    assert (plane[0, 9], plane.sum()) == (4, 5)
    (tmp_path / "line.csv").write_text("bin,count\n0,7\n1,2\n")
    np.testing.assert_array_equal(files.counts(tmp_path / "line.csv"), [7, 2])


def toy(
    *,
    quick: bool,
    rows: Annotated[int, "how many rows"] = 2,
    kind: Literal["good", "bad"] = "good",
    only: tuple[str, ...] = (),
    data: Path | None = None,
) -> Iterator[Line]:
    """Give what was asked for."""
    yield "before the table"
    for place in range(rows):
        yield {"place": place, "half": place / 2, "none": None, "data": str(data), "only": "+".join(only)}
    if kind == "bad":
        yield Failure("a promise was broken")


def test_options_are_read_off_the_signature(capsys):
    given = ["--rows", "3", "--only", "a", "b", "--data", "here"]
    assert measuring.run("toy", toy, given) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "before the table"
    assert said[1].split() == ["place", "half", "none", "data", "only"]
    assert said[4].split() == ["2", "1", "–", "here", "a+b"]
    assert len(said) == 5


def test_a_broken_promise_is_an_exit_code_and_is_kept(tmp_path, capsys):
    assert measuring.run("toy", toy, ["--kind", "bad"], tmp_path) == 1
    assert "a promise was broken" in capsys.readouterr().out
    assert "a promise was broken" in (tmp_path / "full" / "measurements" / "toy.json").read_text()


@pytest.mark.parametrize("given", [["--kind", "neither"], ["--nonsense"], ["--rows", "many"]])
def test_wrong_options_are_refused(given, capsys):
    with pytest.raises(SystemExit) as stopped:
        measuring.run("toy", toy, given)
    assert stopped.value.code == 2


def test_a_stopped_measurement_keeps_what_it_gave(tmp_path, capsys):
    def stopped(*, quick: bool) -> Iterator[Line]:
        yield {"row": 1}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measuring.run("stopped", stopped, [], tmp_path)
    assert json.loads((tmp_path / "full" / "measurements" / "stopped.json").read_text())["lines"] == [
        {"row": 1}
    ]


def test_the_command_hands_options_on_and_shows_help(tmp_path):
    runner = CliRunner()
    said = runner.invoke(app, ["run", "precision", "--help"])
    assert "--seconds" in said.output
    assert "dphist bench run precision" in said.output
    assert "--workers" in runner.invoke(app, ["run", "--help"]).output
    assert "--workers" in runner.invoke(app, ["run", "efpa", "--help"]).output
    done = runner.invoke(app, ["run", "precision", "--quick", "--results", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "quick" / "measurements" / "precision.json").is_file()
    # --trials is an option of both: it reaches the measurement.
    assert runner.invoke(app, ["run", "precision", "--trials", "2"]).exit_code == 2


def test_an_experiment_is_found_by_what_it_covers():
    assert catalogue.load("efpa/table3").name in catalogue.chosen("efpa")
    with pytest.raises(InputError):
        catalogue.load("paper-003/table3")
