"""Bounds learned privately: what they hold, what they cost, and that nothing else gets out."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dphist
from dphist.errors import DphistError, InputError, SourceError
from dphist.model.schema import Schema
from dphist.model.unit import Unit
from dphist.private.noise import Keystream, Noise
from dphist.publishing.bounds import Bounds, rounded
from dphist.publishing.suggest import suggest
from dphist.testing import RecordingNoise

RECORDS = 10_000


def learned(values: np.ndarray, seed: int, epsilon: Fraction = Fraction(1, 20)) -> tuple[float, float]:
    def tally(edges: Any) -> np.ndarray:
        return np.histogram(values, edges)[0].astype(np.int64)

    found = Bounds(tally, epsilon, Unit(), noise=Noise(Keystream.for_tests(seed))).learn()
    return float(found.low), float(found.high)


MADE: dict[str, Any] = {
    "normal": lambda r: r.normal(0, 1, RECORDS),
    "normal far from zero": lambda r: r.normal(1000, 1, RECORDS),
    "log-normal": lambda r: r.lognormal(7, 1.5, RECORDS),
    "Pareto": lambda r: 100 * (r.pareto(1.5, RECORDS) + 1),
    "two clusters": lambda r: np.where(
        r.random(RECORDS) < 0.5, r.normal(0, 1, RECORDS), r.normal(50, 1, RECORDS)
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_bounds_hold_nearly_all_and_are_not_far(name: str) -> None:
    """A few runs, of which hundreds were measured once; one in ten may fail here, one in forty does."""
    random = np.random.default_rng(5)
    right = 0
    for seed in range(20):
        values = MADE[name](random)
        low, high = learned(values, seed)
        first, last = np.quantile(values, [0.01, 0.99])
        inside = np.mean((values >= low) & (values <= high))
        right += bool(inside >= 0.98 and high - low <= 4 * (last - first))
    assert right >= 17


def test_domains_that_nobody_expected() -> None:
    low, high = learned(np.full(RECORDS, 5.0), 1)
    assert low < 5 < high < 6
    low, high = learned(np.zeros(RECORDS), 1)
    assert low <= 0 < high <= 1
    low, high = learned(-np.random.default_rng(1).lognormal(3, 1, RECORDS), 1)
    assert low < -100
    assert high <= 1
    low, high = learned(np.where(np.arange(RECORDS) % 2 == 0, 1.0, 1e12), 1)
    assert low <= 1
    assert 1e12 <= high < 1e13
    with pytest.raises(SourceError, match="too few"):
        learned(np.arange(20.0), 1)


def test_every_histogram_is_paid_for_and_no_more() -> None:
    values = np.random.default_rng(2).normal(1000, 1, RECORDS)
    noise = RecordingNoise(seed=3)

    def tally(edges: Any) -> np.ndarray:
        return np.histogram(values, edges)[0].astype(np.int64)

    Bounds(tally, Fraction(1, 20), Unit(rows=2), noise=noise).learn()
    spent = [2 / draw.amounts[0] for draw in noise.drawn]
    assert spent[0] == Fraction(1, 80)
    assert sum(spent) == Fraction(1, 20)


def test_rounding_goes_outward() -> None:
    for low, high in ((0.0, 1.0), (-3.21, 97.4), (999.3, 1000.1), (1e-7, 3e-7), (0.0, 1.7e12)):
        first, last, grain = rounded(low, high)
        assert first <= low < high <= last
        assert last - first <= (high - low) * 1.1 + 1e-12
        assert (first / grain).denominator == (last / grain).denominator == 1


def people(rows: int = 8000) -> pd.DataFrame:
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "user": np.repeat(np.arange(rows // 4), 4),
            "cost": random.lognormal(5, 1, rows),
            "year": random.integers(1950, 2020, rows),
            "name": random.choice(["a", "b"], rows),
        }
    )


def test_a_suggestion_is_a_schema_and_pays(tmp_path: Path, state_folder: Path) -> None:
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 2)
        found = suggest(
            people(), ["cost", "year"], "3/2", unit=Unit(id="user"), ledger=ledger, dataset="people"
        )
        assert ledger.spent("people") == Fraction(3, 2)
        assert found.receipt is not None
        assert found.rows == 4
        assert [part.epsilon for part in found.parts] == [Fraction(1, 2)] * 3
        text = found.to_toml()
        schema = Schema.read(text)
        assert [measure.name for measure in schema.measures] == ["cost", "year"]
        assert schema.measures == found.measures
        assert schema.domain.names == ("cost", "year")
        assert all(f"ε = {part.epsilon}" in text and part.reason in text for part in found.parts)
        year = found.measures[1]
        assert 1800 < Fraction(year.low) <= 1955
        assert 2015 <= Fraction(year.high) < 2200
        for wrong, error in (
            ({"columns": ["name"]}, SourceError),
            ({"columns": ["nothing"]}, SourceError),
            ({"columns": "cost"}, InputError),
            ({"columns": []}, InputError),
        ):
            with pytest.raises(error):
                suggest(people(), epsilon="1/2", ledger=ledger, dataset="people", **wrong)
        assert ledger.spent("people") == Fraction(3, 2)
        with pytest.raises(DphistError):
            suggest(people(), ["cost"], 1, ledger=ledger, dataset="people")


@pytest.mark.parametrize("make", [pd.DataFrame, partial(pl.DataFrame, strict=False), pa.table, ibis.memtable])
def test_a_suggestion_does_not_tell_whether_a_frames_values_are_whole(make: Any) -> None:
    """One missing value, or one fraction, gives a frame's column another type: nothing that is said hangs on it."""
    hours = np.tile(np.arange(20, 60), 500).tolist()
    found = [
        suggest(make({"hours": [*hours, *more]}), ["hours"], 1, noise=Noise(Keystream.for_tests(1)))
        for more in ([], [None], [30.5])
    ]
    assert found[0] == found[1] == found[2]


