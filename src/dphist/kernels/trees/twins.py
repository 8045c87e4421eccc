"""The passes over a tree once more in NumPy, bit for bit: they serve trees of some ten thousand nodes without numba.

What each computes is said at the kernel of its name. Families of one level and one width are rows of a matrix; a sum
along a row adds one after the other, as the kernels' loops do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.normal import DENSITY, scaled_tails
from dphist.kernels.special import LOG_ROOT_TWO_PI, each

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Variances of a block's total about its even share, in squared shares: the models between even and anything.
SPREADS = (1e-4, 1e-3, 1e-2, 0.05, 0.2)
# The chance of exactly even before anything was seen; the others share the rest equally.
EVEN = 0.6


def _sum(rows: FloatArray) -> FloatArray:
    return np.asarray(np.cumsum(rows, axis=1)[:, -1], dtype=np.float64)


def _families(nodes: IntArray, first: IntArray, last: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Nodes with children, by how many they have; and these children, a row for each."""
    nodes = nodes[first[nodes] >= 0]
    width = last[nodes] - first[nodes]
    # As np.unique gives them, which would load masked arrays.
    for count in np.flatnonzero(np.bincount(width)):
        mine = nodes[width == count]
        yield mine, first[mine][:, None] + np.arange(count)


def _levels(first: IntArray, last: IntArray) -> list[IntArray]:
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
    """As the kernel of this name; where siblings stand apart, the families are not told."""
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
    """As the kernel of this name."""
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
    """As the kernel of this name."""
    known = variance < np.inf
    z, V = np.where(known, value, 0.0), np.where(known, variance, np.inf)
    with np.errstate(all="ignore"):
        for level in reversed(_levels(first, last)):
            for i, c in _families(level, first, last):
                total, spread, own = _sum(z[c]), _sum(V[c]), variance[i]
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
    cut: FloatArray,
    shrink: float,
    whole: BoolArray,
) -> FloatArray:
    """As the kernel of this name."""
    total = np.zeros(z.size)
    total[0] = max(float(z[0]), 0.0) if floor else z[0]
    even = whole.copy()
    with np.errstate(all="ignore"):
        for level in _levels(first, last):
            for i, c in _families(level, first, last):
                if not floor:
                    total[c] = _settled(z[c], V[c], total[i])
                    continue
                some = total[i] > 0.0
                flat = some & even[i]
                total[c[flat]] = total[i[flat], None] * size[c[flat]] / size[i[flat], None]
                even[c[flat]] = True
                i, c = i[some & ~flat], c[some & ~flat]
                if i.size:
                    total[c] = _family(i, c, size, z, V, cut, shrink, total[i])
    return total


def _family(
    i: IntArray,
    c: IntArray,
    size: FloatArray,
    z: FloatArray,
    V: FloatArray,
    cut: FloatArray,
    shrink: float,
    total: FloatArray,
) -> FloatArray:
    keep = (cut[i, None] <= 0.0) | (z[c] > cut[i, None] * np.sqrt(V[c]))
    keep |= np.asarray(~keep.any(axis=1))[:, None]
    wanted = z[c]
    if 0.0 <= shrink < c.shape[1]:
        shrunk = cut[i] <= 0.0
        wanted[shrunk] = _shrunk(z[c[shrunk]], V[c[shrunk]], size[c[shrunk]], total[shrunk], shrink)
    return _projected(wanted, V[c], keep, total)


def _settled(z: FloatArray, V: FloatArray, total: FloatArray) -> FloatArray:
    gap = np.cumsum(np.concatenate([total[:, None], -z], axis=1), axis=1)[:, -1:]
    spread = _sum(V)[:, None]
    unknown = np.isposinf(V)
    missing = unknown.sum(axis=1)[:, None]
    share = np.where(spread > 0.0, gap * (V / spread), gap / z.shape[1])
    return z + np.where(missing > 0, np.where(unknown, gap / missing, 0.0), share)


def _shrunk(z: FloatArray, V: FloatArray, size: FloatArray, total: FloatArray, shrink: float) -> FloatArray:
    out = _settled(z, V, total)
    share = (total / _sum(size))[:, None] * size
    gap = out - share
    q = _sum(gap * gap / V)
    factor = np.where(q > 0.0, np.maximum(0.0, 1.0 - (z.shape[1] - shrink) / q), 0.0)
    return share + factor[:, None] * gap


def _projected(z: FloatArray, V: FloatArray, keep: BoolArray, total: FloatArray) -> FloatArray:
    out = np.zeros(z.shape)
    unknown = np.isposinf(V)
    missing = (keep & unknown).sum(axis=1)
    settled = _sum(np.where(keep & ~unknown, np.maximum(0.0, z), 0.0))
    room = (missing > 0) & (settled <= total)
    rest = ((total - settled) / missing)[:, None]
    out[room] = np.where(keep, np.where(unknown, rest, np.maximum(0.0, z)), 0.0)[room]
    keep = keep & ~unknown
    going = np.flatnonzero(~room)
    while going.size:
        k, zs, Vs = keep[going], z[going], V[going]
        alive = k.sum(axis=1)
        sum_V = _sum(np.where(k, Vs, 0.0))
        exact = sum_V == 0.0
        theta = (total[going] - _sum(np.where(k, zs, 0.0))) / np.where(exact, alive, sum_V)
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


