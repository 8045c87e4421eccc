"""Pilot queries: about how many records there are, how far attributes depend on each other, where point masses lie.

Which tables of a cube are worth their budget depends on the first two. Where attributes hardly depend on each other,
tables of one attribute say nearly all, and whatever is spent on the rest measures noise. Evidence of that is cheap:
every attribute is cut into a few blocks, the coarse cube of them is measured once, and its tables of two attributes are
set beside what independence would make of their margins.

Of a plane it is asked whether one value has a large part of the records, as capital gains are mostly nothing, and
people work 40 hours a week. Such a row is as full as many others together, a *wall*: a tree must cut it from its
neighbours all along, with boxes as narrow as it is, and pays for each. So the fullest value is asked for, for little
(`dphist.private.scores.counting`), and set apart. What is left is looked at again.

Private because it is measurements and a choice, each with its own share of the right: a total, and disjoint blocks, or
what lies in cells up to a height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from dphist.arrays import FloatArray
from dphist.errors import MechanismError
from dphist.mechanisms.choosing.asked import long_axes
from dphist.mechanisms.options import Share, checked
from dphist.mechanisms.trees.growing import box_labels
from dphist.private.facts import Facts
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Heights, Totals
from dphist.private.scores.counting import HIGHEST, Heaps, heap_at

# What the total and the coarse cube cost, together three percent; with half of it all kinds of questions about made-up
# cubes of three attributes had 1.18 of the best candidate's error instead of 1.14.
TOTAL, BLOCKS = Fraction(1, 128), Fraction(3, 128)
# An attribute is cut into at most 4 blocks, and the coarse cube has at most 1,024 cells.
_SIDES, _CELLS = 4, 1024
# What is believed of dependence before anything was seen: its mean and how far it may lie from that.
_EXPECTED, _WITHIN = 0.01, 0.02
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


@dataclass(frozen=True)
class PilotAnswer:
    """What pilot queries said; None and nothing where they were not asked."""

    records: float | None = None
    dependence: float | None = None
    """How far attributes depend on each other, from 0, not at all, to 1."""
    spread: float | None = None
    """How many records there are but for tall cells, about."""
    point_masses: tuple[tuple[int, int], ...] = ()
    """Attributes and their values that have a large part of the records."""


@checked
@dataclass(frozen=True, kw_only=True)
class PilotQuery:
    """What is asked before anything is chosen, and what for: a value, so that a release can name it.

    Args:
        total: The share of the right that buys a noisy total.
        blocks: The share that buys the coarse cube; it is left out if that is 0.
        spread: The share of what is left then that buys how many records there are but for tall cells.
        heap: The share of what is left then that buys which value of an attribute is a point mass of these; after each
            that is found the same once more.
    """

    total: Share = TOTAL
    blocks: Fraction = BLOCKS
    spread: Fraction = Fraction(0)
    heap: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not (0 < self.total < 1 and 0 <= self.blocks < 1 - self.total):
            raise MechanismError("look: the shares of total and blocks must lie above 0 and leave something")
        if not 0 <= self.spread < 1 or not 0 <= self.heap < 1 or (self.heap and not self.spread):
            raise MechanismError("look: spread must be a share below 1, and so must heap, which follows it")

    def at(self, data: PrivateCounts) -> tuple[PilotAnswer, PrivateCounts]:
        """Ask, and give back what is left of the right."""
        left = 1 - self.total - self.blocks
        first, *second, rest = data.split(*(share for share in (self.total, self.blocks, left) if share))
        noisy = first.measure(Totals())
        # A total lost in its noise may be as large as the noise.
        records = max(float(noisy.values.sum()), math.sqrt(float(noisy.variance)))
        seen = PilotAnswer(records, _dependence_of(second[0], records) if second else None)
        if self.spread:
            seen, rest = self.lower(rest, seen)
        return self.find(rest, seen) if self.heap else (seen, rest)

    def lower(self, data: PrivateCounts, seen: PilotAnswer) -> tuple[PilotAnswer, PrivateCounts]:
        """Ask how many records there are but for tall cells, once they were counted."""
        first, rest = data.split(self.spread, 1 - self.spread)
        query = Heights(tall_from(seen.records or 0.0))
        return replace(seen, spread=float(first.measure(query).values.sum())), rest

    def find(self, data: PrivateCounts, seen: PilotAnswer) -> tuple[PilotAnswer, PrivateCounts]:
        """Ask for point masses, then."""
        found, rest = find_point_masses(data, seen.records or 0.0, seen.spread or 0.0, self.heap)
        return replace(seen, point_masses=found), rest


def _dependence_of(data: PrivateCounts, records: float) -> float:
    """How far attributes depend on each other, from a coarse cube that is measured with all of a right."""
    most = max(2, min(_SIDES, math.floor(_CELLS ** (1.0 / len(data.shape)) + 1e-9)))
    shape = tuple(min(size, most) for size in data.shape)
    labels = box_labels(
        [np.arange(size) * blocks // size for size, blocks in zip(data.shape, shape, strict=True)]
    )
    seen = data.partition(labels, math.prod(shape)).measure(Totals())
    counts = np.asarray(seen.values, dtype=np.float64).reshape(shape)
    return dependence(counts, float(seen.variance), records)


def dependence(blocks: FloatArray, variance: float, records: float) -> float:
    """How far attributes depend on each other, from 0 to 1, by noisy counts of blocks.

    For two attributes with parts p and q of the records in their blocks and residuals r from independence, it is
    Σr² ÷ (records² (1 − Σp²)(1 − Σq²)), the noise in Σr² taken off; over all pairs of attributes both sides are added
    up. What noise leaves open is filled in by what is expected, and it is never said to be less than noise may hide.
    """
    energy = against = doubt = 0.0
    for pair in combinations(range(blocks.ndim), 2):
        others = tuple(axis for axis in range(blocks.ndim) if axis not in pair)
        table = blocks.sum(axis=others)
        each = variance * blocks.size / table.size
        one, two = (_parts(table.sum(axis=place)) for place in (1, 0))
        apart = table - np.outer(one, two) * float(table.sum())
        free = math.prod(size - 1 for size in table.shape)
        energy += float((apart * apart).sum()) - free * each
        against += records**2 * (1.0 - float(one @ one)) * (1.0 - float(two @ two))
        doubt += 2.0 * free * each**2
    if against <= 0.0:
        return _EXPECTED
    known = _WITHIN**2 / (_WITHIN**2 + doubt / against**2)
    mean = known * energy / against + (1.0 - known) * _EXPECTED
    # What noise may hide is not said to be nothing.
    return min(max(mean, _EXPECTED * math.sqrt(1.0 - known)), 1.0)


def _parts(counts: FloatArray) -> FloatArray:
    """Parts of the whole, none below zero."""
    kept = np.maximum(counts, 0.0)
    whole = float(kept.sum())
    return np.asarray(kept / whole if whole > 0.0 else np.full(kept.size, 1.0 / kept.size), dtype=np.float64)


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
