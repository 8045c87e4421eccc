"""Counts of a plane or a space moved towards the predictive law's mean, as far as the evidence goes.

Two readings of one tree of boxes err in different ways. Pruned counts keep what stands out of noise and spread the rest
evenly: good on a few peaks in empty land, wasteful where counts rise and fall gently. The law's mean draws every split
towards how splits like it were seen to divide: good where most of them are near even; but where slopes lean to one side
over large parts its errors add up, and a lone peak keeps company that is not there. So a part of the way is gone:

- less where splits are one-sided, which the law has learned of them: there the peaks are, and pruned counts know best;
- and no further than promises less error. With l plain least squares, unbiased and of known variance W, and c any
  other answer, (c − l)² − W + 2·Cov(c, l) estimates the squared error of c (Stein's identity). The law's mean has its
  variance for a covariance. Pruned counts, were they unbiased and nothing but a projection of l, would be off from l
  by W − Cov on average, so what they are off by tells theirs. Both are averages over boxes of every size.

Only released values are read, so nothing is spent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.inference.predictive.learning import Learned
from dphist.kernels.summed_area import box_sums

FloatArray = NDArray[np.float64]

# How far to go at most. On 36 drawn planes with an ε of at most 1 (`dphist_bench.data.drawn`, numbers 0 to 49) and on
# the 96 cases of made-up ones rectangles then have 0.90 and 1.00 of the pruned counts' error (1.07 and 1.14 at worst),
# small ones 0.94 and 0.98 (1.00 and 1.11), single cells 0.95 and 0.97; without the second rule hills of 10⁸ records
# have 2.3 times their error, without the first lone peaks have twice theirs.
_MOST = 0.7
# Parts are rounded to this: the last bits of an average must not show in a release.
_GRAIN = 1024.0


def leaned(learned: Learned, counts: FloatArray) -> FloatArray:
    """Move the counts of a tree's cells towards its law's mean.

    Args:
        learned: The law of what was measured.
        counts: What was inferred from the same tree, a number for each cell.

    Returns:
        Counts in the same shape; none is below zero if none was.

    Example:
        >>> import numpy as np
        >>> from dphist.inference.measured import MeasuredTree
        >>> from dphist.inference.predictive.learning import learned_of_tree
        >>> tree = MeasuredTree.of(
        ...     (2, 2), [-1, 0, 0], [[0, 0], [0, 0], [1, 0]], [[2, 2], [1, 2], [2, 2]], [90, 47, 43], [8, 8, 8]
        ... )
        >>> leaned(learned_of_tree(tree), tree.cells(tree.least_squares())).shape
        (2, 2)
    """
    part = _MOST * (1.0 - learned.one_sided) ** 2
    if part * _GRAIN < 1.0:
        return counts
    mean = learned.law.counts
    part = round(part * _promising(learned, counts, mean) * _GRAIN) / _GRAIN
    return np.asarray(counts + part * (mean - counts), dtype=np.float64)


def _promising(learned: Learned, counts: FloatArray, mean: FloatArray) -> float:
    """Which part of the way from the counts to the law's mean promises the least error, over boxes of every size."""
    (low, high), begins = learned.trials, learned.starts
    _, known, _, plain, noise = learned.tried
    deviation = np.sqrt(noise)
    departs = (box_sums(np.ascontiguousarray(counts), low, high) - plain) / deviation
    moves = box_sums(np.ascontiguousarray(mean - counts), low, high) / deviation
    members = np.diff([*begins, len(low)])

    def averaged(values: FloatArray) -> FloatArray:
        # Single cells are left out: they say little one by one, and sums are what errors add up in.
        return np.asarray(np.add.reduceat(values, begins) / members, dtype=np.float64)[1:]

    own = np.clip(1.0 - averaged(departs**2), 0.0, 1.0)
    gained = float((own - averaged(known / noise) - averaged(departs * moves)).mean())
    paid = float(averaged(moves**2).mean())
    return min(max(gained / paid, 0.0), 1.0) if paid > 0.0 else 0.0
