"""The measurement that calls everything public: it counts, it tells a death, and it can find something."""

from __future__ import annotations

import dphist
from dphist_bench.fuzz import calling, crew, pool, surface
from dphist_bench.measurements.trust.publicfuzz import measure


def test_a_worker_that_dies_is_told():
    found = crew._again(("no such target", 3, 2), "the process died")
    assert list(found.findings) == ["the process died"]
    assert found.findings["the process died"][1] == "nothing yet"


def test_a_bare_error_a_hang_and_an_empty_word_are_found(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pool.things()

    def bare(number: int) -> None:
        raise ValueError("of nobody")

    def slow(number: int) -> None:
        while True:
            pass

    def silent(number: int) -> None:
        raise dphist.errors.InputError("")

    for wrong, words in ((bare, "ValueError at"), (slow, "took more than"), (silent, "without words")):
        monkeypatch.setattr(surface, "targets", lambda wrong=wrong: {"wrong": (wrong, None)})
        monkeypatch.setattr(calling, "_SECONDS", 0.05)
        found = calling.attack("wrong", 2, 1)
        assert not found.answered
        assert all(words in kind for kind in found.findings)


def test_a_quick_run_counts_what_it_did():
    lines = list(measure(quick=True, only=("Unit.describe", "Unit.to_json")))
    assert {"target": "Unit.describe", "answered": 3, "refused": 0, "findings": 0} in lines
    assert "2 targets" in str(lines[-1])
