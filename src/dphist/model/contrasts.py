"""A binary tree over an attribute's values, and its contrasts: what ranges and groups are made of.

Every node that is divided has a *contrast*: with l values on its left and r on its right, r times the left sum less
l times the right one. Contrasts of different nodes are orthogonal to each other and to the sum of all values
(the unbalanced Haar basis), so together they are all that a column says beyond its sum; any range is few of them: at
most two at every depth. An ordered attribute is halved again and again; a hierarchy keeps its groups, whose children
are halved in turn, so that every group is a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Nominal, Ordinal

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Contrasts:
    """The divided nodes of a tree over values 0 to ``size`` − 1, parents before children.

    Args:
        size: How many values there are.
        start: The first value of each node.
        middle: The first value of its right part.
        stop: One past its last value.
        depth: How many nodes are above it.
    """

    size: int
    start: IntArray
    middle: IntArray
    stop: IntArray
    depth: IntArray

    @property
    def left(self) -> IntArray:
        """How many values are on the left of each node."""
        return self.middle - self.start

    @property
    def right(self) -> IntArray:
        """How many on its right."""
        return self.stop - self.middle

    @property
    def squares(self) -> IntArray:
        """The squared norm of every contrast: l r (l + r)."""
        return self.left * self.right * (self.left + self.right)

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """How far a contrast of each depth moves at most when one value's count moves by one."""
        each = np.maximum(self.left, self.right)
        return tuple(int(each[self.depth == depth].max()) for depth in range(int(self.depth.max()) + 1))

    def of(self, values: NDArray[Any], axis: int) -> NDArray[Any]:
        """Take the contrasts along an axis, in the numbers that are given."""
        moved = np.moveaxis(np.asarray(values), axis, 0)
        sums = np.concatenate([np.zeros_like(moved[:1]), np.cumsum(moved, axis=0)])
        wide = (slice(None),) + (None,) * (moved.ndim - 1)
        left, right = sums[self.middle] - sums[self.start], sums[self.stop] - sums[self.middle]
        return np.moveaxis(self.right[wide] * left - self.left[wide] * right, 0, axis)

    def back(self, contrasts: FloatArray, axis: int) -> FloatArray:
        """The column of sum zero that has these contrasts along an axis."""
        moved = np.moveaxis(contrasts, axis, 0)
        out = np.zeros((self.size + 1, *moved.shape[1:]))
        scaled = moved / self.squares.reshape(-1, *[1] * (moved.ndim - 1))
        for place in range(len(self.start)):
            # What every value of a part gets, as jumps that are added up at the end.
            here = scaled[place]
            out[self.start[place]] += self.right[place] * here
            out[self.middle[place]] -= (self.left[place] + self.right[place]) * here
            out[self.stop[place]] += self.left[place] * here
        return np.asarray(np.moveaxis(np.cumsum(out, axis=0)[:-1], 0, axis), dtype=np.float64)

    def meets(self, low: IntArray, high: IntArray) -> FloatArray:
        """The product of every interval with every contrast: a row for each interval."""
        left = np.clip(high[:, None], self.start, self.middle) - np.clip(
            low[:, None], self.start, self.middle
        )
        right = np.clip(high[:, None], self.middle, self.stop) - np.clip(low[:, None], self.middle, self.stop)
        return np.asarray(self.right * left - self.left * right, dtype=np.float64)


def contrasts_of(attribute: Ordinal | Nominal) -> Contrasts:
    """The tree of an attribute: halves of an ordered one, groups and their halves of a hierarchy."""
    inside: dict[tuple[int, int], list[tuple[int, int]]] = {}
    if isinstance(attribute, Nominal):
        tree = attribute.hierarchy
        held = list(zip(tree.start.tolist(), tree.stop.tolist(), strict=True))
        for node in reversed(range(tree.size)):
            below = held[tree.children[node] : tree.children[node + 1]]
            if len(below) > 1:
                inside[held[node]] = below
    nodes: list[tuple[int, int, int, int]] = []
    values = [(value, value + 1) for value in range(attribute.size)]
    todo = [(inside.get((0, attribute.size), values), 0)]
    while todo:
        spans, depth = todo.pop(0)
        if len(spans) == 1:
            spans = inside.get(spans[0], [])
        if len(spans) < 2:
            continue
        half = (len(spans) + 1) // 2
        nodes.append((spans[0][0], spans[half][0], spans[-1][1], depth))
        todo += [(spans[:half], depth + 1), (spans[half:], depth + 1)]
    start, middle, stop, depths = (np.array(column, dtype=np.int64) for column in zip(*nodes, strict=True))
    return Contrasts(attribute.size, start, middle, stop, depths)
