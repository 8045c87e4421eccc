"""The non-decreasing sequence nearest to a given one, by pooling adjacent violators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def isotonic(values: FloatArray) -> FloatArray:
    """The non-decreasing sequence with the least squared distance to ``values``.

    A stack of blocks, each at its mean; a new value that lies below the last block is merged into it until
    the levels rise again. Each value is pushed and merged at most once, so the whole takes linear time.

    In Python, which takes half a microsecond a value: up to a million that is less than loading a compiler, or SciPy's
    `isotonic_regression`.
    """
    sums: list[float] = []
    starts: list[int] = []
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    for i, value in enumerate(flat.tolist()):
        total, start = value, i
        # Compare means by cross-multiplying sums: no division inside the loop.
        while sums and sums[-1] * (i + 1 - start) >= total * (start - starts[-1]):
            total += sums.pop()
            start = starts.pop()
        sums.append(total)
        starts.append(start)
    sizes = np.diff(np.append(np.array(starts, dtype=np.int64), flat.size))
    return np.repeat(np.array(sums) / sizes, sizes)
