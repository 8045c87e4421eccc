"""From level to level along the cells: forward–backward passes of the hidden level model.

From one cell to the next the level stays, takes a small step, a larger step, or jumps to a draw from π; how often it
stays, steps or jumps depends on the level that is left. Where a step reaches, any level is as likely as another: what
steps bring is a difference of running sums, so one cell costs O(levels) and not O(levels²), and all but the sums
themselves is worked out for several levels at once. Running sums of what is not negative never fall, so no difference
is below zero; what rounding takes from one is far below what jumps bring.

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How many levels below and above a step reaches, and the share of steps that reach so far: anywhere in reach is as
# likely. Small steps stay within a level or three, large ones within thirty. (Here, since machine code that is kept is
# made anew when its own file changes.)
SMALL_STEPS = ((0, 0.1875), (1, 0.375), (3, 0.4375))
LARGE_STEPS = ((6, 0.29), (14, 0.39), (28, 0.32))
# What running sums have room for beyond the lowest and the highest level. Unsigned, as levels are: of signed numbers
# machine code asks at every look if they count from the end.
_EDGE = np.uint64(LARGE_STEPS[-1][0] + 1)
# For each step: how likely each level in its reach is, where running sums end that it takes, and where they begin.
_SHARES = tuple(part / (2 * reach + 1) for reach, part in SMALL_STEPS + LARGE_STEPS)
_ENDS = tuple(_EDGE + np.uint64(reach) for reach, _ in SMALL_STEPS + LARGE_STEPS)
_BEGINS = tuple(_EDGE - np.uint64(reach + 1) for reach, _ in SMALL_STEPS + LARGE_STEPS)


@kernel
def _summed(values: FloatArray, size: np.uint64, sums: FloatArray, at: np.uint64) -> float:
    """Running sums of ``size`` values into ``sums`` from ``at`` on; gives their total."""
    total = 0.0
    for k in range(size):
        total += values[k]
        sums[at + k] = total
    return total


@kernel
def _product(left: FloatArray, low: np.uint64, right: FloatArray, size: np.uint64) -> float:
    """The sum of products of ``left`` from ``low`` on with as many of ``right``."""
    total = 0.0
    for k in range(size):
        total += left[low + k] * right[k]
    return total


@kernel
def _extended(
    sums: FloatArray, low: np.uint64, high: np.uint64, to_low: np.uint64, to_high: np.uint64, total: float
) -> None:
    """Go on with running sums over [low, high) as far as steps to levels in [to_low, to_high) reach."""
    for at in range(to_low, low + _EDGE):
        sums[at] = 0.0
    for at in range(high + _EDGE, to_high + _EDGE + _EDGE):
        sums[at] = total


@kernel
def _cleared(
    own: FloatArray, was_low: np.uint64, was_high: np.uint64, low: np.uint64, high: np.uint64
) -> None:
    """Nothing is left on levels of [was_low, was_high) that are not in [low, high)."""
    for at in range(was_low, min(was_high, low)):
        own[at] = 0.0
    for at in range(max(was_low, high), was_high):
        own[at] = 0.0


@kernel
def _reached(sums: FloatArray, at: np.uint64, steps: Any) -> tuple[float, float]:
    """What reaches a level by small steps, and by large ones: of running sums, differences over each step's width."""
    near = steps[1] * (sums[at + _ENDS[1]] - sums[at + _BEGINS[1]]) + steps[2] * (
        sums[at + _ENDS[2]] - sums[at + _BEGINS[2]]
    )
    far = (
        steps[3] * (sums[at + _ENDS[3]] - sums[at + _BEGINS[3]])
        + steps[4] * (sums[at + _ENDS[4]] - sums[at + _BEGINS[4]])
        + steps[5] * (sums[at + _ENDS[5]] - sums[at + _BEGINS[5]])
    )
    return near, far


