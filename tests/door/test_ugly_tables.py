"""Wide tables as they come: through the front door, from a file, in both currencies, without a word of warning."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dphist

Columns = dict[str, Any]
Case = tuple[list[Any], Columns]
_NAMES = [f"q{i}" for i in range(16)]


def _answers(rows: int, seed: int = 1) -> Columns:
    """Sixteen questions of three answers that lean on one taste."""
    rng = np.random.default_rng(seed)
    taste = rng.integers(0, 3, rows)
    return {name: np.where(rng.random(rows) < 0.5, taste, rng.integers(0, 3, rows)) for name in _NAMES}


def _questions(*names: str) -> list[Any]:
    return [dphist.Ordinal(name, range(3)) for name in names or _NAMES]


def _one_value(rows: int) -> Case:
    return [*_questions(), dphist.Nominal("country", ["CH"])], {**_answers(rows), "country": ["CH"] * rows}


def _copies(rows: int) -> Case:
    made = _answers(rows)
    return _questions(*_NAMES, "again"), {**made, "again": made["q0"]}


def _plain(rows: int) -> Case:
    return _questions(), _answers(rows)


def _hierarchy(rows: int) -> Case:
    towns = {f"land{i}": [f"town{i}.{j}" for j in range(6)] for i in range(4)}
    rng = np.random.default_rng(2)
    land, town = rng.integers(0, 4, rows), rng.integers(0, 6, rows)
    places = {
        "country": [f"land{i}" for i in land],
        "city": [f"town{i}.{j}" for i, j in zip(land, town, strict=True)],
    }
    return [*_questions(), dphist.Nominal("country", list(towns)), dphist.Nominal("city", towns)], {
        **_answers(rows),
        **places,
    }


def _skewed(rows: int) -> Case:
    rng = np.random.default_rng(3)
    made = {name: np.minimum(rng.zipf(2.5, rows), 20) - 1 for name in _NAMES}
    return [dphist.Ordinal(name, range(20)) for name in _NAMES], made


def _thirty(rows: int) -> Case:
    rng = np.random.default_rng(4)
    taste = rng.random(rows)
    made = {f"b{i}": (rng.random(rows) < (taste + i / 30) / 2).astype(int) for i in range(30)}
    return [dphist.Ordinal(name, range(2)) for name in made], made


CASES: dict[str, tuple[Callable[[int], Case], int]] = {
    "a column of one value": (_one_value, 3000),
    "two copies of a column": (_copies, 3000),
    "two hundred records": (_plain, 200),
    "no records": (_plain, 0),
    "city in country": (_hierarchy, 3000),
    "very skewed": (_skewed, 3000),
    "thirty of two values": (_thirty, 1000),
}


@pytest.mark.parametrize("budget", [{"epsilon": "1/2"}, {"rho": "1/50"}], ids=["epsilon", "rho"])
@pytest.mark.parametrize("name", CASES)
def test_ugly_tables_are_published_and_answered(name: str, budget: dict[str, Any], tmp_path: Path) -> None:
    make, rows = CASES[name]
    attributes, columns = make(rows)
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = dphist.publish(
            tmp_path / "x.csv", dphist.Domain(attributes), unattended=True, allow_dropped=1, **budget
        )
        made.save(tmp_path / "x.parquet")
        release = dphist.load(tmp_path / "x.parquet")
        if "epsilon" in budget:
            release.verify()
        # Everything that was measured has an interval around what is published, and the rest says that it was not.
        assert release.answer().low <= release.answer().value <= release.answer().high
        for attribute in attributes:
            table = release.project(attribute.name)
            assert np.all(table.low <= table.counts)
            assert np.all(table.counts <= table.high)
        pair = release.project(*(attribute.name for attribute in attributes[-2:]))
        assert np.all((pair.low <= pair.counts) & (pair.counts <= pair.high) | np.isnan(pair.low))
        assert pair.counts.min() >= 0.0
        assert release.answer(f"{attributes[0].name} = {attributes[0].labels[0]}").measured
