"""Passes over a tree of measured totals: least squares up and down, and a hand-down that stays above zero.

A tree is a flat list of nodes, node 0 its only root, parents before their children and siblings side by side:
``first[i]`` is the first child of node i (−1 for a leaf), ``last[i]`` one past its last; ``size[i]`` counts its cells.
Every node stands for the sum of its children and may carry a noisy total of known variance (infinite when it was not
measured). The same arrays describe lines, hierarchies and boxes in any dimension.

Everything here reads values that are already private. Arrays in, arrays out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel, kernel_with_twin
from dphist.kernels.trees import twins

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@kernel_with_twin(twins.side_by_side)
def side_by_side(parent: IntArray) -> tuple[bool, IntArray, IntArray]:
    """Whether node 0 is the only root, parents come first and siblings stand side by side; the families, if so."""
    first = np.full(len(parent), -1, np.int64)
    last = np.zeros(len(parent), np.int64)
    for i in range(1, len(parent)):
        p = parent[i]
        if p < 0 or p >= i or (first[p] >= 0 and last[p] != i):
            return False, first, last
        if first[p] < 0:
            first[p] = i
        last[p] = i + 1
    return parent[0] < 0, first, last


@kernel_with_twin(twins.breadth_first, cost=0.1)
def breadth_first(parent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Put a tree into this order: which node comes where, and the first and last child of each, renumbered.

    ``parent[i] < i``, −1 for the one root; siblings keep their order.
    """
    nodes = len(parent)
    starts = np.zeros(nodes + 1, np.int64)
    for i in range(1, nodes):
        starts[parent[i] + 1] += 1
    for i in range(nodes):
        starts[i + 1] += starts[i]
    cursor = starts[:-1].copy()
    members = np.empty(max(nodes - 1, 0), np.int64)
    for i in range(1, nodes):
        members[cursor[parent[i]]] = i
        cursor[parent[i]] += 1
    order = np.zeros(nodes, np.int64)
    first = np.full(nodes, -1, np.int64)
    last = np.zeros(nodes, np.int64)
    count = 1
    for i in range(nodes):
        node = order[i]
        if starts[node] < starts[node + 1]:
            first[i] = count
            for k in range(starts[node], starts[node + 1]):
                order[count] = members[k]
                count += 1
            last[i] = count
    return order, first, last


