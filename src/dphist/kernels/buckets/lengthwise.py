"""Buckets of least squared deviation at a price that falls with their length, in close to linear time.

A bucket x_i … x_k of m values costs Σ(x − mean)² + A/m − v·(m − 1). Weighing every bucket takes quadratic time; this
search finds the same buckets by *functional pruning* (Maidstone, Hocking, Fearnhead and Rigaill), which needs a price
that does not depend on the length, and here is how it gets along with one that does.

Write F(i) for the least cost of the first i values and look at one level μ. A history that starts its last bucket at i
and ends it at k costs F(i) + Σ_{i ≤ s < k}(x_s − μ)² − v·(k − i − 1) + A/(k − i), and its least over μ is what it costs
with the bucket's mean. Of two starts i < j the difference is P(μ) = F(i) − F(j) + Σ_{i ≤ s < j}(x_s − μ)² − v·(j − i),
the same for all k, less D(k) = A/(k − j) − A/(k − i), which is above zero and falls with k. Hence

- where P(μ) ≤ 0 the older start is at least as good for ever;
- where P(μ) ≥ D(k) at some k the newer start is at least as good from then on;
- between, neither is forgotten.

So every start keeps the levels at which no other is known to beat it for ever. That is: a newcomer gets the gaps that
older starts leave, and at each step all give up levels to the starts of 1, 8, 64 and 512 steps ago, whose D has become
small. Both sets are intervals around a mean, by one square root. A start without levels is forgotten: whatever bucket
it would begin, at that bucket's mean another history is no worse.

Comparisons allow for rounding: who is within a slack far above it is kept. Costs are reckoned as the quadratic search
does, for starts in rising order, and the first of equals is taken, so the buckets are the same.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.buckets.cheapest import prefix_squares, starts_of
from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Comparisons are off by some 2⁻⁵⁰ of what was added up.
_SLACK = 2.0**-38
# How many steps ago the starts began to which levels are given up.
_LAGS = (1, 8, 64, 512)


@kernel
def lengthwise_grouping(values: FloatArray, total_price: float, value_price: float) -> IntArray:
    """Starts of the cheapest buckets at Σ(x − mean)² + total_price/m − value_price·(m − 1), every length m allowed."""
    n = len(values)
    total, square, lost = prefix_squares(values)
    best = np.full(n + 1, np.inf)
    cut = np.zeros(n + 1, np.int64)
    best[0] = 0.0
    # Levels are told from the same centre as the sums: no mean lies outside what the values reach.
    least = np.inf
    most = -np.inf
    for i in range(n):
        x = total[i + 1] - total[i]
        least = min(least, x)
        most = max(most, x)
    # Pieces of levels in the order of their owners.
    room = 64
    owner = np.zeros(room, np.int64)
    low = np.zeros(room)
    high = np.zeros(room)
    low[0] = least
    high[0] = most
    pieces = 1
    taken_low = np.zeros(room)
    taken_high = np.zeros(room)
    for t in range(1, n + 1):
        # What the best history up to here costs.
        last = -1
        for p in range(pieces):
            i = owner[p]
            if i == last:
                continue
            last = i
            m = t - i
            whole = total[t] - total[i]
            spread = ((square[t] - square[i]) + (lost[t] - lost[i])) - whole * whole * (1.0 / m)
            price = total_price / m - value_price * (m - 1)
            cost = best[i] + (max(spread, 0.0) + price)
            if cost < best[t]:
                best[t] = cost
                cut[t] = i
        if t == n:
            break
        # Older starts take levels from the newcomer, and give up levels to starts of some steps ago.
        here = best[t]
        takers = 0
        kept = 0
        last = -1
        first = least
        final = most
        for p in range(pieces):
            i = owner[p]
            if i != last:
                last = i
                m = t - i
                whole = total[t] - total[i]
                squares = (square[t] - square[i]) + (lost[t] - lost[i])
                mean = whole / m
                slack = _SLACK * (abs(best[i]) + abs(here) + squares + value_price * m + total_price)
                ahead = here - (best[i] + (squares - whole * mean) - value_price * m) - slack
                if ahead > 0.0:
                    half = math.sqrt(ahead / m)
                    taken_low[takers] = mean - half
                    taken_high[takers] = mean + half
                    takers += 1
                first = least
                final = most
                for lag in _LAGS:
                    j = t + 1 - lag
                    if j <= i:
                        break
                    m = j - i
                    whole = total[j] - total[i]
                    squares = (square[j] - square[i]) + (lost[j] - lost[i])
                    mean = whole / m
                    slack = _SLACK * (abs(best[i]) + abs(best[j]) + squares + value_price * m + total_price)
                    behind = total_price / lag - total_price / (t + 1 - i)
                    left = behind + slack - (best[i] - best[j] + (squares - whole * mean) - value_price * m)
                    if left <= 0.0:
                        first = np.inf
                        break
                    half = math.sqrt(left / m)
                    first = max(first, mean - half)
                    final = min(final, mean + half)
            begin = max(low[p], first)
            end = min(high[p], final)
            if begin <= end:
                owner[kept] = i
                low[kept] = begin
                high[kept] = end
                kept += 1
        pieces = kept
        # The gaps that are left are the newcomer's.
        if pieces + takers + 2 > room:
            more = 2 * (pieces + takers + 2)
            owner = np.concatenate((owner, np.zeros(more - room, np.int64)))
            low = np.concatenate((low, np.zeros(more - room)))
            high = np.concatenate((high, np.zeros(more - room)))
            taken_low = np.concatenate((taken_low, np.zeros(more - room)))
            taken_high = np.concatenate((taken_high, np.zeros(more - room)))
            room = more
        for a in range(1, takers):
            x = taken_low[a]
            y = taken_high[a]
            b = a - 1
            while b >= 0 and taken_low[b] > x:
                taken_low[b + 1] = taken_low[b]
                taken_high[b + 1] = taken_high[b]
                b -= 1
            taken_low[b + 1] = x
            taken_high[b + 1] = y
        free = least
        for a in range(takers):
            if taken_low[a] > free:
                owner[pieces] = t
                low[pieces] = free
                high[pieces] = min(taken_low[a], most)
                pieces += 1
            free = max(free, taken_high[a])
            if free >= most:
                break
        if free < most or (takers == 0 and least == most):
            owner[pieces] = t
            low[pieces] = free
            high[pieces] = most
            pieces += 1
    return starts_of(cut)
