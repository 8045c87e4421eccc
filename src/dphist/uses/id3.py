"""ID3: a decision tree grown by the largest information gain, from counts of a cube or from records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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

    def structure(self) -> tuple[object, ...]:
        """Everything that the tree says, for comparing two."""
        below = tuple((value, child.structure()) for value, child in sorted(self.children.items()))
        return self.attribute, tuple(self.weights.tolist()), below


@dataclass(frozen=True, eq=False)
class HeldCounts:
    """Counts of a cube: an axis for each attribute that is left, the class last."""

    counts: FloatArray
    names: tuple[str, ...]

    def weights(self) -> FloatArray:
        """How much there is of each class."""
        total: FloatArray = self.counts.reshape(-1, self.counts.shape[-1]).sum(axis=0)
        return total

    def table(self, place: int) -> FloatArray:
        """A row for each value of an attribute, a column for each class."""
        others = tuple(axis for axis in range(self.counts.ndim - 1) if axis != place)
        return np.asarray(self.counts.sum(axis=others), dtype=np.float64)

    def split(self, place: int) -> Iterator[tuple[int, HeldCounts]]:
        """The values of an attribute that occur, each with what has it."""
        left = self.names[:place] + self.names[place + 1 :]
        for value, piece in enumerate(np.moveaxis(self.counts, place, 0)):
            if piece.sum() > 0:
                yield value, HeldCounts(piece, left)


@dataclass(frozen=True, eq=False)
class HeldRecords:
    """Records, each of weight one: a column of codes for each attribute that is left, the class last."""

    rows: IntArray
    sizes: tuple[int, ...]
    names: tuple[str, ...]

    def weights(self) -> FloatArray:
        """How much there is of each class."""
        return np.bincount(self.rows[:, -1], minlength=self.sizes[-1]).astype(np.float64)

    def table(self, place: int) -> FloatArray:
        """A row for each value of an attribute, a column for each class."""
        shape = self.sizes[place], self.sizes[-1]
        both = self.rows[:, place] * shape[1] + self.rows[:, -1]
        return np.bincount(both, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)

    def split(self, place: int) -> Iterator[tuple[int, HeldRecords]]:
        """The values of an attribute that occur, each with what has it."""
        sizes = self.sizes[:place] + self.sizes[place + 1 :]
        left = self.names[:place] + self.names[place + 1 :]
        column = self.rows[:, place]
        for value in np.unique(column):
            kept = np.delete(self.rows[column == value], place, axis=1)
            yield int(value), HeldRecords(kept, sizes, left)


Held = HeldCounts | HeldRecords


@dataclass(frozen=True, kw_only=True)
class ID3:
    """When to go on: while a node holds enough records and a split brings enough bits."""

    max_depth: int | None
    least_records: float
    least_gain: float

    def grow(self, held: Held, depth: int = 0) -> Node:
        """Grow a tree; each attribute is used once on a path."""
        weights = held.weights()
        deep = self.max_depth is not None and depth >= self.max_depth
        if not held.names or deep or weights.sum() < self.least_records or np.count_nonzero(weights) < 2:
            return Node(weights)
        gains = [gain(held.table(place)) for place in range(len(held.names))]
        best = int(np.argmax(gains))
        if gains[best] < self.least_gain:
            return Node(weights)
        children = {value: self.grow(below, depth + 1) for value, below in held.split(best)}
        return Node(weights, held.names[best], children)


def gain(table: FloatArray) -> float:
    """Information gain, in bits, of knowing the row about the column."""
    total = table.sum()
    if total <= 0:
        return 0.0
    return _entropy(table.sum(axis=0)) - float(
        sum(row.sum() / total * _entropy(row) for row in table if row.sum() > 0)
    )


def _entropy(weights: FloatArray) -> float:
    share = weights[weights > 0] / weights.sum()
    return float(-(share * np.log2(share)).sum())
