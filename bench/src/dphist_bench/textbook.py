"""The textbook dynamic programs, O(n²) and O(n²·k): the yardstick for speed and, in tests, for results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def penalised_squared(values: IntArray, price: float) -> tuple[FloatArray, IntArray]:
    """Try every start of the last bucket for every prefix."""
    n = values.size
    sums, squares = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + values[i]
        squares[i + 1] = squares[i] + float(values[i]) * float(values[i])
    best, back = np.zeros(n + 1), np.zeros(n + 1, np.int64)
    for t in range(1, n + 1):
        least, who = np.inf, 0
        for tau in range(t):
            d = sums[t] - sums[tau]
            cost = best[tau] + ((squares[t] - squares[tau]) - d * d / (t - tau))
            if cost < least:
                least, who = cost, tau
        best[t], back[t] = least + price, who
    return best, back


@kernel
def fixed_squared(values: IntArray, bins: int) -> tuple[FloatArray, IntArray]:
    """Fill the table of the paper's Figure 3: ``best[j, t]``, the least cost of t values in j + 1 buckets."""
    n = values.size
    sums, squares = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + values[i]
        squares[i + 1] = squares[i] + float(values[i]) * float(values[i])
    best, back = np.zeros((bins, n + 1)), np.zeros((bins, n + 1), np.int64)
    for t in range(1, n + 1):
        best[0, t] = squares[t] - sums[t] * sums[t] / t
    for j in range(1, bins):
        for t in range(j + 1, n + 1):
            least, who = np.inf, 0
            for tau in range(j, t):
                d = sums[t] - sums[tau]
                cost = best[j - 1, tau] + ((squares[t] - squares[tau]) - d * d / (t - tau))
                if cost < least:
                    least, who = cost, tau
            best[j, t], back[j, t] = least, who
    return best, back


@kernel
def absolute_costs(values: IntArray, ranks: IntArray, levels: IntArray) -> IntArray:
    """Give every bucket's cost about its median, ``cost[end, start]``, by a running median over ranks."""
    n = values.size
    cost = np.zeros((n + 1, n + 1), np.int64)
    count = np.zeros(levels.size, np.int64)
    for i in range(n):
        count[:] = 0
        median, below, total = ranks[i], 0, np.int64(0)
        for j in range(i, n):
            rank = ranks[j]
            count[rank] += 1
            total += abs(values[j] - levels[median])
            if rank < median:
                below += 1
            length = j - i + 1
            middle = (length - 1) // 2
            while below > middle:
                lower = median - 1
                while count[lower] == 0:
                    lower -= 1
                total += (levels[median] - levels[lower]) * (length - 2 * below)
                median, below = lower, below - count[lower]
            while below + count[median] <= middle:
                upper = median + 1
                while count[upper] == 0:
                    upper += 1
                below += count[median]
                total += (levels[upper] - levels[median]) * (2 * below - length)
                median = upper
            cost[j + 1, i] = total
    return cost


@kernel
def penalised_absolute(cost: IntArray, price: int) -> tuple[IntArray, IntArray]:
    """Try every start of the last bucket for every prefix, given the cost of every bucket."""
    n = cost.shape[0] - 1
    best, back = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for t in range(1, n + 1):
        least, who = np.int64(2**62), 0
        for tau in range(t):
            here = best[tau] + cost[t, tau]
            if here < least:
                least, who = here, tau
        best[t], back[t] = least + price, who
    return best, back


@kernel
def fixed_absolute(cost: IntArray, bins: int) -> tuple[IntArray, IntArray]:
    """Fill the table of least costs, t values in j + 1 buckets at ``best[j, t]``, given every bucket's."""
    n = cost.shape[0] - 1
    best, back = np.zeros((bins, n + 1), np.int64), np.zeros((bins, n + 1), np.int64)
    best[0] = cost[:, 0]
    for j in range(1, bins):
        for t in range(j + 1, n + 1):
            least, who = np.int64(2**62), 0
            for tau in range(j, t):
                here = best[j - 1, tau] + cost[t, tau]
                if here < least:
                    least, who = here, tau
            best[j, t], back[j, t] = least, who
    return best, back
