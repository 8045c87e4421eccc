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

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]

_FAR = np.int64(2**62)


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
    size = 64
    # Piece i covers the levels low[i] … low[i + 1] − 1; the second set holds it with x's loss added.
    low, low_bent = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    value, value_bent = np.empty(size, np.int64), np.empty(size, np.int64)
    slope, slope_bent = np.empty(size, np.int64), np.empty(size, np.int64)
    owner, owner_bent = np.empty(size, np.int64), np.empty(size, np.int64)
    lowest = highest = values[0]
    for t in range(last):
        lowest, highest = min(lowest, values[t]), max(highest, values[t])
    if fixed:
        for t in range(first + 1):
            best[t] = 0
    low[0], low[1] = lowest, highest + 1
    value[0] = previous[first] if fixed else best[0]
    slope[0], owner[0] = 0, first
    pieces = 1

    for t in range(first + 1, last + 1):
        x = values[t - 1]
        least, who = _FAR, np.int64(0)
        k = 0
        for i in range(pieces):
            start, stop = low[i], low[i + 1]
            if start < x:
                # Falling towards x: this piece, or its part below x.
                v, s = value[i] + (x - start), slope[i] - 1
                low_bent[k], value_bent[k], slope_bent[k], owner_bent[k] = start, v, s, owner[i]
                k += 1
                here = v if s >= 0 else v + s * (min(stop, x) - 1 - start)
                if here < least or (here == least and owner[i] < who):
                    least, who = here, owner[i]
                if stop <= x:
                    continue
                v, start = value[i] + slope[i] * (x - start), x
            else:
                v = value[i] + (start - x)
            s = slope[i] + 1
            low_bent[k], value_bent[k], slope_bent[k], owner_bent[k] = start, v, s, owner[i]
            k += 1
            here = v if s >= 0 else v + s * (stop - 1 - start)
            if here < least or (here == least and owner[i] < who):
                least, who = here, owner[i]
        bent = k
        low_bent[bent] = highest + 1
        ceiling = previous[t] if fixed else least + price
        best[t] = least if fixed else ceiling
        if back.size:
            back[t] = who

        # The newcomer takes every level whose cost exceeds its price.
        cut = t < last and values[t] != x
        k = 0
        newest = False
        for i in range(bent):
            start, v, s = low_bent[i], value_bent[i], slope_bent[i]
            last_value = v + s * (low_bent[i + 1] - 1 - start)
            if not cut or (v <= ceiling and last_value <= ceiling):
                low[k], value[k], slope[k], owner[k] = start, v, s, owner_bent[i]
                k += 1
                newest = False
                continue
            if v <= ceiling:
                low[k], value[k], slope[k], owner[k] = start, v, s, owner_bent[i]
                low[k + 1] = start + (ceiling - v) // s + 1
                value[k + 1], slope[k + 1], owner[k + 1] = ceiling, 0, t
                k += 2
                newest = True
                continue
            if not newest:
                low[k], value[k], slope[k], owner[k] = start, ceiling, 0, t
                k += 1
                newest = True
            if last_value <= ceiling:
                over = (v - ceiling - s - 1) // (-s)
                low[k], value[k], slope[k], owner[k] = start + over, v + s * over, s, owner_bent[i]
                k += 1
                newest = False
        pieces = k
        low[pieces] = highest + 1

        # A value bends one piece into two; a cut makes at most two of each, and one more.
        if 2 * (pieces + 1) + 1 > size:
            more = np.empty(size, np.int64)
            low, value = np.append(low, more), np.append(value, more)
            slope, owner = np.append(slope, more), np.append(owner, more)
            size *= 2
            low_bent, value_bent = np.empty(size + 1, np.int64), np.empty(size, np.int64)
            slope_bent, owner_bent = np.empty(size, np.int64), np.empty(size, np.int64)


@kernel
def whole_costs(values: IntArray, order: IntArray, right: int, forward: bool) -> IntArray:
    """Give the cost of one bucket for every start (x_q … x_right) or, forward, for every end (x₁ … x_t).

    ``order`` sorts the values, ties by place. Values leave a sorted linked list one by one from the far end,
    and the median moves by one link at a time: O(right) in all, where two heaps would need a logarithm more.
    """
    before, after = np.full(right, -1, np.int64), np.full(right, -1, np.int64)
    cost = np.zeros(right + 1, np.int64)
    if right == 0:
        return cost
    half = (right - 1) // 2
    median, last, seen = -1, -1, 0
    for i in order:
        if i < right:
            before[i] = last
            if last >= 0:
                after[last] = i
            if seen == half:
                median = i
            last = i
            seen += 1
    total = np.int64(0)
    for i in range(right):
        total += abs(values[i] - values[median])
    # ``left`` and ``over`` count the values before and after the median in the list.
    left, over = half, right - 1 - half
    for gone in range(right):
        i = right - 1 - gone if forward else gone
        cost[i + 1 if forward else i] = total
        if left + over == 0:
            break
        a, b = before[i], after[i]
        if a >= 0:
            after[a] = b
        if b >= 0:
            before[b] = a
        v = values[median]
        if i == median:
            # The nearer end of the longer side takes over: that side comes closer, the other moves away.
            if over > left:
                median = b
                total += (values[b] - v) * (left - over)
                over -= 1
            else:
                median = a
                total += (v - values[a]) * (over - left)
                left -= 1
            continue
        total -= abs(values[i] - v)
        if values[i] < v or (values[i] == v and i < median):
            left -= 1
            if over - left > 1:
                median = after[median]
                total += (values[median] - v) * (left + 1 - over)
                left, over = left + 1, over - 1
        else:
            over -= 1
            if left - over > 1:
                median = before[median]
                total += (v - values[median]) * (over + 1 - left)
                left, over = left - 1, over + 1
    return cost