@kernel_with_twin(twins.gather_up, cost=0.2)
def gather_up(
    first: IntArray, last: IntArray, value: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Best linear unbiased total of every node from what was measured at it and below, and its variance.

    Subtrees share no noise, so a parent's is the inverse-variance mean of its own measurement and the sum of its
    children. The variance is infinite where neither is known.
    """
    z = np.zeros(value.size)
    V = np.full(value.size, np.inf)
    for i in range(value.size - 1, -1, -1):
        own = variance[i]
        total = 0.0
        spread = np.inf
        if first[i] >= 0:
            spread = 0.0
            for c in range(first[i], last[i]):
                total += z[c]
                spread += V[c]
        if spread == np.inf:
            if own < np.inf:
                z[i] = value[i]
                V[i] = own
        elif own == np.inf or spread == 0.0:
            z[i] = total
            V[i] = spread
        else:
            mix = own / (own + spread)
            z[i] = value[i] + mix * (total - value[i])
            V[i] = mix * spread
    return z, V


@kernel
def _settle_family(z: FloatArray, V: FloatArray, total: float, out: FloatArray) -> None:
    """Hand a family what its parent has beyond its own sum, each member in proportion to its variance.

    Members that nobody measured share it evenly, and so do members known exactly.
    """
    gap = total
    spread = 0.0
    unknown = 0
    for c in range(len(z)):
        gap -= z[c]
        spread += V[c]
        if V[c] == np.inf:
            unknown += 1
    for c in range(len(z)):
        if unknown > 0:
            out[c] = z[c] + (gap / unknown if V[c] == np.inf else 0.0)
        elif spread > 0.0:
            out[c] = z[c] + gap * (V[c] / spread)
        else:
            out[c] = z[c] + gap / len(z)


@kernel
def project_family(z: FloatArray, V: FloatArray, keep: BoolArray, total: float, out: FloatArray) -> None:
    """Nearest values to z that are ≥ 0 and sum to ``total``, distances weighted by 1/V; who is not kept gets nothing.

    The answer is max(0, z + θV) for one θ. Starting with everybody, members that the current θ sends below zero are
    dropped for good (``keep`` forgets them): dropping a negative member only lowers θ, so it could never come back.
    """
    n = len(z)
    if total <= 0.0:
        for i in range(n):
            out[i] = 0.0
        return
    unknown = 0
    settled = 0.0
    for i in range(n):
        if keep[i]:
            if V[i] == np.inf:
                unknown += 1
            else:
                settled += max(0.0, z[i])
    if unknown > 0 and settled <= total:
        for i in range(n):
            out[i] = (total - settled) / unknown if V[i] == np.inf else max(0.0, z[i])
            if not keep[i]:
                out[i] = 0.0
        return
    # Members that nobody measured get nothing once the measured ones already exceed the total.
    for i in range(n):
        keep[i] = keep[i] and V[i] < np.inf
    while True:
        sum_z = 0.0
        sum_V = 0.0
        alive = 0
        for i in range(n):
            if keep[i]:
                alive += 1
                sum_z += z[i]
                sum_V += V[i]
        exact = sum_V == 0.0
        theta = (total - sum_z) / (alive if exact else sum_V)
        dropped = False
        for i in range(n):
            if keep[i] and z[i] + theta * (1.0 if exact else V[i]) <= 0.0 and alive > 1:
                keep[i] = False
                alive -= 1
                dropped = True
        if not dropped:
            for i in range(n):
                out[i] = max(0.0, z[i] + theta * (1.0 if exact else V[i])) if keep[i] else 0.0
            return


@kernel
def _shrink_family(
    z: FloatArray, V: FloatArray, size: FloatArray, total: float, shrink: float, out: FloatArray
) -> None:
    """Shrink a family's departure from an even spread by the positive-part James–Stein factor 1 − (b − shrink)/Q."""
    _settle_family(z, V, total, out)
    share = total / size.sum()
    q = 0.0
    for c in range(len(z)):
        gap = out[c] - share * size[c]
        q += gap * gap / V[c]
    factor = max(0.0, 1.0 - (len(z) - shrink) / q) if q > 0.0 else 0.0
    for c in range(len(z)):
        out[c] = share * size[c] + factor * (out[c] - share * size[c])


@kernel_with_twin(twins.hand_down, cost=0.5)
def hand_down(
    first: IntArray,
    last: IntArray,
    size: FloatArray,
    z: FloatArray,
    V: FloatArray,
    floor: bool,
    cut: FloatArray,
    shrink: float,
    whole: BoolArray,
) -> FloatArray:
    """Settle the root's total, then every family's given its parent's, so that children sum to their parent.

    Without ``floor`` this is the second pass of weighted least squares. With it no total is negative: each family is
    projected onto {≥ 0, sum = parent's}. Doing that from the top down keeps large totals unbiased, where cutting the
    leaves at zero, or one joint non-negative fit, would push every long sum upward. Children at or below ``cut[i]``
    deviations are dropped first, unless that would empty the family of node i; in families without such a cut
    departures from an even spread are shrunk if ``shrink`` is 0 or more. What lies below a ``whole`` node is not looked
    at: its total is spread evenly.
    """
    total = np.zeros(z.size)
    total[0] = max(z[0], 0.0) if floor else z[0]
    widest = 1
    for i in range(z.size):
        widest = max(widest, last[i] - first[i])
    wanted = np.empty(widest)
    keep = np.empty(widest, np.bool_)
    even = whole.copy()
    for i in range(z.size):
        if first[i] < 0:
            continue
        a, b = first[i], last[i]
        if not floor:
            _settle_family(z[a:b], V[a:b], total[i], total[a:b])
            continue
        if total[i] <= 0.0:
            continue
        n = b - a
        if even[i]:
            for c in range(a, b):
                total[c] = total[i] * size[c] / size[i]
                even[c] = True
            continue
        some = False
        for c in range(n):
            wanted[c] = z[a + c]
            keep[c] = cut[i] <= 0.0 or z[a + c] > cut[i] * math.sqrt(V[a + c])
            some = some or keep[c]
        if not some:
            keep[:n] = True
        if cut[i] <= 0.0 and 0.0 <= shrink < n:
            _shrink_family(z[a:b], V[a:b], size[a:b], total[i], shrink, wanted[:n])
        project_family(wanted[:n], V[a:b], keep[:n], total[i], total[a:b])
    return total
