"""Made-up populations that forecasts are run on, and the questions they are asked: nothing here has seen a record.

They stand for what real tables lie between: all alike, one smooth hump, a hump whose cells differ at random, a crowded
beginning that falls off, records that cluster so that attributes depend on each other, lone cells with a heavy tail,
categories that are common or rare in no order, and ups and downs all along. In all of them counts scatter about what is
expected, as counts of people do (Poisson): without that whoever
smooths would be promised too much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.hashing import GOLDEN, mixed
from dphist.model.domain import Domain
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]

_QUESTIONS = 1000
# Attributes of more than 16 values have a shape of their own; half of what falls off does so in the first 1/32 of their
# values.
_SHORT = 16
# Cells of tables that a forecast looks at.
_MOST_TABLED = 20_000
# Below this mean, counts are drawn by their exact law; above, by the normal one.
_FEW = 20.0


def _even(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    return _drawn(np.ones(shape), records)


def _bell(shape: tuple[int, ...]) -> FloatArray:
    weights = np.ones((1,) * len(shape))
    for axis, n in enumerate(shape):
        place = (np.arange(n) + 0.5) / n
        bell = np.exp(-(((place - 0.4) / 0.15) ** 2) / 2.0)
        weights = weights * bell.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return weights


def _hump(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    return _drawn(_bell(shape), records)


def _rough(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """A hump whose cells differ by a factor of their own, exponential."""
    return _drawn(_bell(shape) * -np.log(_uniform(shape, 3)), records)


def _falling(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """Most records have the first values of every attribute: costs, ages of things, categories by their rank."""
    weights = np.ones((1,) * len(shape))
    for axis, n in enumerate(shape):
        fall = (1.0 + np.arange(n) * (32.0 / n if n > _SHORT else 1.0)) ** (-2.0 if n > _SHORT else -1.0)
        weights = weights * fall.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return _drawn(weights, records)


def _scattered(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """One cell in sixteen holds records, by a hash of its place, with a heavy tail."""
    level = _uniform(shape, 4)
    weights = np.where(level < 1 / 16, 1.0 / (level * 16 + 1e-3), 0.0)
    return _drawn(weights if weights.any() else np.ones(shape), records)


def _clustered(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """A few groups of people, each with values of its own on every attribute: attributes depend on each other.

    Long attributes have a narrow peak at the group's place, short ones favour one value; groups fall off as 1/rank.
    """
    weights = np.zeros(shape)
    for group in range(8):
        one = np.ones((1,) * len(shape))
        for axis, n in enumerate(shape):
            # Places by multiples of irrational numbers: spread out, and the same for everybody.
            centre = (0.5 + (group + 1) * math.sqrt(2 + 3 * axis)) % 1.0
            place = (np.arange(n) + 0.5) / n
            peak = np.exp(-np.abs(place - centre) / (0.05 if n > _SHORT else 0.15))
            one = one * peak.reshape([-1 if a == axis else 1 for a in range(len(shape))])
        weights += one / one.sum() / (group + 1)
    return _drawn(weights, records)


def _unordered(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """Categories are common or rare in no order, as jobs and schools are; cells differ by a factor of their own.

    Whoever pools neighbours pools a common value with a rare one. Long attributes have a hump.
    """
    weights = _bell(shape)
    for axis, n in enumerate(shape):
        if n <= _SHORT:
            rank = np.argsort(np.argsort(_uniform((n,), 50 + axis)))
            one = (1.0 + rank) ** -1.5 / _bell((n,))
            weights = weights * one.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return _drawn(weights * -np.log(_uniform(shape, 5)), records)


def _uneven(shape: tuple[int, ...], records: int) -> NDArray[np.int64]:
    """Ups and downs: the logarithm of every attribute is a walk, by about one over an eighth of its values."""
    weights = np.ones((1,) * len(shape))
    for axis, n in enumerate(shape):
        level = _uniform((n,), 60 + axis)
        # Logistic steps have a deviation of 1.8.
        walk = np.cumsum(np.log(level / (1.0 - level))) * (math.sqrt(8.0 / n) / 1.8)
        weights = weights * np.exp(walk).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return _drawn(weights, records)


def _drawn(weights: FloatArray, records: int) -> NDArray[np.int64]:
    """Poisson counts, about ``records`` in all; the same for everybody, by a hash of each cell's place."""
    expected = (weights * (records / weights.sum())).reshape(-1)
    level, turn = (_uniform(expected.shape, salt) for salt in (1, 2))
    normal = np.sqrt(-2.0 * np.log(level)) * np.cos(2.0 * math.pi * turn)
    counts: NDArray[np.int64] = np.rint(np.maximum(expected + np.sqrt(expected) * normal, 0.0)).astype(
        np.int64
    )
    few = np.flatnonzero(expected < _FEW)
    mean, wanted = expected[few], level[few]
    chance = np.exp(-mean)
    below, count = chance.copy(), np.zeros(few.size, dtype=np.int64)
    for k in range(1, 4 * int(_FEW)):
        more = wanted > below
        if not more.any():
            break
        count += more
        chance *= mean / k
        below += chance
    counts[few] = count
    return counts.reshape(weights.shape)


def _uniform(shape: tuple[int, ...], salt: int) -> FloatArray:
    """A number in (0, 1) for each cell, by a hash of its place (splitmix64)."""
    place = np.arange(1, math.prod(shape) + 1, dtype=np.uint64) + (np.uint64(salt) << np.uint64(40))
    place = mixed(place * np.uint64(GOLDEN))
    level: FloatArray = ((place >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return level.reshape(shape)


POPULATIONS: dict[str, Callable[[tuple[int, ...], int], NDArray[np.int64]]] = {
    "even": _even,
    "one hump": _hump,
    "rough hump": _rough,
    "falling": _falling,
    "clustered": _clustered,
    "scattered": _scattered,
    "unordered": _unordered,
    "uneven": _uneven,
}
# Hardly a real table is even: it bounds what whoever smooths can hope for, and is no part of the middle.
LIMIT = "even"


def questions(domain: Domain, name: str | Mapping[str, Any] | Workload) -> tuple[Workload, Workload]:
    """The workload as a hint for mechanisms, and as many of its questions as a forecast needs."""
    asked = Workload.parse(domain, name)
    if asked.kind == "all_ranges":
        return asked, Workload.random(domain, _QUESTIONS, seed=1)
    if isinstance(name, Workload) and len(asked) <= _MOST_TABLED:
        return asked, asked
    most = _MOST_TABLED if asked.kind == "marginals" else _QUESTIONS
    if asked.kind == "marginals" and len(asked) <= most:
        return asked, asked
    return asked, asked.spread(most)


def well_known(errors: Sequence[float]) -> bool:
    """Whether more runs would move their mean square by little."""
    squares = np.square(errors)
    # The mean squared error within a tenth of it: a twentieth of the error that is shown.
    return len(errors) >= 4 and bool(squares.std(ddof=1) <= 0.1 * squares.mean() * math.sqrt(len(errors)))


def root_mean_square(errors: Sequence[float]) -> float:
    """What several errors are together."""
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def typical(found: Mapping[str, Sequence[float]]) -> float:
    """The median over the populations but the even one, which bounds what to hope for: no extreme one moves it.

    Of an even number of them, the geometric mean of the two in the middle.
    """
    errors = sorted(root_mean_square(each) for name, each in found.items() if name != LIMIT)
    middle = errors[(len(errors) - 1) // 2 : len(errors) // 2 + 1]
    return math.exp(sum(math.log(max(error, 1e-12)) for error in middle) / len(middle))
