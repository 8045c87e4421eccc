"""Whoever waits is told how far work has come and how long the rest takes; nobody else is."""

import pytest

from dphist import waiting


def test_what_is_left_is_foretold_from_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.5, 4.0, 600.0])
    monkeypatch.setattr("dphist.waiting.time.monotonic", lambda: next(clock))
    said: list[str] = []
    with waiting.listening(said.append):
        assert list(waiting.steps("fitting", 8, apart=2)) == list(range(8))
    assert said == [
        "fitting: 25 %",
        "fitting: 50 %, about 4 s left in this part",
        "fitting: 75 %, about 3 min left in this part",
    ]


def test_nobody_is_told_who_does_not_listen() -> None:
    said: list[str] = []
    with waiting.listening(said.append):
        pass
    assert list(waiting.steps("fitting", 3)) == [0, 1, 2]
    assert not said
