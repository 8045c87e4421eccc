"""The judge measures what it says, and fails where a rule of the game is broken."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import cast

import pytest

from dphist.errors import InputError
from dphist_bench import catalogue
from dphist_bench.judge import accuracy, house
from dphist_bench.judge.accuracy import Reading
from dphist_bench.judge.cases import FRESH, TUNING, Task, counts_of, tasks
from dphist_bench.judge.judge import costs_beside, coverage_beside, errors_beside
from dphist_bench.measuring import Failure
from dphist_bench.mutants import ROOT


def reading(**changes):
    told = {"sort": "line", "data": "1", "announced": "", "currency": "epsilon", "asked": "cells"}
    numbers = {"error": 2.0, "held": 0.95, "width": 4.0, "measured": 1.0}
    return cast(Reading, told | numbers | changes)


def failures(lines):
    return [line for line in lines if isinstance(line, Failure)]


def test_numbers_that_judge_are_not_those_that_constants_are_chosen_on():
    judged, tuned = ({task.data for task in tasks(first, None) if task.ordinary} for first in (FRESH, TUNING))
    assert judged
    assert not judged & tuned


def test_a_case_is_measured_to_the_same_numbers_again():
    task = Task("hostile", "steps, 3 a cell", "", "epsilon", 2)
    found = accuracy.readings(task)
    assert {each["asked"] for each in found} == {"cells", "ranges", "short ranges", "prefixes"}
    assert found == accuracy.readings(task)
    assert found != accuracy.readings(replace(task, currency="rho"))
    assert all(each["error"] > 0 and 0.5 < (each["held"] or 0) <= 1 for each in found)


def test_both_currencies_spend_what_gives_a_cell_the_same_noise():
    task = Task("line", str(FRESH), "", "epsilon", 1)
    (histogram, epsilon), (other, rho) = counts_of(task), counts_of(replace(task, currency="rho"))
    assert (histogram.counts == other.counts).all()
    assert rho.amount == epsilon.amount**2 / 2


@pytest.mark.parametrize(("ratio", "broken"), [(1.0, 0), (1.02, 0), (1.04, 1), (1.06, 2)])
def test_errors_above_the_rules_fail(ratio, broken):
    before = [reading(data=str(number)) for number in range(5)]
    now = [reading(data=str(number), error=2.0 * ratio) for number in range(5)]
    assert len(failures(errors_beside(now, before))) == broken


def test_one_bad_case_is_named_and_does_not_fail_by_itself():
    before = [reading(data=str(number)) for number in range(50)]
    now = [reading(data=str(number), error=2.0 if number else 2.8) for number in range(50)]
    lines = list(errors_beside(now, before))
    assert not failures(lines)
    assert any(isinstance(line, dict) and "line, 0, , epsilon, cells" in line.values() for line in lines)


@pytest.mark.parametrize(
    ("held", "sort", "broken"),
    [(0.95, "line", 0), (0.90, "line", 1), (0.99, "line", 1), (0.90, "hostile", 0), (0.84, "hostile", 1)],
)
def test_intervals_that_hold_too_seldom_or_too_often_fail(held, sort, broken):
    assert len(failures(coverage_beside([reading(held=held, sort=sort)], None))) == broken


def test_wider_intervals_and_slower_jobs_fail():
    wide = coverage_beside([reading(width=5.0)], [reading()])
    assert len(failures(wide)) == 1
    assert len(failures(costs_beside([["a", 1.6, 1.0]], [["a", 1.0, 1.0]]))) == 1
    assert not failures(costs_beside([["a", 1.4, 1.0]], [["a", 1.0, 1.0]]))


def test_lines_of_code_and_constants_are_counted():
    text = '"""Words."""\n\nA = 1\nB, C = 2, "x"\nD = 1 << 14\n_E = -2.5\nf = 3\n\n\n'
    text += 'def g():\n    """More."""\n    # Why.\n    return A\n'
    assert house._constants(text) == 4
    assert house._code(text) == 7


def test_what_other_numbers_gave_is_not_mixed_in(tmp_path):
    path = tmp_path / "found.json"
    path.write_text(json.dumps({"first": TUNING}), encoding="utf-8")
    with pytest.raises(InputError, match="other numbers"):
        catalogue.measure("judge", ["-o", str(path), "--only", "house"], tmp_path)


def test_the_baseline_is_read_and_agrees_with_itself(tmp_path, capsys):
    baseline = ROOT / "bench/results/judge-baseline.json"
    asked = ["--read", str(baseline), "--beside", str(baseline)]
    catalogue.measure("judge", asked, tmp_path)
    assert "errors of all kinds together: 1.000" in capsys.readouterr().out
