"""The exact law of the least-noisy-cost partition of three cells, by summing over the noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

Costs = Callable[[tuple[int, ...]], int]


def laplace(scale: float, reach: int) -> np.ndarray:
    """Discrete Laplace probabilities on −reach … reach; scale 0 is no noise."""
    z = np.arange(-reach, reach + 1)
    if scale == 0:
        return (z == 0).astype(float)  # type: ignore[no-any-return]
    p = np.exp(-np.abs(z) / scale)
    return np.asarray(p / p.sum())


def law(
    x: tuple[int, int, int], cost: Costs, scales: Mapping[int, float], clamp: int | None = None
) -> np.ndarray:
    """Probabilities of one bucket, {1}{23}, {12}{3}, {1}{2}{3}: the order in which ties are broken.

    Given the noise of the outer singletons, the four totals are independent; each wins where the earlier ones are
    strictly larger and the later ones at least as large.
    """
    reach = int(14 * max(scales.values())) + 1
    z = np.arange(-reach, reach + 1)
    p1, p2, p3 = (laplace(scales[m], reach) for m in (1, 2, 3))
    seen = {}
    for name, cells, p in (("3", x, p3), ("23", x[1:], p2), ("12", x[:2], p2), ("2", x[1:2], p1)):
        value = cost(cells) + z
        if clamp is not None:
            value = np.maximum(value, clamp)
        seen[name] = (value, p)
    single = np.maximum(cost(x[:1]) + z, clamp) if clamp is not None else cost(x[:1]) + z
    span = 3 * reach + 8 + max(int(np.abs(v).max()) for v, _ in seen.values())
    out = np.zeros(4)
    outer = np.flatnonzero(p1 > 1e-7)
    for a in outer:
        for b in outer:
            shifts = {"3": 0, "23": single[a], "12": single[b], "2": single[a] + single[b]}
            mass, above, least = [], [], []
            for name in ("3", "23", "12", "2"):
                value, p = seen[name]
                grid = np.bincount(value + shifts[name] + span, p, 2 * span + 1)
                tail = grid[::-1].cumsum()[::-1]
                mass.append(grid)
                least.append(tail)
                above.append(np.append(tail[1:], 0.0))
            for k in range(4):
                win = mass[k].copy()
                for other in range(4):
                    if other != k:
                        win *= above[other] if other < k else least[other]
                out[k] += p1[a] * p1[b] * win.sum()
    return out


def loss(
    x: tuple[int, int, int], cost: Costs, scales: Mapping[int, float], clamp: int | None = None
) -> float:
    """Largest |log ratio| of an outcome's probability over the three steps upward from x."""
    before = law(x, cost, scales, clamp)
    worst = 0.0
    for cell in range(3):
        moved = [*x]
        moved[cell] += 1
        after = law((moved[0], moved[1], moved[2]), cost, scales, clamp)
        possible = (before > 1e-9) & (after > 1e-9)
        worst = max(worst, float(np.abs(np.log(before[possible] / after[possible])).max()))
    return worst
