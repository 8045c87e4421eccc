"""Intervals where few tall cells hold nearly all records: noise of the tall ones, and what may lie elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Interval
from dphist.inference.predictive.errors import PredictiveErrors, asked_cells
from dphist.kernels.summed_area import box_sums
from dphist.model.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A published cell from so many noise scales on is a tall one; what lies elsewhere comes in lumps of about so many.
_TALL, _LUMP = 5.0, 8.0
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


@dataclass(frozen=True, eq=False)
class FewErrors(PredictiveErrors):
    """Errors of counts of which nearly all are in tall cells, the others next to nothing.

    The law of all cells does not know that: it learns how totals divide, and leaves every empty cell a little. A range
    with k tall cells is off by their noise, k variances, and by what lies elsewhere in it: of e noise scales of records
    a part p of the cells holds p·e, in lumps, which scatters by the root of p·e times a lump. Those that were seen may
    all lie in one place, which is in the range with chance p. That e is small was seen before the cells were measured,
    by a question of its own. Where the law promises less, that is taken.
    """

    scale: float = 1.0
    """Of the noise in a cell."""
    noise: float = 2.0
    """Its variance."""
    elsewhere: float = 0.0
    """How many noise scales of records may lie outside of tall cells."""

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
        return np.minimum(own, super().squares(low, high, starts, published))
