"""What the DPCube paper promises for one part, before anything is spent: formulas, and no data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def smooth_error_bound(smoothness: float, size: int, part: int, epsilon: float) -> float:
    """Bound the expected absolute error of ``size`` cells of an evenly spread part whose cells differ by at most γ.

    Equation 7: γ·min(s, n − s) + s ÷ (ε·n).
    """
    return smoothness * min(size, part - size) + size / (epsilon * part)


def observed_error(difference: float, size: int, epsilon: float) -> float:
    """Guess the expected absolute error of an evenly spread part from how far cells and leaf disagree (Equation 8).

    E|η + Z| with Z the noise of ``size`` cells and η the disagreement seen. A heuristic: η itself holds that noise,
    and the theorem treats it as fixed.
    """
    return mean_absolute([(1.0 / epsilon, size)], shift=difference)


def least_squares_draws(
    size: int, part: int, cells_epsilon: float, leaf_epsilon: float, *, weighted: bool = True
) -> list[tuple[float, int]]:
    """List the Laplace draws in an answer of ``size`` cells of a part: (scale, how many).

    Cells and leaf are combined as yᵢ + g(y_p − Σy), g = 1/(n + 1) as printed, or α₂²/(nα₂² + α₁²) when weighted.
    """
    g = 1.0 / (part + (cells_epsilon / leaf_epsilon) ** 2) if weighted else 1.0 / (part + 1.0)
    share = g * size
    return [
        (share / leaf_epsilon, 1),
        (abs(1.0 - share) / cells_epsilon, size),
        (share / cells_epsilon, part - size),
    ]


def least_squares_variance(
    size: int, part: int, cells_epsilon: float, leaf_epsilon: float, *, weighted: bool = True
) -> float:
    """Give the variance of ``size`` cells of a part under least squares; weighted, 2/α₁²·[s − s²α₂²/(nα₂² + α₁²)]."""
    draws = least_squares_draws(size, part, cells_epsilon, leaf_epsilon, weighted=weighted)
    return sum(2.0 * scale**2 * count for scale, count in draws)


def least_squares_error(
    size: int, part: int, cells_epsilon: float, leaf_epsilon: float, *, weighted: bool = False
) -> float:
    """Give the expected absolute error of ``size`` cells of a part under least squares (Equation 9, as printed)."""
    return mean_absolute(least_squares_draws(size, part, cells_epsilon, leaf_epsilon, weighted=weighted))


def mean_absolute(draws: Sequence[tuple[float, int]], shift: float = 0.0) -> float:
    """Give E|shift + X| for a sum X of independent Laplace draws, each (scale, how many).

    E|a + X| = |a| + (2/π)∫₀^∞ cos(at)·(1 − φ(t)) ÷ t² dt with φ(t) = ∏(1 + scale²t²)^−count: one integral, not the
    paper's nested convolutions. What it adds to |a| falls off exponentially in a, so by Poisson's formula the trapezium
    rule with step h is exact up to that function at 2π/h − a; the part without φ is a sum in closed form.
    """
    scales = np.array([scale for scale, count in draws if count > 0 and scale > 0])
    counts = np.array([count for scale, count in draws if count > 0 and scale > 0], dtype=np.float64)
    if scales.size == 0:
        return abs(shift)
    unit = math.sqrt(float((2.0 * scales**2 * counts).sum()))
    turn = abs(shift) / unit
    step = 2.0 * math.pi / (turn + 60.0)
    k = np.arange(1, 200_001, dtype=np.float64)
    log = np.zeros(k.size)
    for scale, count in zip(scales / unit, counts, strict=True):
        log -= count * np.log1p((scale * step * k) ** 2)
    angle = turn * step
    # Σ cos(kθ)/k² = π²/6 − πθ/2 + θ²/4 on [0, 2π].
    plain = math.pi**2 / 6.0 - math.pi * angle / 2.0 + angle**2 / 4.0
    faded = float((np.exp(log) * np.cos(k * angle) / k**2).sum())
    beyond = step / 4.0 + (plain - faded) / step
    return unit * (turn + 2.0 / math.pi * beyond)
