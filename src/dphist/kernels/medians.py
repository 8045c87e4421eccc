"""The middle of every part: what the median of a group of counts is read from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def part_middles(counts: IntArray, order: IntArray, starts: IntArray) -> IntArray:
    """Give each part's middle count, or the sum of the two if it has an even number of cells; 0 if none."""
    sizes = np.diff(starts)
    part = np.repeat(np.arange(sizes.size), sizes)
    values = counts[order[starts[0] : starts[-1]]]
    ordered = values[np.lexsort((values, part))]
    middles = np.zeros(sizes.size, dtype=np.int64)
    some = np.flatnonzero(sizes)
    upper = (starts[:-1] - starts[0] + sizes // 2)[some]
    middles[some] = ordered[upper] + np.where(sizes[some] % 2 == 0, ordered[upper - 1], 0)
    return middles
