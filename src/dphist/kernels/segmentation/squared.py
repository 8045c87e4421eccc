"""Squared loss: least Σ (xᵢ − level)² over step functions, swept from left to right with functional pruning.

For every level μ keep the cheapest history that ends in a bucket of that level. A history is a candidate τ:
the best partition of x₁…x_τ, then one open bucket from τ on. Its cost at level μ is a parabola that prefix
sums give in O(1), so the minimum over histories is a list of *pieces*, intervals of μ with their owner. At
time t a new history enters at a constant price C; it takes the levels where the owner's parabola lies above
C, and owners without a level left are forgotten for good, since from then on all histories grow alike at a
given level.

One sweep serves both searches. *Penalised*: C is the best cost so far plus the price of a bucket. *Fixed*: C
is the best cost with one bucket less (``previous``), one row of the dynamic program.

Two arithmetics. *Narrow*, when 4·n·span² ≤ 2⁵³: prefix sums are integers that doubles hold exactly, and Σ(x
− q)² for the integer q next to the mean is computed without any rounding; only −r²/length and the sum with
the history's cost round. *Wide*: the same integer modulo 2⁶⁴, its high part from a floating estimate. In
both, a bucket's cost keeps its relative precision however large the counts around it are.

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

# Adding and subtracting 1.5·2⁵² rounds a double to the nearest integer, and unlike a call to rint it
# vectorises.
_ROUND = 1.5 * 2.0**52
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
def _narrow_cost(length: float, inverse: float, d: float, square: float) -> tuple[float, float, float]:
    """Split a bucket's cost into Σ(x − q)² and r²/length, q the integer next to the mean and r = Σ(x − q).

    d·inverse errs by less than 1/(2·length) as d < 2⁵¹, so q is a nearest integer, not merely a near one.
    """
    q = (d * inverse + _ROUND) - _ROUND
    r = d - q * length
    return square - q * (d + r), q, r


@kernel
def _wide_cost(length: int, d: int, wrapped: int, square: float) -> tuple[float, float, float]:
    """Do the same for sums of squares known modulo 2⁶⁴ and, to about 2⁻⁵², as a double."""
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
    narrow: bool,
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

    All in one function: passing arrays to helpers, or swapping them, costs more here than the arithmetic.
    """
    size = 64
    owner, owner_next = np.empty(size, np.int64), np.empty(size, np.int64)
    end, end_next = np.empty(size), np.empty(size)
    # Per candidate: where it starts, its prefix sums there, what its history costs, …
    starts, c_sums, c_wraps = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
    f_sums, f_squares, base = np.empty(size), np.empty(size), np.empty(size)
    # … its best level now (nearest integer and what is left over), its cost there, and how far it reaches.
    level, rest, value = np.empty(size), np.empty(size), np.empty(size)
    left, right = np.empty(size), np.empty(size)
    index = np.empty(size, np.int64)

    highest = np.int64(0)
    for t in range(last):
        highest = max(highest, values[t])
    if fixed:
        for t in range(first + 1):
            best[t] = 0.0
    starts[0], c_sums[0], c_wraps[0] = first, sums[first], wrapped[first]
    f_sums[0], f_squares[0] = sums[first], squares[first]
    base[0] = previous[first] if fixed else best[0]
    count, pieces = 1, 1
    # Pieces are open on the left, so that integer levels and real ones share their bookkeeping.
    owner[0], end[0] = 0, highest + 1.0

    for t in range(first + 1, last + 1):
        least, who = np.inf, 0
        total, square = float(sums[t]), squares[t]
        for c in range(count):
            length = t - starts[c]
            inverse = inverses[length]
            if narrow:
                whole, q, r = _narrow_cost(float(length), inverse, total - f_sums[c], square - f_squares[c])
            else:
                whole, q, r = _wide_cost(
                    length, sums[t] - c_sums[c], wrapped[t] - c_wraps[c], square - f_squares[c]
                )
            cost = base[c] + whole if lattice else base[c] + (whole - r * r * inverse)
            level[c], rest[c], value[c] = q, r, cost
            if cost < least:
                least, who = cost, c
        ceiling = previous[t] if fixed else least + price
        best[t] = max(least, 0.0) if fixed else ceiling
        if back.size:
            back[t] = starts[who]
        if t == last or values[t] == values[t - 1]:
            continue

        # How far does each candidate stay at or below the newcomer's price?
        slack = _SLACK * abs(ceiling)
        for c in range(count):
            index[c] = -1
            inverse = inverses[t - starts[c]]
            gap = ceiling - value[c]
            r = rest[c]
            if not lattice:
                half = np.sqrt(max(gap + slack, 0.0) * inverse)
                mean = level[c] + r * inverse
                left[c] = mean - half
                right[c] = mean + half
                continue
            if gap < 0.0:
                left[c], right[c] = 0.0, -1.0
                continue
            # The integers e with length·e² − 2·r·e ≤ gap: by a square root, then put right exactly.
            length = float(t - starts[c])
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
            left[c] = level[c] - down - 1.0
            right[c] = level[c] + up

        # The newcomer (owner −1 until it has a number) takes every level that its owner cannot reach.
        k = 0
        low = -1.0
        newest = False
        present = False
        for i in range(pieces):
            c = owner[i]
            high = end[i]
            a = max(left[c], low)
            z = min(right[c], high)
            if z > a:
                if a > low:
                    if newest:
                        end_next[k - 1] = a
                    else:
                        owner_next[k], end_next[k] = -1, a
                        k += 1
                        present = True
                owner_next[k], end_next[k] = c, z
                k += 1
                index[c] = 0
                newest = z < high
                if newest:
                    owner_next[k], end_next[k] = -1, high
                    k += 1
                    present = True
            elif newest:
                end_next[k - 1] = high
            else:
                owner_next[k], end_next[k] = -1, high
                k += 1
                newest = True
                present = True
            low = high
        pieces = k

        # Forget candidates without a level left, renumber the others, and let the newcomer in.
        kept = 0
        for c in range(count):
            if index[c] == 0:
                index[c] = kept
                if kept != c:
                    starts[kept], f_sums[kept], f_squares[kept], base[kept] = (
                        starts[c],
                        f_sums[c],
                        f_squares[c],
                        base[c],
                    )
                    if not narrow:
                        c_sums[kept], c_wraps[kept] = c_sums[c], c_wraps[c]
                kept += 1
        for i in range(pieces):
            owner[i] = kept if owner_next[i] < 0 else index[owner_next[i]]
            end[i] = end_next[i]
        if present:
            starts[kept], f_sums[kept], f_squares[kept], base[kept] = t, total, square, ceiling
            c_sums[kept], c_wraps[kept] = sums[t], wrapped[t]
            kept += 1
        count = kept

        # A sweep cuts each piece in three at most, and merges newcomers: 2·pieces + 1. Every owner has a
        # piece.
        if 2 * pieces + 2 > size:
            more = np.empty(size), np.empty(size, np.int64)
            owner, end = np.append(owner, more[1]), np.append(end, more[0])
            starts, c_sums = np.append(starts, more[1]), np.append(c_sums, more[1])
            f_sums, f_squares = np.append(f_sums, more[0]), np.append(f_squares, more[0])
            c_wraps, base = np.append(c_wraps, more[1]), np.append(base, more[0])
            size *= 2
            owner_next, end_next, index = np.empty(size, np.int64), np.empty(size), np.empty(size, np.int64)
            level, rest, value = np.empty(size), np.empty(size), np.empty(size)
            left, right = np.empty(size), np.empty(size)


@kernel
def whole_costs(
    sums: IntArray,
    wrapped: IntArray,
    squares: FloatArray,
    inverses: FloatArray,
    narrow: bool,
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
        if narrow:
            whole, _, r = _narrow_cost(float(b - a), inverses[b - a], float(d), square)
        else:
            whole, _, r = _wide_cost(b - a, d, wrapped[b] - wrapped[a], square)
        cost[b if forward else a] = whole if lattice else whole - r * r * inverses[b - a]
    return cost
