"""The middle of every part: what the median of a group of counts is read from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]


@kernel
def part_middles(counts: IntArray, order: IntArray, starts: IntArray) -> IntArray:
    """Give each part's middle count, or the sum of the two if it has an even number of cells; 0 if none."""
    parts = starts.size - 1
    middles = np.zeros(parts, dtype=np.int64)
    for p in range(parts):
        size = starts[p + 1] - starts[p]
        if size == 0:
            continue
        ordered = np.sort(counts[order[starts[p] : starts[p + 1]]])
        middles[p] = ordered[size // 2]
        if size % 2 == 0:
            middles[p] += ordered[size // 2 - 1]
    return middles
