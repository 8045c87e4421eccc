"""How the levels of a tree of boxes should share a budget for the questions that will be asked.

Levels go from the root down to the cells; a box of level j has ``cells[j]`` cells. ``weight[j]`` is how much of
a typical question is a contrast of level j: what the averages over boxes of level j keep of it, in squares, beyond what
those of level j − 1 keep (`dphist.mechanisms.trees.shares` has the formula). The noise law of a share enters by its
``scale`` and its ``power``: a level that spends s of the budget has variance 2·scale²/s^power, with power 2 for Laplace
noise and 1 for Gaussian noise. Everything here reads public facts and released values.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel, kernel_with_twin
from dphist.kernels.trees import plain

FloatArray = NDArray[np.float64]


@kernel
def _precision(share: float, scale: float, power: int) -> float:
    """One over the variance that a share buys."""
    if power == 2:
        # Not a power: Python's and the machine's may differ in the last bit.
        ratio = share / scale
        return 0.5 * (ratio * ratio)
    return 0.5 * share / (scale * scale)


def _share_cost(weight: FloatArray, *others: FloatArray | float) -> float:
    """About how many microseconds Python takes: moves between any two levels, at some sizes, each weighed again."""
    return 2.0 * float(len(weight)) ** 3


@kernel_with_twin(plain.range_error, cost=2.0)
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
    precision = 0.0
    error = 0.0
    for j in range(weight.size - 1, -1, -1):
        precision += (known[j] + _precision(shares[j], scale, power)) * cells[j]
        for i in range(densities.size):
            prior = densities[i] * densities[i] * cells[j]
            error += weight[j] * chances[i] * prior / (precision * prior + 1.0)
        if precision > 0.0:
            error += waste * weight[j] / precision
    return error


@kernel
def _convex_shares(
    weight: FloatArray, cells: FloatArray, waste: float, power: int
) -> tuple[float, FloatArray]:
    """Share the whole budget among all levels where only noise counts: one valley.

    Exponentiated gradient: at the optimum every level in use gains the same from one more grain of budget.
    """
    levels = len(weight)
    none, nothing = np.zeros(levels), np.zeros(0)
    shares = np.full(levels, 1.0 / levels)
    least = range_error(weight, cells, none, shares, 1.0, nothing, nothing, waste, power)
    slope = np.empty(levels)
    information = np.empty(levels)
    pace = 0.5
    for _ in range(600):
        known = 0.0
        for j in range(levels - 1, -1, -1):
            known += (shares[j] * shares[j] if power == 2 else shares[j]) / 2 * cells[j]
            information[j] = known
        pull = 0.0
        weighted = 0.0
        for j in range(levels):
            pull += max(0.0, weight[j]) / (information[j] * information[j])
            slope[j] = (shares[j] if power == 2 else 0.5) * cells[j] * pull
            weighted += shares[j] * slope[j]
        trial = np.empty(levels)
        for j in range(levels):
            step = min(2.0, max(-2.0, slope[j] / weighted - 1.0))
            trial[j] = max(1e-9, shares[j] * math.exp(pace * step))
        # Written out: NumPy adds eight and more numbers in another order.
        whole = 0.0
        for j in range(levels):
            whole += trial[j]
        trial /= whole
        cost = range_error(weight, cells, none, trial, 1.0, nothing, nothing, waste, power)
        if cost <= least:
            settled = least - cost < 1e-10 * least
            shares, least = trial, cost
            if settled:
                break
        else:
            pace *= 0.5
            if pace < 1e-3:
                break
    return least, shares


@kernel_with_twin(plain.best_shares, cost=_share_cost)
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
    lowest = np.inf
    best = np.zeros(levels)
    for start in range(4):
        shares = np.zeros(levels)
        if start == 0:
            shares[first:] = left / (levels - first)
        elif start == 1:
            shares[levels - 1] = left
        else:
            shares[min(first + 2 * (start - 2), levels - 1)] = left
        error = range_error(weight, cells, known, shares, scale, densities, chances, waste, power)
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
                    tried = range_error(weight, cells, known, shares, scale, densities, chances, waste, power)
                    if tried < error * (1.0 - 1e-6):
                        error = tried
                        moved = True
                    else:
                        shares[giver] += amount
                        shares[taker] -= amount
            if not moved:
                step /= 2.0
        if error < lowest:
            lowest = error
            best[:] = shares
    return lowest, best
