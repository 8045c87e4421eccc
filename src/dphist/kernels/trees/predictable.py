"""Weights on a growing tree's measurements that were settled before their noise was drawn.

Trees are flat lists as in `dphist.kernels.trees.passes`. ``trust[i]`` is how much of what is still to be known of node
i its own measurement is given; the rest is left to what will be measured below it, or of it again. It may depend on
anything that was known before that measurement, and on nothing else.

What noise is made of is a row for each sum: Σ u², Σ u⁴ and the largest |u| over its draws, u their coefficient times
their scale; and Σ |y| over nodes that could be asked for again after they were looked at
(`dphist.inference.guaranteed`, finer answers). ``part[i]`` is the noise scale of that finer answer, as a part of the
first look's; zero where there was no such choice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@kernel
def whole_nodes(
    first: IntArray,
    last: IntArray,
    pool: BoolArray,
    value: FloatArray,
    scale: FloatArray,
    seen: FloatArray,
    seen_scale: FloatArray,
    part: FloatArray,
    trust: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Estimate every node's total with such weights, children before parents; and what its noise is made of.

    ``scale`` is infinite where a node was not measured, ``seen_scale`` where it was not measured twice. A leaf's last
    measurement takes all that is left, whatever it is.
    """
    nodes = len(first)
    total, made = np.zeros(nodes), np.zeros((nodes, 4))
    for i in range(nodes - 1, -1, -1):
        if first[i] < 0:
            if np.isfinite(seen_scale[i]):
                k = trust[i]
                total[i] = k * seen[i] + (1.0 - k) * value[i]
                _draw(made, i, k * seen_scale[i])
                _draw_again(made, i, 1.0 - k, scale[i], k, seen_scale[i], part[i])
            else:
                total[i] = value[i]
                _draw(made, i, scale[i])
            continue
        # The blocks of a pool were measured first, then all of them together; elsewhere the node came first.
        own = (1.0 - trust[first[i]]) if pool[i] else (trust[i] if np.isfinite(scale[i]) else 0.0)
        below = 1.0 - own
        if own > 0.0:
            total[i] = own * value[i]
            _draw(made, i, own * scale[i])
            if not pool[i]:
                _choice(made, i, below, own, scale[i], part[i])
        for child in range(first[i], last[i]):
            total[i] += below * total[child]
            square = below * below
            made[i, 0] += square * made[child, 0]
            made[i, 1] += square * square * made[child, 1]
            made[i, 2] = max(made[i, 2], below * made[child, 2])
            made[i, 3] += below * made[child, 3]
            if pool[i]:
                _choice(made, i, own, below, scale[child], part[child])
    return total, made


