"""Sharing budgets and pruning once more with Python's own numbers, bit for bit: while numba is not loaded.

What each computes is said at the kernel of its name. Python takes a number out of a list and multiplies it several
times as fast as out of an array, and the same operations in the same order give the same bits. Only what `best_shares`
asks for again and again is kept: products whose factors do not change.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class _Errors:
    """`range_error` of one question after the other, where nothing but the shares changes."""

    def __init__(
        self,
        weight: FloatArray,
        cells: FloatArray,
        known: FloatArray,
        scale: float,
        densities: FloatArray,
        chances: FloatArray,
        waste: float,
        power: int,
    ) -> None:
        self.scale, self.square = scale, power == 2
        self.levels = []
        for weighs, size, paid in zip(weight.tolist(), cells.tolist(), known.tolist(), strict=True):
            priors = [density * density * size for density in densities.tolist()]
            gains = [
                (prior, weighs * chance * prior)
                for prior, chance in zip(priors, chances.tolist(), strict=True)
            ]
            self.levels.append((size, paid, gains, waste * weighs))
        self.levels.reverse()

    def __call__(self, shares: list[float]) -> float:
        scale, square = self.scale, self.square
        precision = error = 0.0
        for share, (size, paid, gains, wasted) in zip(reversed(shares), self.levels, strict=True):
            if square:
                ratio = share / scale
                bought = 0.5 * (ratio * ratio)
            else:
                bought = 0.5 * share / (scale * scale)
            precision += (paid + bought) * size
            for prior, gain in gains:
                error += gain / (precision * prior + 1.0)
            if precision > 0.0:
                error += wasted / precision
        return error


def range_error(
    weight: FloatArray,
    cells: FloatArray,
    known: FloatArray,
    shares: FloatArray,
    scale: float,
    densities: FloatArray,
    chances: FloatArray,
    waste: float,
    power: int = 2,
) -> float:
    """As the kernel of this name."""
    return _Errors(weight, cells, known, scale, densities, chances, waste, power)(shares.tolist())


def best_shares(
    weight: FloatArray,
    cells: FloatArray,
    known: FloatArray,
    left: float,
    first: int,
    scale: float,
    densities: FloatArray,
    chances: FloatArray,
    waste: float,
    power: int = 2,
) -> tuple[float, FloatArray]:
    """As the kernel of this name."""
    if densities.size == 0:
        least, sure = _convex_shares(weight, cells, waste, power)
        whole = (scale / left) * (scale / left) if power == 2 else scale * scale / left
        return least * whole, sure * left
    levels = weight.size
    errors = _Errors(weight, cells, known, scale, densities, chances, waste, power)
    lowest, best = math.inf, [0.0] * levels
    for start in range(4):
        shares = [0.0] * levels
        if start == 0:
            shares[first:] = [left / (levels - first)] * (levels - first)
        elif start == 1:
            shares[levels - 1] = left
        else:
            shares[min(first + 2 * (start - 2), levels - 1)] = left
        error = errors(shares)
        step = left / 2.0
        while step > left / 70.0:
            moved = False
            for giver in range(first, levels):
                for taker in range(first, levels):
                    if giver == taker or shares[giver] <= 0.0:
                        continue
                    amount = min(step, shares[giver])
                    shares[giver] -= amount
                    shares[taker] += amount
                    tried = errors(shares)
                    if tried < error * (1.0 - 1e-6):
                        error, moved = tried, True
                    else:
                        shares[giver] += amount
                        shares[taker] -= amount
            if not moved:
                step /= 2.0
        if error < lowest:
            lowest, best = error, shares
    return lowest, np.array(best)


def _convex_shares(
    weight: FloatArray, cells: FloatArray, waste: float, power: int
) -> tuple[float, FloatArray]:
    none, nothing, levels = np.zeros(weight.size), np.zeros(0), weight.size
    errors = _Errors(weight, cells, none, 1.0, nothing, nothing, waste, power)
    weighs, sizes = weight.tolist(), cells.tolist()
    shares = [1.0 / levels] * levels
    least, pace = errors(shares), 0.5
    for _ in range(600):
        known, information = 0.0, [0.0] * levels
        for j in range(levels - 1, -1, -1):
            known += (shares[j] * shares[j] if power == 2 else shares[j]) / 2 * sizes[j]
            information[j] = known
        pull, weighted, slope = 0.0, 0.0, [0.0] * levels
        for j in range(levels):
            pull += max(0.0, weighs[j]) / (information[j] * information[j])
            slope[j] = (shares[j] if power == 2 else 0.5) * sizes[j] * pull
            weighted += shares[j] * slope[j]
        trial = [
            max(1e-9, share * math.exp(pace * min(2.0, max(-2.0, each / weighted - 1.0))))
            for share, each in zip(shares, slope, strict=True)
        ]
        # One after the other: Python's own sum compensates for rounding from 3.12 on.
        whole = 0.0
        for each in trial:
            whole += each
        trial = [each / whole for each in trial]
        cost = errors(trial)
        if cost <= least:
            settled = least - cost < 1e-10 * least
            shares, least = trial, cost
            if settled:
                break
        else:
            pace *= 0.5
            if pace < 1e-3:
                break
    return least, np.array(shares)


def prune(
    first: IntArray, last: IntArray, size: FloatArray, best: FloatArray, variance: FloatArray, price: float
) -> BoolArray:
    """As the kernel of this name."""
    begins, ends, sizes = first.tolist(), last.tolist(), size.tolist()
    totals, unsure = best.tolist(), variance.tolist()
    chi, cost = [0.0] * best.size, [0.0] * best.size
    whole = np.zeros(best.size, dtype=np.bool_)
    for i in np.flatnonzero(first >= 0)[::-1].tolist():
        begin, end, mine = begins[i], ends[i], sizes[i]
        total = 0.0
        for value in totals[begin:end]:
            total += value
        here, below = 0.0, price * (end - begin - 1)
        for c in range(begin, end):
            gap = totals[c] - total * sizes[c] / mine
            here += chi[c] + gap * gap / unsure[c]
            below += cost[c]
        chi[i] = here
        cost[i] = min(here, below)
        whole[i] = below >= here
    return whole


def quicksorted(values: FloatArray) -> IntArray:
    """As the kernel of this name; where no two values are equal there is one order, whoever finds it."""
    found = np.argsort(values, kind="stable")
    rising = values[found]
    if not (rising[1:] == rising[:-1]).any():
        return np.asarray(found, dtype=np.int64)
    return np.array(_by_pivots(values.tolist()), dtype=np.int64)


def _by_pivots(values: list[float]) -> list[int]:
    # The values move with their places.
    order, waiting = list(range(len(values))), [(0, len(values) - 1)]
    while waiting:
        low, high = waiting.pop()
        while high - low >= 15:
            middle = (low + high) >> 1
            for one, other in ((low, middle), (middle, high), (low, middle)):
                if values[other] < values[one]:
                    values[one], values[other] = values[other], values[one]
                    order[one], order[other] = order[other], order[one]
            pivot = values[middle]
            values[high], values[middle] = values[middle], values[high]
            order[high], order[middle] = order[middle], order[high]
            i, j = low, high - 1
            while True:
                while i < high and values[i] < pivot:
                    i += 1
                while j >= low and pivot < values[j]:
                    j -= 1
                if i >= j:
                    break
                values[i], values[j] = values[j], values[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
            values[i], values[high] = values[high], values[i]
            order[i], order[high] = order[high], order[i]
            if high - i > i - low:
                waiting.append((i + 1, high))
                high = i - 1
            else:
                waiting.append((low, i - 1))
                low = i + 1
        for i in range(low + 1, high + 1):
            value, moved, j = values[i], order[i], i
            while j > low and value < values[j - 1]:
                values[j], order[j] = values[j - 1], order[j - 1]
                j -= 1
            values[j], order[j] = value, moved
    return order


def mirror_threshold(scores: FloatArray) -> float:
    """As the kernel of this name."""
    if scores.size < 16:
        return 0.0
    q = scores[quicksorted(np.abs(scores))]
    # Running sums one after the other, as a loop adds; the last that is below all before it says where to cut.
    running = np.cumsum(np.where(q > 0.0, q * q - 1.0, 1.0 - 2.0 * q * q))
    centred = np.cumsum(q) <= 2.5 * np.sqrt(np.cumsum(q * q))
    allowed = np.where(centred, running, np.inf)
    falls = np.flatnonzero(allowed < np.minimum.accumulate(np.append(0.0, allowed[:-1])))
    return float(abs(q[falls[-1]])) if falls.size else 0.0


def level_cuts(
    parent: IntArray, whole: BoolArray, level: IntArray, best: FloatArray, variance: FloatArray
) -> FloatArray:
    """As the kernel of this name."""
    cut = np.zeros(best.size)
    split = ~whole[parent] & (best[parent] > 0.0)
    split[0] = False
    for this in range(1, int(level.max()) + 1):
        mine = level == this
        mine[0] = False
        asked = mine & split
        cut[parent[mine]] = mirror_threshold(best[asked] / np.sqrt(variance[asked]))
    return cut
