"""Pilot queries: about how many records there are, how far attributes depend on each other, where point masses lie.

Which tables of a cube are worth their budget depends on the first two. Where attributes hardly depend on each other,
tables of one attribute say nearly all, and whatever is spent on the rest measures noise. Evidence of that is cheap:
every attribute is cut into a few blocks, the coarse cube of them is measured once, and its tables of two attributes are
set beside what independence would make of their margins. Of a plane it is asked whether one value has a large part of
the records (`pointmasses`).

Private because it is measurements, each with its own share of the right: a total, and disjoint blocks, or what lies in
cells up to a height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from dphist.arrays import FloatArray
from dphist.errors import MechanismError
from dphist.mechanisms.choosing.pointmasses import find_point_masses, tall_from
from dphist.mechanisms.options import Share, checked
from dphist.mechanisms.trees.layout import box_labels
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Heights, Totals

# What the total and the coarse cube cost, together three percent; with half of it all kinds of questions about made-up
# cubes of three attributes had 1.18 of the best candidate's error instead of 1.14.
TOTAL, BLOCKS = Fraction(1, 128), Fraction(3, 128)
# An attribute is cut into at most 4 blocks, and the coarse cube has at most 1,024 cells.
_SIDES, _CELLS = 4, 1024
# What is believed of dependence before anything was seen: its mean and how far it may lie from that.
_EXPECTED, _WITHIN = 0.01, 0.02


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
