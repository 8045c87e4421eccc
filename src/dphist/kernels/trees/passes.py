"""Least squares on trees of totals, in two passes, for any fan-out and any shape.

A tree is an array ``parent``: node i hangs under ``parent[i] < i``, roots have −1. Every node stands for the sum
of its children and may carry one noisy measurement of known variance (infinite when it was not measured).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.compile import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def families(parent: IntArray) -> tuple[IntArray, IntArray]:
    """Children of every node, side by side: ``members[starts[i]:starts[i + 1]]`` are those of node i."""
    m = len(parent)
    starts = np.zeros(m + 1, np.int64)
    for i in range(m):
        if parent[i] >= 0:
            starts[parent[i] + 1] += 1
    for i in range(m):
        starts[i + 1] += starts[i]
    cursor = starts[:-1].copy()
    members = np.empty(starts[m], np.int64)
    for i in range(m):
        p = parent[i]
        if p >= 0:
            members[cursor[p]] = i
            cursor[p] += 1
    return starts, members


@kernel
def gather_up(
    parent: IntArray, values: FloatArray, variances: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, IntArray]:
    """Best estimate of every node from its own subtree alone.

    Returns estimates z, their variances V, and per node the sum of its children's z, of their V (infinite if one is)
    and how many children have infinite V. Subtrees share no noise, so z of a parent is the inverse-variance mean
    of its own measurement and the sum of its children.
    """
    m = len(parent)
    z = np.zeros(m)
    V = np.full(m, np.inf)
    below = np.zeros(m)
    below_variance = np.zeros(m)
    unknown = np.zeros(m, np.int64)
    kids = np.zeros(m, np.int64)
    for i in range(m - 1, -1, -1):
        own = variances[i]
        if kids[i] == 0 or unknown[i] > 0:
            if own < np.inf:
                z[i] = values[i]
                V[i] = own
        elif own == np.inf or below_variance[i] == 0.0:
            z[i] = below[i]
            V[i] = below_variance[i]
        elif own == 0.0:
            z[i] = values[i]
            V[i] = 0.0
        else:
            mix = own / (own + below_variance[i])
            z[i] = values[i] + mix * (below[i] - values[i])
            V[i] = mix * below_variance[i]
        p = parent[i]
        if p >= 0:
            kids[p] += 1
            below[p] += z[i]
            below_variance[p] += V[i]
            if V[i] == np.inf:
                unknown[p] += 1
    return z, V, below, below_variance, unknown


@kernel
def weighted_least_squares(parent: IntArray, values: FloatArray, variances: FloatArray) -> FloatArray:
    """Totals of all nodes: the best linear unbiased estimate, children summing to their parent exactly.

    The second pass hands every family the difference between its parent's final total and its own sum, each child in
    proportion to its variance. Children nobody measured share what is left evenly.
    """
    m = len(parent)
    z, V, below, below_variance, unknown = gather_up(parent, values, variances)
    kids = np.zeros(m, np.int64)
    for i in range(m):
        if parent[i] >= 0:
            kids[parent[i]] += 1
    x = np.empty(m)
    for i in range(m):
        p = parent[i]
        if p < 0:
            x[i] = z[i]
            continue
        gap = x[p] - below[p]
        if unknown[p] > 0:
            x[i] = z[i]
            if V[i] == np.inf:
                x[i] += gap / unknown[p]
        elif below_variance[p] > 0.0:
            x[i] = z[i] + gap * (V[i] / below_variance[p])
        else:
            x[i] = z[i] + gap / kids[p]
    return x


@kernel
def project_family(z: FloatArray, V: FloatArray, total: float, out: FloatArray) -> None:
    """Nearest values to z that are ≥ 0 and sum to ``total``, distances weighted by 1/V.

    The answer is max(0, z + θV) for one θ. Starting with everybody, members that the current θ sends below zero are
    dropped for good: dropping a negative member only lowers θ, so it could never come back.
    """
    n = len(z)
    if total <= 0.0:
        for i in range(n):
            out[i] = 0.0
        return
    open_members = 0
    settled = 0.0
    for i in range(n):
        if V[i] == np.inf:
            open_members += 1
        else:
            settled += max(0.0, z[i])
    if open_members > 0 and settled <= total:
        for i in range(n):
            out[i] = (total - settled) / open_members if V[i] == np.inf else max(0.0, z[i])
        return
    # -1 marks a dropped member; unmeasured members get nothing once the measured ones already exceed the total.
    for i in range(n):
        out[i] = -1.0 if V[i] == np.inf else 1.0
    while True:
        sum_z = 0.0
        sum_V = 0.0
        alive = 0
        for i in range(n):
            if out[i] > 0.0:
                alive += 1
                sum_z += z[i]
                sum_V += V[i]
        exact = sum_V == 0.0
        theta = (total - sum_z) / (alive if exact else sum_V)
        dropped = False
        for i in range(n):
            if out[i] > 0.0 and z[i] + theta * (1.0 if exact else V[i]) <= 0.0 and alive > 1:
                out[i] = -1.0
                alive -= 1
                dropped = True
        if not dropped:
            for i in range(n):
                out[i] = max(0.0, z[i] + theta * (1.0 if exact else V[i])) if out[i] > 0.0 else 0.0
            return


@kernel
def nonnegative_top_down(parent: IntArray, values: FloatArray, variances: FloatArray) -> FloatArray:
    """Totals of all nodes, none negative, children summing to their parent: project family by family from the root.

    Clipping leaves alone would push every long sum upward; here a parent's total is settled first and its children
    are fitted to it, so sums stay as good as the parents are.
    """
    m = len(parent)
    z, V, _below, _below_variance, _unknown = gather_up(parent, values, variances)
    starts, members = families(parent)
    x = np.zeros(m)
    widest = 1
    roots = 0
    total = 0.0
    for i in range(m):
        widest = max(widest, starts[i + 1] - starts[i])
        if parent[i] < 0:
            roots += 1
            total += z[i]
    # Several roots are a family too, whose total nobody measured: cutting each at zero would push the sum up.
    root = np.empty(roots, np.int64)
    roots = 0
    for i in range(m):
        if parent[i] < 0:
            root[roots] = i
            roots += 1
    fitted_roots = np.empty(roots)
    project_family(z[root], V[root], total, fitted_roots)
    for k in range(roots):
        x[root[k]] = fitted_roots[k]
    z_family = np.empty(widest)
    V_family = np.empty(widest)
    fitted = np.empty(widest)
    for i in range(m):
        a, b = starts[i], starts[i + 1]
        if a == b:
            continue
        f = b - a
        for k in range(f):
            z_family[k] = z[members[a + k]]
            V_family[k] = V[members[a + k]]
        project_family(z_family[:f], V_family[:f], x[i], fitted[:f])
        for k in range(f):
            x[members[a + k]] = fitted[k]
    return x


@kernel
def reach_of_draws(
    V: FloatArray, below_variance: FloatArray, heft: FloatArray, starts: IntArray, members: IntArray
) -> tuple[FloatArray, FloatArray]:
    """How strongly one noise draw below a node can move a sum, per unit of covariance with that node.

    First array: per node, the largest over the draws in its subtree. Second: per node, the largest V·reach over its
    children. Both feed the bound on the heaviest single draw in ``box_spread``.
    """
    m = len(V)
    reach = heft.copy()
    widest = np.zeros(m)
    for i in range(m - 1, -1, -1):
        for k in range(starts[i], starts[i + 1]):
            c = members[k]
            if below_variance[i] < np.inf and below_variance[i] > 0.0:
                reach[i] = max(reach[i], V[c] / below_variance[i] * reach[c])
                widest[i] = max(widest[i], V[c] * reach[c])
    return reach, widest


@kernel
def first_beyond(bounds: IntArray, members: IntArray, a: int, b: int, value: int) -> Any:
    """First place in a … b − 1 whose member's bound exceeds ``value``; bounds rise along the members."""
    while a < b:
        middle = (a + b) // 2
        if bounds[members[middle], 0] > value:
            b = middle
        else:
            a = middle + 1
    return a


