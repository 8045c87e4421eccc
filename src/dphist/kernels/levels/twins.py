"""What the kernels of hidden levels do, in NumPy and Python: for fits that take less time than compiling them.

Bit for bit the same: sums are added one after the other (``np.add.accumulate``), running sums over levels are Python's,
and elementary functions are those of `math`.
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


def _running(values: list[float], ratio: float) -> list[float]:
    """Running sums in which what was before fades by a ratio."""
    run = 0.0
    return [run := run * ratio + each for each in values]


def _fading(values: list[float], ratio: float) -> list[float]:
    """The same without what is at the place itself, faded once more."""
    run = 0.0
    return [0.0, *[run := (run + each) * ratio for each in values[:-1]]]


def stretch_cost(table: FloatArray, spans: IntArray, rows: IntArray, *others: Any) -> float:
    """About how many microseconds the twin takes for a stretch."""
    return passes_cost(rows.size, table.shape[1])


def passes_cost(cells: int, levels: int) -> float:
    """The same for so many cells and levels."""
    return cells * (75.0 + 0.6 * levels)


def stretch(
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
    steps: tuple[float, float] = (0.5, 0.9),
) -> float:
    """As `dphist.kernels.levels.chain._stretch`."""
    with np.errstate(all="ignore"):
        r, g = steps
        w0, w3 = float(weights[0]), float(weights[3])
        w1 = float(weights[1]) * (1.0 - r) / (1.0 + r)
        w2 = float(weights[2]) * (1.0 - g) / (1.0 + g)
        at = rows.tolist()
        ends = spans.tolist()
        jumps = w3 * jump
        evidence = 0.0
        for i, row in enumerate(at):
            low, high = ends[row]
            if i == 0:
                here = table[row, low:high] * jump[low:high]
                total = _sum(here)
            else:
                low, high = min(low, ends[at[i - 1]][0]), max(high, ends[at[i - 1]][1])
                q = forward[i - 1, low:high]
                up = q.tolist()
                down = up[::-1]
                near = w0 * q + w1 * np.array(_running(up, r)) + w2 * np.array(_running(up, g))
                near += jumps[low:high]
                near += w1 * np.array(_fading(down, r))[::-1]
                near += w2 * np.array(_fading(down, g))[::-1]
                here = table[row, low:high] * near
                total = _sum(here[::-1])
            evidence += math.log(total)
            forward[i] = 0.0
            forward[i, low:high] = here * (1.0 / total)
        if moves.size == 0:
            return evidence
        back = np.ones(jump.size)
        for i in range(len(at) - 1, -1, -1):
            row = at[i]
            low, high = ends[row]
            if mean.size > 0:
                p = forward[i, low:high] * back[low:high]
                e1 = first[row, low:high]
                total = _sum(p)
                mean[i] = _sum(p * e1) / total
                within[i] = _sum(p * second[row, low:high]) / total
                between[i] = max(_sum(p * e1 * e1) / total - mean[i] * mean[i], 0.0)
            if i == 0:
                if starts.size > 0:
                    here = forward[i, low:high] * back[low:high]
                    starts[low:high] += here / _sum(here)
                break
            low, high = min(low, ends[at[i - 1]][0]), max(high, ends[at[i - 1]][1])
            q = forward[i - 1, low:high]
            v = table[row, low:high] * back[low:high]
            up = v.tolist()
            down = up[::-1]
            small = np.array(_running(up, r)) + np.array([0.0, *_running(down[:-1], r)])[::-1] * r
            large = np.array(_running(up, g)) + np.array([0.0, *_running(down[:-1], g)])[::-1] * g
            c0, c3 = w0 * _sum(q * v), _sum(jump[low:high] * v)
            c1, c2 = w1 * _sum((q * small)[::-1]), w2 * _sum((q * large)[::-1])
            c3 *= w3
            f = 1.0 / (c0 + c1 + c2 + c3)
            for kind, c in enumerate((c0, c1, c2, c3)):
                moves[kind] += c * f
            back[low:high] = (w0 * v + w1 * small + w2 * large + c3) * f
            if starts.size > 0:
                starts[low:high] += w3 * f * jump[low:high] * v
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
