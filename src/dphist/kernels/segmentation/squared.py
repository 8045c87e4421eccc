"""Squared loss: least Σ (xᵢ − level)² over step functions, swept from left to right with functional pruning.

For every level μ keep the cheapest history that ends in a bucket of that level. A history is a candidate τ:
the best partition of x₁…x_τ, then one open bucket from τ on. Its cost at level μ is a parabola that prefix
sums give in O(1), so the minimum over histories is a list of *pieces*, intervals of μ with their owner. At
time t a new history enters at a constant price C; it takes the levels where the owner's parabola lies above
C, and owners without a level left are forgotten for good, since from then on all histories grow alike at a
given level.

One sweep serves both searches. *Penalised*: C is the best cost so far plus the price of a bucket. *Fixed*: C
is the best cost with one bucket less (``previous``), one row of the dynamic program.

Σ(x − q)² for the integer q next to the mean is an integer, known modulo 2⁶⁴ and its high part from a floating
estimate; only −r²/length and the sum with the history's cost round. So a bucket's cost keeps its relative precision
however large the counts around it are.

On the *lattice* levels are integers and so are all costs and all comparisons: the result is the exact
minimum over step functions with integer levels. Trusted scores use this form, because its sensitivity has a
two-line proof.

Candidates arise only where the value changes: for fixed levels the cost is linear in the place of a cut
inside a run of equal values, so some best partition cuts at the ends of runs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_WRAP = 2.0**64
# Keeps an owner whose parabola touches C, where rounding might say it lies above.
_SLACK = 2.0**-50


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
def _cost(length: int, d: int, wrapped: int, square: float) -> tuple[float, float, float]:
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
def sweep(
    values: IntArray,
    sums: IntArray,
    wrapped: IntArray,
    squares: FloatArray,
    inverses: FloatArray,
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
            whole, q, r = _cost(t - tau, d, wrapped[t] - wrapped[tau], square)
            cost = entry[tau] + (whole if lattice else whole - r * r * inverses[t - tau])
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
            length, inverse = float(t - tau), inverses[t - tau]
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
def whole_costs(
    sums: IntArray,
    wrapped: IntArray,
    squares: FloatArray,
    inverses: FloatArray,
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
        whole, _, r = _cost(b - a, d, wrapped[b] - wrapped[a], square)
        cost[b if forward else a] = whole if lattice else whole - r * r * inverses[b - a]
    return cost
