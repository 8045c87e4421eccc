"""How the levels of a tree of boxes should share a budget for the questions that will be asked.

Levels go from the root down to the cells; a box of level j has ``cells[j]`` cells. ``weight[j]`` is how much of
a typical question is a contrast of level j: what the averages over boxes of level j keep of it, in squares, beyond what
those of level j − 1 keep (`dphist.mechanisms.trees.shares` has the formula). The noise law of a share enters by its
``scale`` and its ``power``: a level that spends s of the budget has variance 2·scale²/s^power, with power 2 for Laplace
noise and 1 for Gaussian noise. Everything here reads public facts and released values.

Levels are few, and Python takes a number out of a list several times as fast as out of an array.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


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
    """Expected squared error of a typical range when level j is measured with ``shares[j]`` of the budget.

    On a regular tree least squares knows each orthonormal contrast of level j with precision
    λ_j = Σ_{l ≥ j} cells_l · (precision of one box of level l), so the noise in a range is Σ_j weight_j / λ_j exactly.
    A contrast is worth knowing only if counts depart from an even spread: with r the departure, its variance is
    about r²·cells_j, and of two guesses, the measured and the even one, the better mix has error
    1 / (λ_j + 1 / (r² cells_j)). ``densities`` are possible r with their ``chances``; ``waste`` is the part of the
    noise that no inference takes out again. ``known`` is the precision already paid for at each level. With no
    densities and a waste of 1 this is the mean variance of least squares.
    """
    return _Errors(weight, cells, known, scale, densities, chances, waste, power)(shares.tolist())


def _convex_shares(
    weight: FloatArray, cells: FloatArray, waste: float, power: int
) -> tuple[float, FloatArray]:
    """Share the whole budget among all levels where only noise counts: one valley.

    Exponentiated gradient: at the optimum every level in use gains the same from one more grain of budget.
    """
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
    """Share ``left`` among the levels from ``first`` on so that `range_error` is least; gives the error and the shares.

    Without ``densities`` only noise counts: there is one valley, and the whole budget is shared among all levels by one
    descent. With them contrasts may not be there, and there is a valley for every set of levels that might be skipped:
    ever smaller amounts are moved between any two levels while that helps, from an even start, from the cells, and
    from the first levels.
    """
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
