"""Which splits and totals of a measured tree stand out of the noise: arithmetic on released totals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel_with_twin
from dphist.kernels.trees import plain

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@kernel_with_twin(plain.prune, cost=1.0)
def prune(
    first: IntArray, last: IntArray, size: FloatArray, best: FloatArray, variance: FloatArray, price: float
) -> BoolArray:
    """Which nodes are better left whole, as their splits do not pay.

    A split is kept when the χ² of all contrasts below it (children against a uniform spread) exceeds ``price``
    a contrast plus what the kept splits further down cost: the dyadic classification tree on released totals.
    """
    chi = np.zeros(best.size)
    cost = np.zeros(best.size)
    whole = np.zeros(best.size, np.bool_)
    for i in range(best.size - 1, -1, -1):
        if first[i] < 0:
            continue
        total = 0.0
        for c in range(first[i], last[i]):
            total += best[c]
        here = 0.0
        below = price * (last[i] - first[i] - 1)
        for c in range(first[i], last[i]):
            gap = best[c] - total * size[c] / size[i]
            here += chi[c] + gap * gap / variance[c]
            below += cost[c]
        chi[i] = here
        cost[i] = min(here, below)
        if below >= here:
            whole[i] = True
    return whole


@kernel_with_twin(plain.quicksorted, cost=1.0)
def quicksorted(values: FloatArray) -> IntArray:
    """The places of values in rising order; equal ones in the order that releases of every version were made with.

    Quicksort with the median of three as its pivot, and insertion for sixteen and fewer. Written out, because which of
    two equal values comes first decides where a cut falls, and a release must replay as it was made.
    """
    order = np.arange(values.size)
    begins = np.empty(100, np.int64)
    ends = np.empty(100, np.int64)
    begins[0] = 0
    ends[0] = values.size - 1
    waiting = 1
    while waiting > 0:
        waiting -= 1
        low = begins[waiting]
        high = ends[waiting]
        while high - low >= 15:
            middle = (low + high) >> 1
            if values[order[middle]] < values[order[low]]:
                order[low], order[middle] = order[middle], order[low]
            if values[order[high]] < values[order[middle]]:
                order[high], order[middle] = order[middle], order[high]
            if values[order[middle]] < values[order[low]]:
                order[low], order[middle] = order[middle], order[low]
            pivot = values[order[middle]]
            order[high], order[middle] = order[middle], order[high]
            i = low
            j = high - 1
            while True:
                while i < high and values[order[i]] < pivot:
                    i += 1
                while j >= low and pivot < values[order[j]]:
                    j -= 1
                if i >= j:
                    break
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
            order[i], order[high] = order[high], order[i]
            # The larger side waits, so that few ever do.
            if high - i > i - low:
                begins[waiting] = i + 1
                ends[waiting] = high
                high = i - 1
            else:
                begins[waiting] = low
                ends[waiting] = i - 1
                low = i + 1
            waiting += 1
        for i in range(low + 1, high + 1):
            moved = order[i]
            j = i
            while j > low and values[moved] < values[order[j - 1]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = moved
    return order


@kernel_with_twin(plain.mirror_threshold, cost=2.0)
def mirror_threshold(scores: FloatArray) -> float:
    """Where to cut small positive scores, learned from the negative ones: the noise is symmetric.

    With scores in deviations, keeping a score costs its noise and dropping it costs its signal; the negatives show
    how much of the positives is noise. Returns the t ≥ 0 that minimises Σ_{0<q≤t}(q²−1) + Σ_{−t≤q<0}(1−2q²), among
    those where the scores within t of zero sum to nothing, up to 2.5 deviations: many small true totals cost little
    one by one, but a range that holds them all would miss their sum.
    """
    if scores.size < 16:
        return 0.0
    order = quicksorted(np.abs(scores))
    running = 0.0
    lowest = 0.0
    cut = 0.0
    total = 0.0
    squares = 0.0
    for j in order:
        q = scores[j]
        running += q * q - 1.0 if q > 0.0 else 1.0 - 2.0 * q * q
        total += q
        squares += q * q
        if running < lowest and total <= 2.5 * math.sqrt(squares):
            lowest = running
            cut = abs(q)
    return cut


@kernel_with_twin(plain.level_cuts, cost=2.0)
def level_cuts(
    parent: IntArray, whole: BoolArray, level: IntArray, best: FloatArray, variance: FloatArray
) -> FloatArray:
    """A mirror threshold for the boxes of every level whose parents are split and hold something, handed to them."""
    cut = np.zeros(best.size)
    for this in range(1, level.max() + 1):
        scores = np.empty(best.size)
        count = 0
        for i in range(1, best.size):
            if level[i] == this and not whole[parent[i]] and best[parent[i]] > 0.0:
                scores[count] = best[i] / math.sqrt(variance[i])
                count += 1
        threshold = mirror_threshold(scores[:count])
        for i in range(1, best.size):
            if level[i] == this:
                cut[parent[i]] = threshold
    return cut
