"""Fill boxes of a flat array of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def paint_boxes(
    boxes: NDArray[np.int64],
    low: NDArray[np.integer[Any]],
    high: NDArray[np.integer[Any]],
    values: NDArray[Any],
    strides: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    """Write ``values[b]`` into every cell of box b, for those in ``boxes``; ``strides`` are the cells' in C order."""
    # Rows of a box one after the other, for all boxes at once: first their number, then where each begins.
    sides = high[boxes] - low[boxes]
    rows = np.prod(sides[:, :-1], axis=1, dtype=np.int64)
    box = np.repeat(np.arange(boxes.size), rows)
    left = np.arange(box.size) - np.repeat(np.cumsum(rows) - rows, rows)
    begin = low[boxes, -1][box]
    for axis in range(low.shape[1] - 2, -1, -1):
        left, place = np.divmod(left, sides[box, axis])
        begin = begin + (low[boxes, axis][box] + place) * strides[axis]
    length = sides[box, -1]
    ends = np.cumsum(length)
    cells = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(begin - (ends - length), length)
    out[cells] = np.repeat(values[boxes][box], length)
