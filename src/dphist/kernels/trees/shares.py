"""How a tree's levels should share a budget; `dphist.mechanisms.levels` has the formula."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]


@kernel
def mean_variance(energy: FloatArray, volume: FloatArray, shares: FloatArray) -> float:
    """Mean variance Σ_j (energy_j − energy_{j−1})/λ_j of a workload at ε = 1, λ_j = Σ_{l ≥ j} shares_l²/2·volume_l."""
    information = 0.0
    total = 0.0
    for j in range(len(energy) - 1, -1, -1):
        information += shares[j] * shares[j] / 2 * volume[j]
        gained = energy[j] - (energy[j - 1] if j > 0 else 0.0)
        total += gained / information
    return total


@kernel
def best_shares(energy: FloatArray, volume: FloatArray) -> FloatArray:
    """Shares of the levels, summing to 1, that make the mean variance least.

    Exponentiated gradient: at the optimum every level in use gains the same from one more grain of budget.
    """
    levels = len(energy)
    shares = np.full(levels, 1.0 / levels)
    least = mean_variance(energy, volume, shares)
    slope = np.empty(levels)
    information = np.empty(levels)
    pace = 0.5
    for _ in range(600):
        known = 0.0
        for j in range(levels - 1, -1, -1):
            known += shares[j] * shares[j] / 2 * volume[j]
            information[j] = known
        pull = 0.0
        weighted = 0.0
        for j in range(levels):
            gained = max(0.0, energy[j] - (energy[j - 1] if j > 0 else 0.0))
            pull += gained / (information[j] * information[j])
            slope[j] = shares[j] * volume[j] * pull
            weighted += shares[j] * slope[j]
        trial = np.empty(levels)
        for j in range(levels):
            step = min(2.0, max(-2.0, slope[j] / weighted - 1.0))
            trial[j] = max(1e-9, shares[j] * np.exp(pace * step))
        trial /= trial.sum()
        cost = mean_variance(energy, volume, trial)
        if cost <= least:
            settled = least - cost < 1e-10 * least
            shares, least = trial, cost
            if settled:
                break
        else:
            pace *= 0.5
            if pace < 1e-3:
                break
    return shares
