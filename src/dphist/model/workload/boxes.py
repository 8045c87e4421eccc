"""Boxes of cells as arrays: reading them, and writing out those that follow a rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dphist.errors import QueryError, TooLargeError
from dphist.kernels.hashing import GOLDEN, mixed
from dphist.model.domain import Domain

IntArray = npt.NDArray[np.int64]
Boxes = tuple[IntArray, IntArray]
Kind = Literal["cells", "prefixes", "all_ranges", "marginals", "ranges"]
Tables = tuple[tuple[int, ...], ...]

# Boxes handled at a time when a structured workload is never written out in full.
CHUNK = 1 << 20
# Bounds of this many boxes or more are refused; walk `chunks` instead.
LARGEST = 1 << 28


def ruled(kind: Kind, shape: Sequence[int], rank: IntArray) -> Boxes:
    """The questions at some places of cells, prefixes or all ranges."""
    low = np.zeros((len(rank), len(shape)), dtype=np.int64)
    high = np.zeros_like(low)
    for axis in reversed(range(len(shape))):
        n = shape[axis]
        each = n * (n + 1) // 2 if kind == "all_ranges" else n
        rank, place = np.divmod(rank, each)
        if kind == "all_ranges":
            low[:, axis], high[:, axis] = unrank(place, n)
        else:
            low[:, axis] = 0 if kind == "prefixes" else place
            high[:, axis] = place + 1
    return low, high


def tabled(tables: Tables, shape: Sequence[int], rank: IntArray) -> Boxes:
    """The cells at some places, in order, of tables, one table after the other."""
    low = np.zeros((len(rank), len(shape)), dtype=np.int64)
    high = np.tile(np.array(shape, dtype=np.int64), (len(rank), 1))
    begin = 0
    for axes in tables:
        sizes = tuple(shape[axis] for axis in axes)
        cells = math.prod(sizes)
        first, last = np.searchsorted(rank, (begin, begin + cells))
        if first < last and axes:
            place = np.stack(np.unravel_index(rank[first:last] - begin, sizes), axis=1)
            low[first:last, list(axes)] = place
            high[first:last, list(axes)] = place + 1
        begin += cells
    return low, high


def integers(bounds: npt.ArrayLike, domain: Domain, name: str) -> IntArray:
    """Bounds as integers, a row a box and a column an attribute."""
    array = as_array(bounds, name)
    if array.size == 0:
        array = array.reshape(0, len(domain.shape)).astype(np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != len(domain.shape):
        raise QueryError(f"workload: {name} must be integers, a row per box and a column per attribute")
    # A copy, so that the caller's array is neither frozen nor able to change the questions later.
    return np.array(array, dtype=np.int64, order="C")


def as_array(values: npt.ArrayLike, name: str) -> npt.NDArray[Any]:
    """Anything that looks like an array as one."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        # Rows of different lengths, and the like.
        raise QueryError(f"workload: {name} cannot be read as an array of numbers") from None


def overlapping(low: IntArray, high: IntArray, query: IntArray) -> bool:
    """Whether two boxes of one question share a cell, which would then count twice.

    Example:
        >>> low, high = np.array([[0, 0], [2, 1]]), np.array([[3, 2], [4, 4]])
        >>> overlapping(low, high, np.array([0, 0])), overlapping(low, high, np.array([0, 1]))
        (True, False)
    """
    filled = (low < high).all(axis=1)
    low, high, query = low[filled], high[filled], query[filled]
    if not len(low):
        return False
    # Along the axis on which fewest meet, each box is set beside those that begin before it ends.
    found = [_meeting(low[:, axis], high[:, axis], query) for axis in range(low.shape[1])]
    order, others = min(found, key=lambda each: int(each[1].sum()))
    low, high = low[order], high[order]
    for step in range(1, int(others.max()) + 1):
        one = np.flatnonzero(others >= step)
        if bool(((low[one] < high[one + step]) & (low[one + step] < high[one])).all(axis=1).any()):
            return True
    return False


def _meeting(low: IntArray, high: IntArray, query: IntArray) -> Boxes:
    """An order of boxes by question and where they begin, and how many that follow each of them begin inside it."""
    order = np.lexsort((low, query))
    row = query[order] * (int(high.max()) + 1)
    begins, ends = row + low[order], row + high[order]
    return order, np.searchsorted(begins, ends) - np.arange(1, len(order) + 1)


def check_size(boxes: int, what: str) -> None:
    """Refuse to write out too many boxes."""
    if boxes >= LARGEST:
        raise TooLargeError(
            f"{what} are {boxes:,} boxes, too many to write out; use the workload's rule, chunks() or a slice"
        )


def unrank(rank: IntArray, n: int) -> Boxes:
    """The range at each place of the list (0,1), (0,2), …, (0,n), (1,2), …, (n-1,n).

    The float root can be off by one for large n; the exact integer comparison puts it right.
    """
    low = (((2 * n + 1) - np.sqrt((2.0 * n + 1) ** 2 - 8.0 * rank)) / 2).astype(np.int64)
    low = np.clip(low, 0, n - 1)
    for _ in range(2):
        low -= low * (2 * n - low + 1) // 2 > rank
        low += (low + 1) * (2 * n - low) // 2 <= rank
    return low, low + 1 + rank - low * (2 * n - low + 1) // 2


def fractions(count: int, seed: int, axis: int) -> npt.NDArray[np.float64]:
    """Numbers spread evenly over [0, 1), by the splitmix64 hash of (seed, axis, place)."""
    place = np.arange(count, dtype=np.uint64) + np.uint64(1)
    for salt in (seed, axis):
        place = mixed(place * np.uint64(GOLDEN) + np.uint64(salt % 2**64))
    return (place >> np.uint64(11)).astype(np.float64) * 2.0**-53
