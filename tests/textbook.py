"""Rules from their statements: buckets of a line by programs over all, the rows kept of a person, noise of trees."""

import hashlib
from bisect import insort

import numpy as np

from dphist.kernels.trees.shares import range_error
from dphist.mechanisms.trees.shares import contrasts, volumes


def bucket_costs(values, loss):
    """The cost of every bucket at ``cost[start, end]``, about its mean or its median; infinite where there is none."""
    n = len(values)
    cost = np.full((n + 1, n + 1), np.inf)
    if loss == "squared":
        sums, squares = (np.concatenate([[0.0], np.cumsum(np.float64(values) ** power)]) for power in (1, 2))
        for start in range(n):
            there = slice(start + 1, None)
            length = np.arange(1, n - start + 1)
            cost[start, there] = squares[there] - squares[start] - (sums[there] - sums[start]) ** 2 / length
        return cost
    for start in range(n):
        seen: list[int] = []
        total = 0
        for end in range(start, n):
            x, m = int(values[end]), len(seen)
            # Any number between the two middles is a median: a value costs what it lies outside of these.
            low, high = (seen[(m - 1) // 2], seen[m // 2]) if m else (x, x)
            total += max(low - x, x - high, 0)
            insort(seen, x)
            cost[start, end + 1] = total
    return cost


def fixed(cost, bins):
    """The least cost of the first t values in j + 1 buckets, at ``best[j, t]``."""
    rows = [cost[0]]
    for _ in range(1, bins):
        rows.append((rows[-1][:, None] + cost).min(axis=0))
    return np.array(rows)


def penalised(cost, price):
    """The least cost of all values with a price for each bucket."""
    best = np.zeros(len(cost))
    for end in range(1, len(cost)):
        best[end] = (best[:end] + cost[:end, end]).min() + price
    return best[-1]


def picked(person, cells, limit):
    """The cells of the rows that are kept of one person: walk round a circle.

    Put the n cells in order, L times each, on a circle of L·n seats and take every n-th seat, from the seat that the
    id's hash says.
    """
    if len(cells) <= limit:
        return list(cells)
    seats = [cell for cell in sorted(cells) for _ in range(limit)]
    digest = hashlib.md5(b"dphist|" + person.encode(), usedforsecurity=False).digest()
    seat = (int.from_bytes(digest[:8], "big") >> 4) % len(cells)
    return seats[seat :: len(cells)]


def mean_variance(shape, sides, goal, shares, power=2):
    """Mean variance of questions when the levels of a tree have these shares and the budget buys a variance of 2."""
    nothing, weight = np.zeros(0), contrasts(shape, sides, goal)
    law = (1.0, nothing, nothing, 1.0, power)
    return float(range_error(weight, volumes(shape, sides), np.zeros(weight.size), shares, *law))
