"""Least-cost step functions, swept from left to right with functional pruning: squared and absolute loss.

For every level μ keep the cheapest history that ends in a bucket of that level. A history is a candidate τ: the best
partition of x₁…x_τ, then one open bucket from τ on. At time t a new history enters at a constant price C; it takes the
levels where the owner's cost lies above C, and owners without a level left are forgotten for good, since from then on
all histories grow alike at a given level. So the minimum over histories is a list of *pieces*, intervals of μ with
their owner.

One sweep serves both searches. *Penalised*: C is the best cost so far plus the price of a bucket. *Fixed*: C
is the best cost with one bucket less (``previous``), one row of the dynamic program.

*Squared*: the cost at level μ is a parabola that prefix sums give in O(1). Σ(x − q)² for the integer q next to the mean
is an integer, known modulo 2⁶⁴ and its high part from a floating estimate; only −r²/length and the sum with the
history's cost round. So a bucket's cost keeps its relative precision however large the counts around it are.
On the *lattice* levels are integers and so are all costs and all comparisons: the result is the exact
minimum over step functions with integer levels. Trusted scores use this form, because its sensitivity has a
two-line proof.

*Absolute*: the median of a bucket is one of its values, so levels may be restricted to integers and every number is an
integer: no rounding anywhere. The cost is piecewise linear in μ; pieces cover consecutive integer levels and carry
their value at the left end, their slope and their owner. Adding a value bends one piece and tilts all others.

Candidates arise only where the value changes: for fixed levels the cost is linear in the place of a cut
inside a run of equal values, so some best partition cuts at the ends of runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.buckets.deviations import grow
from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_WRAP = 2.0**64
# Keeps an owner whose parabola touches C, where rounding might say it lies above.
_SLACK = 2.0**-50
_FAR = np.int64(2**62)
# Unsigned indices need no check for counting from the end.
_NONE, _ONE = np.uintp(0), np.uintp(1)


@kernel
def prefix_sums(values: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Sum values, squares modulo 2⁶⁴, and squares as doubles accurate to the last bit but one."""
    n = values.size
    sums = np.zeros(n + 1, np.int64)
    wrapped = np.zeros(n + 1, np.int64)
    squares = np.zeros(n + 1, np.float64)
    carry = 0.0
    for i in range(n):
        x = values[i]
        sums[i + 1] = sums[i] + x
        wrapped[i + 1] = wrapped[i] + x * x
        term = float(x) * float(x) - carry
        total = squares[i] + term
        carry = (total - squares[i]) - term
        squares[i + 1] = total
    return sums, wrapped, squares


@kernel
def _squared_cost(length: int, d: int, wrapped: int, square: float) -> tuple[float, float, float]:
    """Split a bucket's cost into Σ(x − q)² and r²/length, q the integer next to the mean and r = Σ(x − q).

    Sums of squares are known modulo 2⁶⁴ and, to about 2⁻⁵², as a double.
    """
    q = np.int64(np.rint(float(d) / float(length)))
    r = d - q * length
    low = wrapped - q * (d + r)
    estimate = square - float(q) * float(d + r)
    high = np.rint((estimate - float(low)) / _WRAP)
    return float(low) + _WRAP * high, float(q), float(r)


