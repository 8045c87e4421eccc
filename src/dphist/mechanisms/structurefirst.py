"""Choose the bins of a histogram privately, then measure them (Xu et al., 2013)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, cast

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.inference.estimate import Errors, Estimate, PieceNoise
from dphist.inference.trees import RunNoise, TreeNoise
from dphist.mechanisms.options import Count, Share, checked
from dphist.mechanisms.trees.growing import Front, grow
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals
from dphist.private.queries.counting import Middles
from dphist.private.scores.boundaries import Boundaries

# When no ceiling is given, this share buys a noisy total and the ceiling is 128 times the mean count.
_TOTAL_SHARE = Fraction(1, 20)
_TIMES_MEAN = 128


@checked
@dataclass(frozen=True, kw_only=True)
class StructureFirst:
    """Place the bins' boundaries by the exponential mechanism, then noise one number a bin.

    A bin of s cells needs one draw of noise for all of them, so its mean carries noise of 1/(s·ε₂) where a
    cell on its own carries 1/ε. The structure costs ε₁: boundaries are drawn from right to left, each by the
    loss of the best histogram it still allows, bins − 1 draws of ε₁/(bins − 1) each. Private because the
    draws (`Boundaries`, with its proof) and the measurement of disjoint bins compose: ε₁ + ε₂ = ε. One bin,
    or as many bins as cells, leaves nothing to choose, and the whole budget measures. On several axes the
    cells are taken in C order.

    Differences from the paper. *Mean* is not private as printed when a count exceeds F; here counts are cut
    at F inside the structure's losses only, which also allows the sharper weight exp(−ε₁E/((k−1)·2F)). F is
    an option, or follows from a noisy total that is paid for, never from the data. *Median* publishes half
    the sum of the two middles in bins of even size, with half the noise. A draw with little budget is close
    to uniform, and uniform draws from right to left pile the boundaries up on the left; ``even`` offsets the
    scores by a public amount so that without data every structure would be equally likely. A tree inside
    each bin pays for all of its levels. By default a bin publishes its cells where they differ by more than their
    noise, and their mean elsewhere.

    Example:
        >>> from dphist.mechanisms import StructureFirst
        >>> from dphist.testing import run
        >>> run(StructureFirst(bins=3), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    statistic: Literal["mean", "median"] = "median"
    """Whose loss places the boundaries, and what a bin publishes for its cells."""
    bins: Count | None = None
    """How many bins; None takes a tenth of the number of cells."""
    ceiling: Count | None = None
    """F, above which counts look alike to the squared loss; None buys a noisy total and multiplies the mean."""
    split: Share = Fraction(1, 10)
    """The share of the structure."""
    inside: Literal["adaptive", "flat", "two-level", "tree"] = "adaptive"
    """What is measured in a bin: its mean or median ("flat", Algorithms 3 and 6); its total and its cells, reconciled
    ("two-level"), and averaged where the cells differ no more than their noise ("adaptive"); a binary tree."""
    even: bool = True
    """Make every structure equally likely before the data speak."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Choose the bins, then measure them."""
        shape, n = data.shape, data.size
        bins = min(n, max(1, n // 10) if self.bins is None else self.bins)
        starts = np.arange(n, dtype=np.int64) if bins == n else np.zeros(1, dtype=np.int64)
        if 1 < bins < n:
            starts, data = self._structure(data, bins)
        if self.inside == "flat":
            counts, errors = self._flat(data, starts)
            return Estimate(counts.reshape(shape), errors, f"{starts.size} bins")
        counts, noise = _nested(data, starts, deep=self.inside == "tree")
        if self.inside == "adaptive":
            counts, noise = _averaged(counts, starts, noise)
        return Estimate(counts.reshape(shape), noise, f"{starts.size} bins")

    def _structure(self, data: PrivateCounts, bins: int) -> tuple[IntArray, PrivateCounts]:
        """Draw the boundaries; returns the starts of the bins and the right that is left for counting."""
        n, ceiling = data.size, self.ceiling
        if ceiling is None and self.statistic == "mean":
            asked, data = data.split(_TOTAL_SHARE, 1 - _TOTAL_SHARE)
            total = int(asked.measure(Totals()).values[0])
            ceiling = max(1, -(-_TIMES_MEAN * max(total, 0) // n))
        structure, counting = data.split(self.split, 1 - self.split)
        scale = structure.unit_scale * (bins - 1)
        score = Boundaries(
            bins, "squared" if self.statistic == "mean" else "absolute", ceiling, scale if self.even else None
        )
        return score.places(structure.choose(score), n), counting

    def _flat(self, data: PrivateCounts, starts: IntArray) -> tuple[FloatArray, Errors]:
        shape, n = data.shape, data.size
        sizes = np.diff(np.append(starts, n))
        labels = np.repeat(np.arange(starts.size), sizes)
        right = data.partition(labels, starts.size)
        if self.statistic == "mean":
            noisy = right.measure(Totals())
            scale = float(cast(Fraction, noisy.scale))
            return np.repeat(noisy.values / sizes, sizes), PieceNoise(
                shape, labels, np.full(starts.size, scale)
            )
        noisy = right.measure(Middles())
        scale = float(cast(Fraction, noisy.scale))
        halves = np.where(sizes % 2 == 0, 0.5, 1.0)
        method = (
            "noise of the bins' medians, given the released bins; "
            "not covered: the difference between a bin's median and its cells"
        )
        errors = PieceNoise(shape, labels, scale * halves * sizes, method)
        return np.repeat(noisy.values * halves, sizes), errors


def _nested(data: PrivateCounts, starts: IntArray, *, deep: bool) -> tuple[FloatArray, RunNoise]:
    """Measure nested blocks inside every bin and reconcile them by least squares.

    A bin of s cells has ⌈log₂ s⌉ + 1 levels of blocks of halving length (or, not ``deep``, two: itself and
    its cells), and a single cell has one. Bins with as many levels go together; their levels share the
    budget equally, so a block carries noise of levels/ε₂. Blocks of a level are disjoint, and so are bins.
    """
    shape, n = data.shape, data.size
    sizes = np.diff(np.append(starts, n))
    bits = np.array([int(s - 1).bit_length() for s in sizes], dtype=np.int64)
    depth = bits + 1 if deep else np.where(sizes > 1, 2, 1)
    bin_of = np.repeat(np.arange(starts.size), sizes)
    offset = np.arange(n) - starts[bin_of]

    scales = {levels: float(data.law(Fraction(1, int(levels))).scale) for levels in np.unique(depth)}

    def rule(front: Front) -> list[Front]:
        if front.level < 0:
            return front.runs(bin_of, 0).part(np.unique(depth, return_inverse=True)[1])
        levels = int(depth[bin_of[front.cells[0]]])
        for level in range(levels):
            place = offset[front.cells]
            place = place >> (levels - 1 - level) if deep else place * level
            front = front.runs(place, level).measure(Fraction(1, levels))
        return []

    tree = grow(data, rule, (n,))
    counts = tree.cells(tree.least_squares())
    cell_variance = 2.0 * np.array([scales[levels] for levels in depth])[bin_of] ** 2
    return counts, RunNoise(shape, TreeNoise(tree), counts, cell_variance)


def _averaged(counts: FloatArray, starts: IntArray, errors: RunNoise) -> tuple[FloatArray, RunNoise]:
    """Average the bins whose cells differ by less than twice what their noise explains (Equation 22)."""
    sizes = np.diff(np.append(starts, counts.size))
    means = np.repeat(np.add.reduceat(counts, starts) / sizes, sizes)
    apart = np.add.reduceat((counts - means) ** 2, starts)
    noise = 2.0 * (sizes - 1) * errors.cell_variance[starts]
    return np.where(np.repeat(apart < noise, sizes), means, counts), replace(errors, averaged=True)