@kernel
def cut_boxes(
    first: IntArray,
    last: IntArray,
    pool: BoolArray,
    low: IntArray,
    high: IntArray,
    size: FloatArray,
    value: FloatArray,
    scale: FloatArray,
    seen: FloatArray,
    seen_scale: FloatArray,
    part: FloatArray,
    trust: FloatArray,
    total: FloatArray,
    made: FloatArray,
    asked_low: IntArray,
    asked_high: IntArray,
    far: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For every box: estimates of no more and of no less than it holds, what their noise is made of, and what to add.

    First (boxes, 2) and second (boxes, 2, 4): a block that was not divided counts as outside the box in the first
    estimate and as inside in the second. Third (boxes, 2): what is to be taken off the first and put on the second for
    blocks of pools that the box cuts, if none of them holds more than what was first seen of it and ``far`` times its
    scale; an infinite ``far`` has the pool's total stand for them. Which of both is chosen before the pool's total is
    known. Walks down the nodes that the box cuts. ``off`` is what measurements above have already been weighed with;
    what a node still lacks is the share of it that is asked for, less that.
    """
    boxes, axes = asked_low.shape
    out, noise, beyond = np.zeros((boxes, 2)), np.zeros((boxes, 2, 4)), np.zeros((boxes, 2))
    stack, weighed = np.empty(len(first), np.int64), np.empty(len(first))
    few = np.isfinite(far)
    for q in range(boxes):
        top = 1
        stack[0], weighed[0] = 0, 0.0
        while top > 0:
            top -= 1
            i, off = stack[top], weighed[top]
            inside = _share(i, first, last, pool, low, high, size, asked_low, asked_high, q, axes)
            lack = inside - off
            if inside <= 0.0 or inside >= 1.0:
                square = lack * lack
                for side in range(2):
                    out[q, side] += lack * total[i]
                    noise[q, side, 0] += square * made[i, 0]
                    noise[q, side, 1] += square * square * made[i, 1]
                    noise[q, side, 2] = max(noise[q, side, 2], abs(lack) * made[i, 2])
                    noise[q, side, 3] += abs(lack) * made[i, 3]
                continue
            if pool[i]:
                # What each block still lacks, over all and over those that are not cut, on either side; and what the
                # blocks were seen to hold.
                held = 0.0
                most, least, most_whole, least_whole = -2.0, 2.0, -2.0, 2.0
                for block in range(first[i], last[i]):
                    here = _share(block, first, last, pool, low, high, size, asked_low, asked_high, q, axes)
                    weight = trust[block] * (here - off)
                    for side in range(2):
                        out[q, side] += weight * value[block]
                        _draw(noise[q], side, weight * scale[block])
                        _choice(noise[q], side, side - off - weight, weight, scale[block], part[block])
                    held += value[block]
                    most = max(most, (1.0 if here > 0.0 else 0.0) - off - weight)
                    least = min(least, (1.0 if here >= 1.0 else 0.0) - off - weight)
                    if here <= 0.0 or here >= 1.0:
                        lacks = (1.0 if here >= 1.0 else 0.0) - off - weight
                        most_whole, least_whole = max(most_whole, lacks), min(least_whole, lacks)
                most_whole = most if most_whole < -1.5 else min(most_whole, most)
                least_whole = least if least_whole > 1.5 else max(least_whole, least)
                over, under = 0.0, 0.0
                for block in range(first[i], last[i]):
                    here = _share(block, first, last, pool, low, high, size, asked_low, asked_high, q, axes)
                    if 0.0 < here < 1.0 and few:
                        known = off + trust[block] * (here - off)
                        bound = max(value[block] + far * scale[block], 0.0)
                        over += max(1.0 - known - most_whole, 0.0) * bound
                        under += max(known + least_whole, 0.0) * bound
                if few and over < (most - most_whole) * held:
                    beyond[q, 1] += over
                    most = most_whole
                if few and under < (least_whole - least) * held:
                    beyond[q, 0] += under
                    least = least_whole
                out[q, 0] += least * value[i]
                _draw(noise[q], 0, least * scale[i])
                out[q, 1] += most * value[i]
                _draw(noise[q], 1, most * scale[i])
                continue
            if first[i] < 0:
                weight = 0.0
                if np.isfinite(seen_scale[i]):
                    weight = trust[i] * lack
                    for side in range(2):
                        out[q, side] += weight * seen[i]
                        _draw(noise[q], side, weight * seen_scale[i])
                for side in range(2):
                    # Nothing of it, or all.
                    rest = side - off - weight
                    out[q, side] += rest * value[i]
                    _draw_again(noise[q], side, rest, scale[i], weight, seen_scale[i], part[i])
                continue
            if np.isfinite(scale[i]):
                weight = trust[i] * lack
                for side in range(2):
                    out[q, side] += weight * value[i]
                    _draw(noise[q], side, weight * scale[i])
                    _choice(noise[q], side, side - off - weight, weight, scale[i], part[i])
                off += weight
            for child in range(first[i], last[i]):
                stack[top], weighed[top] = child, off
                top += 1
    return out, noise, beyond


@kernel
def _draw(made: FloatArray, place: int, reach: float) -> None:
    """Count one more draw of this coefficient times scale."""
    square = reach * reach
    made[place, 0] += square
    made[place, 1] += square * square
    made[place, 2] = max(made[place, 2], abs(reach))


@kernel
def _choice(made: FloatArray, place: int, weight: float, looked: float, scale: float, part: float) -> float:
    """Count the choice to ask again with ``weight`` for what was looked at with another; gives y."""
    if part <= 0.0 or not np.isfinite(scale):
        return 0.0
    y = abs(weight) * scale * part / (1.0 - part * part)
    reach = abs(looked) * scale
    made[place, 2] = max(made[place, 2], reach + y * part, y + reach * part)
    made[place, 3] += y
    return y


@kernel
def _draw_again(
    made: FloatArray, place: int, weight: float, scale: float, looked: float, first: float, part: float
) -> None:
    """Count a leaf's last draw, of a scale of its own or what a finer answer says beyond the first look at it."""
    if part <= 0.0:
        _draw(made, place, weight * scale)
        return
    y = _choice(made, place, weight, looked, first, part)
    square = y * y
    made[place, 0] += weight * weight * scale * scale
    made[place, 1] += square * square


@kernel
def _share(
    i: int,
    first: IntArray,
    last: IntArray,
    pool: BoolArray,
    low: IntArray,
    high: IntArray,
    size: FloatArray,
    asked_low: IntArray,
    asked_high: IntArray,
    q: int,
    axes: int,
) -> float:
    """Which share of a node's cells a box holds; a pool is its blocks, whatever its bounds reach around."""
    if pool[i]:
        inside = 0.0
        for block in range(first[i], last[i]):
            cells = 1.0
            for axis in range(axes):
                cells *= max(
                    0, min(high[block, axis], asked_high[q, axis]) - max(low[block, axis], asked_low[q, axis])
                )
            inside += cells
        return float(inside / size[i])
    cells = 1.0
    for axis in range(axes):
        cells *= max(0, min(high[i, axis], asked_high[q, axis]) - max(low[i, axis], asked_low[q, axis]))
    return float(cells / size[i])
