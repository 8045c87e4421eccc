"""What stays unknown of single cells inside leaves, for very many cells: `shared_alone` from tables made once.

How unsure each halving of a leaf is depends on the leaf alone, and what a cell meets of it is a product over axes, each
of which depends on the side of the leaf and the cell's place along it. Both are written down; a cell multiplies and
adds what it finds there, in the same order, so that the bits are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin
from dphist.kernels.predictive.inside_twins import met_along, shared_alone, unsure_halvings

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]

# Numbers in tables of what cells meet, at most: of long sides there would be too many.
_LARGEST = 1 << 22


def _alone(
    at: ShortArray,
    begin: int,
    shape: IntArray,
    low: ShortArray,
    high: ShortArray,
    means: FloatArray,
    variances: FloatArray,
    unevenness: FloatArray,
    *tables: Any,
) -> FloatArray:
    """The twin: as `shared_alone` gives it, without tables."""
    sides = tuple(shape.tolist())
    cells = np.stack(np.unravel_index(np.arange(begin, begin + at.size), sides), axis=1)
    leaf, found = at.astype(np.int64), np.zeros(at.size)
    cut = np.flatnonzero((high[leaf] - low[leaf] > 1).any(axis=1))
    boxes = cells[cut], cells[cut] + 1
    found[cut] = np.maximum(shared_alone(leaf[cut], low, high, *boxes, means, variances, unevenness), 0.0)
    return found


def _cost(at: ShortArray, *others: Any) -> float:
    return 0.5 * at.size


@kernel_with_twin(_alone, cost=_cost)
def _inside(
    at: ShortArray,
    begin: int,
    shape: IntArray,
    low: ShortArray,
    high: ShortArray,
    means: FloatArray,
    variances: FloatArray,
    unevenness: FloatArray,
    starts: IntArray,
    axes: IntArray,
    rests: FloatArray,
    table: IntArray,
    width: IntArray,
    product: FloatArray,
    contrast: FloatArray,
) -> FloatArray:
    """What is unknown inside of cells in C order from ``begin`` on, whose leaves are ``at``."""
    dimensions = shape.size
    place = np.empty(dimensions, dtype=np.int64)
    row = np.empty(dimensions, dtype=np.int64)
    left = begin
    for a in range(dimensions - 1, -1, -1):
        place[a] = left % shape[a]
        left //= shape[a]
    found = np.zeros(at.size)
    for i in range(at.size):
        leaf = at[i]
        if starts[leaf] < starts[leaf + 1]:
            for a in range(dimensions):
                side = high[leaf, a] - low[leaf, a]
                row[a] = table[side] + (place[a] - low[leaf, a]) * width[side]
            shared = 0.0
            for step in range(starts[leaf], starts[leaf + 1]):
                axis = axes[step]
                cut = contrast[row[axis]]
                for a in range(dimensions):
                    if a != axis:
                        cut *= product[row[a]]
                shared += cut * rests[step]
                row[axis] += 1
            found[i] = max(shared, 0.0)
        a = dimensions - 1
        place[a] += 1
        while a > 0 and place[a] == shape[a]:
            place[a] = 0
            a -= 1
            place[a] += 1
    return found


@dataclass(frozen=True, eq=False)
class Halvings:
    """The leaves of a tree, what a law says of them, and tables of their halvings."""

    law: tuple[ShortArray, ShortArray, FloatArray, FloatArray, FloatArray]
    tables: tuple[IntArray, IntArray, FloatArray, IntArray, IntArray, FloatArray, FloatArray]

    @classmethod
    def of(
        cls,
        left: IntArray,
        low: ShortArray,
        high: ShortArray,
        means: FloatArray,
        variances: FloatArray,
        unevenness: FloatArray,
    ) -> Halvings | None:
        """Write tables down, if they are not too large."""
        leaves = np.flatnonzero((left < 0) & (high - low > 1).any(axis=1))
        sides = (high[leaves] - low[leaves]).astype(np.int64)
        different = np.unique(sides)
        width = np.ceil(np.log2(np.maximum(different, 1))).astype(np.int64) + 1
        if float((different * width).sum()) > _LARGEST:
            return None
        lengths = sides.astype(np.float64)
        halvings = list(unsure_halvings(lengths, means[leaves], variances[leaves], unevenness))
        many = np.zeros(left.size + 1, dtype=np.int64)
        for halved, _, _ in halvings:
            many[leaves[halved] + 1] += 1
        starts = np.cumsum(many)
        axes, rests = np.empty(starts[-1], dtype=np.int64), np.empty(starts[-1])
        for step, (halved, axis, rest) in enumerate(halvings):
            where = starts[leaves[halved]] + step
            axes[where], rests[where] = axis, rest
        most = int(different[-1]) + 1 if different.size else 1
        table, wide = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
        table[different], wide[different] = np.cumsum(different * width) - different * width, width
        met = [met_along(int(side), int(stages)) for side, stages in zip(different, width, strict=True)]
        product, contrast = (np.concatenate([each[i] for each in met] or [np.zeros(0)]) for i in range(2))
        return cls(
            (low, high, means, variances, unevenness), (starts, axes, rests, table, wide, product, contrast)
        )

    def inside(self, at: ShortArray, begin: int, shape: tuple[int, ...]) -> FloatArray:
        """What is unknown of cells inside their leaves.

        Args:
            at: The leaf of each of some cells in C order.
            begin: Which cell is the first.
            shape: How many cells there are along each axis.

        Returns:
            A variance for each cell, as `dphist.kernels.predictive.cells.Cells.ask` gives it.
        """
        known: tuple[Any, ...] = (*self.law, *self.tables)
        return _inside(at, begin, np.array(shape, dtype=np.int64), *known)
