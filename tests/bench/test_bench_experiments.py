"""Experiments run at their quick setting, go on after a stop, and turn into pages that say what made them."""

import json
import math

import pytest
from typer.testing import CliRunner

from dphist.cli.commands import app
from dphist.errors import InputError
from dphist_bench import catalogue, pages, results, runner
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.claims import beats, best, grows
from dphist_bench.experiment import Claim, Experiment, Finding
from dphist_bench.results import Results, Row
from dphist_bench.views import Lines, Table, short

QUICK = Setting(quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(catalogue.every()))
def test_every_experiment_runs_quickly_is_judged_and_shown(name, tmp_path):
    experiment = catalogue.load(name)
    found = runner.run(experiment, tmp_path / "readings", setting=QUICK, workers=1)
    assert {row.case for row in found.rows} == set(experiment.work.cases(QUICK))
    assert all(not math.isnan(row.reading.value) for row in found.rows)
    for view in experiment.views:
        assert found.select(view.measure, **view.where), f"{view.title} has nothing to show"
    written = pages.write({name: (experiment, found)}, tmp_path / "pages")
    text = written[0].read_text(encoding="utf-8")
    assert f"dphist bench run {name} --quick" in text
    assert experiment.title in text
    for claim in experiment.claims:
        assert claim.says in text
    assert "| undecided |" not in text, "a check cannot be made on what the experiment measures"
    for line in text.splitlines():
        if line.startswith("!["):
            picture = tmp_path / "pages" / line.partition("](")[2].rstrip(")")
            assert picture.read_bytes().startswith((b"<svg", b"\x89PNG"))


class _Dice:
    """A work of two cases that counts how often it was asked, and can be stopped."""

    def __init__(self, stop_at=None):
        self.asked = []
        self.stop_at = stop_at

    def cases(self, setting):
        return [Case("d", "one", "1"), Case("d", "two", "1")]

    def trial(self, case, number, setting):
        if self.stop_at == (case.method, number):
            raise KeyboardInterrupt
        self.asked.append((case.method, number))
        yield Reading("error", 1.0 + number if case.method == "one" else 4.0)


@pytest.fixture
def dice(monkeypatch):
    def make(stop_at=None):
        experiment = Experiment(
            name="efpa/dice", title="Dice", work=_Dice(stop_at), trials=12, views=(), reported="", differs=""
        )
        monkeypatch.setattr(catalogue, "load", lambda name: experiment)
        return experiment

    return make


def test_a_stopped_run_keeps_what_is_finished_and_goes_on(dice, tmp_path):
    stopped = dice(stop_at=("two", 7))
    with pytest.raises(KeyboardInterrupt):
        runner.run(stopped, tmp_path, workers=1)
    kept = results.load(runner.path_of(tmp_path, stopped.name, Setting()))
    # Five trials at once: "two" had finished 0 to 4 when it was stopped in 5 to 9.
    assert kept.trials_of() == {Case("d", "one", "1"): set(range(12)), Case("d", "two", "1"): set(range(5))}
    going_on = dice()
    found = runner.run(going_on, tmp_path, workers=1)
    assert going_on.work.asked == [("two", n) for n in range(5, 12)]
    assert len(found.rows) == 24
    assert found.value("error", method="one") == pytest.approx(sum(range(1, 13)) / 12)


def test_more_trials_are_added_and_fresh_ones_replace(dice, tmp_path):
    first = dice()
    runner.run(first, tmp_path, trials=2, workers=1)
    second = dice()
    runner.run(second, tmp_path, trials=3, workers=1)
    assert second.work.asked == [("one", 2), ("two", 2)]
    third = dice()
    runner.run(third, tmp_path, trials=1, workers=1, fresh=True)
    assert third.work.asked == [("one", 0), ("two", 0)]


def test_readings_on_real_files_do_not_mix_with_made_up_ones(dice, tmp_path):
    runner.run(dice(), tmp_path, trials=1, workers=1)
    with pytest.raises(InputError, match="--fresh"):
        runner.run(dice(), tmp_path, trials=2, workers=1, setting=Setting(files=tmp_path))


