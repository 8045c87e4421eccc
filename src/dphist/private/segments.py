"""Buckets of similar neighbours: absolute deviations, every one of them noised.

Why the chosen partition is private. Give bucket b the cost c_b (an integer), of which one step changes at most
Δ_b, and only if b holds the changed cell. Add independent discrete Laplace noise Z_b of scale λ_b = (Δ_b + max Δ
of the buckets that overlap b) ÷ ε to every cost and take the partition of least total, ties by a fixed rule. Fix
a partition P, let b₀ be its bucket with the changed cell, and fix all noise but Z_{b₀}. P wins exactly when
Z_{b₀} ≤ t, where t is the least total of the partitions without b₀ (they do not use Z_{b₀}), less what the rest
of P costs, less c_{b₀} (less one where a tie would go against P). A step moves c_{b₀} by at most Δ_{b₀}; it moves
the total of any other partition by what it moves the one bucket there that holds the cell, which overlaps b₀. So
t moves by at most λ_{b₀}·ε, and Pr[Z ≤ t] by at most a factor e^ε. The same holds on average over the other
noise. Partitions that also contain b₀ compare with P without Z_{b₀} and without the changed cell, so nothing
moves there.

The two terms can pull apart, so half of λ is not enough. The argument needs an exact minimum over noisy costs as they
are: none is clamped, none left out, singletons are noised like the rest, and no search that assumes
order among the costs is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np

from dphist.errors import MechanismError
from dphist.kernels.buckets.cheapest import (
    UNREACHED,
    nested_buckets,
    power_grouping,
    push_deviation_rows,
    starts_of,
    tree_grouping,
)
from dphist.kernels.buckets.deviations import LARGEST_SUM, bucket_deviations, power_deviations, rank
from dphist.private.questions import IntArray, Layout, PricedNoise, proven

# Noise for this many buckets is held at a time.
_BATCH = 1 << 20
# Every pair of ends is looked at: beyond this the work is hours and nobody meant it.
_LONGEST_ALL = 1 << 17
# Costs, prices and noise of a partition stay below this together, far from the largest integer.
_LARGEST_TOTAL = 1 << 60
# The deviations of a partition sum to at most twice the counts, 2⁵¹ grid units: with this many steps a unit to 2⁶¹,
# and 2⁶³ is not reached with price and noise on top.
_FINEST = 1 << 10


@proven
@dataclass(frozen=True)
class AbsoluteDeviation:
    """The cost of a bucket is Σ|x − centre| + ``price``; the centre is its mean or its median.

    About the mean: raising one of m counts moves the mean by 1/m, the other m − 1 deviations by at most 1/m each
    and its own by at most 1 − 1/m, so Δ = 2 − 2/m. The cost is rounded to the ``grid`` (g steps a unit), where
    two numbers less than Δ apart are at most ⌈gΔ⌉ = 2g − ⌊2g/m⌋ steps apart. About the median: Σ|x − c| moves by
    at most 1 for every fixed c, hence so does its minimum over c; a bucket of one cell has deviation 0 always. So
    Δ = 1 (0 for m = 1), and the cost is an integer. Counts are cut at a public ceiling first, under which one
    step is at most one step. Ceiling and grid are bounded so that no cost, and no sum of costs with prices and noise,
    leaves 64 bits: a cost that wrapped would move by far more than Δ.

    ``sizes`` says which buckets there are: "all", "powers" (lengths 1, 2, 4, … at every start), or the block
    lengths of a tree, coarse to fine, whose blocks start at multiples of their length and end by the last cell. A
    tree may have one price for each level. Prices are public, so they move nothing.
    """

    price: Fraction | tuple[Fraction, ...] = Fraction(0)
    sizes: Literal["all", "powers"] | tuple[int, ...] = "all"
    centre: Literal["mean", "median"] = "mean"
    grid: int = 16

    def __post_init__(self) -> None:
        if self.centre not in ("mean", "median"):
            raise MechanismError("segment: centre must be 'mean' or 'median'")
        if not isinstance(self.grid, int) or not 1 <= self.grid <= _FINEST:
            raise MechanismError(f"segment: grid must be a whole number from 1 to {_FINEST}")
        levels = 1
        if not isinstance(self.sizes, str):
            levels = len(self.sizes)
            fitting = self.sizes and min(self.sizes) >= 1 and max(self.sizes) <= 1 << 62
            if not fitting or not all(a > b and a % b == 0 for a, b in pairwise(self.sizes)):
                raise MechanismError(
                    "segment: the lengths of a tree's blocks must fall, each a multiple of the next"
                )
        elif self.sizes not in ("all", "powers"):
            raise MechanismError("segment: sizes must be 'all', 'powers' or the lengths of a tree's blocks")
        if isinstance(self.price, tuple) and len(self.price) != levels:
            raise MechanismError("segment: give one price, or one for each level of the tree")

    def sensitivity(self, length: int) -> int:
        """By how many grid steps one record can move the cost of a bucket of this length."""
        if self.centre == "median":
            return int(length > 1)
        return 2 * self.grid - 2 * self.grid // length

    def check(self, layout: Layout) -> Fraction:
        """Refuse what cannot be segmented in 64 bits; else give the largest scale, in grid steps."""
        n = layout.size
        if layout.parts != 1:
            raise MechanismError("segment: the cells must be one part")
        if self.sizes == "all" and n > _LONGEST_ALL:
            raise MechanismError(f'segment: sizes "all" takes at most {_LONGEST_ALL:,} cells; use "powers"')
        levels = len(self.price) if isinstance(self.price, tuple) else 1
        if n * max(abs(self._price(level)) for level in range(levels)) >= _LARGEST_TOTAL:
            raise MechanismError("segment: the price is too high for this number of cells")
        if 4 * self.grid * n * n >= 1 << 62:
            # What the rounding of a mean multiplies: grid, cells below it and remainder, the last two below n.
            raise MechanismError("segment: too many cells for so fine a grid")
        return max(Fraction(1), self._scale(max(n, 1), max(n, 1)))

    def segment(self, counts: IntArray, layout: Layout, noise: PricedNoise) -> IntArray:
        """Return where the buckets of the least noisy cost start."""
        self.check(layout)
        n = layout.size
        if n < 2:
            return np.zeros(n, dtype=np.int64)
        cut = np.minimum(counts, LARGEST_SUM // n)
        if self.sizes == "all":
            return self._all(cut, noise)
        if self.sizes == "powers":
            return self._powers(cut, noise)
        return self._tree(cut, noise)

    @property
    def _steps(self) -> int:
        return 1 if self.centre == "median" else self.grid

    def _price(self, level: int = 0) -> int:
        price = self.price[level] if isinstance(self.price, tuple) else self.price
        return round(price * self._steps)

    def _scale(self, length: int, longest: int) -> Fraction:
        # Every bucket overlaps one of the longest.
        return Fraction(self.sensitivity(length) + self.sensitivity(longest))

    def _all(self, counts: IntArray, noise: PricedNoise) -> IntArray:
        n = counts.size
        distinct, place = rank(counts)
        best = np.full(n + 1, UNREACHED, np.int64)
        cut = np.zeros(n + 1, np.int64)
        best[0] = 0
        # Sensitivities differ for short buckets only: those get a table, the rest come in batches of rows.
        shorts = min(n, 1 if self.centre == "median" else 2 * self.grid)
        short = np.zeros((shorts, n), np.int64)
        for m in range(1, shorts + 1):
            short[m - 1, : n - m + 1] = _bounded(noise.laplace(self._scale(m, n), n - m + 1), n)
        scale = self._scale(n, n)
        first = 0
        while first < n:
            last, draws = first, 0
            while last < n and (draws == 0 or draws + n - last <= _BATCH):
                draws += max(0, n - last - shorts)
                last += 1
            long = _bounded(noise.laplace(scale, draws), n)
            push_deviation_rows(
                counts,
                distinct,
                place,
                first,
                last,
                self._steps,
                self.centre == "median",
                self._price(),
                short,
                long,
                best,
                cut,
            )
            first = last
        starts: IntArray = starts_of(cut)
        return starts

    def _powers(self, counts: IntArray, noise: PricedNoise) -> IntArray:
        n = counts.size
        costs = power_deviations(counts, *rank(counts), self._steps, self.centre == "median")
        longest = 1 << (len(costs) - 1)
        for k, row in enumerate(costs):
            fitting = row[: n - (1 << k) + 1]
            fitting += _bounded(noise.laplace(self._scale(1 << k, longest), fitting.size), n)
        starts: IntArray = power_grouping(costs, self._price())
        return starts

    def _tree(self, counts: IntArray, noise: PricedNoise) -> IntArray:
        lengths = tuple(int(length) for length in self.sizes)
        parent, lows, highs, levels = nested_buckets(counts.size, lengths)
        costs = bucket_deviations(counts, lows, highs, self._steps, 1, self.centre == "median")
        sizes = highs - lows
        longest = int(sizes.max())
        if longest > 1:
            for size in np.unique(sizes):
                here = sizes == size
                costs[here] += _bounded(
                    noise.laplace(self._scale(int(size), longest), int(here.sum())), counts.size
                )
        prices = np.array([self._price(level) for level in range(len(lengths))], dtype=np.int64)
        whole = tree_grouping(parent, costs + prices[levels])
        return np.sort(lows[whole == 1])


def _bounded(draws: IntArray, n: int) -> IntArray:
    """Pass on noise that n buckets can add up in 64 bits.

    Refusing looks at the noise alone, which knows nothing of the data.
    """
    if draws.size and max(int(draws.max()), -int(draws.min())) >= _LARGEST_TOTAL // n:
        raise MechanismError("segment: the budget is too small for this number of cells")
    return draws
