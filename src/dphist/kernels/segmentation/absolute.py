"""Absolute loss: least Σ |xᵢ − level| over step functions, swept from left to right with functional pruning.

The median of a bucket is one of its values, so levels may be restricted to integers and every number here is
an integer: no rounding anywhere. The cost of the best history at level μ is piecewise linear in μ; pieces
cover consecutive integer levels and carry their value at the left end, their slope and the candidate that
owns them. Adding a value bends one piece and tilts all others; a newcomer at price C takes the levels whose
cost exceeds C.

Penalised and fixed searches, and cuts only where the value changes, are as in ``squared``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.buckets.deviations import median_row
from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]

_FAR = np.int64(2**62)
# Unsigned indices need no check for counting from the end.
_NONE, _ONE = np.uintp(0), np.uintp(1)


@kernel
def sweep(
    values: IntArray,
    fixed: bool,
    price: int,
    previous: IntArray,
    first: int,
    last: int,
    best: IntArray,
    back: IntArray,
) -> None:
    """Fill ``best[t]`` and ``back[t]``; the arguments are those of the squared sweep, all integers.

    All in one function: passing arrays to helpers, or swapping them, costs more here than the arithmetic.
    """
    track = back.size > 0
    size = 64
    # Piece i covers the levels low[i] … low[i + 1] − 1. Two sides: read from one, written to the other.
    low, value = np.empty((2, size + 1), np.int64), np.empty((2, size), np.int64)
    slope, owner = np.empty((2, size), np.int64), np.zeros((2, size), np.int64)
    value_end = np.empty(size, np.int64)
    lowest = highest = values[0]
    for t in range(last):
        lowest, highest = min(lowest, values[t]), max(highest, values[t])
    if fixed:
        for t in range(first + 1):
            best[t] = 0
    low[0, 0], low[0, 1] = lowest, highest + 1
    value[0, 0] = previous[first] if fixed else best[0]
    slope[0, 0], owner[0, 0] = 0, first
    side, pieces = _NONE, _ONE

    for t in range(first + 1, last + 1):
        # Add |x − level|: pieces below x fall by one more, pieces above rise, and the one around x bends.
        x = values[t - 1]
        other = _ONE - side
        least, who = _FAR, np.int64(0)
        k = _NONE
        stop = low[side, 0]
        for i in range(pieces):
            begin, stop = stop, low[side, i + _ONE]
            v, s = value[side, i], slope[side, i]
            whose = owner[side, i]
            if begin < x:
                up = v + (x - begin)
                until = min(stop, x)
                e = up + (s - 1) * (until - 1 - begin)
                low[other, k], value[other, k], slope[other, k], value_end[k] = begin, up, s - 1, e
                if track:
                    owner[other, k] = whose
                k += _ONE
                here = min(up, e)
                if here < least or (track and here == least and whose < who):
                    least, who = here, whose
                if stop <= x:
                    continue
                v, begin = v + s * (x - begin), x
            v += begin - x
            e = v + (s + 1) * (stop - 1 - begin)
            low[other, k], value[other, k], slope[other, k], value_end[k] = begin, v, s + 1, e
            if track:
                owner[other, k] = whose
            k += _ONE
            here = min(v, e)
            if here < least or (track and here == least and whose < who):
                least, who = here, whose
        pieces = k
        low[other, pieces] = highest + 1
        ceiling = previous[t] if fixed else least + price
        best[t] = least if fixed else ceiling
        if track:
            back[t] = who

        if t == last or values[t] == x:
            side = other
        else:
            # The newcomer takes every level whose cost exceeds its price.
            k = _NONE
            newest = False
            for i in range(pieces):
                begin, v, s, e = low[other, i], value[other, i], slope[other, i], value_end[i]
                if v > ceiling:
                    if not newest:
                        low[side, k], value[side, k], slope[side, k], owner[side, k] = begin, ceiling, 0, t
                        k += _ONE
                        newest = True
                    if e > ceiling:
                        continue
                    over = (v - ceiling - s - 1) // (-s)
                    begin, v = begin + over, v + s * over
                low[side, k], value[side, k], slope[side, k], owner[side, k] = begin, v, s, owner[other, i]
                k += _ONE
                newest = e > ceiling
                if newest:
                    low[side, k] = begin + (ceiling - v) // s + 1
                    value[side, k], slope[side, k], owner[side, k] = ceiling, 0, t
                    k += _ONE
            pieces = k
            low[side, pieces] = highest + 1

        # A value bends one piece into two; a cut makes at most two of each, and one more.
        if 2 * (np.int64(pieces) + 1) + 1 > size:
            wide_low, wider = np.empty((2, 2 * size + 1), np.int64), np.zeros((3, 2, 2 * size), np.int64)
            wide_low[:, : size + 1] = low
            wider[0][:, :size], wider[1][:, :size], wider[2][:, :size] = value, slope, owner
            low, value, slope, owner = wide_low, wider[0], wider[1], wider[2]
            size *= 2
            value_end = np.empty(size, np.int64)


def whole_costs(
    values: IntArray, ranked: tuple[IntArray, NDArray[np.int32]], right: int, forward: bool
) -> IntArray:
    """Give the cost of one bucket for every start (x_q … x_right) or, forward, for every end (x₁ … x_t).

    ``ranked`` are the distinct values in order, and the place of each value among them.
    """
    distinct, place = ranked
    there = slice(0, right) if forward else slice(None, None, -1)
    row, place = np.ascontiguousarray(values[:right][there]), np.ascontiguousarray(place[:right][there])
    cost = np.zeros(right + 1, dtype=np.int64)
    sums, tally = np.concatenate([[0], np.cumsum(row)]), np.zeros(distinct.size, dtype=np.int32)
    median_row(row, distinct, place, sums, 0, tally, cost[1:])
    return cost if forward else cost[::-1]
