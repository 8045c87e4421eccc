"""Which bin a value lies in, for thousands of uneven edges: a look at an even grid, then halving among the few left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin

IntArray = NDArray[np.int64]

# Cells of the grid for every edge.
_FINE = 4


def _halve(values: NDArray[Any], edges: NDArray[Any], grid: IntArray, low: float, scale: float) -> IntArray:
    return np.searchsorted(edges, values, side="right")


@kernel_with_twin(_halve)
def _look_up(values: NDArray[Any], edges: NDArray[Any], grid: IntArray, low: float, scale: float) -> IntArray:
    """How many edges are at or below each value; ``grid[g]`` of them lie before cell g of the grid.

    A value's cell never falls as the value rises, however the product is rounded: so edges of earlier cells lie below
    it, those of later cells above, and only those of its own are compared with.
    """
    out = np.empty(values.size, np.int64)
    last = grid.size - 2
    for i in range(values.size):
        x = values[i]
        place = (float(x) - low) * scale
        # Also for what is no number: somebody else tells that it lies nowhere.
        cell = int(min(max(place, 0.0), float(last))) if place == place else 0
        begin = grid[cell]
        end = grid[cell + 1]
        while begin < end:
            middle = (begin + end) >> 1
            if edges[middle] <= x:
                begin = middle + 1
            else:
                end = middle
        out[i] = begin
    return out


def bins_of(values: NDArray[Any], edges: NDArray[Any]) -> IntArray:
    """The bin of every value known to lie between the first edge and the last; any bin for others.

    Args:
        values: Floats, or whole numbers.
        edges: In rising order, of the same kind.

    Returns:
        Numbers from 0 on.

    Example:
        >>> import numpy as np
        >>> bins_of(np.array([0.5, 2.0, 9.9]), np.array([0.0, 2.0, 5.0, 10.0])).tolist()
        [0, 1, 2]
    """
    low, high = float(edges[0]), float(edges[-1])
    cells = _FINE * len(edges)
    span = high - low
    scale = cells / span if np.isfinite(span) and span > 0 else 0.0
    place = (
        (edges.astype(np.float64) - low) * scale if np.isfinite(scale) and scale > 0 else np.zeros(len(edges))
    )
    grid = np.searchsorted(np.minimum(np.floor(place), cells), np.arange(cells + 2), side="left").astype(
        np.int64
    )
    grid[-1] = len(edges)
    if not place.any():
        low, scale = 0.0, 0.0
    found = _look_up(values, edges, grid, low, scale) - 1
    return np.minimum(np.maximum(found, 0), len(edges) - 2)
