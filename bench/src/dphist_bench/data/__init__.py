"""Counts to measure on: here synthetic ones of the kinds that the papers use, made fresh from a seed.

    drawn       lines, planes, cubes and people drawn by number from a grammar of shapes, so that nobody chose them
    coverage    what intervals are tried on
    people      records of people, for DPCube
    files       the papers' real files, for whoever has them

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


def generator(seed: int) -> np.random.Generator:  # noqa: TID251 -- data only
    """Draws of a seed."""
    return np.random.default_rng(seed)  # noqa: TID251 -- data only


def sample(weights: FloatArray, records: int, seed: int) -> IntArray:
    """Draw ``records`` records from a population with these weights (a multinomial sample)."""
    flat = np.asarray(weights, dtype=np.float64).ravel()
    counts = generator(seed).multinomial(records, flat / flat.sum())
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
    draw = generator(seed)
    time = np.linspace(0.0, 1.0, n)
    weights = 0.2 + np.exp(3.0 * time) / 8.0
    for centre, height in zip(draw.uniform(0.55, 0.98, 6), draw.pareto(1.1, 6) * 6 + 4, strict=True):
        weights = weights + height * np.exp(-np.abs(time - centre) / 0.004)
    return sample(weights, records, seed + 1)


def network_trace(n: int = 1_423, records: int = 65_536, seed: int = 0) -> IntArray:
    """How many hosts were contacted by 1, 2, 3 … others: almost all by very few, a handful by a thousand."""
    value = np.arange(1, n + 1, dtype=np.float64)
    return sample(value**-2.1 + 1e-10 * n, records, seed)


def social_degrees(n: int = 1_678, records: int = 32_768, seed: int = 0) -> IntArray:
    """How many people have 1, 2, 3 … friends: a broad log-normal hump that thins out over a long tail."""
    value = np.arange(1, n + 1, dtype=np.float64)
    weights = np.exp(-0.5 * ((np.log(value) - 3.6) / 1.15) ** 2) / value
    return sample(weights, records, seed)


def steps(n: int = 4_096, records: int = 100_000, seed: int = 0, levels: int | None = None) -> IntArray:
    """Piecewise constant levels with a heavy tail: what segmentation is made for."""
    draw = generator(seed)
    pieces = max(2, n // 50) if levels is None else max(1, levels)
    cuts = np.sort(draw.integers(0, n, pieces - 1))
    height = draw.pareto(1.0, pieces) + 1e-3
    return sample(np.repeat(height, np.diff(np.concatenate(([0], cuts, [n])))), records, seed + 1)


def spikes(n: int = 4_096, records: int = 100_000, seed: int = 0, share: float = 0.03) -> IntArray:
    """Mostly empty, a share of cells with heavy-tailed counts at random places."""
    draw = generator(seed)
    weights = np.zeros(n)
    places = draw.integers(0, n, max(1, int(n * share)))
    weights[places] = draw.pareto(1.2, places.size) + 0.1
    return sample(weights, records, seed + 1)


def bell(n: int = 4_096, records: int = 100_000, seed: int = 0) -> IntArray:
    """One smooth hump on a gentle slope: no flat piece anywhere."""
    place = np.arange(n) / n
    return sample(2.0 * np.exp(-(((place - 0.4) / 0.1) ** 2)) + np.exp(-5.0 * place), records, seed)


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
    draw = generator(seed)
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
    draw = generator(seed)
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
    draw = generator(seed)
    odds = draw.uniform(0.08, 0.55, 8)
    answers = (np.arange(256)[:, None] >> np.arange(8)) & 1
    weights = np.prod(np.where(answers == 1, odds, 1 - odds), axis=1)
    # Some answers go together.
    weights = weights * np.exp(1.2 * (answers[:, 0] == answers[:, 3]) - 1.5 * (answers[:, 1] & answers[:, 5]))
    return sample(weights.reshape(16, 16), records, seed + 1)


def ordered_hosts(n: int = 65_536, records: int = 25_714, seed: int = 0) -> IntArray:
    """Connections of hosts by address, almost in order: busy ones together at one end, nearly all others silent."""
    draw = generator(seed)
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
    """Cars on one road by the minute: quiet nights, rough peaks at the rush hours (Rome in Kellaris et al. 2019)."""
    day = np.linspace(0.0, 24.0, n)
    peaks = np.exp(-((day - 8.2) ** 2) / 1.5) + 0.8 * np.exp(-((day - 18.0) ** 2) / 3.0)
    peaks += 0.25 * ((day > 7) & (day < 21))
    rough = generator(seed).lognormal(0.0, 0.7, n)
    return sample(0.01 + peaks * rough, records, seed)


def keyword_log(n: int = 32_768, records: int = 400_000, seed: int = 0) -> IntArray:
    """How often a keyword was searched, interval by interval: mostly nothing, now and then a burst (Log)."""
    random = generator(seed)
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
