"""Weights on a growing tree's measurements that were settled before their noise was drawn.

Trees are flat lists as in `dphist.kernels.trees.passes`. ``trust[i]`` is how much of what is still to be known of node
i its own measurement is given; the rest is left to what will be measured below it, or of it again. It may depend on
anything that was known before that measurement, and on nothing else.
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
    trust: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Estimate every node's total with such weights, children before parents; and what its noise is made of.

    That is Σ u², Σ u⁴ and the largest |u| over its draws, u their coefficient times their scale. ``scale`` is infinite
    where a node was not measured, ``seen_scale`` where it was not measured twice. A leaf's last measurement takes all
    that is left, whatever it is.
    """
    nodes = len(first)
    total, made = np.zeros(nodes), np.zeros((nodes, 3))
    for i in range(nodes - 1, -1, -1):
        if first[i] < 0:
            if np.isfinite(seen_scale[i]):
                k = trust[i]
                total[i] = k * seen[i] + (1.0 - k) * value[i]
                _draw(made, i, k * seen_scale[i])
                _draw(made, i, (1.0 - k) * scale[i])
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
        for child in range(first[i], last[i]):
            total[i] += below * total[child]
            made[i, 0] += below**2 * made[child, 0]
            made[i, 1] += below**4 * made[child, 1]
            made[i, 2] = max(made[i, 2], below * made[child, 2])
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
    trust: FloatArray,
    total: FloatArray,
    made: FloatArray,
    asked_low: IntArray,
    asked_high: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For every box: estimates, what their noise is made of, and the same of what blocks that are cut may hide.

    Estimates are (boxes, 3): the answer, what may be missing from it, and what may be too much in it; what their noise
    is made of (boxes, 3, 3). Third, for boxes that cut few blocks: the blocks, with the two weights, (boxes, 2, 3);
    a block of −1 is none. Walks down the nodes that the box cuts. ``off`` is what measurements above have already been
    weighed with; what a node still lacks is the share of it that is asked for, less that.
    """
    boxes, axes = asked_low.shape
    out, noise = np.zeros((boxes, 3)), np.zeros((boxes, 3, 3))
    cuts = np.full((boxes, 2, 3), -1.0)
    stack, weighed = np.empty(len(first), np.int64), np.empty(len(first))
    for q in range(boxes):
        top, few = 1, 0
        stack[0], weighed[0] = 0, 0.0
        while top > 0:
            top -= 1
            i, off = stack[top], weighed[top]
            part = _share(i, first, last, pool, low, high, size, asked_low, asked_high, q, axes)
            lack = part - off
            if part <= 0.0 or part >= 1.0:
                out[q, 0] += lack * total[i]
                noise[q, 0, 0] += lack**2 * made[i, 0]
                noise[q, 0, 1] += lack**4 * made[i, 1]
                noise[q, 0, 2] = max(noise[q, 0, 2], abs(lack) * made[i, 2])
                continue
            if first[i] < 0 or pool[i]:
                above, under = 1.0 - part, part
                rest = lack
                if pool[i]:
                    mean = 0.0
                    for block in range(first[i], last[i]):
                        here = _share(
                            block, first, last, pool, low, high, size, asked_low, asked_high, q, axes
                        )
                        weight = trust[block] * (here - off)
                        mean += weight * size[block] / size[i]
                        out[q, 0] += weight * value[block]
                        _draw(noise[q], 0, weight * scale[block])
                    rest = lack - mean
                    # A block's records may all lie inside the box or outside it, as far as it is cut.
                    above, under = 0.0, 0.0
                    for block in range(first[i], last[i]):
                        here = _share(
                            block, first, last, pool, low, high, size, asked_low, asked_high, q, axes
                        )
                        known = off + trust[block] * (here - off) + rest
                        above = max(above, (1.0 if here > 0.0 else 0.0) - known)
                        under = max(under, known - (0.0 if here < 1.0 else 1.0))
                elif np.isfinite(seen_scale[i]):
                    weight = trust[i] * lack
                    out[q, 0] += weight * seen[i]
                    _draw(noise[q], 0, weight * seen_scale[i])
                    rest = lack - weight
                out[q, 0] += rest * value[i]
                _draw(noise[q], 0, rest * scale[i])
                out[q, 1] += above * value[i]
                _draw(noise[q], 1, above * scale[i])
                out[q, 2] += under * value[i]
                _draw(noise[q], 2, under * scale[i])
                if few < 2:
                    cuts[q, few, 0], cuts[q, few, 1], cuts[q, few, 2] = i, above, under
                few += 1
                continue
            if np.isfinite(scale[i]):
                weight = trust[i] * lack
                out[q, 0] += weight * value[i]
                _draw(noise[q], 0, weight * scale[i])
                off += weight
            for child in range(first[i], last[i]):
                stack[top], weighed[top] = child, off
                top += 1
    return out, noise, cuts


@kernel
def _draw(made: FloatArray, place: int, reach: float) -> None:
    """Count one more draw of this coefficient times scale."""
    made[place, 0] += reach**2
    made[place, 1] += reach**4
    made[place, 2] = max(made[place, 2], abs(reach))


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