@kernel
def _stretch(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    small: float,
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

    ``weights`` has a row for staying, steps and jumps and a column for the level that is left; ``small`` is how many of
    the steps are. ``moves`` has rows for staying, small steps, large ones and jumps.

    On the way back a cell is scaled by what it was scaled by on the way there, so that forward times backward adds up
    to one in every cell; moves then add up level by level.
    """
    n = rows.size
    levels = jump.size
    u, large = _SHARES, 1.0 - small
    steps = (small * u[0], small * u[1], small * u[2], large * u[3], large * u[4], large * u[5])
    stay, step, leave = weights[0], weights[1], weights[2]
    # A step that reaches nowhere stays, too.
    keep = np.empty(levels)
    for k in range(levels):
        keep[k] = stay[k] + step[k] * steps[0]
    c = np.empty(levels + 2 * int(_EDGE))
    scales = np.empty(n)
    own, v, ones = np.zeros(levels), np.empty(levels), np.ones(levels)
    evidence = 0.0
    was_low, was_high = np.uint64(0), np.uint64(0)
    stepping, jumping = 0.0, 0.0
    place = np.uint64(0)
    for i in range(n):
        low, high = np.uint64(spans[rows[i], 0]), np.uint64(spans[rows[i], 1])
        size = high - low
        begin = np.uint64(spans[rows[i], 2])
        a = forward[place : place + size]
        b = table[begin : begin + size]
        if i == 0:
            for k in range(size):
                a[k] = b[k] * jump[low + k]
        else:
            scale = scales[i - 1]
            _extended(c, was_low, was_high, low, high, stepping)
            for k in range(size):
                at = low + k
                near, far = _reached(c, at, steps)
                a[k] = b[k] * ((own[at] + (near + far) + jumping * jump[at]) * scale)
        _cleared(own, was_low, was_high, low, high)
        for k in range(size):
            own[low + k] = keep[low + k] * a[k]
            v[k] = step[low + k] * a[k]
        total = _product(ones, low, a, size)
        jumping = _product(leave, low, a, size)
        stepping = _summed(v, size, c, low + _EDGE)
        evidence += math.log(total)
        scales[i] = 1.0 / total
        was_low, was_high = low, high
        place += size
    back = np.ones(levels)
    jumps, stays, nears = np.zeros(levels), np.zeros(levels), np.zeros(levels)
    fars, leaves = np.zeros(levels), np.zeros(levels)
    place -= was_high - was_low
    for i in range(n - 1, -1, -1):
        low, high = np.uint64(spans[rows[i], 0]), np.uint64(spans[rows[i], 1])
        size = high - low
        scale = scales[i]
        if mean.size > 0:
            a = forward[place : place + size]
            total = 0.0
            m = 0.0
            m2 = 0.0
            m3 = 0.0
            g1 = first[rows[i]]
            g2 = second[rows[i]]
            for k in range(size):
                at = low + k
                p = a[k] * back[at]
                total += p
                m += p * g1[at]
                m2 += p * g2[at]
                m3 += p * g1[at] * g1[at]
            mean[i] = m / total
            within[i] = m2 / total
            between[i] = max(m3 / total - mean[i] * mean[i], 0.0)
        if i == 0:
            for k in range(size):
                starts[low + k] += forward[k] * back[low + k] * scale
            break
        begin = np.uint64(spans[rows[i], 2])
        b = table[begin : begin + size]
        scale_before = scales[i - 1]
        to_low, to_high = np.uint64(spans[rows[i - 1], 0]), np.uint64(spans[rows[i - 1], 1])
        to_size = to_high - to_low
        place -= to_size
        q = forward[place : place + to_size]
        jumped = _product(leave, to_low, q, to_size) * scale_before
        _cleared(own, was_low, was_high, low, high)
        v = own[low:high]
        for k in range(size):
            v[k] = b[k] * back[low + k] * scale
            jumps[low + k] += jumped * v[k]
        total = _summed(v, size, c, low + _EDGE)
        jumping = _product(jump, low, v, size)
        _extended(c, low, high, to_low, to_high, total)
        for k in range(to_size):
            at = to_low + k
            near, far = _reached(c, at, steps)
            back[at] = keep[at] * own[at] + step[at] * (near + far) + leave[at] * jumping
            here = q[k] * scale_before
            stays[at] += here * own[at]
            nears[at] += here * near
            fars[at] += here * far
            leaves[at] += here * jumping
        was_low, was_high = low, high
    for k in range(levels):
        moves[0, k] += stay[k] * stays[k]
        moves[1, k] += step[k] * (nears[k] + steps[0] * stays[k])
        moves[2, k] += step[k] * fars[k]
        moves[3, k] += leave[k] * leaves[k]
    for k in range(levels):
        starts[k] += jump[k] * jumps[k]
    return evidence


def expect(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    stretches: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    small: float,
    forward: FloatArray,
) -> tuple[float, FloatArray, FloatArray]:
    """One expectation step: evidence, expected jumps into each level, expected moves of each kind from each level.

    ``weights`` says how likely staying, steps and jumps are from each level, ``small`` how many of the steps are.
    ``table`` and ``spans`` are as `dphist.kernels.levels.fit` packs them. ``forward`` is room for as
    many numbers as the longest stretch has cells, times levels. ``stretches`` holds [start, stop) pairs of cells; each
    starts with a draw from ``jump``.
    """
    starts, moves = np.zeros(jump.size), np.zeros((4, jump.size))
    none, empty = np.empty(0), np.empty((0, 0))
    evidence = 0.0
    for begin, end in stretches.tolist():
        evidence += _stretch(
            *(table, spans, rows[begin:end], jump, weights, small, forward, starts, moves),
            *(empty, empty, none, none, none),
        )
    return evidence, starts, moves


def infer(
    table: FloatArray,
    spans: IntArray,
    rows: IntArray,
    jump: FloatArray,
    weights: FloatArray,
    small: float,
    first: FloatArray,
    second: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Posterior mean of every cell's count, and its variance in two parts.

    The first part is what stays unknown of the count when its level is known: independent from cell to cell. The
    second is what the level adds: neighbours that share a level share it.
    """
    mean, within, between = np.empty(rows.size), np.empty(rows.size), np.empty(rows.size)
    # Nobody learns from this pass.
    room, moves = np.empty(rows.size * jump.size), np.zeros((4, jump.size))
    _stretch(
        *(table, spans, rows, jump, weights, small, room, np.zeros(jump.size), moves),
        *(first, second, mean, within, between),
    )
    return mean, within, between
