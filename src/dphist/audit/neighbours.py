"""Pairs of data sets one record apart, on which leaky mechanisms have been caught."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.arguments import explained
from dphist.errors import InputError
from dphist.model.histogram import Histogram
from dphist.testing.gates import as_histogram

_MOST = 10**7


@dataclass(frozen=True, eq=False)
class Pair:
    """Two data sets that differ by one step.

    Args:
        name: What makes it hard.
        one: Counts.
        other: The neighbour's counts.

    Example:
        >>> first = worst_pairs()[0]
        >>> first.name, first.one.domain == first.other.domain
        ('an empty table and one record', True)
    """

    name: str
    one: Histogram
    other: Histogram

    def __post_init__(self) -> None:
        if (
            self.one.domain != self.other.domain
            or int(np.abs(self.one.counts - self.other.counts).sum()) != 1
        ):
            raise InputError("neighbours must have one domain and differ by one record")


def pair(name: str, counts: ArrayLike, cell: int) -> Pair:
    """Pair counts with the same plus one record in a cell."""
    one = np.asarray(counts, dtype=np.int64)
    other = one.copy()
    other.reshape(-1)[cell] += 1
    return Pair(name, as_histogram(one), as_histogram(other))


@explained
def worst_pairs(shape: tuple[int, ...] = (8,)) -> list[Pair]:
    """Give pairs that stress what mechanisms decide by: emptiness, plateaus, edges, and huge counts.

    Args:
        shape: Of the counts.

    Returns:
        Pairs of neighbours on which mechanisms have been caught.

    Example:
        >>> len(worst_pairs()) > 1
        True
    """
    shape = tuple(operator.index(side) for side in shape)
    if not shape or min(shape) < 1:
        raise InputError("shape must be whole numbers above zero, for example (8,) or (4, 4)")
    size = math.prod(shape)
    if size > _MOST:
        raise InputError(f"shape must have at most {_MOST:,} cells: a mechanism is run on it very often")
    cells = np.arange(size)

    def shaped(values: NDArray[np.int64]) -> NDArray[np.int64]:
        return values.reshape(shape)

    plateau = np.where(cells >= size // 2, 3, 0)
    return [
        pair("an empty table and one record", shaped(np.zeros(size, dtype=np.int64)), 0),
        pair("the end of a plateau", shaped(plateau - (cells == size - 1)), size - 1),
        pair("one more in the middle of a flat table", shaped(np.full(size, 2)), size // 2),
        pair("a huge cell", shaped(np.where(cells == size // 3, 1000, cells % 3)), size // 3),
    ]
