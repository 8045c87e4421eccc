"""Bounds that nobody knows, learned privately: where nearly all values of a column lie, from a few noisy histograms.

1. *Octaves.* A quarter of the budget counts values between powers of two, either sign. It shows in which octaves there
   is much, at any scale.
2. *Where.* If these are few and all on one side of zero (years, degrees kelvin), powers of two about zero cannot be
   narrow. Then up to five times a twentieth of the budget counts even cells between them, each time in the narrowest
   window that holds most records, and its middle is what step 3 counts from; else that is zero.
3. *How far.* The rest counts how far values lie from there, in octaves. A bound is the outer edge of the outermost
   octave that holds more than noise would, and some way further: what lies beyond held too little to be seen, and
   tails that fall off at all have less there.

Private because every histogram is asked through the gate with its share of the budget, and what is asked next follows
from noisy answers: sequential composition. Only the bounds leave.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.errors import SourceError
from dphist.model.domain import Domain, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.private.gate import PrivateCounts, open_gate
from dphist.private.noise import Noise
from dphist.private.queries import Identity

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Tally = Callable[[Sequence[float]], IntArray]

# Powers of two that step 1 tells apart: from a millionth up to where floats stop telling whole numbers apart.
_EXPONENTS = range(-20, 52)
# Even cells of step 2, how often it may look closer, the windows it tries, and what share of the records they hold.
_CELLS, _ZOOMS, _WINDOWS, _MOST = 64, 5, (2, 4, 8, 16, 32), 0.6
_FIRST, _ZOOM = Fraction(1, 4), Fraction(1, 20)
# How probable it may be that noise alone passes for values: in octaves near those of step 1, and in all others.
_NEAR, _FAR, _REACH = 0.01, 0.0025, 6
# How much further than the outermost octave that stood out a bound lies: from zero, and from where most values are.
_FURTHER = (2.0, 1.5)


@dataclass(frozen=True)
class Range:
    """Where nearly all values lie, what the bounds are multiples of, and what distances were counted from (``how``)."""

    low: Fraction
    high: Fraction
    grain: Fraction
    how: str


class Unseen(SourceError):  # noqa: N818 -- an answer, in words
    """Nothing stood out of the noise: an answer, and paid for like any other."""


class Bounds:
    """Learns the range of one column through gates that it opens one after the other.

    ``tally`` counts the values between edges, closed at the last one: secret, from the source. ``pay`` pays once.
    """

    def __init__(
        self,
        tally: Tally,
        epsilon: Fraction,
        unit: Unit,
        pay: Callable[[], None] | None = None,
        noise: Noise | None = None,
    ) -> None:
        self.tally, self.unit, self.noise, self.pay = tally, unit, noise, pay
        self.left, self.whole = epsilon, epsilon

    def learn(self) -> Range:
        """Find the bounds; `Unseen` if no octave holds more than noise would: too few records for this budget."""
        edges = _octaves(0.0, 2.0 ** _EXPONENTS[0], len(_EXPONENTS) - 1)
        first = self._noisy(edges, _FIRST)
        filled = np.flatnonzero(first.counts > first.threshold(_FAR))
        if not filled.size:
            raise Unseen(
                "no range of values stands out of the noise, and the epsilon is spent: there are too few records for "
                "it, or values are spread too widely; give a larger epsilon, or state bounds yourself"
            )
        low, high = edges[filled[0]], edges[filled[-1] + 1]
        centre, unit = 0.0, 2.0 ** _EXPONENTS[0]
        how = "counted from zero"
        # Octaves of one side of zero, up to which step 2 is worth its price.
        if (low > 0 or high < 0) and filled[-1] - filled[0] < 2:
            low, high, unit = self._locate(low, high, float(first.counts[filled].sum()))
            centre = (low + high) / 2.0
            how = "counted from where most values are"
        # How far from the centre the octaves of step 1 reach on either side.
        reach = (max(centre - low, unit), max(high - centre, unit))
        octaves = max(2, math.floor(math.log2(2.0 ** _EXPONENTS[-1] / unit)))
        around = _octaves(centre, unit, octaves)
        last = self._noisy(around, self.left / self.whole)
        below, left = self._side(last, around, centre, reach[0], -1)
        above, right = self._side(last, around, centre, reach[1], 1)
        if centre:
            # The middle of a window need not be that of the values: what lies beyond it may be too little to be seen.
            reached = max(above - centre, centre - below) / 4.0
            below = below if left else min(below, centre - reached)
            above = above if right else max(above, centre + reached)
        return Range(*rounded(below, above), how)

    def _side(
        self, last: _Counted, edges: FloatArray, centre: float, reach: float, sign: int
    ) -> tuple[float, bool]:
        """The bound of one side, somewhat further than the outermost octave that stood out; and whether one did."""
        inner = edges[:-1] if sign > 0 else -edges[1:][::-1]
        outer = edges[1:] if sign > 0 else -edges[:-1][::-1]
        counts = last.counts if sign > 0 else last.counts[::-1]
        middle = sign * centre
        far = outer > middle
        inner, outer, counts = inner[far], outer[far], counts[far]
        near = (outer - middle > reach / 4.0) & (inner - middle < reach * 2.0**_REACH)
        # The innermost cell lies on both sides of the centre: of it alone nothing follows for this side.
        own = inner >= middle
        bar = np.where(near, last.threshold(_NEAR, int(near.sum())), last.threshold(_FAR))
        seen = np.flatnonzero((counts > bar) & own)
        found = float(outer[0]) if centre else middle
        if seen.size:
            found = middle + _FURTHER[int(centre != 0)] * (float(outer[seen[-1]]) - middle)
        # Two octaves together may hold what neither shows by itself.
        alone = np.where(counts > bar, 0.0, counts)
        pairs = np.flatnonzero((alone[1:] + alone[:-1] > last.threshold(_FAR, pair=True)) & own[:-1])
        if pairs.size:
            found = max(found, float(outer[pairs[-1] + 1]))
        return sign * found, bool(seen.size or pairs.size)

    def _locate(self, low: float, high: float, records: float) -> tuple[float, float, float]:
        """A range amid the values, and a distance that is short beside theirs.

        Even cells are counted, and the narrowest window that holds most of the records is looked at more closely while
        it is of a few cells.
        """
        for _ in range(_ZOOMS):
            edges = np.linspace(low, high, _CELLS + 1)
            cells = self._noisy(edges, _ZOOM).counts
            rising = np.concatenate([[0.0], np.cumsum(cells)])
            width = (high - low) / _CELLS
            for window in _WINDOWS:
                sums = rising[window:] - rising[:-window]
                place = int(np.argmax(sums))
                if sums[place] >= _MOST * records:
                    break
            # The centre of gravity, first of the window and then of twice its width about that: a window that noise
            # moved is moved back.
            amid, middles = float(edges[place] + edges[place + window]) / 2.0, edges[:-1] + width / 2.0
            for reach in (window / 2.0, float(window)):
                near = np.abs(middles - amid) <= reach * width
                weight = float(cells[near].sum())
                if weight > 0:
                    moved = float(cells[near] @ middles[near]) / weight
                    amid = min(max(moved, amid - reach * width), amid + reach * width)
            low, high = amid - 1.5 * window * width, amid + 1.5 * window * width
            if window > _WINDOWS[1]:
                break
        return low, high, max(width / 4.0, math.ulp(max(abs(low), abs(high))) * 16)

    def _noisy(self, edges: FloatArray, share: Fraction) -> _Counted:
        counts = self.tally(edges.tolist())
        noisy = self._open(counts, share).measure(Identity())
        return _Counted(noisy.values.astype(np.float64).reshape(-1), float(noisy.scale))

    def _open(self, counts: IntArray, share: Fraction) -> PrivateCounts:
        spend = self.whole * share
        self.left -= spend
        domain = Domain([Ordinal("place", range(counts.size))])
        right, _ = open_gate(Histogram(domain, counts), spend, self.unit, noise=self.noise, pay=self.pay)
        return right


@dataclass(frozen=True, eq=False)
class _Counted:
    counts: FloatArray
    scale: float

    def threshold(self, chance: float, cells: int | None = None, *, pair: bool = False) -> float:
        """What noise alone passes in any of ``cells``, or of pairs of them, with probability ``chance`` at most."""
        log = math.log((cells or self.counts.size) / (2.0 * chance))
        # Pr(two draws > t) = (1 + t/2b) e^(−t/b) / 2, solved by one step more.
        return self.scale * (log + math.log1p((log + 2.0) / 2.0) if pair else log)


def _octaves(centre: float, unit: float, count: int) -> FloatArray:
    """Edges at unit · 2^j on either side of a centre, rising."""
    steps = unit * 2.0 ** np.arange(count + 1)
    edges = np.concatenate([centre - steps[::-1], centre + steps])
    return np.unique(edges)


def rounded(low: float, high: float) -> tuple[Fraction, Fraction, Fraction]:
    """Bounds with few digits, rounded outward by at most a twentieth of their distance, and the grain they lie on."""
    width = high - low
    if not width > 0:
        return Fraction(math.floor(low)), Fraction(math.floor(low) + 1), Fraction(1)
    grain = Fraction(10) ** math.floor(math.log10(width / 20.0))
    grain *= next(times for times in (5, 2, 1) if times * grain <= Fraction(width) / 20 or times == 1)
    return math.floor(Fraction(low) / grain) * grain, math.ceil(Fraction(high) / grain) * grain, grain
