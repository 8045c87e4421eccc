"""DPCube: look at noisy cells, find boxes in which they are even, then count those boxes afresh."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np

from dphist.arrays import IntArray
from dphist.inference.estimate import Estimate
from dphist.inference.linear import Cuts, LeafNoise
from dphist.inference.measured import MeasuredTree, twice
from dphist.kernels.grouping import part_sums
from dphist.kernels.trees import kdtree
from dphist.kernels.trees.passes import painted
from dphist.mechanisms.options import Bounds, Share, checked
from dphist.private.gate import Noisy, PrivateCounts
from dphist.private.queries import Identity, Totals

# How far above the noise's own variance a box must vary to be split: a multiple of the deviation of a sample
# variance, which for Laplace noise (kurtosis 6) of n cells is √(5/n).
_SLACK = 2.0 * 5.0**0.5
# What a leaf must save, in variances of the noise. Laplace tails make single cells stand out by chance; below 5
# that is taken for data, above 8 real steps are lost, in between nothing changes much.
_PRICE = 6.0


def box_tree(
    cells: IntArray, *, variance: float, slack: float = 0.0, lost: int = 0, price: float | None = None
) -> Cuts:
    """Grow Algorithm 3's tree on public or already noised cells.

    A box is split while its variance exceeds ``variance · (1 + slack ÷ √cells)``. With a ``price`` it is also split
    where one cut saves clearly more than that, and in the end splits that save less are undone.
    """
    shape = np.array(cells.shape, dtype=np.int64)
    sums, squares, loose = kdtree.tables(cells)
    notable = np.inf if price is None else price
    left, sse, low, high = kdtree.grow(sums, squares, loose, shape, float(variance), slack, lost, notable)
    if price is not None:
        kdtree.prune(left, sse, price)
    child, parent, low, high = kdtree.settle(left, low, high)
    labels = painted(np.flatnonzero(child < 0), low, high, np.cumsum(child < 0) - 1, cells.shape)
    return Cuts(child, parent, low, high, labels)


_EXACT = (
    "noise of the leaves' totals, given the tree, which grew on other noise; "
    "not covered: the bias of leaves that the range only cuts"
)
_APPROXIMATE = (
    "approximate: variance of least squares given the tree; "
    "not covered: that the tree was grown on some of the same noise"
)


@checked
@dataclass(frozen=True, kw_only=True)
class DPCube:
    """Look at noisy cells, find boxes in which they are even, then count those boxes afresh (Xiao et al. 2014).

    Phase one noises every cell with ``cells_share`` of the budget. A tree of boxes is grown on the noisy cells: a box
    is split, at the cut that leaves the least weighted variance over all axes and places, while it varies more than
    ``threshold``. Phase two counts every leaf with the rest of the budget, with noise of its own. Both are then
    combined: ``"weighted"`` least squares (the best linear estimate given the tree), ``"least-squares"`` as printed,
    which ignores that the phases have different noise, ``"uniform"`` spreads each leaf's total evenly, and
    ``"nonnegative"`` hands totals down the tree without going below zero.

    Private because the phases share the budget, cells and leaves are disjoint (one step moves one of each by one),
    and the tree reads noisy cells only.

    Differences from the paper: a split is chosen over all axes (its Algorithm 3, not its text); ``threshold="auto"``
    takes the noise's own variance, with room for chance, also splits where a single cut explains more than noise
    would, and undoes splits that save less, so that even data stay whole; a number is the paper's ξ₀, in squared
    counts. Nominal axes are cut in listed order, which keeps the groups of a hierarchy together.

    Example:
        >>> from dphist.mechanisms import DPCube
        >>> from dphist.testing import run
        >>> run(DPCube(cells_share="0.5"), [[9, 9], [0, 1], [0, 0], [5, 5]], epsilon=1, seed=1).counts.shape
        (4, 2)
    """

    cells_share: Share = Fraction(3, 4)
    """What phase one spends on the cells: seeing the boxes matters more than counting them once more."""
    threshold: Annotated[float, Bounds(0)] | Literal["auto"] = "auto"
    """The variance above which a box is split: "auto", or ξ₀ in squared counts."""
    estimator: Literal["weighted", "least-squares", "uniform", "nonnegative"] = "weighted"
    """How cells and leaves become one estimate."""

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Noise the cells, grow the tree, count the leaves, combine."""
        shape = data.shape
        first, second = data.split(self.cells_share, 1 - self.cells_share)
        cells = first.measure(Identity())
        noisy = cells.values.reshape(shape)
        tree = self._grow(noisy, float(cells.variance))
        leaves = second.partition(tree.labels, tree.sizes.size).measure(Totals())
        return self._combine(noisy, cells, leaves, tree)

    def _grow(self, noisy: IntArray, variance: float) -> Cuts:
        if self.threshold == "auto":
            return box_tree(noisy, variance=variance, slack=_SLACK, lost=1, price=_PRICE * variance)
        return box_tree(noisy, variance=float(self.threshold))

    def _combine(self, noisy: IntArray, cells: Noisy, leaves: Noisy, tree: Cuts) -> Estimate:
        sizes = tree.sizes.astype(np.float64)
        totals = leaves.values.astype(np.float64)
        flat = noisy.reshape(-1)
        known = float(leaves.scale), leaves.law.gaussian
        if self.estimator == "uniform":
            counts = (totals / sizes)[tree.labels].reshape(noisy.shape)
            return Estimate(counts, LeafNoise(tree, 1.0 / sizes, 0.0, *known, _EXACT))
        if self.estimator == "least-squares":
            pull = 1.0 / (sizes + 1.0)
        else:
            # Scales, not variances: both vanish together as ε grows, and their ratio does not.
            pull = 1.0 / (sizes + (float(leaves.scale) / float(cells.scale)) ** 2)
        gaps = pull * (totals - part_sums(flat, tree.labels, sizes.size))
        counts = (flat + gaps[tree.labels]).reshape(noisy.shape)
        if self.estimator != "nonnegative":
            return Estimate(counts, LeafNoise(tree, pull, float(cells.scale), *known, _APPROXIMATE))
        method = _APPROXIMATE + "; standing on the estimate before negative counts were removed"
        errors = LeafNoise(tree, pull, float(cells.scale), *known, method, counts)
        measured = _measured(tree, cells, leaves)
        return Estimate(measured.cells(measured.nonnegative()), errors)


