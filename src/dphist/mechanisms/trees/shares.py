"""Which levels a tree of blocks should have and what each should spend: arithmetic on public sizes.

Measure every block of side m_l with share s_l of ε = 1, so with precision w_l = s_l²/2 (of ρ = 1/4: s_l/2; ``power`` is
2 or 1, as the noise has it). The information matrix is Σ w_l B_l, B_l being ones within a block; its eigenspaces are
"constant on blocks of level j, summing to zero on blocks of level j − 1" with eigenvalue λ_j = Σ_{l ≥ j} w_l·volume_l.
The least squares answer to a question q therefore has variance Σ_j (‖A_j q‖² − ‖A_{j−1} q‖²)/λ_j, where A_j averages
over the blocks of level j (A_{−1} = 0). The mean of ‖A_j q‖² over a workload, its *energy*, is a closed form for cells,
prefixes and all ranges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Literal

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.kernels.trees.shares import best_shares
from dphist.model.workload import Workload

Kind = Literal["cells", "prefixes", "all_ranges"]
Sides = tuple[tuple[int, ...], ...]

# Shares are rounded to this, so that the last bits of a float never decide what is asked.
_GRAIN = 2048
_FINE_GRAIN = 1 << 20


def axis_energy(n: int, m: int, kind: Kind) -> float:
    """Mean of ‖A q‖² over a workload on one axis of n cells, A averaging over blocks of m cells."""
    m = min(m, n)
    if kind == "cells":
        return 1.0 / m
    # A range that ends t cells into a block loses t − t²/m there.
    lost = (m * m - 1) / (6.0 * m)
    if kind == "prefixes":
        return (n + 1) / 2.0 - lost
    length = (n + 2) / 3.0
    blocks = n / m
    inside = _faulhaber(m)
    ranges = n * (n + 1) / 2.0
    return length - (blocks * inside + blocks * (blocks - 1) / 2 * 2 * m * m * lost) / ranges


def _faulhaber(m: int) -> float:
    """Σ_L (m − L + 1)(L − L²/m): what all ranges inside one block lose."""
    one = m * (m + 1) / 2.0
    two = m * (m + 1) * (2 * m + 1) / 6.0
    three = one * one
    return (m + 1) * one - two - ((m + 1) * two - three) / m


def box_energy(shape: Sequence[int], side: Sequence[int], low: IntArray, high: IntArray) -> float:
    """The same for boxes that are written out: Σ |box ∩ block|² / |block|, a product over the axes."""
    product = np.ones(len(low))
    for axis, (n, m) in enumerate(zip(shape, side, strict=True)):
        start, stop = low[:, axis], high[:, axis]
        left, right = start // m * m, (stop - 1) // m * m
        left_end, right_end = np.minimum(left + m, n), np.minimum(right + m, n)
        first = np.maximum(left_end - left, 1)
        inside = (stop - start) ** 2 / first
        across = (
            (left_end - start) ** 2 / first
            + np.maximum(right - left_end, 0)
            + (stop - right) ** 2 / (right_end - right)
        )
        product = product * np.where(stop > start, np.where(left == right, inside, across), 0.0)
    return float(product.mean()) if product.size else 1.0


def level_gains(shape: Sequence[int], sides: Sides, low: IntArray, high: IntArray) -> FloatArray:
    """What blocks of every level keep of some boxes beyond the level before, on average; a trace of each is left."""
    energy = np.array([box_energy(shape, side, low, high) for side in sides])
    return np.asarray(np.maximum(np.diff(energy, prepend=0.0), 1e-12 * energy[-1]), dtype=np.float64)


def contrasts(shape: Sequence[int], sides: Sides, goal: Kind | Workload) -> FloatArray:
    """How much of a question is a contrast of each level: differences of the energies of the levels, on average."""
    if isinstance(goal, Workload) and goal.kind in ("marginals", "ranges"):
        energies = [box_energy(shape, side, goal.low, goal.high) for side in sides]
    else:
        kind: Kind = goal.kind if isinstance(goal, Workload) else goal  # type: ignore[assignment]  # structured
        energies = [
            math.prod(axis_energy(n, m, kind) for n, m in zip(shape, side, strict=True)) for side in sides
        ]
    return np.diff(np.array(energies), prepend=0.0)


def level_shares(
    shape: Sequence[int], sides: Sides, goal: Kind | Workload, power: int = 2
) -> tuple[float, FloatArray]:
    """Shares of the levels that make the mean variance of the questions least, and that variance."""
    nothing = np.zeros(0)
    least, shares = best_shares(
        *(contrasts(shape, sides, goal), volumes(shape, sides), nothing, 1.0, 0, 1.0),
        *(nothing, nothing, 1.0, power),
    )
    return float(least), shares


def volumes(shape: Sequence[int], sides: Sides) -> FloatArray:
    """Cells in a block of every level."""
    return np.array(
        [math.prod(min(n, m) for n, m in zip(shape, side, strict=True)) for side in sides], dtype=float
    )


def exact_shares(shares: FloatArray) -> tuple[Fraction, ...]:
    """Round shares to fractions that sum to exactly 1; a level that rounds to nothing gets nothing."""
    grains = np.floor(shares / shares.sum() * _GRAIN).astype(int)
    grains[grains < _GRAIN // 256] = 0
    grains[int(np.argmax(grains))] += _GRAIN - int(grains.sum())
    return tuple(Fraction(int(g), _GRAIN) for g in grains)


def geometric_shares(levels: int, axes: int, power: int = 2) -> tuple[Fraction, ...]:
    """Shares of the levels of a tree that halves every axis, root first: each 2^((axes−1)/3) times the one above.

    The edge of a range meets about 2^(axes−1) times as many boxes a level down, and Σ nᵢ/εᵢ² under Σ εᵢ = 1 is
    least for εᵢ ∝ nᵢ^(1/3); under ρ, where it is Σ nᵢ/ρᵢ, for ρᵢ ∝ nᵢ^(1/2). Rounded to fractions that sum to exactly
    one.
    """
    growth = 2.0 ** ((max(axes, 1) - 1) / (power + 1.0))
    weights = np.array([growth**level for level in range(levels)])
    grains = np.maximum(1, np.floor(weights / weights.sum() * _FINE_GRAIN)).astype(int)
    grains[-1] += _FINE_GRAIN - int(grains.sum())
    return tuple(Fraction(int(grain), _FINE_GRAIN) for grain in grains)


def halvings(shape: tuple[int, ...]) -> Sides:
    """Give the sides of boxes that are halved along every axis until they are cells; the first box holds everything.

    Sides are powers of two, so boxes at the far edge may be shorter. Long axes stay longer all the way, as ranges do.
    """
    side = tuple(1 << (n - 1).bit_length() for n in shape)
    sides = [side]
    while max(side) > 1:
        side = tuple(max(1, s // 2) for s in side)
        sides.append(side)
    return tuple(sides)


def fan_sides(shape: Sequence[int], fanout: int) -> Sides:
    """Blocks of a tree of this fan-out from the whole domain down to cells; a fan-out is shared between the axes."""
    axes = len(shape)
    ratio = max(2, round(fanout ** (1.0 / axes)))
    sides: list[tuple[int, ...]] = [(1,) * axes]
    while any(m < n for m, n in zip(sides[-1], shape, strict=True)):
        sides.append(tuple(m * ratio if m < n else m for m, n in zip(sides[-1], shape, strict=True)))
    return tuple(reversed(sides))


def hb_fanout(n: int) -> int:
    """The fan-out that Qardaji, Yang and Li's formula prefers for n bins: least (b − 1)h³ − 2(b + 1)h²/3."""
    best, least = 2, math.inf
    for b in range(2, min(n, 1024) + 1):
        height = max(1, math.ceil(math.log(n) / math.log(b) - 1e-9))
        cost = (b - 1) * height**3 - 2 * (b + 1) * height**2 / 3
        if cost < least:
            best, least = b, cost
    return best


