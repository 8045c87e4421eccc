"""Passes over a tree of measured totals: least squares up and down, a hand-down that stays above zero, and its cells.

A tree is a flat list of nodes, node 0 its only root, parents before their children and siblings side by side:
``first[i]`` is the first child of node i (−1 for a leaf), ``last[i]`` one past its last; ``size[i]`` counts its cells.
Every node stands for the sum of its children and may carry a noisy total of known variance (infinite when it was not
measured). The same arrays describe lines, hierarchies and boxes in any dimension.

Families of one level and one width are rows of a matrix.

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def row_sums(rows: FloatArray) -> FloatArray:
    """Sums along rows, one number after the other, however many there are."""
    return np.asarray(np.cumsum(rows, axis=1)[:, -1], dtype=np.float64)


def families(nodes: IntArray, first: IntArray, last: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Nodes with children, by how many they have; and these children, a row for each."""
    nodes = nodes[first[nodes] >= 0]
    width = last[nodes] - first[nodes]
    # As np.unique gives them, which would load masked arrays.
    for count in np.flatnonzero(np.bincount(width)):
        mine = nodes[width == count]
        yield mine, first[mine][:, None] + np.arange(count)


def levels(first: IntArray, last: IntArray) -> list[IntArray]:
    """The nodes of every level, from the root down."""
    found = [np.zeros(1, dtype=np.int64)]
    while True:
        nodes = found[-1][first[found[-1]] >= 0]
        if not nodes.size:
            return found
        count = last[nodes] - first[nodes]
        ends = np.cumsum(count)
        found.append(np.arange(int(ends[-1])) + np.repeat(first[nodes] - (ends - count), count))


def side_by_side(parent: IntArray) -> tuple[bool, IntArray, IntArray]:
    """Whether node 0 is the only root, parents come first and siblings stand side by side; the families, if so."""
    nodes = len(parent)
    first, last = np.full(nodes, -1, np.int64), np.zeros(nodes, np.int64)
    rest = np.asarray(parent[1:])
    if ((rest < 0) | (rest >= np.arange(1, nodes))).any():
        return False, first, last
    heads = np.flatnonzero(np.concatenate([[True], rest[1:] != rest[:-1]])) if rest.size else rest
    if np.bincount(rest[heads], minlength=1).max() > 1:
        return False, first, last
    first[rest[heads]] = heads + 1
    last[rest[heads]] = np.append(heads[1:], rest.size) + 1
    return bool(parent[0] < 0), first, last


