"""Synthetic counts of the kinds the papers measure on, made fresh from a seed.

The papers' own files are not public or not ours to ship. Each maker imitates what decides the error of a
mechanism on them: the number of cells, the number of records, how many cells are empty, how heavy the tail is
and how smooth neighbours are. Every maker returns ``int64`` counts that sum to ``records``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def _generator(seed: int) -> np.random.Generator:  # noqa: TID251 -- data only
    return np.random.default_rng(seed)  # noqa: TID251 -- data only


def sample(weights: FloatArray, records: int, seed: int) -> IntArray:
    """Draw ``records`` records from a population with these weights (a multinomial sample)."""
    flat = np.asarray(weights, dtype=np.float64).ravel()
    counts = _generator(seed).multinomial(records, flat / flat.sum())
    return counts.astype(np.int64).reshape(np.shape(weights))


def age_pyramid(n: int = 101, records: int = 100_078_675, seed: int = 0) -> IntArray:
    """People by year of age: every cell full, smooth, with a little heaping on round ages (a census)."""
    age = np.linspace(0.0, 100.0, n)
    weights = np.exp(-((age / 62.0) ** 2.6)) * (1.0 + 0.12 * np.sin(age / 7.5))
    heaped = np.isclose(np.round(age) % 5, 0) & (np.abs(age - np.round(age)) < 50.0 / max(n, 2))
    weights = np.where(heaped, 1.06 * weights, weights) + 1e-7
    return sample(weights, records, seed)


def search_logs(n: int = 496, records: int = 32_768, seed: int = 0) -> IntArray:
    """How many intervals saw a keyword searched 1, 2, 3 … times: a crowded head and a long, thin tail."""
    value = np.arange(1, n + 1, dtype=np.float64)
    weights = value**-1.1 * np.exp(-value / (0.35 * n)) + 2.0 / n * np.exp(
        -(((value / n - 0.18) / 0.07) ** 2)
    )
    return sample(weights, records, seed)


def search_timeline(n: int = 4_096, records: int = 335_889, seed: int = 0) -> IntArray:
    """Draw searches for a keyword over time: a low, slowly moving level and a few sharp bursts."""
    draw = _generator(seed)
    time = np.linspace(0.0, 1.0, n)
    weights = 0.2 + np.exp(3.0 * time) / 8.0
    for centre, height in zip(draw.uniform(0.55, 0.98, 6), draw.pareto(1.1, 6) * 6 + 4, strict=True):
        weights = weights + height * np.exp(-np.abs(time - centre) / 0.004)
    return sample(weights, records, seed + 1)


def network_trace(n: int = 1_423, records: int = 65_536, seed: int = 0) -> IntArray:
    """How many hosts were contacted by 1, 2, 3 … others: almost all by very few, a handful by a thousand."""
    value = np.arange(1, n + 1, dtype=np.float64)
    return sample(value**-2.1 + 1e-10 * n, records, seed)


def network_hosts(n: int = 4_096, records: int = 25_714, seed: int = 0) -> IntArray:
    """Draw the connections of every internal host: nearly all cells empty, a few hosts with thousands."""
    draw = _generator(seed)
    weights = np.zeros(n)
    busy = draw.choice(n, size=max(1, (3 * n) // 100), replace=False)
    weights[busy] = draw.pareto(0.9, busy.size) + 0.05
    return sample(weights, records, seed + 1)


def social_degrees(n: int = 1_678, records: int = 32_768, seed: int = 0) -> IntArray:
    """How many people have 1, 2, 3 … friends: a broad log-normal hump that thins out over a long tail."""
    value = np.arange(1, n + 1, dtype=np.float64)
    weights = np.exp(-0.5 * ((np.log(value) - 3.6) / 1.15) ** 2) / value
    return sample(weights, records, seed)


def steps(n: int = 4_096, records: int = 100_000, seed: int = 0, levels: int | None = None) -> IntArray:
    """Piecewise constant levels with a heavy tail: what segmentation is made for."""
    draw = _generator(seed)
    pieces = max(2, n // 50) if levels is None else max(1, levels)
    cuts = np.sort(draw.integers(0, n, pieces - 1))
    height = draw.pareto(1.0, pieces) + 1e-3
    return sample(np.repeat(height, np.diff(np.concatenate(([0], cuts, [n])))), records, seed + 1)


def spikes(n: int = 4_096, records: int = 100_000, seed: int = 0, share: float = 0.03) -> IntArray:
    """Mostly empty, a share of cells with heavy-tailed counts at random places."""
    draw = _generator(seed)
    weights = np.zeros(n)
    places = draw.integers(0, n, max(1, int(n * share)))
    weights[places] = draw.pareto(1.2, places.size) + 0.1
    return sample(weights, records, seed + 1)


def bell(n: int = 4_096, records: int = 100_000, seed: int = 0) -> IntArray:
    """One smooth hump on a gentle slope: no flat piece anywhere."""
    place = np.arange(n) / n
    return sample(2.0 * np.exp(-(((place - 0.4) / 0.1) ** 2)) + np.exp(-5.0 * place), records, seed)


def slope(n: int = 4_096, records: int = 100_000, seed: int = 0) -> IntArray:
    """Fewer and fewer, evenly so: a straight line."""
    return sample(1.0 - 0.9 * (np.arange(n) + 0.5) / n, records, seed)


def wave(n: int = 4_096, records: int = 100_000, seed: int = 0) -> IntArray:
    """Up and down gently, nowhere empty."""
    return sample(1.0 + 0.6 * np.sin(9.0 * (np.arange(n) + 0.5) / n), records, seed)


def level(n: int = 4_096, records: int = 100_000, seed: int = 0) -> IntArray:
    """Every cell equally likely: nothing to find, and a mechanism that finds something is overfitting."""
    return sample(np.ones(n), records, seed)


def census(
    shape: tuple[int, int, int, int] = (101, 2, 512, 1_001), records: int = 10_000_000, seed: int = 0
) -> IntArray:
    """People by age, gender, occupation and income, as in the Privelet paper: almost all cells empty.

    Ages follow a pyramid; a few occupations hold most people and differ by gender; income is heavy-tailed, grows with
    age and with the occupation, and many have none.
    """
    draw = _generator(seed)
    ages, genders, occupations, incomes = shape
    place = np.arange(ages) / ages
    pyramid = np.exp(-((place / 0.62) ** 2.6)) * (1.0 + 0.1 * np.sin(13.0 * place))
    popular = (1.0 + np.arange(occupations)) ** -1.1
    cells = np.zeros(ages * genders * occupations * incomes, dtype=np.int64)
    for start in range(0, records, 1 << 22):
        count = min(1 << 22, records - start)
        age = draw.choice(ages, count, p=pyramid / pyramid.sum())
        gender = draw.integers(0, genders, count)
        rank = draw.choice(occupations, count, p=popular / popular.sum())
        occupation = (rank * 37 + gender * 11) % occupations
        middle = 0.01 + 0.06 * np.sin(np.pi * np.minimum(age / ages + 0.15, 1.0)) * (
            1.0 + occupation % 32 / 16.0
        )
        earned = middle * np.exp(0.7 * draw.standard_normal(count)) * (draw.random(count) > 0.25)
        income = np.minimum((earned * incomes).astype(np.int64), incomes - 1)
        flat = ((age * genders + gender) * occupations + occupation) * incomes + income
        where, times = np.unique(flat, return_counts=True)
        cells[where] += times
    return cells.reshape(shape)


def settlements(shape: tuple[int, int] = (75, 103), records: int = 186_471, seed: int = 0) -> IntArray:
    """Residents of a grid of small rectangles, as in the lossy compression paper: dense towns, three fifths empty."""
    draw = _generator(seed)
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]] / max(shape)
    density = np.zeros(shape)
    for _ in range(28):
        centre, width = draw.random(2) * np.array(shape) / max(shape), draw.uniform(0.02, 0.07)
        density += draw.pareto(1.8) * np.exp(-((y - centre[0]) ** 2 + (x - centre[1]) ** 2) / (2 * width**2))
    # Blocks differ from their neighbours (parks, towers), and the countryside is empty.
    density *= draw.gamma(2.0, 0.5, shape)
    density[density < np.quantile(density, 0.6)] = 0.0
    return sample(density, records, seed + 1)


def household_survey(records: int = 665, seed: int = 0) -> IntArray:
    """A 16 × 16 table of eight yes-or-no answers of a household survey: few records, most cells empty."""
    draw = _generator(seed)
    odds = draw.uniform(0.08, 0.55, 8)
    answers = (np.arange(256)[:, None] >> np.arange(8)) & 1
    weights = np.prod(np.where(answers == 1, odds, 1 - odds), axis=1)
    # Some answers go together.
    weights = weights * np.exp(1.2 * (answers[:, 0] == answers[:, 3]) - 1.5 * (answers[:, 1] & answers[:, 5]))
    return sample(weights.reshape(16, 16), records, seed + 1)


def ordered_hosts(n: int = 65_536, records: int = 25_714, seed: int = 0) -> IntArray:
    """Connections of hosts by address, almost in order: busy ones together at one end, nearly all others silent."""
    draw = _generator(seed)
    busy = max(1, (34 * n) // 1000)
    weights = np.zeros(n)
    weights[:busy] = (1.0 + np.arange(busy)) ** -0.8
    # Almost: each host is at most a few places from where it would be in order.
    weights[:busy] = weights[:busy][np.argsort(np.arange(busy) + draw.uniform(0, 8, busy))]
    return sample(weights, records, seed + 1)


def paper_003() -> dict[str, Callable[[int], IntArray]]:
    """The four kinds of the lossy compression paper, at its sizes, as makers from a seed."""
    return {
        "Location": lambda seed: settlements(seed=seed),
        "Rochdale": lambda seed: household_survey(seed=seed),
        "Search Log": lambda seed: search_timeline(32_768, 335_889, seed),
        "NetTrace": lambda seed: ordered_hosts(seed=seed),
    }


def road_traffic(n: int = 1_442, records: int = 400_000, seed: int = 0) -> IntArray:
    """Cars on one road by the minute: quiet nights, rough peaks at the rush hours (Rome in paper 002)."""
    day = np.linspace(0.0, 24.0, n)
    peaks = np.exp(-((day - 8.2) ** 2) / 1.5) + 0.8 * np.exp(-((day - 18.0) ** 2) / 3.0)
    peaks += 0.25 * ((day > 7) & (day < 21))
    rough = _generator(seed).lognormal(0.0, 0.7, n)
    return sample(0.01 + peaks * rough, records, seed)


def keyword_log(n: int = 32_768, records: int = 400_000, seed: int = 0) -> IntArray:
    """How often a keyword was searched, interval by interval: mostly nothing, now and then a burst (Log)."""
    random = _generator(seed)
    weights = np.where(random.random(n) < 0.15, random.pareto(1.5, n), 0.0)
    for _ in range(max(3, n // 2_000)):
        start, length = int(random.integers(0, n)), int(random.integers(8, 120))
        weights[start : start + length] += (
            40 * random.random() * np.linspace(1, 0, length)[: max(0, n - start)]
        )
    return sample(weights + 1e-9, records, seed)


def citations(n: int = 2_414, records: int = 27_770, seed: int = 0) -> IntArray:
    """How many papers were cited 1, 2, 3 … times: falling fast, then scattered ones among empty cells (Citations)."""
    return sample(np.arange(1, n + 1, dtype=np.float64) ** -1.9, records, seed)


def incomes(n: int = 7_578, records: int = 500_000, seed: int = 0) -> IntArray:
    """People by income: a log-normal hump heaped on round figures, thin and sparse above (PUMS)."""
    place = np.arange(n) + 1.0
    weights = np.exp(-0.5 * ((np.log(place) - np.log(n / 14)) / 0.8) ** 2) / place
    rounded = (np.arange(n) % 5 == 0) * 3.0 + (np.arange(n) % 25 == 0) * 12.0
    return sample(weights * (0.3 + rounded), records, seed)


def paper_002() -> dict[str, Callable[[int, int], IntArray]]:
    """The four kinds of the building blocks paper: makers from a number of cells (0: the paper's) and a seed."""
    made = {"Rome": road_traffic, "Log": keyword_log, "Citations": citations, "PUMS": incomes}
    return {
        name: lambda n, seed, make=make: make(n, seed=seed) if n else make(seed=seed)  # type: ignore[misc]
        for name, make in made.items()
    }


# ---- weights of planes and cubes, of kinds on which mechanisms for ranges part company ------------------------------


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
    draw, places, weights = _generator(seed), _places(shape), np.zeros(shape)
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
    return hump * np.exp(-np.abs(y - x) / 0.02) * _generator(seed).gamma(2.0, 0.5, shape) + 1e-7


def lone_peak(shape: tuple[int, int], seed: int = 3) -> FloatArray:
    """Nearly all records in one cell, the rest in a few dozen, mostly in line with it."""
    draw, weights = _generator(seed), np.zeros(shape)
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
    draw, weights = _generator(seed), np.zeros(shape)
    weights[0, :] = draw.pareto(0.8, shape[1]) * (draw.random(shape[1]) < 0.3)
    weights[:, 0] = draw.pareto(0.8, shape[0]) * (draw.random(shape[0]) < 0.3)
    weights[0, 0] = weights.sum() * 6
    for _ in range(30):
        weights[draw.integers(0, shape[0]), draw.integers(0, shape[1])] += draw.pareto(1.0) * 0.2
    return weights


def diffuse(shape: tuple[int, int], seed: int = 4) -> FloatArray:
    """Records everywhere, a gentle wave, and every cell for itself."""
    y, x = _places(shape)
    return _generator(seed).gamma(1.0, 1.0, shape) * (1 + 0.5 * np.sin(7 * y) * np.cos(5 * x))


def roads(shape: tuple[int, int], seed: int = 5, count: int = 40) -> FloatArray:
    """Winding lines, denser near the middle."""
    draw, weights = _generator(seed), np.zeros(shape)
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
    uneven: FloatArray = weights**1.5 * _generator(seed + 1).lognormal(0.0, 1.0, shape)
    return uneven


def cascade(shape: tuple[int, ...], seed: int = 6, spread: float = 1.1) -> FloatArray:
    """Uneven at every scale: each box shares its weight unequally among its halves, and some get none."""
    draw, weights = _generator(seed), np.ones([1] * len(shape))
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
    draw = _generator(seed)
    lattice: FloatArray = np.multiply.outer(*sides) * (draw.random(shape) < 0.25)
    return lattice * draw.gamma(1.0, 1.0, shape)


def sparse_peaks(shape: tuple[int, int], seed: int = 22) -> FloatArray:
    """Heavy-tailed counts in one cell of a hundred, more of them around one place."""
    draw = _generator(seed)
    y, x = _places(shape)
    full = draw.random(shape) < 0.04 * np.exp(-((y - 0.4) ** 2 + (x - 0.6) ** 2) / 0.05)
    return np.where(full, draw.pareto(0.9, shape) + 0.1, 0.0)


def smooth_hills(shape: tuple[int, int], number: int) -> FloatArray:
    """Some smooth hills, wide and narrow, that end in nothing; of odd numbers, with a grain of their own."""
    draw, (y, x), weights = np.random.default_rng([91, number]), _places(shape), np.zeros(shape)  # noqa: TID251 -- data only
    for _ in range(int(draw.integers(1, 9))):
        (down, across), angle = draw.uniform(0.15, 0.85, 2), draw.uniform(0.0, np.pi)
        long = 10.0 ** draw.uniform(-1.7, -0.7)
        short = long * 10.0 ** draw.uniform(-0.5, 0.0)
        along = (y - down) * np.cos(angle) + (x - across) * np.sin(angle)
        beside = (x - across) * np.cos(angle) - (y - down) * np.sin(angle)
        hill = np.exp(-0.5 * ((along / long) ** 2 + (beside / short) ** 2))
        weights += draw.exponential() * hill / (long * short)
    weights[weights < 10.0 ** draw.uniform(-4.0, -1.5) * weights.max()] = 0.0
    if number % 2:
        weights = weights * draw.gamma(draw.uniform(0.3, 1.2) ** -2.0, 1.0, shape)
    return weights


def few_tall_cells(shape: tuple[int, int], number: int) -> FloatArray:
    """An empty plane but for tens to hundreds of heavy-tailed cells; of odd numbers, most of them along its edges."""
    draw, weights = np.random.default_rng([92, number]), np.zeros(shape)  # noqa: TID251 -- data only
    count = round(10.0 ** draw.uniform(1.3, 2.8))
    places = [draw.integers(0, n, count) for n in shape]
    if number % 2:
        on_edge = draw.random(count)
        places[0][on_edge < 0.4] = 0
        places[1][on_edge > 0.6] = 0
    np.add.at(weights, tuple(places), draw.pareto(draw.uniform(0.6, 1.5), count) + 0.01)
    return weights


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