def test_whole_numbers_are_whole_where_their_type_is_declared(tmp_path: Path) -> None:
    people().to_parquet(tmp_path / "people.parquet")
    (part,) = suggest(tmp_path / "people.parquet", ["year"], 1).parts
    assert part.measure is not None
    assert part.measure.size == 1
    assert part.bins is not None
    assert part.bins.denominator == 1


def test_a_suggestion_of_a_column_with_a_strange_name_is_a_schema_all_the_same() -> None:
    name = 'paid "net"\nin euros'
    frame = pd.DataFrame({name: np.tile(np.arange(20, 60), 500)})
    drafted = Schema.read(suggest(frame, [name], epsilon=1).to_toml())
    assert drafted.domain.names == (name,)


def test_every_histogram_is_noised_for_the_unit() -> None:
    """Of a person who is replaced by another, two numbers of rows move; of two rows each, four cells do."""
    noise = RecordingNoise(seed=3)
    suggest(people(), ["cost", "year"], 3, unit=Unit(rows=2, id="user", replace=True), noise=noise)
    first, *others = [1 / draw.amounts[0] for draw in noise.drawn]
    assert 2 * first == 1
    assert 4 * sum(others) == 2


def test_one_person_with_many_rows_moves_no_bound() -> None:
    """Noise is drawn for the rows that a unit allows, so no others may be looked at."""
    usual = pd.DataFrame({"user": np.arange(4000), "cost": np.tile(np.arange(20, 60), 100)})
    far = pd.DataFrame({"user": np.full(4000, -1), "cost": np.full(4000, 10**6)})
    noise = Noise(Keystream.for_tests(1))
    found = suggest(pd.concat([usual, far]), ["cost"], 2, unit=Unit(id="user"), noise=noise)
    assert 59 <= float(found.measures[0].high) < 10**4


def test_rows_per_person_on_every_engine(tmp_path: Path) -> None:
    from dphist.sources.count import rows_of_people

    table = people(400)
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.csv", tmp_path / "t.parquet"):
        rows, held = rows_of_people(source, "user")
        assert (rows.tolist(), held.tolist()) == ([4], [100])


def test_the_command(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from dphist.cli.commands import app

    people().to_csv(tmp_path / "t.csv", index=False)
    asked = ["schema", "suggest", str(tmp_path / "t.csv"), "--column", "cost", "--epsilon", "1/2", "-o"]
    done = CliRunner().invoke(app, [*asked, str(tmp_path / "s.toml")])
    assert done.exit_code == 0
    assert Schema.read(tmp_path / "s.toml").measures[0].name == "cost"


def test_what_was_learned_is_kept_where_another_column_shows_nothing(tmp_path: Path) -> None:
    """All of it is paid for before the first noise: one column without values took the others' bounds with it."""
    rows = people().assign(empty=float("nan"))
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("people", 3)
        found = suggest(rows, ["empty", "cost"], 1, ledger=ledger, dataset="people")
        assert ledger.spent("people") == 1
        assert [part.measure is None for part in found.parts] == [True, False]
        assert found.receipt is not None
        text = found.to_toml()
        assert "empty: ε = 1/2. Not learned: no range of values" in text
        assert [measure.name for measure in Schema.read(text).measures] == ["cost"]
        with pytest.raises(SourceError, match="the epsilon is spent"):
            suggest(rows, ["empty"], 1, ledger=ledger, dataset="people")
        assert ledger.spent("people") == 2
