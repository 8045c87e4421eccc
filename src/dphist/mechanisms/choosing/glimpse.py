"""A first look at a cube, for little: about how many records there are, and how far attributes depend on each other.

Which tables of a cube are worth their budget hangs on both. Where attributes hardly depend on each other, tables of one
attribute say nearly all, and whatever is spent on the rest measures noise. Evidence of that is cheap: every attribute
is cut into a few blocks, the coarse cube of them is measured once, and its tables of two attributes are set beside
what chance alone would make of their margins.

Private because it is measurements, each with its own share of the right: a total, and disjoint blocks, or how far pairs
are from independence (`dphist.private.queries.dependence` has the proof), or what lies in low cells (`Heights`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.errors import MechanismError
from dphist.inference.tables.measured import Axes
from dphist.mechanisms.choosing.heaps import find_heaps, tall_from
from dphist.mechanisms.options import Large, checked
from dphist.mechanisms.order import long_axes
from dphist.mechanisms.wide.outlook import SAMPLING
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Heights, Totals
from dphist.private.queries.dependence import TopExcess
from dphist.private.queries.tables import TableTotals
from dphist.private.records import PrivateRecords

FloatArray = NDArray[np.float64]

# What the total and the coarse cube cost, together three percent; with half of it all kinds of questions about made-up
# cubes of three attributes had 1.18 of the best candidate's error instead of 1.14.
TOTAL, BLOCKS = Fraction(1, 128), Fraction(3, 128)
# Of a look at heights, what low cells get: they decide by few noise scales, tall ones are seen by their height.
FOR_LOW = Fraction(4, 5)
# What is believed of dependence before anything was seen: its mean and how far it may lie from that.
_EXPECTED, _WITHIN = 0.01, 0.02
# So many times the root of the dependence that blocks show is the total variation of pairs of which they hide nothing,
# and so many times what they show of one pair is what it may have; noise mostly makes less than so many times its mean.
_BY_BLOCKS, _SHOWN, _MOSTLY = 2.0, 1.5, 1.3


@dataclass(frozen=True, eq=False)
class Crowd:
    """How full the blocks of a first look are.

    Args:
        density: Noisy records a cell of every block, an axis an attribute.
        cells: How many cells each block has.
    """

    density: FloatArray
    cells: FloatArray


@dataclass(frozen=True)
class Glimpse:
    """What a first look says.

    Args:
        records: About how many there are.
        dependence: How far attributes depend on each other, from 0, not at all, to 1; None if nobody looked.
        doubt: The deviation of the noise in what pairs tell; None if nobody asked them.
        crowd: How full blocks are; None if nobody looked.
        low: How many records lie in low cells, about; None if nobody looked.
        tall: How many cells are tall, about.
        blur: The scale of the noise in what is low.
        apart: The mean total variation of the strongest pairs from chance, beyond what sampling makes of it; None if
            nobody asked them.
        elsewhere: The total variation from chance that blocks show of a pair that is not of two long attributes, beyond
            what noise makes of it.
        spread: How many records there are but for tall cells, about; None if nobody looked.
        heaps: Attributes and their values on which records heap up; none also if nobody looked.
    """

    records: float | None = None
    dependence: float | None = None
    doubt: float | None = None
    crowd: Crowd | None = None
    low: float | None = None
    tall: float | None = None
    blur: float = 0.0
    apart: float | None = None
    elsewhere: float = 0.0
    spread: float | None = None
    heaps: tuple[tuple[int, int], ...] = ()

    @property
    def beyond(self) -> float:
        """The total variation from chance of two attributes that blocks hide, its noise taken off; 0 if none.

        Blocks hide a narrow diagonal, and categories each of which has habits of its own. What they show of other pairs
        is not taken for it.
        """
        if self.dependence is None or self.apart is None or self.doubt is None:
            return 0.0
        found = self.apart - self.doubt
        return found if found > max(_BY_BLOCKS * math.sqrt(self.dependence), _SHOWN * self.elsewhere) else 0.0


@checked
@dataclass(frozen=True, kw_only=True)
class Look:
    """What a first look asks, and what for: a value, so that a release can name the look its choice was made after.

    Args:
        total: The share of the right that buys a noisy total.
        blocks: The share that buys the coarse cube; it is left out if that is 0.
        sides: An attribute is cut into at most so many blocks.
        cells: The coarse cube has at most so many cells.
        pairs: The share of what is left then that buys how far some pairs of attributes are from independence, less
            what sampling alone is expected to make of each.
        among: These pairs, each by its two axes.
        top: How many of them, the most dependent ones, are added up.
        heights: The share of what is left after the total that buys how much lies in cells up to a height; four fifths
            of it for those that are low, one for how many are tall.
        height: This height.
        again: The share of what is left then that buys the same once more, where the first left doubt.
        spread: The share of what is left then that buys how many records there are but for tall cells.
        heap: The share of what is left then that buys on which value of an attribute these heap up; after each that is
            found the same once more.

    Example:
        >>> from dphist.testing import open_counts
        >>> seen, rest = Look(blocks=0).at(open_counts([[900, 0], [0, 900]], 1))
        >>> seen.records > 0, seen.dependence, rest.law().scale
        (True, None, Fraction(128, 127))
    """

    total: Fraction = TOTAL
    blocks: Fraction = BLOCKS
    sides: Large = 4
    cells: Large = 1024
    pairs: Fraction = Fraction(0)
    among: tuple[Axes, ...] = ()
    top: Large = 0
    heights: Fraction = Fraction(0)
    height: Large = 0
    again: Fraction = Fraction(0)
    spread: Fraction = Fraction(0)
    heap: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not (0 < self.total < 1 and 0 <= self.blocks < 1 - self.total):
            raise MechanismError("look: the shares of total and blocks must lie above 0 and leave something")
        if self.sides < 1 or self.cells < 1:
            raise MechanismError("look: sides and cells must be at least 1")
        if not 0 <= self.pairs < 1 or bool(self.pairs) != bool(self.among):
            raise MechanismError("look: pairs must be a share below 1, and among says of which")
        if not min(1, len(self.among)) <= self.top <= len(self.among):
            raise MechanismError("look: top must be a number of the pairs among which it looks")
        if not 0 <= self.heights < 1 or bool(self.heights) != (self.height > 0) or self.height < 0:
            raise MechanismError("look: heights must be a share below 1, and height says up to which")
        if not 0 <= self.again < 1 or (self.again and not self.heights):
            raise MechanismError("look: again must be a share below 1, of a look at heights")
        if not 0 <= self.spread < 1 or not 0 <= self.heap < 1 or (self.heap and not self.spread):
            raise MechanismError("look: spread must be a share below 1, and so must heap, which follows it")

    def at(self, data: PrivateCounts) -> tuple[Glimpse, PrivateCounts]:
        """Look, and give back what is left of the right."""
        left = 1 - self.total - self.blocks
        first, *second, rest = data.split(*(share for share in (self.total, self.blocks, left) if share))
        noisy = first.measure(Totals())
        # A total lost in its noise may be as large as the noise.
        records = max(float(noisy.values.sum()), math.sqrt(float(noisy.variance)))
        seen = self._blocks(second[0], records) if second else Glimpse(records)
        if self.heights:
            seen, rest = self.higher(rest, seen)
            seen, rest = self.higher(rest, seen) if self.again else (seen, rest)
        if self.spread:
            seen, rest = self.lower(rest, seen)
        if self.heap:
            return self.heaped(rest, seen)
        return self.further(rest, seen) if self.pairs else (seen, rest)

    def further(self, data: PrivateCounts, seen: Glimpse) -> tuple[Glimpse, PrivateCounts]:
        """See how far pairs are from independence too, once records were counted."""
        first, rest = data.split(self.pairs, 1 - self.pairs)
        records = seen.records or 1.0
        query = TopExcess(self.among, _by_sampling(data.shape, self.among, records), self.top)
        shown = PrivateRecords(first).measure(query)
        unit = 2.0 * records * self.top
        doubt = math.sqrt(float(np.max(shown.variance))) / unit
        return replace(seen, apart=float(shown.values[0]) / unit, doubt=doubt), rest

    def higher(self, data: PrivateCounts, seen: Glimpse) -> tuple[Glimpse, PrivateCounts]:
        """See how much lies in low cells and how many are tall, once records were counted; or once more."""
        share = self.heights if seen.low is None else self.again
        first, second, rest = data.split(FOR_LOW * share, (1 - FOR_LOW) * share, 1 - share)
        shown = first.measure(Heights(self.height, falling=True))
        low, blur = float(shown.values.sum()), float(shown.scale)
        under = float(second.measure(Heights(self.height)).values.sum())
        tall = max(under - max(low, 0.0), 0.0) / self.height
        if seen.low is not None and seen.tall is not None:
            # Both count by the squares of their noise.
            new = seen.blur**2 / (seen.blur**2 + blur**2)
            low, tall = new * low + (1.0 - new) * seen.low, new * tall + (1.0 - new) * seen.tall
            blur *= math.sqrt(new)
        return replace(seen, low=low, tall=tall, blur=blur), rest

    def lower(self, data: PrivateCounts, seen: Glimpse) -> tuple[Glimpse, PrivateCounts]:
        """See how many records there are but for tall cells, once they were counted."""
        first, rest = data.split(self.spread, 1 - self.spread)
        query = Heights(tall_from(seen.records or 0.0))
        return replace(seen, spread=float(first.measure(query).values.sum())), rest

    def heaped(self, data: PrivateCounts, seen: Glimpse) -> tuple[Glimpse, PrivateCounts]:
        """See on which values of attributes these heap up, then."""
        heaps, rest = find_heaps(data, seen.records or 0.0, seen.spread or 0.0, self.heap)
        return replace(seen, heaps=heaps), rest

    def count(self, data: PrivateRecords) -> PrivateRecords:
        """Count records of very many columns, and give back what is left of the right."""
        first, rest = data.split(self.total, 1 - self.total)
        first.measure(TableTotals(((),), (Fraction(1),)))
        return rest

    def _blocks(self, data: PrivateCounts, records: float) -> Glimpse:
        most = max(2, min(self.sides, math.floor(self.cells ** (1.0 / len(data.shape)) + 1e-9)))
        shape = tuple(min(size, most) for size in data.shape)
        labels = np.zeros((1,) * len(shape), dtype=np.int64)
        for axis, (size, blocks) in enumerate(zip(data.shape, shape, strict=True)):
            place = (np.arange(size) * blocks // size).reshape(
                [-1 if a == axis else 1 for a in range(len(shape))]
            )
            labels = labels * blocks + place
        labels = np.broadcast_to(labels, data.shape)
        cells = np.bincount(labels.reshape(-1), minlength=math.prod(shape)).astype(np.float64)
        seen = data.partition(labels, math.prod(shape)).measure(Totals())
        counts = np.asarray(seen.values, dtype=np.float64).reshape(shape)
        depends = dependence(counts, float(seen.variance), records)
        cells = cells.reshape(shape)
        long = () if data.domain is None else long_axes(data.domain)
        others = [pair for pair in combinations(range(len(shape)), 2) if not set(pair) <= set(long)]
        shown = max((_variation(counts, float(seen.variance), pair) for pair in others), default=0.0)
        return Glimpse(records, depends, crowd=Crowd(counts / cells, cells), elsewhere=shown)


def dependence(blocks: FloatArray, variance: float, records: float) -> float:
    """How far attributes depend on each other, from noisy counts of blocks.

    For two attributes with parts p and q of the records in their blocks and residuals r from what chance would make of
    them, it is Σr² ÷ (records² (1 − Σp²)(1 − Σq²)), the noise in Σr² taken off; over all pairs of attributes both sides
    are added up. What noise leaves open is filled in by what is expected, and it is never said to be
    less than noise may hide.

    Args:
        blocks: Noisy counts, an axis an attribute.
        variance: Of each.
        records: About how many there are.

    Returns:
        A number from 0 to 1.

    Example:
        >>> import numpy as np
        >>> level, diagonal = np.full((3, 3), 100.0), np.diag([300.0, 300.0, 300.0])
        >>> round(dependence(level, 1.0, 900.0), 2), round(dependence(diagonal, 1.0, 900.0), 2)
        (0.0, 0.5)
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


