"""Planted bugs: the list fits the code, and the runner tells a bug that is noticed from one that is not."""

from __future__ import annotations

import ast

import pytest

from dphist_bench import mutants
from dphist_bench.mutants import Planted
from dphist_bench.mutants.runner import plant_all

EVERY = list(mutants.every())


def test_there_are_enough():
    assert len(EVERY) >= 60


@pytest.mark.parametrize("room", sorted({mutant.room for mutant in EVERY}))
def test_no_mutant_is_stale(room):
    for mutant in EVERY:
        if mutant.room == room:
            ast.parse(mutant.edited())
            named = [test.partition("::")[0] for test in mutant.tests if test.startswith("tests/")]
            assert named
            assert all((mutants.ROOT / test).exists() for test in named), mutant


def test_no_mutant_is_planted_twice():
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in EVERY}) == len(EVERY)
    assert len({mutant.name for mutant in EVERY}) == len(EVERY)


@pytest.mark.slow
def test_a_bug_is_killed_and_a_change_of_no_effect_survives():
    unit = "src/dphist/model/unit.py"
    tests = ("tests/values/test_histogram.py", "-k", "unit")
    verdicts = plant_all(
        [
            Planted("here", unit, "self.rows * (2 if self.replace else 1)", "self.rows", tests, "a bug"),
            Planted("here", unit, "Who is protected:", "Whom we protect:", tests, "no bug"),
            Planted("here", unit, "no such text", "x", tests, "stale"),
        ],
        1,
    )
    assert {verdict.mutant.why: verdict.outcome for verdict in verdicts} == {
        "a bug": "killed",
        "no bug": "survived",
        "stale": "stale",
    }
