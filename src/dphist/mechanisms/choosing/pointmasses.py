"""Point masses: values of an attribute that have a large part of the records, and questions that find them.

Capital gains are mostly nothing, and people work 40 hours a week: a row of a plane is as full as many others together,
a *wall*. A tree must cut it from its neighbours all along, with boxes as narrow as it is, and pays for each. So the
fullest value is asked for, for little (`dphist.private.scores.heaps`), and set apart. What is left is looked at again.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dphist.mechanisms.order import long_axes
from dphist.private.facts import Facts
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Totals
from dphist.private.scores.heaps import HIGHEST, Heaps, heap_at

# A cell counts for at most 1/64 of all records, so that it is no point mass of its attribute by itself. A point mass
# has a tenth of what is counted and 4 times what it would have if all values were alike; it must beat the null by 3
# nats. And it has more than twice what either value beside it has: the top of a hill is no wall.
_TALL, _PART, _FULLER, _SURE, _BESIDE = 64, 0.1, 4.0, 3.0, 2.0
# From 500 noise scales of records on, but for tall cells, a point mass is worth looking for, up to 3 a cell: where all
# cells are full a wall costs nothing. It costs 1/128 of the budget to ask for these; then 100 nats tell all of them
# from none, for 1/256 to 1/32 of the budget.
MANY, _FULLEST, SPREAD = 500.0, 3.0, Fraction(1, 128)
_NATS, _CHEAPEST, _DEAREST = 100.0, 256, 32
# What it costs to ask what values beside the chosen one have, beside the choice.
_NEIGHBOURS = Fraction(1, 2)


def tall_from(records: float) -> int:
    """How many records of a cell are counted at most, if there are about ``records`` in all."""
    return max(1, math.floor(records / _TALL))


def price(data: Facts, records: float) -> Fraction:
    """The share that is worth paying to look for point masses among ``records``, tall cells left out; 0 for none."""
    spread = records / float(data.unit_scale)
    if not MANY <= spread < _FULLEST * data.size:
        return Fraction(0)
    return Fraction(1, min(max(round(spread / _NATS), _DEAREST), _CHEAPEST))


def find_point_masses(
    data: PrivateCounts, records: float, spread: float, price: Fraction
) -> tuple[tuple[tuple[int, int], ...], PrivateCounts]:
    """Ask for the fullest value of an attribute, and after each that is found for one of another attribute.

    ``spread`` is about how many of the records there are but for tall cells, ``price`` the share that one choice costs.
    Gives attributes and their values, and what is left of the right.

    Private because it is questions with their proofs, each for its own share of the right.
    """
    height, left = tall_from(records), Fraction(1)

    def pay(part: Fraction) -> PrivateCounts:
        nonlocal data, left
        asked, data = data.split(part / left, 1 - part / left)
        left -= part
        return asked

    axes = set(range(len(data.shape)) if data.domain is None else long_axes(data.domain))
    found: list[tuple[int, int]] = []
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
        value = heap_at(int(asked.choose(scores)[0, 0]), data.shape)
        if value is None or not _wall(pay(_NEIGHBOURS * price), *value):
            break
        found.append(value)
        axes.remove(value[0])
    return tuple(found), data


def _wall(data: PrivateCounts, axis: int, value: int) -> bool:
    """Whether a value has far more records than those beside it."""
    place = np.full(data.shape[axis], 3, dtype=np.int64)
    beside = [each for each in (value - 1, value + 1) if 0 <= each < place.size]
    place[[value, *beside]] = range(1 + len(beside))
    along = [-1 if other == axis else 1 for other in range(len(data.shape))]
    labels = np.broadcast_to(place.reshape(along), data.shape)
    own, *others = data.partition(labels, 4).measure(Totals()).values[: 1 + len(beside)].tolist()
    return bool(own > _BESIDE * max(others))