def _variation(blocks: FloatArray, variance: float, pair: Axes) -> float:
    """The total variation of a pair from chance that noisy blocks show, beyond what noise makes of it."""
    table = blocks.sum(axis=tuple(axis for axis in range(blocks.ndim) if axis not in pair))
    whole = max(float(table.sum()), 1.0)
    apart = table - np.outer(_parts(table.sum(axis=1)), _parts(table.sum(axis=0))) * whole
    noise = _MOSTLY**2 * 2.0 / math.pi * variance * blocks.size * table.size
    return math.sqrt(max(float(np.abs(apart).sum()) ** 2 - noise, 0.0)) / (2.0 * whole)


def _by_sampling(shape: tuple[int, ...], pairs: tuple[Axes, ...], records: float) -> tuple[int, ...]:
    """What sampling is expected to make of each pair's distance from independence, in records."""
    free = [(shape[a] - 1) * (shape[b] - 1) for a, b in pairs]
    return tuple(int(2.0 * SAMPLING * math.sqrt(each * records)) for each in free)


def _parts(counts: FloatArray) -> FloatArray:
    """Parts of the whole, none below zero."""
    kept = np.maximum(counts, 0.0)
    whole = float(kept.sum())
    return np.asarray(kept / whole if whole > 0.0 else np.full(kept.size, 1.0 / kept.size), dtype=np.float64)