@lru_cache(maxsize=256)
def searched(n: int, kind: Kind, power: int = 2) -> tuple[Sides, tuple[Fraction, ...]]:
    """Block lengths 2^k and shares for one axis of n cells that make a standard workload's mean variance least.

    A local search from several starts: levels are added, dropped and shifted while that helps. Under ρ levels cost no
    more than the root of their number, and all of them are best.
    """
    top = max(0, math.ceil(math.log2(n))) if n > 1 else 0
    if power == 1:
        levels = tuple(range(top, -1, -1))
        found = [(0.0, levels, level_shares((n,), tuple((1 << k,) for k in levels), kind, power)[1])]
    else:
        found = [_climb(n, kind, top, step, power) for step in (3, 4, 5)]
    _, levels, shares = min(found, key=lambda each: each[0])
    fractions = exact_shares(shares)
    kept = [(k, share) for k, share in zip(levels, fractions, strict=True) if share]
    return tuple((1 << k,) for k, _ in kept), tuple(share for _, share in kept)


def _climb(n: int, kind: Kind, top: int, step: int, power: int) -> tuple[float, tuple[int, ...], FloatArray]:
    def weigh(levels: tuple[int, ...]) -> tuple[float, FloatArray]:
        return level_shares((n,), tuple((1 << k,) for k in levels), kind, power)

    levels = tuple(range(top - top % step, -1, -step))
    least, shares = weigh(levels)
    improved = True
    while improved:
        improved = False
        moves = set()
        for k in range(1, top + 1):
            if k in levels:
                moves.add(tuple(v for v in levels if v != k))
                for shift in (k - 1, k + 1):
                    if 0 < shift <= top and shift not in levels:
                        moves.add(tuple(sorted({*levels, shift} - {k}, reverse=True)))
            else:
                moves.add(tuple(sorted({*levels, k}, reverse=True)))
        for first, second in combinations(levels[:-1], 2):
            for shift in (-1, 1):
                pair = {first + shift, second + shift}
                if min(pair) > 0 and max(pair) <= top:
                    moves.add(tuple(sorted({*levels} - {first, second} | pair, reverse=True)))
        for move in sorted(moves):
            cost, trial = weigh(move)
            if cost < least * (1 - 1e-6):
                least, shares, levels, improved = cost, trial, move, True
    return least, levels, shares
