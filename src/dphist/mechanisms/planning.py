"""Where to measure next in a tree of boxes, and for how much: worked out from what will be asked.

Nothing here asks anything. A plan is a public function of the shape, the workload and totals that are released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.trees.budget import best_shares, range_error
from dphist.model.domain import Domain, Ordinal
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Ranges looked at to tell how large they are.
_SAMPLE = 1000
# Coarse boxes also show where to look: ranges of all sizes count this much beside those that were announced.
_ALL_SIZES = 0.5
# Records are never spread evenly: densities to reckon with below a box, beside its own, and how much of it has them.
_DENSITIES = np.array([0.2, 2.0, 20.0])
_CHANCES = np.array([0.85, 0.12, 0.03])
# How uneven siblings are taken to be before any were seen, and the bounds of what is believed afterwards.
FIRST_GUESS = 0.7
_EVENEST, _ROUGHEST = 0.15, 3.0
# Finer levels are more even than the level just seen.
_SMOOTHER = 0.5
# The part of the noise in contrasts that are not there which pruning and projecting leave.
_WASTE = 0.3
# A level is worth a question from this part of what is left on; all but the cells leave something for a next one.
_LEAST, _MOST = 0.04, Fraction(12, 16)
_GRAIN = 32


def halvings(shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Give the sides of boxes that are halved along every axis until they are cells; the first box holds everything.

    Sides are powers of two, so boxes at the far edge may be shorter. Long axes stay longer all the way, as ranges do.
    """
    side = tuple(1 << (n - 1).bit_length() for n in shape)
    sides = [side]
    while max(side) > 1:
        side = tuple(max(1, s // 2) for s in side)
        sides.append(side)
    return tuple(sides)


def contrasts(
    shape: tuple[int, ...], sides: tuple[tuple[int, ...], ...], low: IntArray, high: IntArray
) -> FloatArray:
    """How much of a range's sum is a contrast of each level, on average over ranges.

    The squared norm of a range's average over boxes is Σ |range ∩ box|² / |box|, a product over axes; differences
    between levels are what `range_error` weighs. Summed over levels they give the number of cells of the range.
    """
    norms = np.zeros(len(sides))
    for level, side in enumerate(sides):
        norm = np.ones(len(low))
        for axis, (n, s) in enumerate(zip(shape, side, strict=True)):
            start, stop = low[:, axis], high[:, axis]
            left, right = start // s * s, (stop - 1) // s * s
            left_end, right_end = np.minimum(left + s, n), np.minimum(right + s, n)
            inside = (stop - start) ** 2 / (left_end - left)
            across = (
                (left_end - start) ** 2 / (left_end - left)
                + np.maximum(right - left_end, 0)
                + (stop - right) ** 2 / (right_end - right)
            )
            norm = norm * np.where(left == right, inside, across)
        norms[level] = norm.mean()
    gains = np.diff(norms, prepend=0.0)
    answer: FloatArray = np.maximum(gains, 1e-12 * norms[-1])
    return answer


def asked_ranges(workload: Workload | None, domain: Domain | None, shape: tuple[int, ...]) -> Workload:
    """Give a sample of the ranges that will be asked, or of all ranges if nobody said."""
    domain = domain or Domain([Ordinal(f"axis {axis}", range(n)) for axis, n in enumerate(shape)])
    some = Workload.random(domain, _SAMPLE // 2)
    kind = None if workload is None else workload.kind
    if kind == "prefixes":
        return Workload(domain, np.zeros_like(some.low), some.high)
    if kind == "cells":
        return Workload(domain, some.low, some.low + 1)
    if workload is None or kind == "all_ranges":
        return some
    step = max(1, math.ceil(len(workload.low) / _SAMPLE))
    low, high = workload.low[::step], workload.high[::step]
    filled = (high > low).all(axis=1)
    return Workload(domain, low[filled], high[filled]) if filled.any() else some


@dataclass(frozen=True)
class Step:
    """Measure boxes of ``level`` next, with ``share`` of what is left."""

    level: int
    share: Fraction


@dataclass(frozen=True, eq=False)
class Planner:
    """Choose levels and shares for boxes by the error they leave in the ranges that will be asked.

    A box is measured once more with all it has left if no split is expected to do better. Otherwise its budget is laid
    out over the levels below it; only the first of them is measured, and then every box is planned anew with what
    its own total says. So a crowded place is followed down to its cells, and an empty one is left alone.
    """

    sides: tuple[tuple[int, ...], ...]
    cells: FloatArray
    weight: FloatArray
    scale: float
    """Noise scale of a question that would spend the whole budget."""

    @classmethod
    def for_ranges(
        cls, shape: tuple[int, ...], workload: Workload | None, domain: Domain | None, scale: float
    ) -> Planner:
        """Look at the ranges that will be asked; ranges of all sizes count a little, as they show where to look."""
        sides = halvings(shape)
        cells = np.array([math.prod(min(s, n) for s, n in zip(side, shape, strict=True)) for side in sides])
        asked = asked_ranges(workload, domain, shape)
        every = asked_ranges(None, domain, shape)
        weight = contrasts(shape, sides, asked.low, asked.high)
        wide = contrasts(shape, sides, every.low, every.high)
        weight = weight / weight.sum() + _ALL_SIZES * wide / wide.sum()
        return cls(sides, cells.astype(np.float64), weight, scale)

    def step(
        self, level: int, left: Fraction, known: FloatArray, total: float, roughness: float
    ) -> Step | None:
        """Say what to measure below boxes with about this total, or None to measure them again and be done."""
        last = len(self.sides) - 1
        if level == last or total <= 0.0:
            return None
        densities = roughness * total / self.cells[level] * _DENSITIES
        budget = float(left)
        stay = np.zeros(last + 1)
        stay[level] = budget
        whole = range_error(self.weight, self.cells, known, stay, self.scale, densities, _CHANCES, _WASTE)
        error, shares = best_shares(
            *(self.weight, self.cells, known, budget, level + 1),
            *(self.scale, densities, _CHANCES, _WASTE),
        )
        if error >= whole:
            return None
        worth = np.flatnonzero(shares > _LEAST * budget)
        target = int(worth[0])
        share = Fraction(round(float(shares[target] / shares[worth].sum()) * _GRAIN), _GRAIN)
        if target < last:
            share = min(share, _MOST)
        return Step(target, max(share, Fraction(1, _GRAIN)))


def roughness_of(
    totals: FloatArray, sizes: FloatArray, family: IntArray, families: int, variance: float
) -> float:
    """How uneven siblings are, as a part of their mean: learned from their noisy totals, with a prior.

    The excess of their squared departures over the noise, over the squared means. The prior weighs as much as the
    departures are uncertain: Laplace noise Z of unit variance has Var Z² = 5.
    """
    members = np.bincount(family, minlength=families)
    density = np.bincount(family, totals, minlength=families) / np.bincount(family, sizes, minlength=families)
    even = sizes * density[family]
    free = float((members - 1).sum())
    departures = max(float(((totals - even) ** 2).sum()) - free * variance, 0.0)
    means = max(float((even**2).sum()) - families * variance, 0.0)
    doubt = math.sqrt(5.0 * max(free, 1.0)) * variance
    square = (departures + FIRST_GUESS**2 * doubt) / (means + doubt)
    return _SMOOTHER * min(max(math.sqrt(square), _EVENEST), _ROUGHEST)
