"""Fill boxes of a flat array of cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel


@kernel
def paint_boxes(
    boxes: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
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
