"""What a file keeps of its intervals: believed by whoever asks, learned anew by whoever verifies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.errors import ReleaseError, VerificationError
from dphist.inference.predictive.engine import Engine
from dphist.release.file.description import KEY
from dphist.release.file.writing import HOW

LINE = dphist.Domain([dphist.Ordinal("x", range(700))])
PLANE = dphist.Domain([dphist.Ordinal("x", range(44)), dphist.Ordinal("y", range(40))])


@pytest.fixture(autouse=True)
def _few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dphist.release.learned.FEWEST", 100)


def _saved(tmp_path: Path, domain: dphist.Domain, **options: Any) -> tuple[dphist.Release, Path]:
    place = np.stack(np.meshgrid(*(np.linspace(-1, 1, n) for n in domain.shape), indexing="ij"))
    counts = (40 * np.exp(-12 * (place**2).sum(axis=0))).astype(np.int64)
    release = dphist.publish(dphist.Histogram(domain, counts), epsilon=1, **options)
    release.save(tmp_path / "r.parquet")
    return release, tmp_path / "r.parquet"


def _rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    story = json.loads(metadata[KEY])
    change(story)
    metadata[KEY] = json.dumps(story).encode()
    other = path.with_name("other.parquet")
    pq.write_table(table.replace_schema_metadata(metadata), other, write_statistics=False, **HOW)
    return other


@pytest.mark.parametrize(("domain", "workload"), [(LINE, None), (PLANE, None), (LINE, "cells")])
def test_a_question_learns_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, domain: dphist.Domain, workload: str | None
) -> None:
    options = {} if workload is None else {"workload": dphist.Workload.cells(domain)}
    release, path = _saved(tmp_path, domain, **options)
    questions = dphist.Workload.random(domain, 9, 2)
    expected = release.answer(questions)
    old = dphist.load(_rewritten(path, lambda story: story.pop("learned")))
    assert old._learned is None

    def never(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("learned again")

    with monkeypatch.context() as patch:
        patch.setattr("dphist.inference.predictive.law.learn_ways", never)
        patch.setattr("dphist.inference.predictive.law.alike_part", never)
        patch.setattr(Engine, "trials", property(never))
        believed = dphist.load(path)
        found = believed.answer(questions)
        with pytest.raises(AssertionError, match="learned again"):
            old.answer(questions)
    again = old.__class__.answer(dphist.load(_rewritten(path, lambda story: story.pop("learned"))), questions)
    for other in (found, again):
        np.testing.assert_allclose(other.value, expected.value, rtol=1e-9)
        np.testing.assert_array_equal(other.low, expected.low)
        np.testing.assert_array_equal(other.high, expected.high)
    believed.verify()
    old.verify()


def _louder(name: str) -> Callable[[dict[str, Any]], None]:
    def change(story: dict[str, Any]) -> None:
        values = np.array(story["learned"][name])
        values.flat[-1] = values.flat[-1] * 1.001 + 1e-6
        story["learned"][name] = values.tolist()

    return change


def test_what_was_forged_is_answered_but_not_verified(tmp_path: Path) -> None:
    _, path = _saved(tmp_path, PLANE)
    asked = "x between 3 and 20"
    forgeries = {name: _louder(name) for name in ("ways", "alike", "caution", "departures", "inside")}
    forgeries["one is missing"] = lambda story: story["learned"].pop("ways")
    forgeries["another length"] = lambda story: story["learned"]["caution"].append(2.0)
    for name, forge in forgeries.items():
        forged = dphist.load(_rewritten(path, forge))
        # Whoever asked before has believed it; whoever verifies believes nothing.
        assert forged.answer(asked).measured, name
        with pytest.raises(VerificationError, match="of its intervals"):
            forged.verify()


@pytest.mark.parametrize(
    "said",
    [
        {"secret": [1.0]},
        {"ways": "text"},
        {"ways": [["1"]]},
        {"caution": [float("nan")]},
        {"caution": 1.0},
        [1.0],
    ],
)
def test_a_file_holds_nothing_else_there(tmp_path: Path, said: Any) -> None:
    domain = dphist.Domain([dphist.Ordinal("x", range(60))])
    _, path = _saved(tmp_path, domain)
    with pytest.raises(ReleaseError, match="of its intervals"):
        dphist.load(_rewritten(path, lambda story: story.update(learned=said)))


def test_few_cells_and_known_noise_keep_nothing(tmp_path: Path) -> None:
    few = dphist.Domain([dphist.Ordinal("x", range(60))])
    for domain, mechanism in ((few, "adaptivetree"), (LINE, "laplace")):
        _, path = _saved(tmp_path, domain, mechanism=mechanism)
        assert "learned" not in json.loads(pq.read_schema(path).metadata[KEY])


def test_what_all_cells_are_read_again_for_is_kept_however_few_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = dphist.Domain([dphist.Ordinal("x", range(60))])
    release, path = _saved(tmp_path, domain, workload="cells")
    said = [(one.low, one.high) for one in (release.answer(where={"x": at}) for at in (3, 40))]

    def never(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("read again")

    monkeypatch.setattr("dphist.mechanisms.posterior._read", never)
    loaded = dphist.load(path)
    assert [(one.low, one.high) for one in (loaded.answer(where={"x": at}) for at in (3, 40))] == said


def test_how_intervals_are_obtained_is_said_without_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, path = _saved(tmp_path, PLANE)
    loaded = dphist.load(path)
    monkeypatch.setattr(dphist.Release, "_replay", None)
    cells: Any = loaded.cells
    assert cells.method(loaded, 0.95) == release.answer().method
