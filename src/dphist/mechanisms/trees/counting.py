"""What trees and grids of boxes share: cut, count, stop where there is little, reconcile."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dphist.arrays import IntArray
from dphist.inference.estimate import Estimate
from dphist.inference.measured import MeasuredTree
from dphist.inference.trees import TreeNoise
from dphist.mechanisms.trees.growing import Front


def extent(front: Front, axis: int) -> IntArray:
    """How many cells each box has along an axis."""
    return front.high[:, axis] - front.low[:, axis]


def coordinate(front: Front, axis: int) -> IntArray:
    """The place of each cell along an axis."""
    shape = front.nodes.shape
    if len(shape) == 1:
        return front.cells
    return front.cells // math.prod(shape[axis + 1 :]) % shape[axis]


def cut(front: Front, axis: int, place: IntArray) -> Front:
    """Cut every box at its place along an axis; a place outside a box leaves it whole."""
    here = (place > front.low[:, axis]) & (place < front.high[:, axis])
    offset = np.cumsum(1 + here) - 1 - here
    beyond = here[front.box] & (coordinate(front, axis) >= place[front.box])
    owner = np.repeat(np.arange(len(here)), 1 + here)
    low, high = front.low[owner].copy(), front.high[owner].copy()
    low[offset[here] + 1, axis] = place[here]
    high[offset[here], axis] = place[here]
    return front.into(offset[front.box] + beyond, low, high, owner, front.level)


def halve(front: Front, axis: int) -> Front:
    """Cut every box in the middle."""
    return cut(front, axis, (front.low[:, axis] + front.high[:, axis] + 1) // 2)


def count(
    front: Front, level: int, share: Fraction, *, stop: float | None = None, last: bool = False
) -> Front:
    """Count every box; finish those of one cell, those with little in them, and on the last level all.

    A box that is known to be finished is counted once with all it has left; one that is finished because its count
    came out below ``stop`` noise scales is counted a second time with the rest. Gives the boxes that go on.
    """
    front = replace(front, level=level)
    sure = np.ones(len(front), dtype=bool) if last else front.sizes == 1
    front = front.finish(sure)
    if not len(front):
        return front
    front = front.measure(share, gradual=stop is not None)
    if stop is None or front.totals is None:
        return front
    return front.finish(front.totals < stop * front.scale)


def reconciled(tree: MeasuredTree, method: str, *, nonnegative: bool) -> Estimate:
    """Reconcile all counts by least squares; spread the leaves over their cells."""
    totals = tree.nonnegative() if nonnegative else tree.least_squares()
    return Estimate(tree.cells(totals), TreeNoise(tree, method, projected=True))
