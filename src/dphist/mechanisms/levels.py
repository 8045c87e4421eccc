"""Which levels a tree of blocks should have and what each should spend: arithmetic on public sizes.

Measure every block of side m_l with share s_l of ε = 1, so with precision w_l = s_l²/2. The information matrix is
Σ w_l B_l, B_l being ones within a block; its eigenspaces are "constant on blocks of level j, summing to zero on
blocks of level j − 1" with eigenvalue λ_j = Σ_{l ≥ j} w_l·volume_l. The least squares answer to a question q
therefore has variance Σ_j (‖A_j q‖² − ‖A_{j−1} q‖²)/λ_j, where A_j averages over the blocks of level j (A_{−1} =
0). The mean of ‖A_j q‖² over a workload, its *energy*, is a closed form for cells, prefixes and all ranges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.trees.shares import best_shares, mean_variance
from dphist.model.workload import Workload

__all__ = [
    "axis_energy",
    "best_shares",
    "box_energy",
    "energies",
    "exact_shares",
    "fan_sides",
    "hb_fanout",
    "mean_variance",
    "searched",
    "volumes",
]

FloatArray = NDArray[np.float64]
Kind = Literal["cells", "prefixes", "all_ranges"]
Sides = tuple[tuple[int, ...], ...]

# Shares are rounded to this, so that the last bits of a float never decide what is asked.
_GRAIN = 2048


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


def box_energy(workload: Workload, side: Sequence[int]) -> float:
    """The same for boxes that are written out: per box, the product of its axes."""
    product = np.ones(len(workload.low))
    for axis, m in enumerate(side):
        low, high = workload.low[:, axis], workload.high[:, axis]
        first, last = low // m, (np.maximum(high, 1) - 1) // m
        head = np.minimum(high, (first + 1) * m) - low
        tail = np.where(last > first, high - last * m, 0)
        whole = np.maximum(last - first - 1, 0)
        product = product * (head**2 + tail**2 + whole * float(m) ** 2) / m
    return float(product.mean()) if product.size else 1.0


def energies(shape: Sequence[int], sides: Sides, workload: Kind | Workload) -> FloatArray:
    """Energy of the workload at every level."""
    if isinstance(workload, Workload) and workload.kind in ("marginals", "ranges"):
        return np.array([box_energy(workload, side) for side in sides])
    kind: Kind = workload.kind if isinstance(workload, Workload) else workload  # type: ignore[assignment]  # structured
    return np.array(
        [math.prod(axis_energy(n, m, kind) for n, m in zip(shape, side, strict=True)) for side in sides]
    )


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
def searched(n: int, kind: Kind) -> tuple[Sides, tuple[Fraction, ...]]:
    """Block lengths 2^k and shares for one axis of n cells that make a standard workload's mean variance least.

    A local search from several starts: levels are added, dropped and shifted while that helps.
    """
    top = max(0, math.ceil(math.log2(n))) if n > 1 else 0
    found = [_climb(n, kind, top, step) for step in (3, 4, 5)]
    _, levels, shares = min(found, key=lambda each: each[0])
    fractions = exact_shares(shares)
    kept = [(k, share) for k, share in zip(levels, fractions, strict=True) if share]
    return tuple((1 << k,) for k, _ in kept), tuple(share for _, share in kept)


def _climb(n: int, kind: Kind, top: int, step: int) -> tuple[float, tuple[int, ...], FloatArray]:
    def weigh(levels: tuple[int, ...]) -> tuple[float, FloatArray]:
        sides = tuple((1 << k,) for k in levels)
        energy, volume = energies((n,), sides, kind), volumes((n,), sides)
        shares = best_shares(energy, volume)
        return mean_variance(energy, volume, shares), shares

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
