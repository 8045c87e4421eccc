"""What the kernels of hidden levels do, in NumPy and Python: for fits that take less time than compiling them.

Bit for bit the same: sums are added in the same order (``np.add.accumulate``), and elementary functions are those of
`math`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.kernels.levels.listed import count_weights, normal_base, tail_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def _sum(values: FloatArray) -> float:
    """One after the other, as a loop adds."""
    return float(np.add.accumulate(values)[-1])


def _product(left: FloatArray, right: FloatArray) -> float:
    """As `dphist.kernels.levels.chain._product`."""
    each = left * right
    whole = each.size // 4 * 4
    total = 0.0
    if whole:
        w, x, y, z = np.add.accumulate(each[:whole].reshape(-1, 4))[-1].tolist()
        total = (w + x) + (y + z)
    for one in each[whole:].tolist():
        total += one
    return total


def _total(values: FloatArray) -> float:
    """As `dphist.kernels.levels.chain._total`."""
    return _product(np.ones(values.size), values)


def _summed(values: FloatArray, sums: FloatArray) -> float:
    """As `dphist.kernels.levels.chain._summed`."""
    whole = values.size // 4 * 4
    total = 0.0
    if whole:
        parts = values[:whole].reshape(-1, 4)
        fours = np.empty(parts.shape)
        fours[:, 0] = parts[:, 0]
        fours[:, 1] = parts[:, 0] + parts[:, 1]
        fours[:, 2] = fours[:, 1] + parts[:, 2]
        fours[:, 3] = fours[:, 1] + (parts[:, 2] + parts[:, 3])
        before = np.add.accumulate(fours[:, 3])
        fours[1:] += before[:-1, None]
        sums[:whole] = fours.reshape(-1)
        total = float(before[-1])
    for k in range(whole, values.size):
        total += float(values[k])
        sums[k] = total
    return total


def pack(table: FloatArray, spans: IntArray, told: FloatArray) -> int:
    """As `dphist.kernels.levels.packing._pack`."""
    seen = table != 0.0
    seen[:, -1] |= ~seen.any(axis=1)
    low, high = seen.argmax(axis=1), table.shape[1] - seen[:, ::-1].argmax(axis=1)
    ends = np.cumsum(high - low)
    spans[:, 0], spans[:, 1], spans[:, 2] = low, high, ends - (high - low)
    level = np.arange(table.shape[1])
    told[: ends[-1]] = table[(level >= low[:, None]) & (level < high[:, None])]
    return int(ends[-1])


def stretch_cost(table: FloatArray, spans: IntArray, rows: IntArray, *others: Any) -> float:
    """About how many microseconds the twin takes for a stretch."""
    return passes_cost(rows.size)


def passes_cost(cells: int) -> float:
    """The same for so many cells."""
    return cells * 120.0


class _Reach:
    """Running sums of values on some levels, and what steps of every reach gather from them elsewhere."""

    def __init__(self, levels: int, reaches: tuple[int, ...]) -> None:
        self.edge = reaches[-1] + 1
        self.reaches = reaches
        self.sums = np.zeros(levels + 2 * self.edge)

    def take(self, values: FloatArray, low: int, high: int) -> float:
        """Sum values on levels [low, high)."""
        at = self.edge
        total = _summed(values, self.sums[low + at : high + at])
        self.sums[: low + at] = 0.0
        self.sums[high + at :] = total
        return total

    def steps(self, low: int, high: int, weights: list[float]) -> tuple[FloatArray, FloatArray]:
        """What small and large steps bring to levels [low, high) from others."""
        c, at = self.sums, self.edge
        _, *each = [
            weight * (c[low + at + d : high + at + d] - c[low + at - d - 1 : high + at - d - 1])
            for d, weight in zip(self.reaches, weights, strict=True)
        ]
        return each[0] + each[1], each[2] + each[3] + each[4]


def stretch(
    steps: tuple[tuple[int, float], ...],
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
    """As `dphist.kernels.levels.chain._stretch`, whose small and large ``steps`` these are."""
    with np.errstate(all="ignore"):
        stay, step, leave = weights
        of = [share / (2 * reach + 1) for reach, share in steps]
        by = [(small if k < 3 else 1.0 - small) * each for k, each in enumerate(of)]
        keep = stay + step * by[0]
        reach = _Reach(jump.size, tuple(reach for reach, _ in steps))
        at = [spans[row].tolist() for row in rows.tolist()]
        ends = np.cumsum([high - low for low, high, _ in at]).tolist()
        scales: list[float] = []
        evidence, jumping = 0.0, 0.0
        own = np.zeros(jump.size)
        for i, (low, high, begin) in enumerate(at):
            likely = table[begin : begin + high - low]
            if i == 0:
                here = likely * jump[low:high]
            else:
                near, far = reach.steps(low, high, by)
                here = likely * ((own[low:high] + (near + far) + jumping * jump[low:high]) * scales[-1])
            forward[ends[i] - (high - low) : ends[i]] = here
            own[:] = 0.0
            own[low:high] = keep[low:high] * here
            total, jumping = _total(here), _product(leave[low:high], here)
            reach.take(step[low:high] * here, low, high)
            evidence += math.log(total)
            scales.append(1.0 / total)
        if moves.size == 0:
            return evidence
        back = np.ones(jump.size)
        jumps, left = np.zeros(jump.size), np.zeros((4, jump.size))
        for i in range(len(at) - 1, -1, -1):
            low, high, begin = at[i]
            here = forward[ends[i] - (high - low) : ends[i]]
            if mean.size > 0:
                p = here * back[low:high]
                e1 = first[rows[i], low:high]
                total = _sum(p)
                mean[i] = _sum(p * e1) / total
                within[i] = _sum(p * second[rows[i], low:high]) / total
                between[i] = max(_sum(p * e1 * e1) / total - mean[i] * mean[i], 0.0)
            if i == 0:
                if starts.size > 0:
                    starts[low:high] += here * back[low:high] * scales[0]
                break
            to_low, to_high, _ = at[i - 1]
            to = slice(to_low, to_high)
            q = forward[ends[i - 1] - (to_high - to_low) : ends[i - 1]]
            v = table[begin : begin + high - low] * back[low:high] * scales[i]
            jumps[low:high] += _product(leave[to], q) * scales[i - 1] * v
            own[:] = 0.0
            own[low:high] = v
            reach.take(v, low, high)
            jumping = _product(jump[low:high], v)
            near, far = reach.steps(to_low, to_high, by)
            back[to] = keep[to] * own[to] + step[to] * (near + far) + leave[to] * jumping
            q = q * scales[i - 1]
            left[:, to] += q * np.stack([own[to], near, far, np.full(q.size, jumping)])
        stays, nears, fars, leaves = left
        moves[0] += stay * stays
        moves[1] += step * (nears + by[0] * stays)
        moves[2] += step * fars
        moves[3] += leave * leaves
        if starts.size > 0:
            starts += jump * jumps
        return evidence


def small_level_normal(
    values: IntArray, level: float, c: float, normal: float, order: int, out: FloatArray
) -> None:
    """As `dphist.kernels.levels.likelihood._small_level_normal`."""
    weights = count_weights(level, c, tail_of(level, c))
    logs = np.array([math.log(each) for each in (weights + 1e-300).tolist()])
    counts = np.arange(logs.size)
    half = 0.5 / normal
    apart = values[:, None] - counts
    gaps = logs - half * apart * apart
    best = gaps.max(axis=1)
    gaps -= best[:, None]
    near = gaps > -40.0
    weight = np.zeros(gaps.shape)
    weight[near] = np.fromiter(map(math.exp, gaps[near].tolist()), np.float64, int(near.sum()))
    total = np.add.accumulate(weight, axis=1)[:, -1]
    if order == 0:
        logged = np.fromiter(map(math.log, total.tolist()), np.float64, total.size)
        out[:] = normal_base(normal) + best + logged
        return
    power = counts.astype(np.float64)
    weighted = weight * (power if order == 1 else power * counts)
    out[:] = np.add.accumulate(weighted, axis=1)[:, -1] / total
