"""Noise every cell, then infer each count from its neighbours' noisy ones: the best for single cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate, nonnegative
from dphist.inference.neighbours.reading import in_words
from dphist.inference.predictive import MeasuredCells, PredictiveErrors
from dphist.mechanisms.options import checked
from dphist.mechanisms.order import ordered_line
from dphist.private.gate import Noisy, PrivateCounts
from dphist.private.queries import Identity, Totals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

# Below 6√n noise scales of records cells hardly tell their own total. A first look for 1/(3√n) tells that from several
# times as many, where it costs next to nothing: a half percent of 4,096 cells.
_FEW, _LOOK = 6.0, 3
# What a second total costs, where there are few; below so many noise scales a lone peak would hardly be believed; and
# so far below it, in its own noise scales, cells' sum may stay.
_TOTAL, _NEXT_TO_NOTHING, _NEAR = Fraction(1, 16), 16.0, 2.0
# A cell that is published with so many noise scales was seen by itself, and knows its own count better than a total.
_SEEN = 3.0
# A published cell from so many noise scales on is a tall one.
_TALL = 5.0
UNSEEN = 30.0
"""So many noise scales of records may lie elsewhere beyond those seen, which noise may have hidden."""
# On fewer cells the first look costs more, and there is less to gain.
_FEWEST = 1024


@checked
@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Noise every cell, then publish each count's posterior mean.

    The noisy counts are read as a sequence of hidden levels that hold on, drift or jump; counts scatter about their
    level, and Laplace noise lies on top. The model is fitted to the noisy counts themselves (empirical
    Bayes, by expectation–maximisation) and each count is replaced by what the model expects of it given all of
    them. Runs of near-equal counts are averaged, empty stretches go to zero, and lone peaks stay if they stand far
    out of the noise. An ordered line is read a second time, as a trend with a profile that repeats
    (`dphist.inference.neighbours.structural`), and both readings weigh as their errors look. In several dimensions the
    cells are read along a Hilbert curve, and the result is averaged with a dyadic classification tree of the same noisy
    counts; on a plane with several, as their errors look.

    Private because one step moves one cell by one and each cell carries discrete Laplace noise of scale 1/ε;
    all that follows reads noisy counts only. Sums over long ranges are better served by `AdaptiveTree`; here an
    answer about many cells is the engine's mean where bias could add up (see `dphist.inference.predictive`), so it need
    not be the sum of the published cells.

    Args:
        counted: On a line of 1,024 cells or more, count the records first. Of few records cells do not tell even their
            sum: then a better total is measured and cells are moved to it together, and where there is next to nothing
            a tree of blocks is measured instead of cells. Every decision reads totals that were paid for.
        elsewhere: Where few tall cells are known to hold nearly all records, how many noise scales of records may lie
            elsewhere; what is published then relies on that. 0 where nothing of the kind is known.

    Example:
        >>> from dphist.mechanisms import Posterior
        >>> from dphist.testing import run
        >>> run(Posterior(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    counted: bool = False
    elsewhere: float = 0.0

    def __post_init__(self) -> None:
        if self.elsewhere < 0.0:
            raise MechanismError("posterior: elsewhere must not be negative")

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, then infer; perhaps for the total before."""
        if not self.counted or len(data.shape) > 1 or data.size < _FEWEST:
            return self._cells(data, None)
        unit = float(data.law().scale)
        look = Fraction(1, math.isqrt(_LOOK * _LOOK * data.size))
        first, data = data.split(look, 1 - look)
        if float(first.measure(Totals()).values.sum()) >= _FEW * math.sqrt(data.size) * unit:
            return self._cells(data, None, " with what a count of the records left")
        second, data = data.split(_TOTAL, 1 - _TOTAL)
        noisy = second.measure(Totals())
        total = float(noisy.values.sum())
        if total >= _NEXT_TO_NOTHING * unit:
            return self._cells(data, noisy)
        # Loaded here: hardly anybody needs it.
        from dphist.mechanisms.adaptivetree import AdaptiveTree

        found = AdaptiveTree(estimator="averaged").estimate(data)
        return replace(found, note=f"records are next to nothing beside the noise of cells, so {found.note}")

    def _cells(self, data: PrivateCounts, total: Noisy | None, spent: str = "") -> Estimate:
        """Ask for every cell, and infer; a noisy total tells more where there are few records."""
        noisy = data.measure(Identity())
        values = noisy.values.reshape(data.shape)
        known = None if total is None else (float(total.values.sum()), float(total.variance))
        errors = PredictiveErrors(MeasuredCells(values, noisy.law, known))
        # Loaded here: who only asks needs none of it.
        from dphist.inference.neighbours.fields import denoise_field

        counts, model = denoise_field(
            *(values, float(noisy.scale)),
            gaussian=noisy.law.gaussian,
            fine=values.ndim == 1,
            structural=ordered_line(data),
        )
        if self.elsewhere > 0.0:
            counts = _lowered(counts, float(noisy.scale), self.elsewhere)
        note = f"every cell was noised{spent}, then "
        if total is not None:
            counts = _to_total(counts, noisy, total)
            note = "records are few, so their total was noised, then every cell with the rest, and "
        return Estimate(counts, replace(errors, counts=counts), note + in_words(model))


def _lowered(counts: FloatArray, scale: float, elsewhere: float) -> FloatArray:
    """Counts of which those that are not tall add up to no more than was seen to lie there: of noisy answers alone.

    Beside tall cells that lie close to each other empty ones are read as a little each, which adds up.

    Example:
        >>> _lowered(np.array([900.0, 2.0, 2.0, 0.0]), 1.0, 2.0).tolist()
        [900.0, 1.0, 1.0, 0.0]
    """
    short = counts < _TALL * scale
    sum_of, most = float(counts[short].sum()), elsewhere * scale
    return np.where(short, counts * (most / sum_of), counts) if sum_of > most else counts


def _to_total(counts: FloatArray, noisy: Noisy, total: Noisy) -> FloatArray:
    """Move counts towards a noisy total, which is nearer to the truth than their sum: function of noisy answers alone.

    Cells in which nothing was seen by itself stand on a level that m of them share, whose sum is known to within the
    noise of m cells. So that sum is lowered to the mean of it and of what the total leaves for it, weighed by their
    precisions; lone peaks do not pay for the total's noise. Then all counts are raised together, since counts with the
    true total are nearer to the truth whatever they were; but to less than the noisy one, because what it has beyond
    their sum is mostly its own noise.
    """
    quiet = counts < _SEEN * float(noisy.scale)
    sum_of, known = float(counts[quiet].sum()), float(total.values.sum())
    left = max(known - float(counts[~quiet].sum()), 0.0)
    if sum_of > left:
        # As many even cells as have this sum and this sum of squares.
        noise = float(noisy.variance) * sum_of**2 / float((counts[quiet] ** 2).sum())
        weight = noise / (noise + float(total.variance))
        counts = np.where(quiet, counts * (1.0 - weight * (1.0 - left / sum_of)), counts)
    return nonnegative(counts, max(float(counts.sum()), known - _NEAR * float(total.scale)))