@pytest.mark.slow
def test_several_processes_measure_the_same_cases_once_each(tmp_path):
    experiment = catalogue.load("efpa/table3")
    found = runner.run(experiment, tmp_path, setting=QUICK, trials=6, workers=2)
    assert {case: len(trials) for case, trials in found.trials_of().items()} == dict.fromkeys(
        experiment.work.cases(QUICK), 6
    )
    # Noise is fresh: over all methods together, two trials never agree.
    trials = [
        tuple(row.reading.value for row in found.rows if row.trial == trial and row.reading.measure == "KL")
        for trial in range(6)
    ]
    assert len(set(trials)) == 6


def _results(**means):
    rows = [
        Row(Case(data, method, "0.1", x), 0, Reading("error", value))
        for (data, method, x), value in means["means"].items()
    ]
    return Results(rows, {})


LINE = {("a", "old", 1.0): 10.0, ("a", "old", 2.0): 80.0, ("a", "new", 1.0): 5.0, ("a", "new", 2.0): 5.0}


def test_a_claim_on_half_of_the_readings_is_undecided():
    def divide(found):
        return Finding(True, str(1 / len(found.rows)))

    claims = (Claim(says="s", where="w", check=divide, why="because"),)
    experiment = Experiment(
        name="n", title="t", work=_Dice(), trials=1, views=(), reported="", differs="", claims=claims
    )
    (verdict,) = pages.verdicts(experiment, Results([], {}))
    assert "| undecided |" in verdict.line()
    assert "because" not in verdict.line()


def test_claims_can_be_refuted():
    found = _results(means=LINE)
    assert beats("error", "new", ("old",))(found) == Finding(True, "error of new is 0.18 of old's")
    assert not beats("error", "old", ("new",))(found).holds
    assert best("error", {"a": "new"}, ("old", "new"))(found).holds
    assert not best("error", {"a": "old"}, ("old", "new"))(found).holds
    assert grows("error", "old", at_least=4)(found).holds
    assert not grows("error", "old", at_most=4)(found).holds
    assert grows("error", "new", at_most=1.1)(found).holds
    assert not beats("error", "new", ("nobody",))(found).holds, "what was not measured is not confirmed"


def test_a_table_shows_ours_beside_the_papers(tmp_path):
    table = Table(title="T", measure="error", columns=("x",), printed={("a", "old", "0.1"): 1_234.0})
    text = table.markdown(_results(means=LINE), tmp_path, "t")
    assert "| old | 10 / 1,234 | 80 / 1,234 |" in text
    assert "| new | 5 | 5 |" in text


def test_lines_draw_a_picture_and_fold_the_figures(tmp_path):
    text = Lines(title="L", measure="error", axis="length").markdown(_results(means=LINE), tmp_path, "lines")
    assert (tmp_path / "lines.svg").is_file()
    assert "| old | 10 | 80 |" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(math.nan, "–"), (0.0, "0"), (1_234_567.0, "1,234,567"), (2e9, "2.00e+09"), (0.1234, "0.123")],
)
def test_numbers_are_short(value, text):
    assert short(value) == text


def test_the_command_lists_runs_and_reports(tmp_path):
    command = CliRunner()
    listed = command.invoke(app, ["bench", "list"]).output
    assert "efpa/table2" in listed
    assert "coverage" in listed
    kept = str(tmp_path / "kept")
    run = command.invoke(app, ["bench", "run", "efpa/table3", "--quick", "--results", kept, "--workers", "1"])
    assert "20 readings" in run.output, run.output
    shown = command.invoke(
        app, ["bench", "report", "--results", kept, "--quick", "-o", str(tmp_path / "pages")]
    )
    assert shown.exit_code == 0, shown.output
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"efpa.md", "papers.md"}


@pytest.mark.parametrize(
    "arguments", [["run", "efpa/table99"], ["run", "efpa/table3", "--nonsense"], ["report"]]
)
def test_wrong_use_is_named(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["bench", *arguments])
    assert isinstance(found.exception, InputError)
    assert "dphist bench" in str(found.exception)


def test_what_readings_say_of_the_machine_names_no_host_and_no_path():
    import platform

    text = json.dumps(results.machine())
    assert platform.node() not in text
    assert "/" not in text.replace("\\/", "")