# ---- how even the blocks of a pool are ----


def divide_pools(
    first: IntArray,
    last: IntArray,
    pool: BoolArray,
    size: FloatArray,
    seen: FloatArray,
    variance: FloatArray,
    totals: FloatArray,
) -> None:
    """As the kernel of this name."""
    with np.errstate(all="ignore"):
        for level in _levels(first, last):
            for i, c in _families(level[pool[level] & (totals[level] > 0.0)], first, last):
                even = totals[i, None] * size[c] / _sum(size[c])[:, None]
                noise = variance[c[:, 0]]
                models = [_near_even(seen[c], noise, even, totals[i], spread) for spread in (0.0, *SPREADS)]
                models.append(_anything(seen[c], noise, even, totals[i]))
                logs = np.stack([model[0] for model in models], axis=1)
                chances = each(math.exp, logs - logs.max(axis=1)[:, None])
                chances[:, 0] *= EVEN
                chances[:, 1:] *= (1.0 - EVEN) / (len(models) - 1)
                whole = _sum(chances)
                answer = np.zeros(c.shape)
                for m, (_, means) in enumerate(models):
                    answer += (chances[:, m] / whole)[:, None] * means
                totals[c] = answer


def _near_even(
    seen: FloatArray, variance: FloatArray, even: FloatArray, total: FloatArray, spread: float
) -> tuple[FloatArray, FloatArray]:
    noise = variance[:, None]
    t = spread * even * even
    gap = seen - even
    terms = 0.5 * (gap * gap / (noise + t) + each(math.log, noise + t)) + LOG_ROOT_TWO_PI
    logs = _sum(-terms)
    pull = t / (t + noise)
    out = even + pull * gap
    left = _sum(pull * noise)
    beyond = total - _sum(out)
    given = left != 0.0
    if not given.any():
        return logs, out
    logs = np.where(
        given,
        logs + 0.5 * (each(math.log, np.where(given, _sum(t) / left, 1.0)) - beyond * beyond / left),
        logs,
    )
    moved = np.maximum(out + beyond[:, None] * t * noise / ((t + noise) * left[:, None]), 0.0)
    moved *= (total / _sum(moved))[:, None]
    return logs, np.where(given[:, None], moved, out)


def _anything(
    seen: FloatArray, variance: FloatArray, even: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray]:
    rows, width = seen.shape
    deviation = np.sqrt(variance)
    tilt = (_sum(seen) - total) / (variance * width)
    low, high = np.full(rows, -np.inf), np.full(rows, np.inf)
    out, logs, unknown = np.zeros(seen.shape), np.zeros(rows), np.zeros(rows)
    going = np.arange(rows)
    for _ in range(60):
        d, v, e = deviation[going, None], variance[going, None], even[going]
        t = (seen[going] - (tilt[going, None] + 1.0 / e) * v) / d
        m, s, terms = _tilted(t, d / e)
        out[going] = m * d
        logs[going] = _sum(terms)
        unknown[going] = _sum(s * v)
        gap = _sum(out[going]) - total[going]
        still = np.abs(gap) > 1e-6 * total[going]
        going, gap = going[still], gap[still]
        if not going.size:
            break
        low[going] = np.where(gap > 0.0, tilt[going], low[going])
        high[going] = np.where(gap > 0.0, high[going], tilt[going])
        a, b = low[going], high[going]
        step = tilt[going] + gap / unknown[going]
        bracket = np.where(
            np.isfinite(a) & np.isfinite(b),
            0.5 * (a + b),
            np.where(
                np.isfinite(a),
                a + 2.0 * np.abs(a) + 1.0 / total[going],
                b - 2.0 * np.abs(b) - 1.0 / total[going],
            ),
        )
        tilt[going] = np.where((a < step) & (step < b), step, bracket)
    gaps = seen / deviation[:, None]
    terms = 0.5 * gaps * gaps + each(math.log, deviation)[:, None] + LOG_ROOT_TWO_PI
    logs = np.cumsum(np.concatenate([logs[:, None], -terms], axis=1), axis=1)[:, -1]
    out *= (total / _sum(out))[:, None]
    return logs + tilt * total + 0.5 * each(math.log, _sum(even * even) / unknown), out


def _tilted(t: FloatArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean and variance of each total in deviations of its noise, and its part of the log evidence."""
    high, low = t > 8.0, t < -12.0
    tail = np.ones(t.shape)
    tail[~high] = scaled_tails(-t[~high])
    u = 1.0 / (t * t)
    hazard = DENSITY / tail
    m = np.where(high, t, np.where(low, -(1.0 - 2.0 * u + 10.0 * u * u) / t, t + hazard))
    s = np.where(
        high, 1.0, np.where(low, u * (1.0 - 6.0 * u), np.maximum(1.0 - t * hazard - hazard * hazard, 0.0))
    )
    logs = each(math.log, np.where(high, ratio, ratio * tail)) + LOG_ROOT_TWO_PI
    return m, s, np.where(high, logs + 0.5 * t * t, logs)
