"""On which value of an attribute records heap up: questions that find it.

Capital gains are mostly nothing, and people work 40 hours a week: a row of a plane is as full as many others together,
a *wall*. A tree must cut it from its neighbours all along, with boxes as narrow as it is, and pays for each. So the
fullest value is asked for, for little (`dphist.private.scores.heaps`), and set apart. What is left is looked at again.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dphist.mechanisms.order import long_axes
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals
from dphist.private.scores.heaps import HIGHEST, Heaps, heap_at

# A cell counts for at most 1/64 of all records, so that it is no heap by itself. A heap has a tenth of what is counted
# and 4 times what it would have if all values were alike; it must stand 3 nats above luck to be called one. And it has
# more than twice what either value beside it has: the top of a hill is no wall.
_TALL, _PART, _FULLER, _SURE, _BESIDE = 64, 0.1, 4.0, 3.0, 2.0
# From 500 noise scales of records on, but for tall cells, a heap is worth looking for, up to 3 a cell: where all cells
# are full a wall costs nothing. It costs 1/128 of the budget to ask for these; then 100 nats tell all of them from
# none, for 1/256 to 1/32 of the budget.
MANY, _FULLEST, SPREAD = 500.0, 3.0, Fraction(1, 128)
_NATS, _CHEAPEST, _DEAREST = 100.0, 256, 32
# What it costs to ask what values beside the chosen one have, beside the choice.
_NEIGHBOURS = Fraction(1, 2)


def tall_from(records: float) -> int:
    """How many records of a cell are counted at most, if there are about ``records`` in all."""
    return max(1, math.floor(records / _TALL))


def price(data: PrivateCounts, records: float) -> Fraction:
    """What it is worth to look for heaps among ``records``, which leave out those in tall cells; 0 where it is not.

    Args:
        data: A right, of which only public facts are read.
        records: About how many there are.

    Returns:
        A share.
    """
    spread = records / float(data.unit_scale)
    if not MANY <= spread < _FULLEST * data.size:
        return Fraction(0)
    return Fraction(1, min(max(round(spread / _NATS), _DEAREST), _CHEAPEST))


def find_heaps(
    data: PrivateCounts, records: float, spread: float, price: Fraction
) -> tuple[tuple[tuple[int, int], ...], PrivateCounts]:
    """Ask on which value of an attribute records heap up, and after each that is found for another attribute.

    Private because it is questions with their proofs, each for its own share of the right.

    Args:
        data: The right.
        records: About how many there are.
        spread: About how many there are but for tall cells.
        price: The share that one choice costs.

    Returns:
        Attributes and their values, and what is left of the right.
    """
    height, left = tall_from(records), Fraction(1)

    def pay(part: Fraction) -> PrivateCounts:
        nonlocal data, left
        asked, data = data.split(part / left, 1 - part / left)
        left -= part
        return asked

    axes = set(range(len(data.shape)) if data.domain is None else long_axes(data.domain))
    heaps: list[tuple[int, int]] = []
    while axes:
        asked = pay(price)
        # What luck makes of the fullest among all values of all attributes, and some.
        luck = (math.log(sum(data.shape)) + _SURE) * float(asked.unit_scale)
        scores = Heaps(
            tuple(
                math.ceil(max(_PART, _FULLER / size) * spread + luck) if axis in axes else HIGHEST
                for axis, size in enumerate(data.shape)
            ),
            height,
        )
        heap = heap_at(int(asked.choose(scores)[0, 0]), data.shape)
        if heap is None or not _wall(pay(_NEIGHBOURS * price), *heap):
            break
        heaps.append(heap)
        axes.remove(heap[0])
    return tuple(heaps), data


def _wall(data: PrivateCounts, axis: int, value: int) -> bool:
    """Whether a value has far more records than those beside it."""
    place = np.full(data.shape[axis], 3, dtype=np.int64)
    beside = [each for each in (value - 1, value + 1) if 0 <= each < place.size]
    place[[value, *beside]] = range(1 + len(beside))
    along = [-1 if other == axis else 1 for other in range(len(data.shape))]
    labels = np.broadcast_to(place.reshape(along), data.shape)
    own, *others = data.partition(labels, 4).measure(Totals()).values[: 1 + len(beside)].tolist()
    return bool(own > _BESIDE * max(others))
