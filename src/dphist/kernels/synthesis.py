"""Synthetic records that keep tables of pairs: values are exchanged while that brings pairs nearer to targets.

``excess`` is a square matrix with a row and a column for each value of each attribute, and one last row and column for
"everyone": how many records too many have both values, beside the target. Tables of one attribute are those of pairs
with "everyone".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel
from dphist.kernels.hashing import GOLDEN, mixed

_mixed = kernel(mixed)


@kernel
def count_pairs(codes: NDArray[np.int32], excess: NDArray[np.float32]) -> None:
    """Add every record to its pairs; ``codes`` name rows of the matrix, a record a row."""
    records, columns = codes.shape
    last = excess.shape[0] - 1
    for record in range(records):
        for one in range(columns):
            row = codes[record, one]
            for other in range(columns):
                if other != one:
                    excess[row, codes[record, other]] += 1.0
            excess[row, last] += 1.0
            excess[last, row] += 1.0


@kernel
def exchange(codes: NDArray[np.int32], excess: NDArray[np.float32], seed: Any, sweeps: int) -> int:
    """Go over all records and columns, and exchange or copy a value where that brings pairs nearer; count how often.

    For a record and a column another record is picked by a hash. If swapping their values lowers the sum of absolute
    excesses it is done; else, if taking over the other's value alone does not raise it, that is done (where nothing is
    won or lost such moves lead on to others that win). Both keep ``excess`` right.
    """
    records, columns = codes.shape
    last = excess.shape[0] - 1
    taken = 0
    state = seed
    for _ in range(sweeps):
        for column in range(columns):
            for record in range(records):
                state += np.uint64(GOLDEN)
                partner = np.int64((_mixed(state) >> np.uint64(11)) % np.uint64(records))
                old, new = codes[record, column], codes[partner, column]
                if old == new:
                    continue
                alone, both = np.float32(0.0), np.float32(0.0)
                for other in range(columns):
                    if other != column:
                        mine, theirs = codes[record, other], codes[partner, other]
                        less, more = excess[old, mine], excess[new, mine]
                        change = abs(less - 1.0) - abs(less) + abs(more + 1.0) - abs(more)
                        alone += change
                        if mine != theirs:
                            less, more = excess[new, theirs], excess[old, theirs]
                            both += change + abs(less - 1.0) - abs(less) + abs(more + 1.0) - abs(more)
                less, more = excess[old, last], excess[new, last]
                alone += abs(less - 1.0) - abs(less) + abs(more + 1.0) - abs(more)
                if both < -1e-4:
                    move(codes, excess, record, column, new)
                    move(codes, excess, partner, column, old)
                    taken += 1
                elif alone <= 0.0:
                    move(codes, excess, record, column, new)
                    taken += 1
    return taken


@kernel
def move(
    codes: NDArray[np.int32],
    excess: NDArray[np.float32],
    record: int | np.integer,
    column: int,
    new: int | np.integer,
) -> None:
    """Give one record another value in one column."""
    old = codes[record, column]
    last = excess.shape[0] - 1
    for other in range(codes.shape[1]):
        if other != column:
            mine = codes[record, other]
            excess[old, mine] -= 1.0
            excess[mine, old] -= 1.0
            excess[new, mine] += 1.0
            excess[mine, new] += 1.0
    excess[old, last] -= 1.0
    excess[last, old] -= 1.0
    excess[new, last] += 1.0
    excess[last, new] += 1.0
    codes[record, column] = new
