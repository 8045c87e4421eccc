"""ID3: a decision tree grown by the largest information gain, from rows of codes that have weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Node:
    """A node of a decision tree: weights of the classes, and the children by the value of an attribute."""

    weights: FloatArray
    attribute: str | None = None
    children: Mapping[int, Node] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ID3:
    """When to go on: while a node holds enough records and a split brings enough bits."""

    max_depth: int | None
    least_records: float
    least_gain: float

    def grow(
        self,
        rows: IntArray,
        weight: FloatArray,
        sizes: tuple[int, ...],
        names: tuple[str, ...],
        depth: int = 0,
    ) -> Node:
        """Grow a tree; each attribute is used once on a path.

        ``rows`` has a column of codes below ``sizes`` for each attribute that is left, by ``names``; the class last.
        """
        held = _sums(rows[:, -1], weight, sizes[-1])
        deep = self.max_depth is not None and depth >= self.max_depth
        if not names or deep or held.sum() < self.least_records or np.count_nonzero(held) < 2:
            return Node(held)
        gains = []
        for size, codes in zip(sizes, rows.T[:-1], strict=False):
            both = _sums(codes * sizes[-1] + rows[:, -1], weight, size * sizes[-1])
            gains.append(gain(both.reshape(size, sizes[-1])))
        best = int(np.argmax(gains))
        if gains[best] < self.least_gain:
            return Node(held)
        left = tuple(place for place in range(len(sizes)) if place != best)
        children = {}
        for value in np.unique(rows[:, best]):
            here = rows[:, best] == value
            children[int(value)] = self.grow(
                rows[here][:, left], weight[here], tuple(sizes[i] for i in left), tuple(names[i] for i in left[:-1]),
                depth + 1,
            )  # fmt: skip
        return Node(held, names[best], children)


def _sums(codes: IntArray, weight: FloatArray, size: int) -> FloatArray:
    return np.bincount(codes, weight, size).astype(np.float64)


def gain(table: FloatArray) -> float:
    """Information gain, in bits, of knowing the row about the column."""
    parts = table[table.sum(axis=1) > 0]
    left = sum(row.sum() / table.sum() * _entropy(row) for row in parts)
    return _entropy(table.sum(axis=0)) - float(left)


def _entropy(weights: FloatArray) -> float:
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())
