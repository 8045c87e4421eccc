"""Made-up populations that forecasts are run on, and the questions they are asked: nothing here has seen a record.

They stand for what real tables lie between: all alike, one smooth hump, records that cluster so that attributes depend
on each other, and lone cells with a heavy tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import integers
from dphist.model.domain import Domain
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]

_QUESTIONS = 1000
_CLUSTERS = 8
# Cells of tables that a forecast looks at.
_MOST_TABLED = 20_000


def _even(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    return _round(np.ones(shape), records)


def _hump(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    weights = np.ones((1,) * len(shape))
    for axis, n in enumerate(shape):
        place = (np.arange(n) + 0.5) / n
        bell = np.exp(-(((place - 0.4) / 0.15) ** 2) / 2.0) + 0.02
        weights = weights * bell.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return _round(weights, records)


def _scattered(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """One cell in sixteen holds records, by a hash of its place, with a heavy tail."""
    size = math.prod(shape)
    mixed = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    level = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    weights = np.where(level < 1 / 16, 1.0 / (level * 16 + 1e-3), 0.0)
    return _round((weights if weights.any() else np.ones(size)).reshape(shape), records)


def _clustered(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """A few groups of people, each with values of its own on every attribute: attributes depend on each other.

    Long attributes have a narrow bell about the group's place, short ones favour one value; groups fall off as 1/rank.
    """
    weights = np.zeros(shape)
    for group in range(_CLUSTERS):
        one = np.ones((1,) * len(shape))
        for axis, n in enumerate(shape):
            # Places by multiples of irrational numbers: spread out, and the same for everybody.
            centre = (0.5 + (group + 1) * math.sqrt(2 + 3 * axis)) % 1.0
            place = (np.arange(n) + 0.5) / n
            bell = np.exp(-np.abs(place - centre) / (0.05 if n > 16 else 0.15)) + 1e-4
            one = one * bell.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        weights += one / one.sum() / (group + 1)
    return _round(weights, records)


def _round(weights: FloatArray, records: int) -> NDArray[np.int64]:
    return integers(weights * (records / weights.sum())).astype(np.int64)


POPULATIONS: dict[str, Callable[[tuple[int, ...], int], NDArray[np.int64]]] = {
    "even": _even,
    "one hump": _hump,
    "clustered": _clustered,
    "scattered": _scattered,
}


def questions(domain: Domain, name: str | Mapping[str, Any] | Workload) -> tuple[Workload, Workload]:
    """The workload as a hint for mechanisms, and as many of its questions as a forecast needs."""
    if isinstance(name, Workload):
        return name, name
    asked = Workload.parse(domain, name)
    if asked.kind == "all_ranges":
        return asked, Workload.random(domain, _QUESTIONS, seed=1)
    most = _MOST_TABLED if asked.kind == "marginals" else _QUESTIONS
    if asked.kind == "marginals" and len(asked) <= most:
        return asked, asked
    return asked, asked.spread(most)
