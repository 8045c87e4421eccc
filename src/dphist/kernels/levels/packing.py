"""What of a table of likelihoods is possible, without the zeros beside it.

Arrays in, arrays out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin
from dphist.kernels.levels import twins

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def packed(table: FloatArray) -> tuple[FloatArray, IntArray]:
    """What of a table is possible, row after row, and where: for each row its levels [from, to) and where it begins.

    Of most values few levels are possible, and machines wait for memory. A row in which none is keeps its last.
    """
    spans = np.empty((table.shape[0], 3), dtype=np.int64)
    told = np.empty(table.size)
    return told[: _pack(table, spans, told)], spans


@kernel_with_twin(twins.pack, cost=0.01)
def _pack(table: FloatArray, spans: IntArray, told: FloatArray) -> int:
    """Fill ``spans`` and ``told``; give how much of it is filled."""
    levels = table.shape[1]
    place = 0
    for i in range(table.shape[0]):
        row = table[i]
        low, high = 0, levels
        while low < levels - 1 and row[low] == 0.0:
            low += 1
        while high > low + 1 and row[high - 1] == 0.0:
            high -= 1
        spans[i, 0] = low
        spans[i, 1] = high
        spans[i, 2] = place
        for k in range(low, high):
            told[place + k - low] = row[k]
        place += high - low
    return place
