"""Every door × every unit: which rows are kept, the exact noise that is drawn, what is promised, what is paid.

Each door opens a gate of its own, some of them in other processes; a unit that is lost on the way to one of them gives
too little noise there, and the release would still verify.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from recording_noise import Recorded, WritingNoise

import dphist
from dphist.errors import DphistError, EngineError
from dphist.model.unit import Unit
from dphist.private.noise import Noise
from dphist.publishing import parts

DOMAIN = dphist.Domain([dphist.Ordinal("age", range(6)), dphist.Nominal("region", ["n", "e", "s", "w"])])
EPSILON = Fraction(2, 7)
PROMISES = {
    Unit(): "one row, which may be added or removed",
    Unit(rows=3): "a group of up to 3 rows, which may be added or removed",
    Unit(replace=True): "one row, which may be replaced by any other",
    Unit(
        rows=2, id="user"
    ): "one person, who may be added or removed: all the rows that share a value of user, "
    "of which at most 2 are counted",
    Unit(
        rows=2, id="user", replace=True
    ): "one person, who may be replaced by any other: all the rows that share "
    "a value of user, of which at most 2 are counted",
}
STEPS = dict(zip(PROMISES, (1, 3, 2, 2, 4), strict=True))
# PySpark leaves its sockets to the garbage collector.
SPARK = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
DOORS = [
    "dense",
    "dense, through Ibis",
    "parted here",
    "parted in workers",
    "sparse",
    pytest.param("dense from Spark", marks=SPARK),
]


def records() -> pa.Table:
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(60), rng.integers(1, 6, 60))
    return pa.table(
        {
            "age": rng.integers(0, 6, users.size),
            "region": np.array(["n", "e", "s", "w"])[rng.integers(0, 4, users.size)],
            "user": [f"u{user}" for user in users],
        }
    )


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let worker processes find the mechanism that records."""
    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))


@pytest.mark.parametrize("unit", PROMISES, ids=lambda unit: str(unit).removeprefix("Unit"))
@pytest.mark.parametrize("door", DOORS)
def test_a_unit_reaches_the_noise_the_promise_and_the_ledger(
    door: str, unit: Unit, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, seen = records(), tmp_path / "seen"
    source, recipe, options = open_door(door, table, seen, request, monkeypatch)
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        options |= {"allow_dropped": 1}
        release = dphist.publish(
            source, DOMAIN, EPSILON, recipe, unit=unit, ledger=book, dataset="people", **options
        )
        (entry,) = book.entries("people")
        assert (entry.epsilon, entry.cost, entry.unit) == (EPSILON, EPSILON, PROMISES[unit])
        assert release.receipt == ("people", entry.id, entry.hash)
        assert book.unit("people") == unit
    drawn = [json.loads(line) for line in seen.read_text().splitlines()]

    # Rows: everybody's first `rows`, wherever they lie; all of them where no id is named.
    owned = Counter(table["user"].to_pylist())
    kept = sum(min(count, unit.rows) for count in owned.values()) if unit.id else table.num_rows
    assert sum(sum(line["values"]) for line in drawn) == kept

    # Noise: one question a part, with the scale of the whole person (cells that pass by chance draw on their own).
    assert [line["amounts"][0] for line in drawn] == [str(STEPS[unit] / EPSILON)] * len(drawn)
    tossed = [line for line in drawn if line["sampler"] == "hits"]
    assert len(drawn) - len(tossed) == (4 if door.startswith("parted") else 2 if door == "sparse" else 1)
    # Of a sparse release the cells that hold nobody are tossed too, all of them, for the very same noise.
    assert [line["size"] for line in tossed] == ([DOMAIN.size] if door == "sparse" else [])
    others = {line["process"] for line in drawn} - {os.getpid()}
    assert bool(others) == (door == "parted in workers")

    # Promise: the words, the accounts and the replay.
    assert release.guarantee.describe() == f"{float(EPSILON):g}-differential privacy for {PROMISES[unit]}"
    assert release.guarantee.unit == unit
    assert release.transcript.spent() == EPSILON
    assert {entry.epsilon for entry in release.transcript} == {EPSILON}
    release.verify()


def open_door(
    door: str,
    table: pa.Table,
    seen: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Any, Any, dict[str, Any]]:
    recipe: Any = Recorded(path=str(seen))
    source: Any = table
    options: dict[str, Any] = {}
    if "Spark" in door:
        session = request.getfixturevalue("spark_session")
        source = session.createDataFrame(table)
    if "Ibis" in door:
        source = ibis.memtable(table)
    if door.startswith("parted"):
        options = {"partition_by": "region", "workers": 2 if "workers" in door else 1}
    if door == "sparse":
        recipe = "sparselaplace"
        monkeypatch.setattr(Noise, "system", classmethod(lambda _: WritingNoise(str(seen))))
    return source, recipe, options


def test_a_part_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    histogram = dphist.Histogram(DOMAIN, np.ones(DOMAIN.shape, dtype=np.int64))
    forgetful = [
        lambda job: parts.run_job(job)[:-1],
        lambda job: parts.run_job(job) * 2,
    ]
    for run in forgetful:
        monkeypatch.setattr(parts, "_in_process", run)
        with pytest.raises(EngineError, match="a part was lost"):
            dphist.publish(histogram, epsilon=1, mechanism="laplace", partition_by="region", workers=2)


def test_no_refusal_at_the_door_quotes_a_total_or_a_count() -> None:
    counts = np.zeros(DOMAIN.shape, dtype=np.int64)
    counts[2, 1], counts[3, 3] = 518_273, 400_000
    histogram = dphist.Histogram(DOMAIN, counts)
    other = dphist.Domain([dphist.Ordinal("age", range(6))])
    wrong: list[dict[str, Any]] = [
        {"workload": dphist.Workload.cells(other)},
        {"domain": other},
        {"unit": Unit(id="user")},
        {"partition_by": "nothing"},
        {"partition_by": ["age", "region"]},
        {"partition_by": ["age", "age"]},
        {"partition_by": "age", "mechanism": "sparselaplace"},
        {"mechanism": "spa"},
        {"mechanism": "privelet:plain=7"},
        {"mechanism": "sparselaplace", "workload": 3},
        {"epsilon": "1e-30"},
        {"epsilon": 0},
        {"ledger": "nowhere/budget.db", "dataset": "people"},
    ]
    for options in wrong:
        with pytest.raises(DphistError) as refusal:
            dphist.publish(histogram, **{"epsilon": 1, "mechanism": "laplace", **options})
        said = str(refusal.value).replace(",", "")
        for secret in (518_273, 400_000, 918_273):
            assert str(secret) not in said