@kernel
def box_spread(
    V: FloatArray,
    below_variance: FloatArray,
    heft: FloatArray,
    starts: IntArray,
    members: IntArray,
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

    Node 0 is the only root. On a line the members of a family stand in order, so the cut ones are found by bisection
    and those between them are summed at once.
    """
    m, d = low.shape
    queries = len(query_low)
    variance = np.zeros(queries)
    largest = np.zeros(queries)
    reach, widest = reach_of_draws(V, below_variance, heft, starts, members)
    queue = np.empty(m, np.int64)
    above = np.empty(m, np.int64)
    share = np.empty(m)
    squares = np.empty(m)
    rest = np.empty(m)
    covariance = np.empty(m)
    inside_any = np.empty(m, np.bool_)
    outside_any = np.empty(m, np.bool_)
    running = np.zeros(len(members) + 1)
    for k in range(len(members)):
        running[k + 1] = running[k] + V[members[k]]
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
            if covered == 0.0 or covered == volume or starts[v] == starts[v + 1]:
                # Settled here: outside, inside, or a leaf block whose total is spread evenly over its cells.
                share[head] = covered / volume
                squares[head] = -1.0
            else:
                first, last = starts[v], starts[v + 1]
                if d == 1:
                    first = first_beyond(high, members, first, last, query_low[q, 0])
                    last = first_beyond(low, members, first, last, query_high[q, 0] - 1)
                    outside_any[head] = last - first < starts[v + 1] - starts[v]
                    if last - first > 2:
                        # The outer two may be cut; the rest lie inside.
                        whole = running[last - 1] - running[first + 1]
                        inside_any[head] = True
                        share[head] += whole
                        squares[head] += whole
                k = first - 1
                while k + 1 < last:
                    k = last - 1 if d == 1 and k == first else k + 1
                    c = members[k]
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
