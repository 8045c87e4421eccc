"""V-optimal histograms, the least-cost step function through a row: a price per bucket, or k buckets, in few rows.

Divide-and-conquer would be wrong here: the bucket costs of unsorted data are not Monge. Pruning by cost alone (PELT)
degrades to n² on long buckets. The textbook programs they are measured against are in dphist-bench.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction
from math import isqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.kernels.buckets.cheapest import starts_of
from dphist.kernels.buckets.deviations import rank
from dphist.kernels.buckets.sweeps import (
    prefix_sums,
    sweep_absolute,
    sweep_squared,
    whole_absolute,
    whole_squared,
)

IntArray = NDArray[np.int64]
Loss = Literal["squared", "absolute"]

_NOTHING = np.empty(0, dtype=np.int64)
# Sums of values stay below this, so that no integer here overflows.
LARGEST_SUM = 2**61
# Doubles hold every integer up to 2⁵³; the factor covers the intermediate products of a sweep.
LARGEST_EXACT_SQUARES = 2**53 // 4
# Prices under absolute loss are multiples of this where the values leave room.
_FINEST_PRICE = 2**10


def segment(
    values: ArrayLike,
    *,
    price: Fraction | float = 0,
    bins: int | None = None,
    loss: Loss = "squared",
) -> IntArray:
    """Find where the buckets of the best step function start (the first is 0).

    With ``price`` the sum of losses plus ``price`` for every bucket is least over all partitions; with
    ``bins`` the sum of losses is least over partitions into exactly that many buckets (or one a value, if
    there are fewer values). Among equally good ones the last bucket is the longest, then the one before it,
    and so on. Values are at most `LARGEST_SUM` ÷ their number apart.

    Under absolute loss the result is exact for the price rounded to a multiple of 2⁻¹⁰ (a coarser power of
    two for enormous values). Under squared loss bucket costs are exact integers less one rounded fraction,
    and are added as doubles.
    """
    row = np.ascontiguousarray(values, dtype=np.int64)
    shifted = row - row.min()
    if bins is not None:
        return _fixed(shifted, bins, loss)
    if loss == "squared":
        return _penalised_squared(shifted, float(price))
    return _penalised_absolute(shifted, Fraction(price))


def _penalised_squared(values: IntArray, price: float) -> IntArray:
    n = values.size
    best, back = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    prefixes = prefix_sums(values)
    sweep_squared(values, *prefixes, False, False, price, best[:1], 0, n, best, back)
    starts: IntArray = starts_of(back)
    return starts


def _penalised_absolute(values: IntArray, price: Fraction) -> IntArray:
    n = values.size
    # Prices and values share a lattice; both must fit with room for n of them.
    finest = _FINEST_PRICE
    while finest > 1 and n * finest * (int(values.max()) + price) > LARGEST_SUM:
        finest //= 2
    step = min(round(price * finest), LARGEST_SUM // n)
    best, back = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    sweep_absolute(values * finest, False, step, best[:1], 0, n, best, back)
    starts: IntArray = starts_of(back)
    return starts


def _fixed(values: IntArray, bins: int, loss: Loss) -> IntArray:
    n = values.size
    if bins >= n:
        return np.arange(n, dtype=np.int64)
    starts, right = [], n
    if bins > 1:
        rows = Rows(values, loss=loss).descend(bins - 1)
        j, row = next(rows)
        while True:
            costs = row[j:right]
            right = j + int(np.argmin(costs))
            starts.append(right)
            if j == 1:
                break
            j, row = rows.send(right)
    return np.array([0, *starts[::-1]], dtype=np.int64)


class Rows:
    """The rows of the dynamic program: row j holds the least cost of every prefix in j buckets.

    Values are integers from 0 up. On the ``lattice`` levels are integers too; squared costs are then exact
    integers held in doubles. `descend` serves any backward walk over boundaries: the best one, or a private
    choice of one.
    """

    def __init__(self, values: IntArray, *, loss: Loss, lattice: bool = False) -> None:
        self._values, self._loss, self._lattice = values, loss, lattice
        self._size = values.size
        if loss == "squared":
            self._sums = prefix_sums(values)
        else:
            self._ranked = rank(values)

    def descend(self, top: int) -> Generator[tuple[int, NDArray[Any]], int, None]:
        """Yield (j, E) for j = top … 1: E[q] is the cost of j buckets up to q and one more to the right end.

        The right end is n at first, then what the consumer sends: the boundary it took from E[j : right].
        Row j needs row j − 1 only. Every √top-th row is kept on the way up, and the rows between two kept ones are
        recomputed on the way down, only as far as the boundary: about 2·√top·n numbers in memory instead of top·n.
        """
        stride = isqrt(top) + 1
        kept = {1: self._whole(self._size, forward=True)}
        scratch = self._empty(2)
        for j in range(1, ((top - 1) // stride) * stride + 1):
            previous = kept[j] if j in kept else scratch[j % 2]
            here = scratch[(j + 1) % 2]
            if j % stride == 0:
                here = kept[j + 1] = self._empty(1)[0]
            # Each bucket still to come holds a value, so row j + 1 is never read beyond here.
            self._after(previous, j, self._size - (top - j), here)
        right = self._size
        block = self._empty(stride)
        for bottom in sorted(kept, reverse=True):
            highest = min(bottom + stride - 1, top)
            previous = kept.pop(bottom)
            block[0] = previous
            for j in range(bottom, highest):
                self._after(block[j - bottom], j, right - (highest - j), block[j - bottom + 1])
            for j in range(highest, bottom - 1, -1):
                costs = self._whole(right, forward=False)
                costs[j:right] += block[j - bottom][j:right]
                right = yield j, costs

    def _empty(self, rows: int) -> NDArray[Any]:
        return np.empty((rows, self._size + 1), dtype=np.float64 if self._loss == "squared" else np.int64)

    def _whole(self, right: int, *, forward: bool) -> NDArray[Any]:
        if self._loss == "absolute":
            costs: NDArray[Any] = whole_absolute(self._values, self._ranked, right, forward)
        else:
            costs = whole_squared(*self._sums, self._lattice, right, forward)
        return costs

    def _after(self, previous: NDArray[Any], buckets: int, last: int, out: NDArray[Any]) -> None:
        """Fill the row of ``buckets`` + 1 buckets from the row before, for the first ``last`` values."""
        if self._loss == "absolute":
            sweep_absolute(self._values, True, 0, previous, buckets, last, out, _NOTHING)
        else:
            given = self._values, *self._sums, self._lattice
            sweep_squared(*given, True, 0.0, previous, buckets, last, out, _NOTHING)
