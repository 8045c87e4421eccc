"""Who is not beaten on everything at once: the skyline of time against error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dphist.errors import InputError

Name = TypeVar("Name")


def skyline(rows: Iterable[tuple[Name, *tuple[float, ...]]]) -> list[Name]:
    """Names of the rows that no other row dominates, in the order given.

    A row is a name and its costs, such as ``("h", seconds, error)``; less is better. Row a dominates row b if it is
    nowhere worse and somewhere better, so equal rows stay together.
    """
    listed = list(rows)
    if len({len(row) for row in listed}) > 1 or (listed and len(listed[0]) < 2):
        raise InputError("skyline: every row needs a name and as many costs as the others")
    costs = np.array([row[1:] for row in listed], dtype=np.float64)
    if bool(np.isnan(costs).any()):
        raise InputError("skyline: a cost is missing")
    return [row[0] for row, free in zip(listed, undominated(costs), strict=True) if free]


def undominated(costs: NDArray[np.float64] | Sequence[Sequence[float]]) -> NDArray[np.bool_]:
    """Tell for every row of costs whether no other dominates it."""
    table = np.asarray(costs, dtype=np.float64)
    free = np.ones(len(table), dtype=bool)
    for i, row in enumerate(table):
        free[i] = not ((table <= row).all(axis=1) & (table < row).any(axis=1)).any()
    return free
