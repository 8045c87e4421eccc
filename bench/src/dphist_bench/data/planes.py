"""Weights of planes and cubes, of kinds on which mechanisms for ranges part company; `data.sample` draws records."""

from __future__ import annotations

import numpy as np

from dphist_bench.data import FloatArray, generator, settlements


def _places(shape: tuple[int, ...]) -> list[FloatArray]:
    return list(np.meshgrid(*[(np.arange(n) + 0.5) / n for n in shape], indexing="ij"))


def clusters(
    shape: tuple[int, ...],
    count: int = 25,
    seed: int = 1,
    widths: tuple[float, float] = (0.005, 0.08),
    even: float = 0.0,
) -> FloatArray:
    """Humps of very different weight and width, over a part that is spread evenly."""
    draw, places, weights = generator(seed), _places(shape), np.zeros(shape)
    for _ in range(count):
        centre, width = draw.random(len(shape)), draw.uniform(*widths, len(shape))
        apart = sum((x - c) ** 2 / (2 * w * w) for x, c, w in zip(places, centre, width, strict=True))
        weights += draw.pareto(1.2) * np.exp(-apart)
    weights /= weights.sum()
    weights[weights < 1e-8] = 0.0
    return weights + even / weights.size


def ridge(shape: tuple[int, int], seed: int = 2) -> FloatArray:
    """Two attributes that nearly agree: records along the diagonal, next to nothing elsewhere."""
    y, x = _places(shape)
    hump = np.exp(-(((y - 0.35) / 0.2) ** 2) / 2) + 0.05
    return hump * np.exp(-np.abs(y - x) / 0.02) * generator(seed).gamma(2.0, 0.5, shape) + 1e-7


def lone_peak(shape: tuple[int, int], seed: int = 3) -> FloatArray:
    """Nearly all records in one cell, the rest in a few dozen, mostly in line with it."""
    draw, weights = generator(seed), np.zeros(shape)
    peak = tuple(n // 10 for n in shape)
    for _ in range(60):
        place = tuple(
            draw.integers(0, n) if draw.random() < 0.6 else k for n, k in zip(shape, peak, strict=True)
        )
        weights[place] += draw.pareto(1.0)
    weights *= 0.07 / weights.sum()
    weights[peak] += 0.93
    return weights


def two_axes(shape: tuple[int, int], seed: int = 21) -> FloatArray:
    """Attributes that are mostly zero: records at the origin and along both axes, hardly any beyond."""
    draw, weights = generator(seed), np.zeros(shape)
    weights[0, :] = draw.pareto(0.8, shape[1]) * (draw.random(shape[1]) < 0.3)
    weights[:, 0] = draw.pareto(0.8, shape[0]) * (draw.random(shape[0]) < 0.3)
    weights[0, 0] = weights.sum() * 6
    for _ in range(30):
        weights[draw.integers(0, shape[0]), draw.integers(0, shape[1])] += draw.pareto(1.0) * 0.2
    return weights


def diffuse(shape: tuple[int, int], seed: int = 4) -> FloatArray:
    """Records everywhere, a gentle wave, and every cell for itself."""
    y, x = _places(shape)
    return generator(seed).gamma(1.0, 1.0, shape) * (1 + 0.5 * np.sin(7 * y) * np.cos(5 * x))


def roads(shape: tuple[int, int], seed: int = 5, count: int = 40) -> FloatArray:
    """Winding lines, denser near the middle."""
    draw, weights = generator(seed), np.zeros(shape)
    for _ in range(count):
        start, angle = draw.random(2), draw.random() * 2 * np.pi
        length, traffic = draw.uniform(0.2, 1.0), draw.pareto(1.5) + 0.2
        angles = angle + np.cumsum(draw.normal(0, 0.01, 1500))
        y = start[0] + np.cumsum(np.cos(angles)) * length / 1500
        x = start[1] + np.cumsum(np.sin(angles)) * length / 1500
        on = (y >= 0) & (y < 1) & (x >= 0) & (x < 1)
        np.add.at(weights, ((y[on] * shape[0]).astype(int), (x[on] * shape[1]).astype(int)), traffic)
    y, x = _places(shape)
    weights *= np.exp(-((y - 0.5) ** 2 + (x - 0.4) ** 2) / 0.08)
    everywhere: FloatArray = weights + 1e-9 * weights.sum()
    return everywhere


def tracks(shape: tuple[int, int], seed: int = 23) -> FloatArray:
    """Few roads with very different traffic from cell to cell, and nothing beside them."""
    weights = roads(shape, seed, 25)
    weights[weights < 1e-5 * weights.sum()] = 0.0
    uneven: FloatArray = weights**1.5 * generator(seed + 1).lognormal(0.0, 1.0, shape)
    return uneven


def cascade(shape: tuple[int, ...], seed: int = 6, spread: float = 1.1) -> FloatArray:
    """Uneven at every scale: each box shares its weight unequally among its halves, and some get none."""
    draw, weights = generator(seed), np.ones([1] * len(shape))
    while max(weights.shape) < max(shape):
        for axis, n in enumerate(shape):
            if weights.shape[axis] < n:
                weights = np.repeat(weights, 2, axis)
        weights = (
            weights * np.exp(draw.normal(0, spread, weights.shape)) * (draw.random(weights.shape) > 0.12)
        )
    return weights[tuple(slice(0, n) for n in shape)]


def heaped(shape: tuple[int, int], seed: int = 7) -> FloatArray:
    """Answers that people round: lattices of full cells among nearly empty ones."""
    sides = []
    for n in shape:
        x = np.arange(n)
        sides.append(np.exp(-(((x / n - 0.2) / 0.25) ** 2)) * (1 + (x % 5 == 0) * 4 + (x % 25 == 0) * 20))
    draw = generator(seed)
    lattice: FloatArray = np.multiply.outer(*sides) * (draw.random(shape) < 0.25)
    return lattice * draw.gamma(1.0, 1.0, shape)


def sparse_peaks(shape: tuple[int, int], seed: int = 22) -> FloatArray:
    """Heavy-tailed counts in one cell of a hundred, more of them around one place."""
    draw = generator(seed)
    y, x = _places(shape)
    full = draw.random(shape) < 0.04 * np.exp(-((y - 0.4) ** 2 + (x - 0.6) ** 2) / 0.05)
    return np.where(full, draw.pareto(0.9, shape) + 0.1, 0.0)


def planes() -> dict[str, FloatArray]:
    """One of each kind: what the rules for trees of boxes were chosen on."""
    square = (256, 256)
    y, x = _places(square)
    return {
        "settlements": settlements(square, 10**7, 0).astype(np.float64),
        "clusters": clusters(square),
        "on a plain": clusters(square, 8, 11, (0.02, 0.12), 0.3),
        "ridge": ridge(square),
        "lone peak": lone_peak(square),
        "two axes": two_axes(square),
        "diffuse": diffuse(square),
        "roads": roads(square),
        "tracks": tracks(square),
        "cascade": cascade(square),
        "heaped": heaped(square),
        "sparse peaks": sparse_peaks(square),
        "hump": np.exp(-((y - 0.45) ** 2 + (x - 0.45) ** 2) / (2 * 0.15**2)),
        "200 × 300": settlements((200, 300), 10**7, 3).astype(np.float64),
        "1000 × 60": clusters((1000, 60), 25, 12),
        "128 × 128": cascade((128, 128), 16, 1.3),
        "40 × 40 × 40": clusters((40, 40, 40), 30, 13, (0.02, 0.15)),
    }
