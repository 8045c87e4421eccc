"""One noun for everything that was measured as nested totals: lines, hierarchies, boxes, grids and kd trees.

Nothing private is read here, so nothing is spent: the numbers were paid for when they were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist.errors import MechanismError
from dphist.kernels.trees.passes import breadth_first, gather_up, hand_down, painted, side_by_side
from dphist.model.law import Kind

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def twice(
    first: FloatArray, first_variance: FloatArray, second: FloatArray, second_variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Combine two independent measurements of the same totals by inverse variance."""
    share = first_variance / (first_variance + second_variance)
    return first + share * (second - first), share * second_variance


@dataclass(frozen=True, eq=False)
class MeasuredTree:
    """Nested blocks of cells with what was measured of each, as a flat list of nodes.

    Node i hangs under ``parent[i] < i``; node 0 is the one root (parent −1). Siblings stand side by side: the children
    of node i are ``first[i]`` up to ``last[i]`` (``first`` is −1 for a leaf) and hold its cells between them. A block
    is a box of cells, an interval of them on a line or in a hierarchy. A leaf of several cells was measured as a whole:
    nothing is known of its inside.

    A *pool* is an inner node over sibling blocks that were measured once each and then together: its own measurement
    is the joint one, and its children are leaves that keep what was seen of each before. Its ``low`` and ``high``
    bound its blocks and may reach around others.

    A leaf that was measured twice carries both as one, combined by inverse variance; ``seen`` and ``seen_variance``
    keep the first of them, from which the second follows (`again`). A leaf that was looked at and then asked for again
    (``gradual``) carries the finer answer, beside which the first says nothing more; what `again` makes of the two has
    no covariance with the first, as a second measurement would.

    Example:
        >>> tree = MeasuredTree.of((4,), [-1, 0, 0], [[0], [0], [2]], [[4], [2], [4]], [9, 4, 2], [1, 1, 1])
        >>> tree.least_squares().round(6).tolist()
        [8.0, 5.0, 3.0]
        >>> tree.cells(tree.least_squares()).round(6).tolist()
        [2.5, 2.5, 1.5, 1.5]
    """

    shape: tuple[int, ...]
    """Of the cells."""
    parent: IntArray
    first: IntArray
    last: IntArray
    low: IntArray
    """A row for each node: where its block begins on every axis."""
    high: IntArray
    """One past where it ends; of a pool, the bounds of its blocks."""
    size: FloatArray
    """How many cells each node has."""
    value: FloatArray
    """What was measured of the node itself; 0 where nothing was."""
    variance: FloatArray
    """Of that measurement; infinite where there was none."""
    pool: BoolArray
    seen: FloatArray | None = None
    """First measurement of each leaf that was measured twice; None if there is no such leaf."""
    seen_variance: FloatArray | None = None
    """Its variance; infinite for nodes that were measured once or not at all."""
    kind: Kind = "laplace"
    """The kind of the noise in all of it."""
    gradual: bool = False
    """Whether boxes that were looked at could be asked for again: then leaves that were measured twice carry a finer
    answer to the same question."""

    @classmethod
    def of(
        cls,
        shape: Sequence[int],
        parent: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        value: ArrayLike,
        variance: ArrayLike,
        *,
        pool: ArrayLike | None = None,
        seen: ArrayLike | None = None,
        seen_variance: ArrayLike | None = None,
        kind: Kind = "laplace",
        gradual: bool = False,
    ) -> MeasuredTree:
        """Put nodes that come parents first into the order a tree has; several roots get one over them.

        Arguments are the fields of the same names. Nodes keep their numbers if siblings stand side by side, else they
        are renumbered breadth first. A MechanismError if a node comes before its parent.
        """
        # What is said of every node, and of a root over several.
        given: dict[str, tuple[ArrayLike | None, Any, Any]] = {
            "value": (value, np.float64, 0.0),
            "variance": (variance, np.float64, np.inf),
            "pool": (pool, np.bool_, False),
            "seen": (seen, np.float64, 0.0),
            "seen_variance": (seen_variance, np.float64, np.inf),
        }
        up = np.asarray(parent, dtype=np.int64)
        told = {name: np.asarray(each, kind) for name, (each, kind, _) in given.items() if each is not None}
        if not up.size or any(each.shape != (up.size,) for each in told.values()):
            raise MechanismError("a tree needs one parent, one value and one variance for each node")
        a, b = (np.asarray(side, dtype=np.int64).reshape(up.size, len(shape)) for side in (low, high))
        fine, first, last = side_by_side(up)
        if not fine:
            if bool((up >= np.arange(up.size)).any()) or bool((up < -1).any()):
                raise MechanismError(
                    "a tree's nodes must come after their parents, and roots must have parent −1"
                )
            if int((up < 0).sum()) > 1:
                up = np.concatenate([[-1], up + 1])
                a, b = np.vstack([a.min(axis=0), a]), np.vstack([b.max(axis=0), b])
                told = {name: np.concatenate([[given[name][2]], each]) for name, each in told.items()}
            order, first, last = breadth_first(up)
            up = np.full(up.size, -1, dtype=np.int64)
            inner = np.flatnonzero(first >= 0)
            up[1:] = np.repeat(inner, (last - first)[inner])
            a, b = a[order], b[order]
            told = {name: each[order] for name, each in told.items()}
        size = np.prod((b - a).astype(np.float64), axis=1)
        kept = told.setdefault("pool", np.zeros(up.size, dtype=np.bool_))
        if kept.any():
            # Children of pools are leaves: their boxes are all that a pool holds, whatever its bounds reach around.
            inside = np.flatnonzero(kept[up] & (up >= 0))
            size[kept] = np.bincount(up[inside], size[inside], minlength=up.size)[kept]
        told["value"] = np.where(np.isinf(told["variance"]), 0.0, told["value"])
        return cls(
            shape=tuple(shape),
            parent=up,
            first=first,
            last=last,
            low=np.ascontiguousarray(a),
            high=np.ascontiguousarray(b),
            size=size,
            **told,
            kind=kind,
            gradual=gradual,
        )

    def __len__(self) -> int:
        return int(self.parent.size)

    @cached_property
    def leaves(self) -> IntArray:
        """Nodes without children, in order; their boxes tile the cells."""
        return np.flatnonzero(self.first < 0)

    @cached_property
    def leaf(self) -> IntArray:
        """The leaf that holds each cell, in C order."""
        return painted(self.leaves, self.low, self.high, np.arange(len(self)), self.shape)

    @cached_property
    def gathered(self) -> tuple[FloatArray, FloatArray]:
        """Best linear unbiased total of every node from its own subtree alone, and its variance."""
        z, variance = gather_up(self.first, self.last, self.value, self.variance)
        return z, variance

    def again(self) -> tuple[FloatArray, FloatArray]:
        """What was measured last of every node, as it was measured, and with what variance."""
        if self.seen is None or self.seen_variance is None:
            return self.value, self.variance
        both = np.isfinite(self.seen_variance)
        value, variance = self.value.copy(), self.variance.copy()
        before, all_of_it = 1.0 / self.seen_variance[both], 1.0 / self.variance[both]
        value[both] = (value[both] * all_of_it - self.seen[both] * before) / (all_of_it - before)
        variance[both] = 1.0 / (all_of_it - before)
        return value, variance

    def least_squares(self) -> FloatArray:
        """Give every node's total so that children sum to their parent: the best linear unbiased estimate."""
        return self._handed_down(floor=False)

    def nonnegative(self) -> FloatArray:
        """Give every node's total, none negative, settled from the root down.

        Each family is projected onto {≥ 0, sum = parent's total} in the norm weighted by its variances; a pool's total
        is spread evenly over its blocks.
        """
        return self._handed_down(floor=True)

    def _handed_down(self, *, floor: bool) -> FloatArray:
        return hand_down(self.first, self.last, self.size, *self.gathered, floor, self.pool)

    def cells(self, totals: FloatArray) -> FloatArray:
        """Counts of the cells: every leaf's total spread evenly over its box."""
        return painted(self.leaves, self.low, self.high, totals / self.size, self.shape).reshape(self.shape)
