"""Records of people, as the DPCube experiments need them: their attributes, made-up ones, and how they are counted."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist_bench.cases import Setting
from dphist_bench.data import files

Records = dict[str, NDArray[Any]]
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
    "Married-civ-spouse", "Never-married", "Divorced", "Separated", "Widowed", "Married-spouse-absent",
    "Married-AF-spouse",
]  # fmt: skip
_RACES = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]
_NUMBERS = {"age": range(100), "hours_per_week": range(100), "education_num": range(1, 17)}
_CATEGORIES = {
    "workclass": _WORK,
    "marital_status": _MARRIED,
    "race": _RACES,
    "sex": ["Female", "Male"],
    "salary": ["<=50K", ">50K"],
}
# As many as the census file has without those that lack a value.
_WHOLE, _QUICK = 30_162, 3_000


def domain_of(*names: str) -> Domain:
    """A domain of some of the attributes, with the sizes of the paper: age 100, hours 100, education 16."""
    return Domain(
        [
            Ordinal(name, _NUMBERS[name]) if name in _NUMBERS else Nominal(name, _CATEGORIES[name])
            for name in names
        ]
    )


@lru_cache(maxsize=1)
def records(setting: Setting) -> Records:
    """The Adult census records where that file is at hand, made-up ones otherwise, few in a quick run."""
    if not setting.quick and setting.files is not None:
        found = files.adult_records(setting.files)
        if found is not None:
            return found
    return make(_QUICK if setting.quick else _WHOLE)


def make(count: int, seed: int = 7) -> Records:
    """People in whom age, schooling, hours and marriage hang together, and pay follows from them."""
    draw = np.random.default_rng(seed)  # noqa: TID251 -- data only
    age = np.clip(17 + draw.gamma(3.0, 7.5, count), 17, 90).astype(np.int64)
    school = np.clip(np.round(draw.normal(10, 2.5, count)), 1, 16).astype(np.int64)
    hours = np.where(draw.random(count) < 0.47, 40, np.clip(draw.normal(40, 12, count), 1, 99)).astype(
        np.int64
    )
    married = draw.random(count) < np.clip((age - 20) / 40, 0.05, 0.6)
    status = np.where(married, 0, np.where(age < 35, 1, draw.integers(2, 7, count)))
    male = draw.random(count) < 0.67
    score = -5.2 + 2.3 * married + 0.32 * (school - 8) + 0.02 * (hours - 40)
    score = score + 0.4 * male + 0.01 * np.minimum(age, 60)
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
