"""How far least squares on a tree may be off in any box: exact variances, read off along the box's edges."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def _family_facts(
    first: IntArray, last: IntArray, V: FloatArray, heft: FloatArray, low: IntArray, high: IntArray
) -> Any:
    """What a query needs to know of every node's family, whatever the query is.

    How strongly one noise draw in its subtree can move a sum, per unit of covariance with the node; the largest
    V · reach over its children, which with the first bounds the heaviest single draw; the sum of its children's V;
    and whether its children follow each other along a line.
    """
    m, d = low.shape
    reach = heft.copy()
    widest = np.zeros(m)
    below_variance = np.zeros(m)
    in_order = np.zeros(m, np.bool_)
    for i in range(m - 1, -1, -1):
        if first[i] < 0:
            continue
        in_order[i] = d == 1
        for c in range(first[i], last[i]):
            below_variance[i] += V[c]
            if c > first[i] and low[c, 0] < high[c - 1, 0]:
                in_order[i] = False
        if 0.0 < below_variance[i] < np.inf:
            for c in range(first[i], last[i]):
                reach[i] = max(reach[i], V[c] / below_variance[i] * reach[c])
                widest[i] = max(widest[i], V[c] * reach[c])
    return reach, widest, below_variance, in_order


@kernel
def _first_beyond(bounds: IntArray, a: int, b: int, value: int) -> Any:
    """First of the nodes a … b − 1 whose bound exceeds ``value``; bounds rise along them."""
    while a < b:
        middle = (a + b) // 2
        if bounds[middle, 0] > value:
            b = middle
        else:
            a = middle + 1
    return a


@kernel
def box_spread(
    first: IntArray,
    last: IntArray,
    V: FloatArray,
    heft: FloatArray,
    low: IntArray,
    high: IntArray,
    query_low: IntArray,
    query_high: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Exact variance of every box sum under tree least squares, and a bound on its heaviest single draw.

    Inside node v a query's estimate is a_v·x_v + e_v, where e_v is uncorrelated with everything outside v. With
    S = ΣV over the children c: a_v = Σ a_c V_c / S and Var e_v = Σ Var e_c + Σ a_c² V_c − S a_v². A node wholly
    inside the query has a = 1, e = 0, so only nodes that the box cuts are visited. Going down again, Cov(query,
    x_c) = V_c (a_c − a_v) + (V_c / S) Cov(query, x_v), and a draw at node c with scale b and variance s² weighs
    Cov / s²; ``heft`` is b / s² (0 where nothing was measured).

    On a line the members of a family mostly stand in order, so the cut ones are found by bisection and those between
    them are summed at once; a family with a pool, which may reach around its siblings, is walked through.
    """
    m, d = low.shape
    queries = len(query_low)
    variance = np.zeros(queries)
    largest = np.zeros(queries)
    reach, widest, below_variance, in_order = _family_facts(first, last, V, heft, low, high)
    queue = np.empty(m, np.int64)
    above = np.empty(m, np.int64)
    share = np.empty(m)
    squares = np.empty(m)
    rest = np.empty(m)
    covariance = np.empty(m)
    inside_any = np.empty(m, np.bool_)
    outside_any = np.empty(m, np.bool_)
    running = np.zeros(m + 1)
    for c in range(m):
        # Who nobody measured is never summed with others.
        running[c + 1] = running[c] + (V[c] if V[c] < np.inf else 0.0)
    for q in range(queries):
        queue[0] = 0
        above[0] = -1
        count = 1
        head = 0
        while head < count:
            v = queue[head]
            share[head] = 0.0
            squares[head] = 0.0
            rest[head] = 0.0
            inside_any[head] = False
            outside_any[head] = False
            covered = 1.0
            volume = 1.0
            for t in range(d):
                span = min(high[v, t], query_high[q, t]) - max(low[v, t], query_low[q, t])
                covered *= max(0, span)
                volume *= high[v, t] - low[v, t]
            if covered == 0.0 or covered == volume or first[v] < 0:
                # Settled here: outside, inside, or a leaf block whose total is spread evenly over its cells.
                share[head] = covered / volume
                squares[head] = -1.0
            else:
                a, b = first[v], last[v]
                bisect = in_order[v]
                if bisect:
                    a = _first_beyond(high, a, b, query_low[q, 0])
                    b = _first_beyond(low, a, b, query_high[q, 0] - 1)
                    outside_any[head] = b - a < last[v] - first[v]
                    if b - a > 2:
                        # The outer two may be cut; the rest lie inside.
                        whole = running[b - 1] - running[a + 1]
                        inside_any[head] = True
                        share[head] += whole
                        squares[head] += whole
                c = a - 1
                while c + 1 < b:
                    c = b - 1 if bisect and c == a else c + 1
                    meets = True
                    holds = True
                    for t in range(d):
                        if low[c, t] >= query_high[q, t] or high[c, t] <= query_low[q, t]:
                            meets = False
                        if low[c, t] < query_low[q, t] or high[c, t] > query_high[q, t]:
                            holds = False
                    if not meets:
                        outside_any[head] = True
                    elif holds:
                        inside_any[head] = True
                        share[head] += V[c]
                        squares[head] += V[c]
                    else:
                        queue[count] = c
                        above[count] = head
                        count += 1
            head += 1
        for h in range(count - 1, -1, -1):
            v = queue[h]
            if squares[h] >= 0.0:
                S = below_variance[v]
                share[h] /= S
                rest[h] += max(0.0, squares[h] - S * share[h] * share[h])
            p = above[h]
            if p >= 0:
                share[p] += share[h] * V[v]
                squares[p] += share[h] * share[h] * V[v]
                rest[p] += rest[h]
        for h in range(count):
            v = queue[h]
            p = above[h]
            if p < 0:
                variance[q] += rest[h] + share[h] * share[h] * V[v]
                covariance[h] = share[h] * V[v]
            else:
                u = queue[p]
                covariance[h] = V[v] * (share[h] - share[p] + covariance[p] / below_variance[u])
            if squares[h] < 0.0:
                largest[q] = max(largest[q], abs(covariance[h]) * reach[v])
                continue
            largest[q] = max(largest[q], abs(covariance[h]) * heft[v])
            pull = covariance[h] / below_variance[v]
            if inside_any[h]:
                largest[q] = max(largest[q], abs(1.0 - share[h] + pull) * widest[v])
            if outside_any[h]:
                largest[q] = max(largest[q], abs(pull - share[h]) * widest[v])
    return variance, largest
