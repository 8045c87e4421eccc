"""Mean and variance of single cells, of which a file asks for every one: only nodes that hold the cell are visited.

Above a cell only one side of every split has a slope, so Σ (β_l − β_r)²·rest is a sum along its path. Per unit of slope
it is V(child) = rest(parent) + γ²·V(parent), the same for all cells below, and worked out once from the root down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin
from dphist.kernels.predictive import twins
from dphist.kernels.predictive.visits import _inside

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
ShortArray = NDArray[np.int32]


@kernel_with_twin(twins.path_variances)
def path_variances(left: IntArray, slope: FloatArray, rest: FloatArray, top: float) -> FloatArray:
    """What a slope of one in each node adds to the variance, along the path from the root."""
    along = np.zeros(left.size)
    along[0] = top
    # From the root down, not in the order of the nodes: halved families have children that stand before them.
    waiting = np.empty(left.size, dtype=np.int64)
    waiting[0] = 0
    count = 1
    while count > 0:
        count -= 1
        i = waiting[count]
        c = left[i]
        if c >= 0:
            along[c] = rest[i] + slope[i] * slope[i] * along[i]
            along[c + 1] = rest[i] + (1.0 - slope[i]) * (1.0 - slope[i]) * along[i]
            waiting[count] = c
            waiting[count + 1] = c + 1
            count += 2
    return along


@kernel_with_twin(twins.ask_cells, cost=twins.cells_cost)
def ask_cells(
    left: IntArray,
    low: ShortArray,
    high: ShortArray,
    mean: FloatArray,
    along: FloatArray,
    variance: FloatArray,
    unevenness: FloatArray,
    cells: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of cells, as `ask_boxes` gives them for boxes of one cell.

    A hull that holds a cell may reach around it (blocks that were pooled need not be neighbours): then the other side
    of the split is kept in mind, until a leaf is found, and leaves are boxes.
    """
    axes = low.shape[1]
    other = np.empty(256, dtype=np.int64)
    means = np.zeros(len(cells))
    variances = np.zeros(len(cells))
    inner = np.zeros(len(cells))
    beyond = np.empty(axes, dtype=np.int64)
    for j in range(len(cells)):
        other[0] = 0
        waiting = 1
        i = 0
        while waiting > 0:
            waiting -= 1
            i = other[waiting]
            if left[i] < 0:
                break
            if waiting + 2 > other.size:
                other = np.concatenate((other, np.empty_like(other)))
            for c in (left[i] + 1, left[i]):
                holds = True
                for a in range(axes):
                    if cells[j, a] < low[c, a] or cells[j, a] >= high[c, a]:
                        holds = False
                if holds:
                    other[waiting] = c
                    waiting += 1
        share = 1.0
        for a in range(axes):
            share /= high[i, a] - low[i, a]
            beyond[a] = cells[j, a] + 1
        means[j] = share * mean[i]
        variances[j] = share * share * along[i]
        if unevenness.size > 0 and share < 1.0:
            shared = _inside(
                i, low, high, cells[j], beyond, cells[j], beyond, mean[i], mean[i] ** 2 + variance[i], unevenness
            )  # fmt: skip
            inner[j] = max(shared, 0.0)
    return means, variances, inner