def breadth_first(parent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Put a tree into this order: which node comes where, and the first and last child of each, renumbered.

    ``parent[i] < i``, −1 for the one root; siblings keep their order.
    """
    nodes = len(parent)
    members = np.argsort(parent[1:], kind="stable") + 1
    count = np.bincount(parent[1:], minlength=nodes)
    starts = np.cumsum(count) - count
    found = [np.zeros(1, dtype=np.int64)]
    while True:
        level = found[-1]
        ends = np.cumsum(count[level])
        if not ends[-1]:
            break
        place = np.arange(int(ends[-1])) + np.repeat(starts[level] - (ends - count[level]), count[level])
        found.append(members[place])
    order = np.concatenate(found)
    ends = 1 + np.cumsum(count[order])
    some = count[order] > 0
    return order, np.where(some, ends - count[order], -1), np.where(some, ends, 0)


def gather_up(
    first: IntArray, last: IntArray, value: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Best linear unbiased total of every node from what was measured at it and below, and its variance.

    Subtrees share no noise, so a parent's is the inverse-variance mean of its own measurement and the sum of its
    children. The variance is infinite where neither is known.
    """
    known = variance < np.inf
    z, V = np.where(known, value, 0.0), np.where(known, variance, np.inf)
    with np.errstate(all="ignore"):
        for level in reversed(levels(first, last)):
            for i, c in families(level, first, last):
                total, spread, own = row_sums(z[c]), row_sums(V[c]), variance[i]
                mix = own / (own + spread)
                plain = (own == np.inf) | (spread == 0.0)
                best = np.where(plain, total, value[i] + mix * (total - value[i]))
                left = np.where(plain, spread, mix * spread)
                below = spread < np.inf
                z[i], V[i] = np.where(below, best, z[i]), np.where(below, left, V[i])
    return z, V


def hand_down(
    first: IntArray,
    last: IntArray,
    size: FloatArray,
    z: FloatArray,
    V: FloatArray,
    floor: bool,
    even: BoolArray,
) -> FloatArray:
    """Settle the root's total, then every family's given its parent's, so that children sum to their parent.

    Without ``floor`` this is the second pass of weighted least squares. With it no total is negative: each family is
    projected onto {≥ 0, sum = parent's}. Doing that from the top down keeps large totals unbiased, where cutting the
    leaves at zero, or one joint non-negative fit, would push every long sum upward. The total of an ``even`` node is
    spread evenly over its children.
    """
    total = np.zeros(z.size)
    total[0] = max(float(z[0]), 0.0) if floor else z[0]
    with np.errstate(all="ignore"):
        for level in levels(first, last):
            for i, c in families(level, first, last):
                if not floor:
                    total[c] = _settled(z[c], V[c], total[i])
                    continue
                some = total[i] > 0.0
                flat = some & even[i]
                total[c[flat]] = total[i[flat], None] * size[c[flat]] / size[i[flat], None]
                i, c = i[some & ~flat], c[some & ~flat]
                total[c] = projected(z[c], V[c], total[i])
    return total


def _settled(z: FloatArray, V: FloatArray, total: FloatArray) -> FloatArray:
    """Hand families what their parents have beyond their own sums, each member in proportion to its variance.

    Members that nobody measured share it evenly, and so do members known exactly.
    """
    gap = np.cumsum(np.concatenate([total[:, None], -z], axis=1), axis=1)[:, -1:]
    spread = row_sums(V)[:, None]
    unknown = np.isposinf(V)
    missing = unknown.sum(axis=1)[:, None]
    share = np.where(spread > 0.0, gap * (V / spread), gap / z.shape[1])
    return z + np.where(missing > 0, np.where(unknown, gap / missing, 0.0), share)


@np.errstate(all="ignore")
def projected(z: FloatArray, V: FloatArray, total: FloatArray) -> FloatArray:
    """Nearest values to z that are ≥ 0 and sum to ``total``, distances weighted by 1/V.

    The answer is max(0, z + θV) for one θ. Starting with everybody, members that the current θ sends below zero are
    dropped for good: dropping a negative member only lowers θ, so it could never come back. Members that nobody
    measured get nothing once the measured ones already exceed the total.
    """
    out = np.zeros(z.shape)
    unknown = np.isposinf(V)
    missing = unknown.sum(axis=1)
    settled = row_sums(np.where(unknown, 0.0, np.maximum(0.0, z)))
    room = (missing > 0) & (settled <= total)
    rest = ((total - settled) / missing)[:, None]
    out[room] = np.where(unknown, rest, np.maximum(0.0, z))[room]
    keep = ~unknown
    going = np.flatnonzero(~room)
    while going.size:
        k, zs, Vs = keep[going], z[going], V[going]
        alive = k.sum(axis=1)
        sum_V = row_sums(np.where(k, Vs, 0.0))
        exact = sum_V == 0.0
        theta = (total[going] - row_sums(np.where(k, zs, 0.0))) / np.where(exact, alive, sum_V)
        moved = zs + theta[:, None] * np.where(exact[:, None], 1.0, Vs)
        below = k & (moved <= 0.0)
        # The last one of a family stays: of those that would all go, it is the last in order.
        emptied = np.flatnonzero(below.sum(axis=1) >= alive)
        below[emptied, k.shape[1] - 1 - np.argmax(k[emptied, ::-1], axis=1)] = False
        keep[going] = k & ~below
        done = ~below.any(axis=1)
        out[going[done]] = np.where(k, np.maximum(0.0, moved), 0.0)[done]
        going = going[~done]
    return out


def painted(
    boxes: IntArray, low: NDArray[Any], high: NDArray[Any], values: NDArray[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Cells of this shape, flat: ``values[b]`` in every cell of box b, for those in ``boxes``; 0 elsewhere."""
    out = np.zeros(math.prod(shape), dtype=values.dtype)
    # Rows of a box one after the other, for all boxes at once: first their number, then where each begins.
    sides = (high[boxes] - low[boxes]).astype(np.int64)
    rows = np.prod(sides[:, :-1], axis=1)
    box = np.repeat(np.arange(boxes.size), rows)
    left = np.arange(box.size) - np.repeat(np.cumsum(rows) - rows, rows)
    begin = low[boxes, -1][box].astype(np.int64)
    stride = shape[-1]
    for axis in range(len(shape) - 2, -1, -1):
        left, place = np.divmod(left, sides[box, axis])
        begin += (low[boxes, axis][box] + place) * stride
        stride *= shape[axis]
    length = sides[box, -1]
    ends = np.cumsum(length)
    cells = np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(begin - (ends - length), length)
    out[cells] = np.repeat(values[boxes][box], length)
    return out
