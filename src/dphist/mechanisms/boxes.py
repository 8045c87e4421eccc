"""Boxes that are counted, cut and counted again, with the bookkeeping of who has spent what.

Shared by trees and grids of boxes. Nothing here costs a Python object for a box: a level is a few arrays.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Estimate
from dphist.inference.measured import MeasuredTree, twice
from dphist.inference.trees import UnprojectedNoise
from dphist.private.gate import Noisy, PrivateCounts
from dphist.private.queries import Totals

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_GRAIN = 1 << 20


class BoxGrower:
    """A tree of boxes while it grows: open boxes can still be cut, closed ones have spent all their budget.

    Every path from the root pays for each `pay` it was open at, and once more, with all that is left, when it is
    closed. So every cell pays the whole budget exactly once, whatever the answers were.
    """

    def __init__(self, data: PrivateCounts) -> None:
        self.shape = data.shape
        axes = len(self.shape)
        self.low: IntArray = np.zeros((1, axes), dtype=np.int64)
        self.high: IntArray = np.array([self.shape], dtype=np.int64)
        self.label: IntArray = np.zeros(data.size, dtype=np.int64)
        self._right: PrivateCounts = data
        self._cells: IntArray = np.arange(data.size, dtype=np.int64)
        self._above: IntArray = np.array([-1], dtype=np.int64)  # the node each open box hangs under
        self._left = Fraction(1)
        self._parents: list[IntArray] = []
        self._lows: list[IntArray] = []
        self._highs: list[IntArray] = []
        self._values: list[FloatArray] = []
        self._variances: list[FloatArray] = []
        self._seen: list[FloatArray] = []
        self._seen_variances: list[FloatArray] = []
        self._nodes = 0

    @property
    def finished(self) -> bool:
        """Whether no box is open."""
        return len(self.low) == 0

    def extent(self, axis: int) -> IntArray:
        """How many cells each open box has along an axis."""
        return self.high[:, axis] - self.low[:, axis]

    def middles(self, axis: int) -> IntArray:
        """Where halving would cut each open box."""
        return (self.low[:, axis] + self.high[:, axis] + 1) // 2

    def coordinate(self, axis: int) -> IntArray:
        """The place of each open cell along an axis."""
        stride = int(np.prod(self.shape[axis + 1 :], dtype=np.int64))
        return self._cells // stride % self.shape[axis]

    def pay(self, share: Fraction) -> PrivateCounts:
        """Take a share of the whole budget out of every open box, as a right on them."""
        now, self._right = self._right.split(share / self._left, 1 - share / self._left)
        self._left -= share
        return now.partition(self.label, len(self.low))

    def count(self, share: Fraction, *, stop: float | None, last: bool = False) -> FloatArray:
        """Count every open box; close those of one cell, those with little in them, and on the last level all.

        ``share`` is of the whole budget. A box known to be closed is counted once with all it has left; one that is
        closed because its count came out below ``stop`` noise scales is counted a second time with the rest, and both
        counts are combined by inverse variance. Returns the noisy counts of the boxes that stay open.
        """
        volume = np.prod(self.high - self.low, axis=1)
        sure = np.ones(len(self.low), dtype=bool) if last else volume == 1
        if sure.any():
            closed = self._close(sure)
            noisy = closed.measure(Totals())
            self._note(self._drop(sure), noisy.values.astype(np.float64), noisy)
        if self.finished:
            return np.zeros(0)
        noisy = self.pay(share).measure(Totals())
        values = noisy.values.astype(np.float64)
        variances = np.full(values.size, float(noisy.variance))
        little = values < (stop or 0.0) * float(noisy.scale) if stop is not None else values != values
        seen, seen_variances = values.copy(), np.where(little, variances, np.inf)
        if little.any():
            again = self._close(little).measure(Totals())
            spread = np.full(int(little.sum()), float(again.variance))
            values[little], variances[little] = twice(
                values[little], variances[little], again.values.astype(np.float64), spread
            )
        nodes = self._note((self._above, self.low, self.high), values, noisy, variances)
        self._seen[-1], self._seen_variances[-1] = seen, seen_variances
        self._above = nodes
        if little.any():
            self._drop(little)
        return values[~little]

    def cut(self, axis: int, place: IntArray) -> None:
        """Cut every open box at its place along an axis; a place outside a box leaves it whole."""
        here = (place > self.low[:, axis]) & (place < self.high[:, axis])
        offset = np.cumsum(1 + here) - 1 - here
        beyond = here[self.label] & (self.coordinate(axis) >= place[self.label])
        self.label = offset[self.label] + beyond
        owner = np.repeat(np.arange(len(here)), 1 + here)
        upper = np.zeros(owner.size, dtype=bool)
        upper[offset[here] + 1] = True
        low, high = self.low[owner].copy(), self.high[owner].copy()
        low[upper, axis] = place[here]
        lower = np.zeros(owner.size, dtype=bool)
        lower[offset[here]] = True
        high[lower, axis] = place[here]
        self.low, self.high, self._above = low, high, self._above[owner]

    def regroup(self, label: IntArray, low: IntArray, high: IntArray, owner: IntArray) -> None:
        """Cut every open box into any grid at once: box j of the new ones lies in ``owner[j]`` of the old."""
        self.label, self.low, self.high, self._above = label, low, high, self._above[owner]

    def tree(self) -> MeasuredTree:
        """Everything measured, as a tree."""
        return MeasuredTree.of(
            self.shape,
            *(np.concatenate(each) for each in (self._parents, self._lows, self._highs)),
            *(np.concatenate(each) for each in (self._values, self._variances)),
            seen=np.concatenate(self._seen),
            seen_variance=np.concatenate(self._seen_variances),
        )

    def estimate(self, method: str, *, nonnegative: bool) -> Estimate:
        """Reconcile all counts; spread the leaves over their cells."""
        tree = self.tree()
        totals = tree.nonnegative() if nonnegative else tree.least_squares()
        return Estimate(tree.cells(totals), UnprojectedNoise(tree, method))

    def _close(self, mask: BoolArray) -> PrivateCounts:
        """Split off the boxes of the mask, with all the budget they have left."""
        closed, self._right = self._right.partition(self.label, len(self.low)).select(mask)
        return closed

    def _drop(self, mask: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
        """Forget boxes that were closed: their nodes' parents and bounds."""
        gone = self._above[mask], self.low[mask], self.high[mask]
        keep = ~mask
        inside = keep[self.label]
        self._cells = self._cells[inside]
        self.label = (np.cumsum(keep) - 1)[self.label[inside]]
        self.low, self.high, self._above = self.low[keep], self.high[keep], self._above[keep]
        return gone

    def _note(
        self,
        boxes: tuple[IntArray, IntArray, IntArray],
        values: FloatArray,
        noisy: Noisy,
        variances: FloatArray | None = None,
    ) -> IntArray:
        parent, low, high = boxes
        count = parent.size
        self._parents.append(parent)
        self._lows.append(low)
        self._highs.append(high)
        self._values.append(values)
        self._variances.append(np.full(count, float(noisy.variance)) if variances is None else variances)
        self._seen.append(values)
        self._seen_variances.append(np.full(count, np.inf))
        nodes = self._nodes + np.arange(count, dtype=np.int64)
        self._nodes += count
        return nodes


def geometric_shares(levels: int, axes: int) -> tuple[Fraction, ...]:
    """Shares of the levels of a tree that halves every axis, root first: each 2^((axes−1)/3) times the one above.

    The edge of a range meets about 2^(axes−1) times as many boxes a level down, and Σ nᵢ/εᵢ² under Σ εᵢ = 1 is
    least for εᵢ ∝ nᵢ^(1/3). Rounded to fractions that sum to exactly one.
    """
    growth = 2.0 ** ((max(axes, 1) - 1) / 3.0)
    weights = np.array([growth**level for level in range(levels)])
    grains = np.maximum(1, np.floor(weights / weights.sum() * _GRAIN)).astype(int)
    grains[-1] += _GRAIN - int(grains.sum())
    return tuple(Fraction(int(grain), _GRAIN) for grain in grains)
