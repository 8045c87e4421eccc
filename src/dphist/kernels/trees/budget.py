"""How to share a budget over the levels of a tree of boxes for the ranges that will be asked.

Levels go from the root down to the cells; a box of level j has ``cells[j]`` cells. ``weight[j]`` is how much of
a typical range's sum is a contrast of level j: what the averages over boxes of level j keep of the range, in
squares, beyond what those of level j − 1 keep. Everything here reads public facts and released values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]


@kernel
def range_error(
    weight: FloatArray,
    cells: FloatArray,
    known: FloatArray,
    shares: FloatArray,
    scale: float,
    densities: FloatArray,
    chances: FloatArray,
    waste: float,
) -> float:
    """Expected squared error of a typical range when level j is measured with ``shares[j]`` of the budget.

    On a regular tree least squares knows each orthonormal contrast of level j with precision
    λ_j = Σ_{l ≥ j} cells_l · (precision of one box of level l), so the noise in a range is Σ_j weight_j / λ_j exactly.
    A contrast is worth knowing only if counts depart from an even spread: with r the departure, its variance is
    about r²·cells_j, and of two guesses, the measured and the even one, the better mix has error
    1 / (λ_j + 1 / (r² cells_j)). ``densities`` are possible r with their ``chances``; ``waste`` is the part of the
    noise that no inference takes out again. ``known`` is the precision already paid for at each level.
    """
    precision = 0.0
    error = 0.0
    for j in range(weight.size - 1, -1, -1):
        precision += (known[j] + 0.5 * (shares[j] / scale) ** 2) * cells[j]
        for i in range(densities.size):
            prior = densities[i] * densities[i] * cells[j]
            error += weight[j] * chances[i] * prior / (precision * prior + 1.0)
        if precision > 0.0:
            error += waste * weight[j] / precision
    return error


@kernel
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
) -> tuple[float, FloatArray]:
    """Share ``left`` among the levels from ``first`` on so that `range_error` is least.

    Moves ever smaller amounts between any two levels while that helps, from an even start, from the cells, and from
    the first levels: the error has several valleys, one for every set of levels that might be skipped.
    """
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
        error = range_error(weight, cells, known, shares, scale, densities, chances, waste)
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
                    tried = range_error(weight, cells, known, shares, scale, densities, chances, waste)
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
