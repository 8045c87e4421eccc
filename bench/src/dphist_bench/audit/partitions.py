"""The law of a partition of a few cells, from all partitions there are: costs and noise written down a second time.

Nothing here is taken from the code that is watched but the question itself: costs are computed in fractions from their
definition, noise is the difference of two geometric draws of NumPy's, and the least total is looked for among all
partitions that the sizes allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng  # noqa: TID251 -- a second source of noise, to compare with

from dphist.private.questions import IntArray, Layout
from dphist.private.segments import AbsoluteDeviation
from dphist_bench.attacks.law import Chances

_DRAWS = 100_000
_MOST_CELLS = 9

Bucket = tuple[int, int]


def partition_law(costs: Any, counts: IntArray, layout: Layout, budget: Fraction) -> Chances:
    """How probable every partition is under the noise that `AbsoluteDeviation` claims to add.

    Args:
        costs: The question.
        counts: The cells, nine at most.
        layout: What is known of them.
        budget: What the partition costs.

    Returns:
        The chances of all partitions, counted over 100,000 draws.
    """
    n = layout.size
    if not isinstance(costs, AbsoluteDeviation) or n > _MOST_CELLS:
        raise TypeError("the law of this partition is not known here")
    partitions = [list(each) for each in _partitions(costs, n)]
    buckets = sorted({bucket for each in partitions for bucket in each})
    longest = max(high - low for low, high in buckets)
    draw = default_rng(20)
    noisy = {}
    for low, high in buckets:
        scale = Fraction(_moved(costs, high - low) + _moved(costs, longest)) / budget
        # A tree may price every level; an untouched price is the same for all.
        price = _price(costs, high - low, low, n)
        noisy[low, high] = _cost(costs, counts[low:high]) + price + _laplace(draw, scale)
    totals = np.stack([sum(noisy[bucket] for bucket in each) for each in partitions])
    # Ties go by a rule of the code's own; here they are broken by chance, and given to nobody in particular.
    winner = (totals + draw.random(totals.shape) * 1e-3).argmin(axis=0)
    many = np.bincount(winner, minlength=len(partitions)) / _DRAWS
    chances = {
        tuple(low for low, _ in each): float(chance) for each, chance in zip(partitions, many, strict=True)
    }
    return Chances(chances, _DRAWS)


def _partitions(costs: AbsoluteDeviation, n: int) -> Iterator[list[Bucket]]:
    if isinstance(costs.sizes, str):
        lengths = range(1, n + 1) if costs.sizes == "all" else [1 << k for k in range(n.bit_length())]
        yield from _split(0, n, set(lengths))
    else:
        top = costs.sizes[0]
        blocks = [(low, min(low + top, n)) for low in range(0, n, top)]
        yield from _product([list(_tree(block, costs.sizes[1:])) for block in blocks])


def _split(low: int, n: int, lengths: set[int]) -> Iterator[list[Bucket]]:
    if low == n:
        yield []
    for high in range(low + 1, n + 1):
        if high - low in lengths:
            for rest in _split(high, n, lengths):
                yield [(low, high), *rest]


def _tree(block: Bucket, lengths: tuple[int, ...]) -> Iterator[list[Bucket]]:
    yield [block]
    low, high = block
    if lengths and high - low > lengths[0]:
        parts = [(start, min(start + lengths[0], high)) for start in range(low, high, lengths[0])]
        yield from _product([list(_tree(part, lengths[1:])) for part in parts])
    elif len(lengths) > 1:
        yield from (each for each in _tree(block, lengths[1:]) if each != [block])


def _product(choices: list[list[list[Bucket]]]) -> Iterator[list[Bucket]]:
    if not choices:
        yield []
        return
    for first in choices[0]:
        for rest in _product(choices[1:]):
            yield [*first, *rest]


def _moved(costs: AbsoluteDeviation, length: int) -> int:
    """By how many steps of the grid one record moves a bucket's cost: 2 − 2/m units, or one about the median."""
    if costs.centre == "median":
        return int(length > 1)
    exact = costs.grid * (2 - Fraction(2, length))
    return -(-exact.numerator // exact.denominator)


def _price(costs: AbsoluteDeviation, length: int, low: int, n: int) -> int:
    steps = 1 if costs.centre == "median" else costs.grid
    if not isinstance(costs.price, tuple) or isinstance(costs.sizes, str):
        price = costs.price[0] if isinstance(costs.price, tuple) else costs.price
        return round(price * steps)
    fitting = [level for level, size in enumerate(costs.sizes) if min(low + int(size), n) - low == length]
    return round(costs.price[fitting[0]] * steps)


def _cost(costs: AbsoluteDeviation, cells: IntArray) -> int:
    values = [int(cell) for cell in cells]
    if costs.centre == "median":
        middle = sorted(values)[len(values) // 2]
        return sum(abs(value - middle) for value in values)
    mean = Fraction(sum(values), len(values))
    exact = costs.grid * sum((abs(value - mean) for value in values), Fraction(0))
    return int((2 * exact + 1) // 2)


def _laplace(draw: Generator, scale: Fraction) -> IntArray:
    if scale == 0:
        return np.zeros(_DRAWS, dtype=np.int64)
    chance = 1.0 - exp(-1.0 / float(scale))
    return draw.geometric(chance, _DRAWS) - draw.geometric(chance, _DRAWS)
