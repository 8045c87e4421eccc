"""From level to level along the cells: forward–backward passes of the hidden level model.

From one cell to the next the level stays, takes a small step, a larger step (two-sided geometric kernels on the
level's index), or jumps to a draw from π. The geometric kernels are two running sums, so one cell costs O(levels)
and not O(levels²).

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import foresee, kernel_with_twin
from dphist.kernels.levels import twins

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Ratio of the two-sided geometric kernels: a small step stays within a level or two, a large one within ten.
SMALL_STEP = 0.5
LARGE_STEP = 0.9


def possible(table: FloatArray) -> IntArray:
    """For each row of the table the levels that are possible at all, as [from, to): the last one if none is."""
    seen = table != 0.0
    seen[:, -1] |= ~seen.any(axis=1)
    return np.stack([seen.argmax(axis=1), table.shape[1] - seen[:, ::-1].argmax(axis=1)], axis=1)


@kernel_with_twin(twins.stretch, cost=twins.stretch_cost)
def _stretch(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    forward: FloatArray,
    starts: FloatArray,
    moves: FloatArray,
    first: FloatArray,
    second: FloatArray,
    mean: FloatArray,
    within: FloatArray,
    between: FloatArray,
) -> float:
    """Forward–backward over one stretch; adds to ``starts`` and ``moves``, fills whatever else has room.

    Without room for moves it is only looked how likely the values are: there is no way back.

    Each two-sided geometric kernel is one running sum up the levels and one down. Each sum waits for its last step, so
    all four are taken side by side in one loop; what does not wait stands in loops of its own, which are vectorised.
    Sums go over levels from the lowest to the highest that is possible in a cell or the one before it, all else over
    those of one of the two: outside of them likelihoods are zero. Levels are numbered by unsigned integers: of signed
    ones machine code asks at every look if they count from the end, a fifth of the time.
    """
    n = rows.size
    one = np.uint64(1)
    levels = jump.size
    up_small = np.zeros(levels)
    up_large = np.zeros(levels)
    down_small = np.zeros(levels)
    down_large = np.zeros(levels)
    v = np.zeros(levels)
    evidence = 0.0
    r, g = SMALL_STEP, LARGE_STEP
    w0, w3 = weights[0], weights[3]
    w1 = weights[1] * (1.0 - r) / (1.0 + r)
    w2 = weights[2] * (1.0 - g) / (1.0 + g)
    jumped = np.empty(levels)
    for k in range(levels):
        jumped[k] = w3 * jump[k]
    for i in range(n):
        a = forward[i]
        b = table[rows[i]]
        total = 0.0
        low, high = np.uint64(spans[rows[i], 0]), np.uint64(spans[rows[i], 1])
        if i == 0:
            for k in range(low, high):
                a[k] = b[k] * jump[k]
                total += a[k]
        else:
            q = forward[i - 1]
            bottom = min(low, np.uint64(spans[rows[i - 1], 0]))
            top = max(high, np.uint64(spans[rows[i - 1], 1]))
            s, t, s_down, t_down = 0.0, 0.0, 0.0, 0.0
            for step in range(top - bottom):
                up, down = bottom + step, top - one - step
                s = s * r + q[up]
                t = t * g + q[up]
                up_small[up] = s
                up_large[up] = t
                s_down *= r
                t_down *= g
                down_small[down] = s_down
                down_large[down] = t_down
                s_down += q[down]
                t_down += q[down]
            for k in range(low, high):
                stay = w0 * q[k] + w1 * up_small[k] + w2 * up_large[k] + jumped[k]
                a[k] = b[k] * (stay + w1 * down_small[k] + w2 * down_large[k])
            for step in range(high - low):
                total += a[high - one - step]
        evidence += math.log(total)
        total = 1.0 / total
        # Spelled out, as in `likelihood`: assigning a slice takes long to compile.
        for k in range(low):
            a[k] = 0.0
        for k in range(low, high):
            a[k] *= total
        for k in range(high, np.uint64(levels)):
            a[k] = 0.0
    if moves.size == 0:
        return evidence
    back = np.ones(levels)
    for i in range(n - 1, -1, -1):
        a = forward[i]
        b = table[rows[i]]
        low, high = np.uint64(spans[rows[i], 0]), np.uint64(spans[rows[i], 1])
        if mean.size > 0:
            total = 0.0
            m = 0.0
            m2 = 0.0
            m3 = 0.0
            e1 = first[rows[i]]
            e2 = second[rows[i]]
            for k in range(low, high):
                p = a[k] * back[k]
                total += p
                m += p * e1[k]
                m2 += p * e2[k]
                m3 += p * e1[k] * e1[k]
            mean[i] = m / total
            within[i] = m2 / total
            between[i] = max(m3 / total - mean[i] * mean[i], 0.0)
        if i == 0:
            if starts.size > 0:
                total = 0.0
                for k in range(low, high):
                    total += a[k] * back[k]
                for k in range(low, high):
                    starts[k] += a[k] * back[k] / total
            break
        q = forward[i - 1]
        first_before, end_before = np.uint64(spans[rows[i - 1], 0]), np.uint64(spans[rows[i - 1], 1])
        bottom, top = min(low, first_before), max(high, end_before)
        for k in range(bottom, top):
            v[k] = b[k] * back[k]
        s, t, s_down, t_down = 0.0, 0.0, 0.0, 0.0
        c0 = 0.0
        c3 = 0.0
        for step in range(top - bottom):
            up, down = bottom + step, top - one - step
            x = v[up]
            s = s * r + x
            t = t * g + x
            up_small[up] = s
            up_large[up] = t
            c0 += q[up] * x
            c3 += jump[up] * x
            s_down *= r
            t_down *= g
            down_small[down] = s_down
            down_large[down] = t_down
            s_down += v[down]
            t_down += v[down]
        for k in range(first_before, end_before):
            up_small[k] += down_small[k]
            up_large[k] += down_large[k]
        c1 = 0.0
        c2 = 0.0
        for step in range(end_before - first_before):
            down = end_before - one - step
            c1 += q[down] * up_small[down]
            c2 += q[down] * up_large[down]
        f = 1.0 / (w0 * c0 + w1 * c1 + w2 * c2 + w3 * c3)
        moves[0] += w0 * c0 * f
        moves[1] += w1 * c1 * f
        moves[2] += w2 * c2 * f
        moves[3] += w3 * c3 * f
        j = w3 * f
        c3 *= w3
        for k in range(first_before, end_before):
            back[k] = (w0 * v[k] + w1 * up_small[k] + w2 * up_large[k] + c3) * f
        if starts.size > 0:
            for k in range(low, high):
                starts[k] += j * jump[k] * v[k]
    return evidence


def foresee_passes(cells: int, levels: int, passes: int) -> None:
    """Say how many passes over how many cells are to come, so that many are not begun by what is slow."""
    foresee(_stretch, passes * twins.passes_cost(cells, levels))


def expect(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    stretches: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    forward: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:
    """One expectation step: evidence, expected jumps into each level, expected moves of each kind.

    ``spans`` are the levels that are `possible` by each row of the table. ``stretches`` holds [start, stop) pairs of
    cells; each stretch starts with a fresh draw from ``jump``.
    """
    starts, moves = np.zeros(jump.size), np.zeros(4)
    return _passed(table, spans, rows, stretches, jump, weights, forward, starts, moves), starts, moves


def evidence_of(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    stretches: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    forward: FloatArray,
) -> float:
    """How likely the values are, as `expect` says it, in less than half the time."""
    return _passed(table, spans, rows, stretches, jump, weights, forward, np.empty(0), np.empty(0))


def _passed(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    stretches: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    forward: FloatArray,
    starts: FloatArray,
    moves: FloatArray,
) -> float:
    """Go over all stretches without reading off cells: their evidence; adds to ``starts`` and ``moves``."""
    none, empty = np.empty(0), np.empty((0, 0))
    evidence = 0.0
    for begin, end in stretches.tolist():
        part = rows[begin:end]
        evidence += _stretch(
            table, spans, part, jump, weights, forward, starts, moves, empty, empty, none, none, none
        )
    return evidence


def infer(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    stretches: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    first: FloatArray,
    second: FloatArray,
    forward: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior mean of every cell's count, and its variance in two parts.

    The first part is what stays unknown of the count when its level is known: independent from cell to cell. The
    second is what the level adds: neighbours that share a level share it.
    """
    mean = np.empty(rows.size)
    within = np.empty(rows.size)
    between = np.empty(rows.size)
    # Nobody learns from this pass.
    starts = np.empty(0)
    moves = np.zeros(4)
    for lo, hi in stretches.tolist():
        _stretch(
            table,
            spans,
            rows[lo:hi],
            jump,
            weights,
            forward,
            starts,
            moves,
            first,
            second,
            mean[lo:hi],
            within[lo:hi],
            between[lo:hi],
        )
    return mean, within, between
