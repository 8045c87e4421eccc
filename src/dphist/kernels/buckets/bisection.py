"""Absolute error about the mean for every way to cut a run of cells in two, in one pass each way.

The error of a run C is Σ|x − mean(C)|, a fraction with denominator |C|. Every function here returns it
floored on the lattice of 1/1024 records, computed in integers with no rounding on the way.

Growing a run cell by cell, the error needs the count and the sum of the cells at or below the mean. A
pointer into the sorted values follows the mean; it rarely moves far, and when it must it crosses whole
blocks of 64 and 4,096 ranks whose counts and sums are kept, so no data can make the scan quadratic.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

IntArray = NDArray[np.int64]

# Errors are integers in units of 2^−LATTICE records.
LATTICE = 10
_BLOCK, _SUPER = 6, 12


@kernel
def _floored(count: int, total: np.int64, low_count: np.int64, low_sum: np.int64) -> np.int64:
    """⌊2^LATTICE · Σ|x − mean|⌋ = ⌊2^LATTICE · 2(low_count·mean − low_sum)⌋ without overflow."""
    whole, rest = total // count, total % count
    return ((low_count * whole - low_sum) << (LATTICE + 1)) + ((low_count * rest) << (LATTICE + 1)) // count


@kernel
def _grow(
    values: IntArray,
    rank: IntArray,
    ascending: IntArray,
    first: int,
    size: int,
    step: int,
    seen: IntArray,
    blocks: IntArray,
    supers: IntArray,
    out: IntArray,
) -> None:
    """Write the error of the first 1, 2, … ``size`` cells from ``first`` in direction ``step`` to ``out``."""
    seen[:size] = 0
    blocks[:, : (size >> _BLOCK) + 1] = 0
    supers[:, : (size >> _SUPER) + 1] = 0
    total, low_count, low_sum, p = np.int64(0), np.int64(0), np.int64(0), 0
    for i in range(size):
        cell = first + i * step
        x, r = values[cell], rank[cell]
        seen[r] = 1
        blocks[0, r >> _BLOCK] += 1
        blocks[1, r >> _BLOCK] += x
        supers[0, r >> _SUPER] += 1
        supers[1, r >> _SUPER] += x
        if r < p:
            low_count += 1
            low_sum += x
        total += x
        mean = total // (i + 1)
        # x ≤ S/c iff x ≤ ⌊S/c⌋ for integers, so the pointer needs the floor only.
        while p < size and ascending[p] <= mean:
            if p & 4095 == 0 and p + 4096 <= size and ascending[p + 4095] <= mean:
                low_count += supers[0, p >> _SUPER]
                low_sum += supers[1, p >> _SUPER]
                p += 4096
            elif p & 63 == 0 and p + 64 <= size and ascending[p + 63] <= mean:
                low_count += blocks[0, p >> _BLOCK]
                low_sum += blocks[1, p >> _BLOCK]
                p += 64
            else:
                low_count += seen[p]
                low_sum += seen[p] * ascending[p]
                p += 1
        while p > 0 and ascending[p - 1] > mean:
            if p & 4095 == 0 and ascending[p - 4096] > mean:
                p -= 4096
                low_count -= supers[0, p >> _SUPER]
                low_sum -= supers[1, p >> _SUPER]
            elif p & 63 == 0 and ascending[p - 64] > mean:
                p -= 64
                low_count -= blocks[0, p >> _BLOCK]
                low_sum -= blocks[1, p >> _BLOCK]
            else:
                p -= 1
                low_count -= seen[p]
                low_sum -= seen[p] * ascending[p]
        out[i] = _floored(i + 1, total, low_count, low_sum)


def bisection_errors(values: IntArray, starts: IntArray) -> IntArray:
    """Error of every part left whole, and cut after its first 1, 2, … cells.

    A part of s cells has s entries, at ``starts[p]``: entry 0 is the whole part, entry i the sum of the
    errors of its first i cells and of the rest.
    """
    sizes = np.diff(starts)
    part = np.repeat(np.arange(sizes.size), sizes)
    order = np.lexsort((values, part))
    rank = np.empty(values.size, dtype=np.int64)
    rank[order] = np.arange(values.size) - starts[part]
    return _bisection_errors(values, starts, rank, values[order], int(sizes.max(initial=0)))


@kernel
def _bisection_errors(
    values: IntArray, starts: IntArray, rank: IntArray, ascending: IntArray, largest: int
) -> IntArray:
    seen = np.empty(largest, dtype=np.int64)
    blocks = np.empty((2, (largest >> _BLOCK) + 1), dtype=np.int64)
    supers = np.empty((2, (largest >> _SUPER) + 1), dtype=np.int64)
    heads, tails = np.empty(largest, dtype=np.int64), np.empty(largest, dtype=np.int64)
    out = np.empty(values.size, dtype=np.int64)
    for p in range(starts.size - 1):
        a, b = starts[p], starts[p + 1]
        if b == a:
            continue
        _grow(values, rank, ascending[a:b], a, b - a, 1, seen, blocks, supers, heads)
        _grow(values, rank, ascending[a:b], b - 1, b - a, -1, seen, blocks, supers, tails)
        out[a] = heads[b - a - 1]
        for i in range(1, b - a):
            out[a + i] = heads[i - 1] + tails[b - a - i - 1]
    return out


@kernel
def run_errors(values: IntArray, first: IntArray, last: IntArray) -> IntArray:
    """Error of each run of cells ``first[i] … last[i] − 1``, which must not be empty."""
    out = np.empty(first.size, dtype=np.int64)
    for i in range(first.size):
        total = np.int64(0)
        for k in range(first[i], last[i]):
            total += values[k]
        size = last[i] - first[i]
        mean = total // size
        low_count, low_sum = np.int64(0), np.int64(0)
        for k in range(first[i], last[i]):
            if values[k] <= mean:
                low_count += 1
                low_sum += values[k]
        out[i] = _floored(size, total, low_count, low_sum)
    return out


def best_bisections(values: IntArray, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Find the best cut of every part and its error; a part of one cell has cut 0 and error 0."""
    errors = bisection_errors(values, starts)
    cuts = np.zeros(starts.size - 1, dtype=np.int64)
    for p, (a, b) in enumerate(pairwise(starts.tolist())):
        if b - a > 1:
            cuts[p] = 1 + np.argmin(errors[a + 1 : b])
    return cuts, np.where(cuts > 0, errors[starts[:-1] + cuts], 0)


def cuts_ok(first: IntArray, middle: IntArray, last: IntArray, cells: int) -> bool:
    """Tell whether every cut parts a run of cells that the cuts before it left."""
    ends = {0: cells}
    for a, m, b in zip(first.tolist(), middle.tolist(), last.tolist(), strict=True):
        if not a < m < b or ends.get(a) != b:
            return False
        ends[a], ends[m] = m, b
    return True
