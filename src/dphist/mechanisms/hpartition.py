"""Cut the cells into runs of similar counts and release their means (Acs, Castelluccia and Chen, 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.arrays import IntArray
from dphist.inference.estimate import Estimate, IndependentNoise, PieceNoise
from dphist.mechanisms.options import Share, checked
from dphist.model.phrases import counted
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity, Totals
from dphist.private.scores.bisections import Bisections, Configurations


@checked
@dataclass(frozen=True, kw_only=True)
class PHPartition:
    """Cut runs of cells in two again and again, keep the best partition on the way, release its means.

    Every part, in queue order, is cut where the absolute error about the means falls most, or left whole;
    the exponential mechanism decides. A part is cut at most d = ⌊log₂ n⌋ times from the top, so a quarter
    of the budget in d equal shares pays for all cuts: one step lies in one part of each depth. Another
    quarter picks how many of the cuts, in the order they were made, to keep; the rest (``share``) measures
    the total of each part that remains.

    Queue order is the order of depths, and from left to right within a depth: the queue starts with one
    part, and parts join it in the order in which their parents left it. What is drawn for a part depends on
    that part alone. So all parts of one depth can be drawn at once, with the same distribution and the same
    order of cuts.

    Beyond the paper: every cell by itself is one more configuration to pick from, so that counts with nothing
    in common are noised cell by cell; and budget that no part has a use for, because all were settled before
    the last depth, measures the totals once more, averaged by precision.

    Args:
        share: The part of ε that measures totals; the rest cuts and picks.

    Example:
        >>> from dphist.mechanisms import PHPartition
        >>> from dphist.testing import run
        >>> run(PHPartition(share="1/2"), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    share: Share = Fraction(1, 2)

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Cut depth by depth, keep a number of cuts, measure the parts."""
        if data.size == 1:
            noisy = data.measure(Identity())
            return Estimate(noisy.values.astype(np.float64), IndependentNoise(noisy.law, exact=True))
        shape, n = data.shape, data.size
        half = (1 - self.share) / 2
        cutting, keeping, measuring = data.split(half, half, self.share)
        price = measuring.unit_scale
        cuts, unspent = _cut(cutting, price)
        number = int(keeping.choose(Configurations(*cuts, price))[0, 0])
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.sort(cuts[1][:number])])
        if number > len(cuts[1]):
            starts = np.arange(n)
        labels = np.repeat(np.arange(starts.size), np.diff(np.append(starts, n)))
        totals, scale = _measure([measuring, *unspent], labels, starts.size)
        sizes = np.bincount(labels)
        errors = PieceNoise(shape, labels, np.full(starts.size, scale))
        return Estimate((totals / sizes)[labels].reshape(shape), errors, counted(starts.size, "part"))


def _cut(
    right: PrivateCounts, price: Fraction
) -> tuple[tuple[IntArray, IntArray, IntArray], list[PrivateCounts]]:
    """Cut depth by depth; gives (first, middle, last) of the cuts in queue order, and what was not spent."""
    n = right.size
    depth = max(1, n.bit_length() - 1)
    bounds = np.array([0, n], dtype=np.int64)
    active = np.array([n > 1])
    made: list[IntArray] = []
    for level in range(depth):
        if not active.any():
            break
        now = right
        if level < depth - 1:
            share = Fraction(1, depth - level)
            now, right = right.split(share, 1 - share)
        labels = np.repeat(np.arange(active.size), np.diff(bounds))
        going, _ = now.partition(labels, active.size).select(active)
        picks = going.choose(Bisections(price))[0]
        first, last = bounds[:-1][active], bounds[1:][active]
        cut = picks > 0
        first, middle, last = first[cut], (first + picks)[cut], last[cut]
        made.append(np.stack([first, middle, last]))
        # Only children of a cut go on: "no split" is final, and a single cell cannot be cut.
        bounds = np.sort(np.concatenate([bounds, middle]))
        born = np.isin(bounds[:-1], np.concatenate([first, middle]), assume_unique=True)
        active = born & (np.diff(bounds) > 1)
    else:
        return _three(made), []
    return _three(made), [right]


def _three(made: list[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    cuts = np.concatenate([np.zeros((3, 0), dtype=np.int64), *made], axis=1)
    return cuts[0].copy(), cuts[1].copy(), cuts[2].copy()


def _measure(rights: list[PrivateCounts], labels: IntArray, parts: int) -> tuple[NDArray[np.float64], float]:
    """Measure the parts with every right and average by precision; the scale of the average's deviation."""
    total, precision = np.zeros(parts), 0.0
    for right in rights:
        noisy = right.partition(labels, parts).measure(Totals())
        weight = float(noisy.scale) ** -2
        total += weight * noisy.values
        precision += weight
    return total / precision, precision**-0.5