def _measured(cuts: Cuts, noisy: Noisy, counted: Noisy) -> MeasuredTree:
    """What was counted as one tree: nothing of the boxes that were cut, each leaf, and its cells."""
    leaves, shape = cuts.leaves, tuple(int(n) for n in cuts.high[0])
    values, variances = np.zeros(cuts.left.size), np.full(cuts.left.size, np.inf)
    values[leaves], variances[leaves] = counted.values, float(counted.variance)
    cells, variance, single = (
        noisy.values.reshape(-1).astype(np.float64),
        float(noisy.variance),
        cuts.sizes == 1,
    )
    # A leaf of one cell was measured twice.
    alone = np.zeros(leaves.size)
    alone[cuts.labels] = cells
    twins = leaves[single]
    values[twins], variances[twins] = twice(
        values[twins], variances[twins], alone[single], np.full(1, variance)
    )
    below = np.flatnonzero(~single[cuts.labels])
    place = np.stack(np.unravel_index(below, shape), axis=1)
    return MeasuredTree.of(
        shape,
        np.concatenate([cuts.parent, leaves[cuts.labels[below]]]),
        np.concatenate([cuts.low, place]),
        np.concatenate([cuts.high, place + 1]),
        np.concatenate([values, cells[below]]),
        np.concatenate([variances, np.full(below.size, variance)]),
        kind=counted.law.kind,
    )