@kernel
def sweep_squared(
    values: IntArray,
    sums: IntArray,
    wrapped: IntArray,
    squares: FloatArray,
    lattice: bool,
    fixed: bool,
    price: float,
    previous: FloatArray,
    first: int,
    last: int,
    best: FloatArray,
    back: IntArray,
) -> None:
    """Fill ``best[t]`` (and ``back[t]``, where the last bucket of the best partition of x₁…x_t starts).

    Penalised (``fixed`` false): ``best[0]`` is the cost of nothing and ``first`` is 0. Fixed: the row of
    ``first + 1`` buckets from ``previous``, the row of ``first`` buckets; up to ``first`` values cost
    nothing. Stops after ``last`` values. Values are at least 0. ``back`` may be empty: then it is not kept.

    All in one function: passing arrays to helpers, or swapping them, costs more here than the arithmetic. A piece is
    just where its owner's bucket starts and where its levels end; all else is looked up.
    """
    entry = previous if fixed else best
    size = 64
    # Two sides: pieces are read from one and written to the other. Open on the left, so that integer levels and
    # real ones share their bookkeeping.
    start, end = np.empty((2, size), np.int64), np.empty((2, size))
    level, rest, value = np.empty(size), np.empty(size), np.empty(size)

    highest = np.int64(0)
    for t in range(last):
        highest = max(highest, values[t])
    if fixed:
        for t in range(first + 1):
            best[t] = 0.0
    start[0, 0], end[0, 0] = first, highest + 1.0
    side, pieces = 0, 1

    for t in range(first + 1, last + 1):
        # Every owner at its best level: the nearest integer and what is left over, and the cost there.
        least, who = np.inf, 0
        for i in range(pieces):
            tau = start[side, i]
            d = sums[t] - sums[tau]
            square = squares[t] - squares[tau]
            whole, q, r = _squared_cost(t - tau, d, wrapped[t] - wrapped[tau], square)
            cost = entry[tau] + (whole if lattice else whole - r * r * (1.0 / (t - tau)))
            level[i], rest[i], value[i] = q, r, cost
            if cost < least or (cost == least and tau < who):
                least, who = cost, tau
        ceiling = previous[t] if fixed else least + price
        best[t] = max(least, 0.0) if fixed else ceiling
        if back.size:
            back[t] = who
        if t == last or values[t] == values[t - 1]:
            continue

        # A newcomer at t takes every level that the owner cannot reach at or below the newcomer's price.
        slack = _SLACK * abs(ceiling)
        other = 1 - side
        k = 0
        low = -1.0
        newest = False
        for i in range(pieces):
            tau, high = start[side, i], end[side, i]
            length = float(t - tau)
            inverse = 1.0 / length
            gap, r = ceiling - value[i], rest[i]
            if not lattice:
                half = np.sqrt(max(gap + slack, 0.0) * inverse)
                mean = level[i] + r * inverse
                left, right = mean - half, mean + half
            elif gap < 0.0:
                left, right = low, low
            elif (high - level[i]) * (length * (high - level[i]) - 2.0 * r) <= gap and (
                level[i] - low - 1.0
            ) * (length * (level[i] - low - 1.0) + 2.0 * r) <= gap:
                # Both ends of its piece are reached, so all of it is: no root needed.
                left, right = low, high
            else:
                # The integers e with length·e² − 2·r·e ≤ gap: by a square root, then put right exactly.
                root = np.sqrt(r * r + length * gap)
                up = np.floor((root + r) * inverse)
                if (up + 1.0) * (length * (up + 1.0) - 2.0 * r) <= gap:
                    up += 1.0
                elif up * (length * up - 2.0 * r) > gap:
                    up -= 1.0
                down = np.floor((root - r) * inverse)
                if (down + 1.0) * (length * (down + 1.0) + 2.0 * r) <= gap:
                    down += 1.0
                elif down * (length * down + 2.0 * r) > gap:
                    down -= 1.0
                left, right = level[i] - down - 1.0, level[i] + up
            a, z = max(left, low), min(right, high)
            if z > a:
                if a > low:
                    if newest:
                        end[other, k - 1] = a
                    else:
                        start[other, k], end[other, k] = t, a
                        k += 1
                start[other, k], end[other, k] = tau, z
                k += 1
                newest = z < high
                if newest:
                    start[other, k], end[other, k] = t, high
                    k += 1
            elif newest:
                end[other, k - 1] = high
            else:
                start[other, k], end[other, k] = t, high
                k += 1
                newest = True
            low = high
        side, pieces = other, k

        # A sweep cuts each piece in three at most, and merges newcomers: 2·pieces + 1.
        if 2 * pieces + 1 > size:
            wider = np.empty((2, 2 * size), np.int64), np.empty((2, 2 * size))
            wider[0][:, :size], wider[1][:, :size] = start, end
            start, end = wider
            size *= 2
            level, rest, value = np.empty(size), np.empty(size), np.empty(size)


@kernel
def whole_squared(
    sums: IntArray,
    wrapped: IntArray,
    squares: FloatArray,
    lattice: bool,
    right: int,
    forward: bool,
) -> FloatArray:
    """Give the cost of one bucket for every start (x_q … x_right) or, forward, for every end (x₁ … x_t)."""
    cost = np.zeros(right + 1)
    for i in range(right):
        a, b = (0, i + 1) if forward else (i, right)
        d = sums[b] - sums[a]
        square = squares[b] - squares[a]
        whole, _, r = _squared_cost(b - a, d, wrapped[b] - wrapped[a], square)
        cost[b if forward else a] = whole if lattice else whole - r * r * (1.0 / (b - a))
    return cost


@kernel
def sweep_absolute(
    values: IntArray,
    fixed: bool,
    price: int,
    previous: IntArray,
    first: int,
    last: int,
    best: IntArray,
    back: IntArray,
) -> None:
    """Fill ``best[t]`` and ``back[t]``; the arguments are those of `sweep_squared`, all integers."""
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


def whole_absolute(
    values: IntArray, ranked: tuple[IntArray, IntArray], right: int, forward: bool
) -> IntArray:
    """Give the cost of one bucket for every start (x_q … x_right) or, forward, for every end (x₁ … x_t).

    ``ranked`` are the distinct values in order, and the place of each value among them.
    """
    cost, tally = np.zeros(right + 1, dtype=np.int64), np.empty(ranked[0].size, dtype=np.int64)
    first, step = (0, 1) if forward else (right - 1, -1)
    grow(values, *ranked, first, right, step, 1, 1, True, tally, cost[1:])
    return cost if forward else cost[::-1].copy()
