"""Building blocks as values: order the cells, group them, and hand the groups to any mechanism."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.errors import MechanismError
from dphist.inference.estimate import (
    Errors,
    Estimate,
    IndependentNoise,
    PieceNoise,
    laplace_if_bare,
)
from dphist.inference.linear import BucketNoise, CellBound
from dphist.inference.measured import MeasuredTree
from dphist.inference.tables.published import TableEstimate, in_cells
from dphist.inference.trees import TreeNoise
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.options import Share, checked
from dphist.mechanisms.protocol import Mechanism, made_by
from dphist.mechanisms.smooth import Smooth
from dphist.mechanisms.tree import Tree
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity


@checked
@dataclass(frozen=True, kw_only=True)
class Sort:
    """Put like cells next to one another: noise every cell with ``share`` of the budget and sort by what comes out.

    One noisy copy gives the order and also the groups, so with an order the grouping spends nothing more.

    Args:
        share: The part of ε that the noisy copy to sort by takes.

    Example:
        >>> Sort(share="0.65").share
        Fraction(13, 20)
    """

    share: Share = Fraction(13, 20)


@checked
@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Compose a histogram scheme of blocks: ``order``, then ``group``, then ``inner`` on the groups.

    Groups of neighbouring cells become single cells of a coarser histogram, ``inner`` estimates that, and a group's
    estimate is spread evenly over its cells. With neither order nor group this is ``inner``, exactly. With
    `Smooth` on "tree" sizes and a `Tree` inside, groups are whole subtrees that the tree never looks into.

    Private because the budget is split between finding the structure and ``inner``; the structure is a private answer,
    so merging and reordering cells by it is public, and under it one step stays one step.

    Args:
        order: Sort cells by a noisy copy first, or None.
        group: Merge neighbours first, or None.
        inner: What estimates the groups.

    Example:
        >>> from dphist.mechanisms import Blocks, Smooth, Tree
        >>> from dphist.testing import run
        >>> scheme = Blocks(group=Smooth("squared"), inner=Tree(fanout=4))
        >>> run(scheme, [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    order: Sort | None = None
    group: Smooth | None = None
    inner: Mechanism = Laplace()  # noqa: RUF009 -- a frozen value
    nonnegative: bool = False
    """Whether to raise negative estimates to zero: never worse for a cell, but it pushes long sums up."""

    def estimate(self, data: PrivateCounts) -> Estimate | TableEstimate:
        """Find the structure, estimate on it, spread back."""
        if self.order is None and self.group is None:
            found = self.inner.estimate(data)
            return replace(found, made_by=self._named(found))
        if self.group is not None:
            self.group.check(data.size)
            if self.group.sizes == "tree":
                return self._pruned(data, self.group)
        shape = data.shape
        if self.order is not None:
            copy, rest = data.split(self.order.share, 1 - self.order.share)
            noisy = copy.measure(Identity())
            values = noisy.values.reshape(-1)
            order = np.argsort(-values, kind="stable")
            if self.group is None:
                return self._reordered(rest, order, shape)
            starts = self.group.on_values(values[order], float(noisy.variance), (rest.unit_scale,))
            labels = np.empty(values.size, dtype=np.int64)
            labels[order] = _labels(starts, values.size)
        elif self.group is not None:
            seek, rest = data.split(self.group.share, 1 - self.group.share)
            starts = self.group.buckets(seek, (rest.unit_scale,), ())
            labels = _labels(starts, data.size)
        coarse = in_cells(self.inner.estimate(rest.coarsen(labels, starts.size)))
        sizes = np.bincount(labels, minlength=starts.size)
        counts = self._finish((coarse.counts.reshape(-1) / sizes)[labels].reshape(shape))
        errors = _grouped(coarse.errors, labels, sizes, shape)
        return Estimate(counts, errors, _note(starts.size), self._named(coarse))

    def _pruned(self, data: PrivateCounts, group: Smooth) -> Estimate:
        if not isinstance(self.inner, Tree) or self.order is not None:
            raise MechanismError('blocks: sizes "tree" needs a tree inside, and no order')
        shape, n = data.shape, data.size
        sides, shares = self.inner.plan((n,))
        seek, rest = data.split(group.share, 1 - group.share)
        above = [sum(shares[:level], Fraction(0)) for level in range(len(shares))]
        scales = tuple(rest.unit_scale / (1 - spent) for spent in above)
        starts = group.buckets(seek, scales, tuple(side[0] for side in sides))
        estimate = self.inner.estimate_grouped(rest, starts)
        errors: Errors = estimate.errors
        if len(shape) > 1:
            errors = CellBound(shape, np.arange(n), np.ones(n, dtype=np.int64), errors)
        return Estimate(self._finish(estimate.counts.reshape(shape)), errors, _note(starts.size))

    def _reordered(self, rest: PrivateCounts, order: IntArray, shape: tuple[int, ...]) -> Estimate:
        inside = in_cells(self.inner.estimate(rest.arrange(order)))
        counts = np.empty(order.size)
        counts[order] = inside.counts.reshape(-1)
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        errors = _grouped(inside.errors, place, np.ones(order.size, dtype=np.int64), shape)
        return Estimate(self._finish(counts.reshape(shape)), errors, made_by=self._named(inside))

    def _named(self, inside: Estimate | TableEstimate) -> Blocks | None:
        """The same with what the inner mechanism chose, if it did."""
        return None if inside.made_by is None else replace(self, inner=made_by(self.inner, inside))

    def _finish(self, counts: FloatArray) -> FloatArray:
        return np.maximum(counts, 0.0) if self.nonnegative else counts


def _labels(starts: IntArray, n: int) -> IntArray:
    return np.repeat(np.arange(starts.size), np.diff(np.append(starts, n)))


def _note(groups: int) -> str:
    return f"{groups:,} groups"


def _grouped(errors: Errors, labels: IntArray, sizes: IntArray, shape: tuple[int, ...]) -> Errors:
    if isinstance(errors, IndependentNoise):
        if sizes.max(initial=1) == 1:
            return errors
        return PieceNoise(shape, labels, np.full(sizes.size, float(laplace_if_bare(errors.law).scale)))
    if len(shape) == 1 and bool((np.diff(labels) >= 0).all()):
        if isinstance(errors, TreeNoise):
            return TreeNoise(_over_cells(errors.tree, sizes))
        return BucketNoise(sizes, errors)
    return CellBound(shape, labels, sizes, errors)


def _over_cells(tree: MeasuredTree, sizes: IntArray) -> MeasuredTree:
    """Read a tree over groups of a line as one over their cells: a leaf of one group was measured as a whole."""
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    low, high, shape = ends[tree.low], ends[tree.high], (int(ends[-1]),)
    return MeasuredTree.of(
        shape, tree.parent, low, high, tree.value, tree.variance, pool=tree.pool, kind=tree.kind
    )
