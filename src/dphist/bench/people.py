"""Records of people for the DPCube experiments: the Adult census file where it is at hand, made-up ones otherwise."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.domain import Domain, Nominal, Ordinal
from dphist.histogram import Histogram

Records = dict[str, NDArray[Any]]
FILE = "adult-records.csv"
_WORK = [
    "Private",
    "Self-emp-not-inc",
    "Local-gov",
    "State-gov",
    "Self-emp-inc",
    "Federal-gov",
    "Without-pay",
]
_MARRIED = [
    "Married-civ-spouse",
    "Never-married",
    "Divorced",
    "Separated",
    "Widowed",
    "Married-spouse-absent",
    "Married-AF-spouse",
]
_RACES = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]
_NUMBERS = {"age": range(100), "hours_per_week": range(100), "education_num": range(1, 17)}
_CATEGORIES = {
    "workclass": _WORK,
    "marital_status": _MARRIED,
    "race": _RACES,
    "sex": ["Female", "Male"],
    "salary": ["<=50K", ">50K"],
}


def attribute(name: str) -> Ordinal | Nominal:
    """An attribute of the census, with the sizes of the paper: age 100, hours 100, education 16."""
    return Ordinal(name, _NUMBERS[name]) if name in _NUMBERS else Nominal(name, _CATEGORIES[name])


def domain_of(*names: str) -> Domain:
    """A domain of some of the attributes."""
    return Domain([attribute(name) for name in names])


def read(folder: Path | None, made_up: int = 30_000) -> tuple[Records, str]:
    """The census records without those that lack a value, or made-up ones, and a word on which."""
    if folder is not None and (folder / FILE).is_file():
        with (folder / FILE).open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if "?" not in row.values()]
        columns: Records = {
            name: np.array([int(row[name]) for row in rows], dtype=np.int64) for name in _NUMBERS
        }
        columns |= {name: np.array([row[name] for row in rows], dtype=object) for name in _CATEGORIES}
        return columns, f"{len(rows):,} records of the Adult census file"
    return _make(made_up), f"{made_up:,} made-up records (give --data for the Adult census file)"


def _make(count: int) -> Records:
    """People in whom age, schooling, hours and marriage hang together, and pay follows from them."""
    draw = np.random.default_rng(7)  # noqa: TID251 -- data only
    age = np.clip(17 + draw.gamma(3.0, 7.5, count), 17, 90).astype(np.int64)
    school = np.clip(np.round(draw.normal(10, 2.5, count)), 1, 16).astype(np.int64)
    hours = np.where(draw.random(count) < 0.47, 40, np.clip(draw.normal(40, 12, count), 1, 99)).astype(
        np.int64
    )
    married = draw.random(count) < np.clip((age - 20) / 40, 0.05, 0.6)
    status = np.where(married, 0, np.where(age < 35, 1, draw.integers(2, 7, count)))
    male = draw.random(count) < 0.67
    score = (
        -5.2
        + 2.3 * married
        + 0.32 * (school - 8)
        + 0.02 * (hours - 40)
        + 0.4 * male
        + 0.01 * np.minimum(age, 60)
    )
    rich = draw.random(count) < 1.0 / (1.0 + np.exp(-score))

    def pick(names: list[str], weights: list[float]) -> NDArray[Any]:
        chances = np.array(weights) / sum(weights)
        return np.array(names, dtype=object)[draw.choice(len(names), count, p=chances)]

    return {
        "age": age,
        "hours_per_week": hours,
        "education_num": school,
        "workclass": pick(_WORK, [74, 8, 7, 4, 3.5, 3, 0.1]),
        "marital_status": np.array(_MARRIED, dtype=object)[status],
        "race": pick(_RACES, [86, 9, 3, 1, 1]),
        "sex": np.where(male, "Male", "Female").astype(object),
        "salary": np.where(rich, ">50K", "<=50K").astype(object),
    }


def some(records: Records, rows: NDArray[Any] | slice) -> Records:
    """Some of the records."""
    return {name: column[rows] for name, column in records.items()}


def count(records: Records, *names: str) -> Histogram:
    """Count records over some attributes; a value outside its attribute drops the record."""
    domain = domain_of(*names)
    cells = [domain.attribute(name).cells(records[name]) for name in names]
    inside = np.all([place >= 0 for place in cells], axis=0)
    counts = np.zeros(domain.shape, dtype=np.int64)
    np.add.at(counts, tuple(place[inside] for place in cells), 1)
    return Histogram(domain, counts)
