"""Counts drawn at random from a grammar of shapes: data that nobody has looked at, as many as are wanted.

A number chooses everything: the size of the domain, the parts it is a sum of, how many records there are and what may
be spent. So constants can be chosen on some numbers and judged on others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Attribute, Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram

FloatArray = NDArray[np.float64]
Draws = np.random.Generator  # noqa: TID251 -- data only


def drawn_line(number: int) -> tuple[str, Histogram, str]:
    """A line of 256 to 4,096 cells, 100 to 10⁶ records and an ε of 0.01 to 10."""
    draws = _draws(1, number)
    n = int(draws.choice([256, 1000, 2048, 4096]))
    names, weights = _mixed(draws, n, LINES)
    if draws.random() < 0.2:
        weights[: n // int(draws.integers(2, 6))] = 0.0
        names.append("begins late")
    return _counted(draws, " + ".join(names), weights, Domain([Ordinal("x", range(n))]))


def drawn_plane(number: int) -> tuple[str, Histogram, str]:
    """A plane of some thousand cells: the same for two axes."""
    draws = _draws(2, number)
    shapes = [(64, 64), (128, 128), (50, 200), (100, 30), (256, 64)]
    shape = shapes[int(draws.integers(len(shapes)))]
    names, weights = _mixed(draws, shape, PLANES)
    axes = [Ordinal(f"x{axis}", range(size)) for axis, size in enumerate(shape)]
    return _counted(draws, " + ".join(names), weights, Domain(axes))


def drawn_cube(number: int) -> tuple[str, Histogram, str]:
    """A cube of three to eight attributes, most of them nominal, of people who fall into a few classes."""
    draws = _draws(3, number)
    attributes: list[Attribute] = []
    wanted, cells = int(draws.integers(3, 9)), 1
    for axis in range(wanted):
        long = axis == 0 and draws.random() < 0.5
        size = int(draws.integers(30, 101)) if long else int(draws.integers(2, 13))
        if cells * size > 150_000:
            size = 2
        if cells * size > 150_000:
            break
        cells *= size
        attributes.append(
            Ordinal(f"x{axis}", range(size)) if long else Nominal(f"x{axis}", [str(v) for v in range(size)])
        )
    domain = Domain(attributes)
    weights = np.zeros(domain.shape)
    classes, sharp = int(draws.integers(1, 9)), float(draws.choice([0.1, 0.3, 1.0, 3.0]))
    for one in range(classes):
        part = np.ones((1,) * len(attributes))
        for axis, attribute in enumerate(attributes):
            if isinstance(attribute, Ordinal):
                place = np.arange(attribute.size) / attribute.size
                values = np.exp(-0.5 * ((place - draws.random()) / draws.uniform(0.03, 0.3)) ** 2)
            else:
                values = draws.dirichlet(np.full(attribute.size, sharp))
            part = part * values.reshape([-1 if a == axis else 1 for a in range(len(attributes))])
        weights += part / max(float(part.sum()), 1e-300) / (one + 1)
    name = f"{len(attributes)} attributes, {classes} classes, sharpness {sharp:g}"
    return _counted(draws, name, weights, domain)


def drawn_people(number: int) -> tuple[str, Histogram, str]:
    """People of three to seven attributes, of which few pairs hang together, some of these closely: most do not.

    Each attribute has a spread of its own. One in three leans on another one: as it stands for a part of the people,
    and for the rest it goes by that other's value, smoothly where values are ordered.
    """
    draws = _draws(4, number)
    wanted = int(draws.integers(3, 8))
    shape = [int(draws.integers(30, 101)) if draws.random() < 0.7 else int(draws.integers(5, 17))]
    while len(shape) < wanted:
        size = int(draws.choice([2, 2, 3, 5, 7, 9, 16]))
        shape.append(size if math.prod(shape) * size <= 60_000 else 2)
    weights, leaning = np.ones((1,) * wanted), []
    for axis, size in enumerate(shape):
        own = _habit(draws, size, float(draws.random()), ordered=axis == 0)
        rows = own[None, :]
        other = int(draws.integers(axis)) if axis and draws.random() < 0.35 else None
        if other is not None:
            close, turn = float(draws.uniform(0.15, 1.0)), float(draws.random())
            kinds = [_habit(draws, size, float(draws.random()), ordered=False) for _ in range(3)]
            place = (np.arange(shape[other]) / shape[other] + turn) % 1.0 * len(kinds)
            rows = (1.0 - close) * own + close * np.stack([kinds[int(each)] for each in place])
            leaning.append(f"{other}-{axis} {close:.1f}")
        sides = [size if a == axis else shape[a] if a == other else 1 for a in range(wanted)]
        weights = weights * rows.reshape(sides)
    attributes: list[Attribute] = [Ordinal("x0", range(shape[0]))]
    attributes += [Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(shape) if a]
    records, epsilon = round(10.0 ** draws.uniform(3.0, 5.0)), str(draws.choice(["0.1", "1"]))
    counts = draws.multinomial(records, (weights / weights.sum()).reshape(-1)).reshape(shape)
    name = f"{'x'.join(map(str, shape))}, {', '.join(leaning) or 'nothing leans'}"
    return name, Histogram(Domain(attributes), counts.astype(np.int64)), epsilon


def drawn_space(number: int) -> tuple[str, Histogram, str]:
    """People of three to five attributes, of which two or three are ordered and long: age, income, hours of a day.

    The first two are a plane of `drawn_plane`'s kinds, or go by chance. Every other attribute goes by chance, or by the
    first one for a part of the people.
    """
    draws = _draws(5, number)
    plane = int(draws.choice([24, 50, 64, 100])), int(draws.choice([16, 24, 31, 40]))
    names, weights = [], np.zeros(plane)
    for _ in range(int(draws.integers(1, 3))):
        kind = draws.choice(["chance", "modes", "diagonal", "towns", "product", "modes"])
        if kind == "chance":
            down, across = (
                _habit(draws, size, float(draws.uniform(0.1, 0.6)), ordered=True) for size in plane
            )
            made = np.outer(down, across)
        else:
            made = PLANES[str(kind)](draws, plane)
        names.append(str(kind))
        weights += draws.exponential() * made / max(float(made.sum()), 1e-300)
    shape = list(plane)
    if draws.random() < 0.25:
        shape.append(int(draws.choice([16, 24])))
    ordered = len(shape)
    while len(shape) < ordered + int(draws.integers(1, 3)) and len(shape) < 5:
        size = int(draws.choice([2, 2, 3, 4, 5, 7, 9]))
        shape.append(size if math.prod(shape) * size <= 100_000 else 2)
    for axis, size in list(enumerate(shape))[2:]:
        own = _habit(draws, size, float(draws.random()), ordered=axis < ordered)
        rows = np.broadcast_to(own, (plane[0], size))
        if draws.random() < 0.5:
            close = float(draws.uniform(0.1, 0.8))
            kinds = [_habit(draws, size, float(draws.random()), ordered=axis < ordered) for _ in range(3)]
            place = np.arange(plane[0]) * len(kinds) // plane[0]
            rows = (1.0 - close) * own + close * np.stack([kinds[int(each)] for each in place])
            names.append(f"0-{axis} {close:.1f}")
        weights = weights[..., None] * rows.reshape([plane[0], *[1] * (axis - 1), size])
    attributes: list[Attribute] = [
        Ordinal(f"x{axis}", range(size)) for axis, size in enumerate(shape[:ordered])
    ]
    attributes += [Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(shape) if a >= ordered]
    records, epsilon = round(10.0 ** draws.uniform(3.0, 6.0)), str(draws.choice(["0.1", "1"]))
    counts = draws.multinomial(records, _chances(weights)).reshape(shape)
    name = f"{'x'.join(map(str, shape))}, {', '.join(names)}"
    return name, Histogram(Domain(attributes), counts.astype(np.int64)), epsilon


def _mixed(
    draws: Draws, shape: Any, kinds: Mapping[str, Callable[..., FloatArray]]
) -> tuple[list[str], FloatArray]:
    """One to three parts with weights of their own, perhaps roughened; and what they are."""
    names, weights = [], np.zeros(shape)
    for _ in range(int(draws.integers(1, 4))):
        name = list(kinds)[int(draws.integers(len(kinds)))]
        part = kinds[name](draws, shape)
        names.append(name)
        weights += draws.exponential() * part / max(float(part.sum()), 1e-300)
    if draws.random() < 0.25:
        weights *= np.exp(draws.uniform(0.1, 1.5) * draws.standard_normal(shape))
        names.append("rough")
    return names, weights


def _habit(draws: Draws, size: int, place: float, *, ordered: bool) -> FloatArray:
    """How values are spread: a hill where they are ordered, a few common ones else."""
    if ordered:
        where = np.arange(size) / size
        hill = np.exp(-0.5 * ((where - place) / float(draws.uniform(0.1, 0.3))) ** 2) + 1e-4
        return np.asarray(hill / hill.sum())
    return np.asarray(draws.dirichlet(np.full(size, 0.7)) * 0.98 + 0.02 / size)


def _draws(sort: int, number: int) -> Draws:
    return np.random.default_rng([7, sort, number])  # noqa: TID251 -- data only


def _counted(draws: Draws, name: str, weights: FloatArray, domain: Domain) -> tuple[str, Histogram, str]:
    """Draw so many records, and say what may be spent."""
    records = round(10.0 ** draws.uniform(2.0, 6.0))
    epsilon = str(draws.choice(["0.01", "0.03", "0.1", "0.3", "1", "3", "10"]))
    counts = draws.multinomial(records, _chances(weights)).astype(np.int64).reshape(weights.shape)
    return name, Histogram(domain, counts), epsilon


def _chances(weights: FloatArray) -> FloatArray:
    """The chance of each cell; all alike where parts were drawn that leave nothing anywhere."""
    whole = float(weights.sum())
    return (weights / whole if whole > 0.0 else np.full(weights.shape, 1.0 / weights.size)).reshape(-1)


def _plateaus(draws: Draws, n: int) -> FloatArray:
    edges = np.sort(draws.integers(0, n + 1, 2 * int(draws.integers(1, 8))))
    out = np.zeros(n)
    for low, high in edges.reshape(-1, 2):
        out[low : high + 1] += draws.exponential()
    return out


def _spikes(draws: Draws, n: int) -> FloatArray:
    out = np.zeros(n)
    at = draws.integers(0, n, round(10.0 ** draws.uniform(0.0, math.log10(n / 4))))
    out[at] += draws.pareto(draws.uniform(0.6, 2.0), at.size) + 0.05
    return out


def _bumps(draws: Draws, n: int) -> FloatArray:
    x, out = np.arange(n) / n, np.zeros(n)
    for _ in range(int(draws.integers(1, 5))):
        out += draws.exponential() * np.exp(
            -0.5 * ((x - draws.random()) / 10.0 ** draws.uniform(-2.5, -0.5)) ** 2
        )
    return out


def _tail(draws: Draws, n: int) -> FloatArray:
    return np.asarray((1.0 + np.arange(n)) ** -draws.uniform(0.4, 2.5), dtype=np.float64)


def _decay(draws: Draws, n: int) -> FloatArray:
    return np.asarray(np.exp(-np.arange(n) / (n * 10.0 ** draws.uniform(-2.0, 0.0))), dtype=np.float64)


def _walk(draws: Draws, n: int) -> FloatArray:
    walk = np.cumsum(draws.standard_normal(n)) * draws.uniform(0.02, 0.4)
    return np.asarray(np.exp(walk - walk.max()), dtype=np.float64)


def _comb(draws: Draws, n: int) -> FloatArray:
    period = int(draws.integers(2, 41))
    return np.where(np.arange(n) % period == int(draws.integers(period)), 1.0, 0.0)


def _heaped(draws: Draws, n: int) -> FloatArray:
    """Rounded values: a smooth hump, and more on multiples of ten and of a hundred."""
    x = np.arange(n)
    often = np.where(x % 100 == 0, 60.0, np.where(x % 10 == 0, 12.0, np.where(x % 5 == 0, 4.0, 1.0)))
    return np.asarray(often * np.exp(-0.5 * ((x / n - draws.random()) / 0.2) ** 2), dtype=np.float64)


def _islands(draws: Draws, n: int) -> FloatArray:
    out = np.zeros(n)
    for _ in range(int(draws.integers(2, 30))):
        length = int(draws.integers(1, max(2, n // 50)))
        start = int(draws.integers(0, n - length + 1))
        out[start : start + length] = draws.pareto(1.0) + 0.1
    return out


def _level(draws: Draws, n: int) -> FloatArray:
    return np.ones(n)


def _saw(draws: Draws, n: int) -> FloatArray:
    period = int(draws.integers(5, max(6, n // 4)))
    return np.asarray((np.arange(n) % period) / period, dtype=np.float64)


LINES: dict[str, Callable[[Draws, int], FloatArray]] = {
    "plateaus": _plateaus,
    "spikes": _spikes,
    "bumps": _bumps,
    "heavy tail": _tail,
    "decay": _decay,
    "walk": _walk,
    "comb": _comb,
    "heaped": _heaped,
    "islands": _islands,
    "level": _level,
    "saw": _saw,
}


def _places(shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    y, x = np.mgrid[0 : shape[0], 0 : shape[1]].astype(np.float64)
    return y / shape[0], x / shape[1]


def _modes(draws: Draws, shape: tuple[int, ...]) -> FloatArray:
    y, x = _places(shape)
    out = np.zeros(shape)
    for _ in range(int(draws.integers(1, 5))):
        width = 10.0 ** draws.uniform(-2.0, -0.6)
        out += draws.exponential() * np.exp(
            -0.5 * ((y - draws.random()) ** 2 + (x - draws.random()) ** 2) / width**2
        )
    return out


def _diagonal(draws: Draws, shape: tuple[int, ...]) -> FloatArray:
    """A narrow band, of which only some cells are there."""
    y, x = _places(shape)
    band = np.abs(x - draws.choice([-1.0, 1.0]) * y - draws.uniform(-0.2, 0.8))
    return np.where(
        (band < 10.0 ** draws.uniform(-2.3, -1.0)) & (draws.random(shape) < draws.random()), 1.0, 0.0
    )


def _towns(draws: Draws, shape: tuple[int, ...]) -> FloatArray:
    y, x = _places(shape)
    out = np.zeros(shape)
    for _ in range(int(draws.integers(5, 60))):
        width = 10.0 ** draws.uniform(-2.3, -1.3)
        away = (y - draws.random()) ** 2 + (x - draws.random()) ** 2
        out += draws.pareto(1.2) * np.exp(-0.5 * away / width**2)
    return np.where(out > 1e-3 * out.max(), out, 0.0)


def _dots(draws: Draws, shape: tuple[int, ...]) -> FloatArray:
    return _spikes(draws, math.prod(shape)).reshape(shape)


def _streets(draws: Draws, shape: tuple[int, ...]) -> FloatArray:
    out = np.zeros(shape)
    for _ in range(int(draws.integers(1, 10))):
        if draws.random() < 0.5:
            out[int(draws.integers(shape[0])), :] += draws.exponential()
        else:
            out[:, int(draws.integers(shape[1]))] += draws.exponential()
    return out


def _outer(draws: Draws, shape: tuple[int, ...]) -> FloatArray:
    """Two attributes that do not depend on each other, each of any shape a line may have."""
    parts = list(LINES.values())
    one, two = (parts[int(draws.integers(len(parts)))](draws, n) for n in shape)
    return np.outer(one, two)


def _boards(draws: Draws, shape: tuple[int, ...]) -> FloatArray:
    """Rectangles, each level inside."""
    out = np.zeros(shape)
    for _ in range(int(draws.integers(1, 8))):
        a, b = np.sort(draws.integers(0, shape[0] + 1, 2))
        c, d = np.sort(draws.integers(0, shape[1] + 1, 2))
        out[a : b + 1, c : d + 1] += draws.exponential()
    return out


PLANES: dict[str, Callable[[Draws, tuple[int, ...]], FloatArray]] = {
    "modes": _modes,
    "diagonal": _diagonal,
    "towns": _towns,
    "dots": _dots,
    "streets": _streets,
    "product": _outer,
    "rectangles": _boards,
    "level": lambda draws, shape: np.ones(shape),
}
