"""Intervals where few tall cells hold nearly all records: noise of the tall ones, and what may lie elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Interval
from dphist.inference.predictive.errors import PredictiveErrors, asked_cells
from dphist.kernels.summed_area import box_sums, running_sums, sums_between
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Places = tuple[IntArray, IntArray, FloatArray]

# A published cell from so many noise scales on is a tall one; what lies elsewhere comes in lumps of about so many.
_TALL, _LUMP = 5.0, 8.0
# How far beyond what luck makes of as many boxes a sum must lie, and how far beyond what was seen the truth may. Boxes
# of fewer cells are not tried, nor more of them side by side (that takes time), nor those that are a larger part of the
# plane: on 64 × 64 cells with few tall ones and nothing else, widths of rectangles are the same as without.
_BEYOND, _FURTHER, _FEWEST, _MOST, _PARTS = 1.75, 2.0, 8, 2**16, 16
# Where more boxes of one shape stand out, what lies elsewhere is not little, and nothing is known of it here.
_MOST_PLACES = 256
UNSEEN = 30.0
"""So many noise scales of records may lie elsewhere beyond those seen, which noise may have hidden."""


def lowered(counts: FloatArray, scale: float, elsewhere: float) -> FloatArray:
    """Counts of which those that are not tall add up to no more than was seen to lie there: of noisy answers alone.

    Beside tall cells that lie close to each other empty ones are read as a little each, which adds up.

    Args:
        counts: As they were read.
        scale: Of the noise in a cell.
        elsewhere: How many noise scales of records may lie outside of tall cells.

    Returns:
        Counts, none larger.

    Example:
        >>> lowered(np.array([900.0, 2.0, 2.0, 0.0]), 1.0, 2.0).tolist()
        [900.0, 1.0, 1.0, 0.0]
    """
    short = counts < _TALL * scale
    sum_of, most = float(counts[short].sum()), elsewhere * scale
    return np.where(short, counts * (most / sum_of), counts) if sum_of > most else counts


def places(seen: FloatArray, published: FloatArray, deviation: float) -> list[Places] | None:
    """Boxes in which something lies, and how much more of it than is published at most: of noisy answers alone.

    Boxes of every shape whose sides are powers of two are tried, at every half of a side. What n of a shape hold of
    noise alone is rarely more than the root of 2 ln n deviations; two more (`_BEYOND`) are no luck. Of boxes of one
    shape that overlap the one that stands out most is taken.

    Args:
        seen: Noisy cells, where they are low; elsewhere nothing.
        published: What is published of the same.
        deviation: Of the noise in a cell.

    Returns:
        For every shape that has any, first cells and ends of the boxes, and how much may lie in each beyond what is
        published; None where something lies nearly everywhere.

    Example:
        >>> seen = np.zeros((32, 32))
        >>> seen[8:16, 8:16] = 1.0
        >>> low, high, more = places(seen, np.zeros((32, 32)), 1.0)[-1]
        >>> low.tolist(), high.tolist(), more.tolist()
        ([[8, 8]], [[16, 16]], [80.0])
    """
    found: list[Places] = []
    sums, fewest = running_sums(seen), max(_FEWEST, seen.size // _MOST)
    for sides in product(*([2**k for k in range(n.bit_length())] for n in seen.shape)):
        cells = math.prod(sides)
        if not fewest <= cells <= seen.size / _PARTS:
            continue
        across = zip(seen.shape, sides, strict=True)
        starts = (np.arange(0, n - side + 1, max(side // 2, 1)) for n, side in across)
        low = np.stack(np.meshgrid(*starts, indexing="ij"), axis=-1).reshape(-1, seen.ndim)
        high, noise = low + np.array(sides), deviation * math.sqrt(cells)
        out = sums_between(sums, low, high) / noise
        far = np.flatnonzero(out > math.sqrt(2.0 * math.log(seen.size / cells)) + _BEYOND)
        if far.size > _MOST_PLACES:
            return None
        kept: list[int] = []
        for i in far[np.argsort(-out[far], kind="stable")]:
            if not any((np.abs(low[i] - low[j]) < sides).all() for j in kept):
                kept.append(int(i))
        if kept:
            more = (out[kept] + _FURTHER) * noise - box_sums(published, low[kept], high[kept])
            found.append((low[kept], high[kept], np.maximum(more, 0.0)))
    return found


@dataclass(frozen=True, eq=False)
class FewErrors(PredictiveErrors):
    """Errors of counts of which nearly all are in tall cells, the others next to nothing.

    The law of all cells does not know that: it learns how totals divide, and leaves every empty cell a little. A range
    with k tall cells is off by their noise, k variances, and by what lies elsewhere in it: of e noise scales of records
    a part p of the cells holds p·e, in lumps, which scatters by the root of p·e times a lump. Those that were seen may
    all lie in one place, which is in the range with chance p. That e is small was seen before the cells were measured,
    by a question of its own. Where the law promises less, that is taken.

    That question has noise, and cells are taken where it came out low. So the noisy cells are asked as well: of a place
    in which they have more than is published (`places`), a part f of which is asked about, f of the square of that
    may be missing.
    """

    scale: float = 1.0
    """Of the noise in a cell."""
    noise: float = 2.0
    """Its variance."""
    elsewhere: float = 0.0
    """How many noise scales of records may lie outside of tall cells."""
    noisy: FloatArray | None = None
    """The noisy cells."""

    @cached_property
    def _places(self) -> list[Places] | None:
        if self.noisy is None or self.counts is None:
            return []
        low = self.counts < _TALL * self.scale
        seen, published = (np.where(low, each, 0.0) for each in (self.noisy, self.counts))
        return places(seen, published, math.sqrt(self.noise))

    def _missing(self, low: IntArray, high: IntArray, starts: IntArray | None) -> FloatArray:
        """What squared errors are expected of places in which more was seen than is published."""
        most = np.zeros(len(low) if starts is None else len(starts) - 1)
        if self._places is None:
            return most + np.inf
        for boxes in self._places:
            squared = np.zeros(len(low))
            for first, last, more in zip(*boxes, strict=True):
                asked = np.prod(np.maximum(np.minimum(high, last) - np.maximum(low, first), 0), axis=1)
                squared += asked / np.prod(last - first) * more**2
            np.maximum(most, squared if starts is None else np.add.reduceat(squared, starts[:-1]), out=most)
        return most

    @cached_property
    def _tall(self) -> FloatArray:
        counts = np.zeros(0) if self.counts is None else self.counts
        return np.ascontiguousarray(counts >= _TALL * self.scale, dtype=np.float64)

    def answer(self, workload: Workload, summed: FloatArray) -> FloatArray:
        """Add up the published cells: noise of the others would be all that they add."""
        return summed

    def run_of_cells(self, begin: int, end: int, published: FloatArray, confidence: float) -> Interval | None:
        """Nothing: single cells must be asked about, since some are tall."""
        return None

    def squares(
        self, low: IntArray, high: IntArray, starts: IntArray | None, published: FloatArray
    ) -> FloatArray:
        """Expected squared errors of published answers."""
        tall = box_sums(self._tall, low, high)
        if starts is not None:
            tall = np.add.reduceat(tall, starts[:-1])
        part = asked_cells(low, high, starts) / self._tall.size
        seen = max(self.elsewhere - UNSEEN, 0.0)
        spread = (part * self.elsewhere) ** 2 + part * (self.elsewhere * _LUMP + seen**2)
        own = self.noise * tall + self.scale**2 * spread
        law = super().squares(low, high, starts, published)
        return np.minimum(own + self._missing(low, high, starts), law)
