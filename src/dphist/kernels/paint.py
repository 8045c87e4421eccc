"""Fill boxes of a flat array of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin


def paint(
    boxes: NDArray[np.int64],
    low: NDArray[np.integer[Any]],
    high: NDArray[np.integer[Any]],
    values: NDArray[Any],
    strides: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    """As `paint_boxes`, in NumPy."""
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


def _paint_cost(boxes: NDArray[np.int64], *others: NDArray[Any]) -> float:
    return 50.0 + 0.1 * boxes.size + 0.03 * others[-1].size


@kernel_with_twin(paint, cost=_paint_cost)
def paint_boxes(
    boxes: NDArray[np.int64],
    low: NDArray[np.integer[Any]],
    high: NDArray[np.integer[Any]],
    values: NDArray[Any],
    strides: NDArray[np.int64],
    out: NDArray[Any],
) -> None:
    """Write ``values[b]`` into every cell of box b, for those in ``boxes``; ``strides`` are the cells' in C order."""
    axes = low.shape[1]
    place = np.empty(axes, np.int64)
    for b in boxes:
        for t in range(axes):
            place[t] = low[b, t]
        while True:
            # The last axis is contiguous: fill it in one go, then step the others like an odometer.
            base = 0
            for t in range(axes - 1):
                base += place[t] * strides[t]
            for cell in range(low[b, axes - 1], high[b, axes - 1]):
                out[base + cell] = values[b]
            t = axes - 2
            while t >= 0:
                place[t] += 1
                if place[t] < high[b, t]:
                    break
                place[t] = low[b, t]
                t -= 1
            if t < 0:
                break
