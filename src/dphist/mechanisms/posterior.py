"""Noise every cell, then infer each count from its neighbours' noisy ones: the best for single cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dphist.errors import MechanismError
from dphist.inference.estimate import Estimate
from dphist.inference.predictive import MeasuredCells, PredictiveErrors
from dphist.mechanisms.options import checked
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]

# A published cell from so many noise scales on is a tall one.
_TALL = 5.0
UNSEEN = 30.0
"""So many noise scales of records may lie elsewhere beyond those seen, which noise may have hidden."""


@checked
@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Noise every cell, then publish each count's posterior mean.

    The noisy counts are read as a sequence of hidden levels that hold on, drift or jump; counts scatter about their
    level, and Laplace noise lies on top. The model is fitted to the noisy counts themselves (empirical
    Bayes, by expectation–maximisation) and each count is replaced by what the model expects of it given all of
    them. Runs of near-equal counts are averaged, empty stretches go to zero, and lone peaks stay if they stand far
    out of the noise. In several dimensions the cells are read along a Hilbert curve, and the result is averaged with a
    dyadic classification tree of the same noisy counts (`dphist.inference.neighbours`).

    Private because one step moves one cell by one and each cell carries discrete Laplace noise of scale 1/ε;
    all that follows reads noisy counts only. Sums over long ranges are better served by `AdaptiveTree`; here an
    answer about many cells is the engine's mean where bias could add up (see `dphist.inference.predictive`), so it need
    not be the sum of the published cells.

    Args:
        elsewhere: Where few tall cells are known to hold nearly all records, how many noise scales of records may lie
            elsewhere; what is published then relies on that. 0 where nothing of the kind is known.

    Example:
        >>> from dphist.mechanisms import Posterior
        >>> from dphist.testing import run
        >>> run(Posterior(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    elsewhere: float = 0.0

    def __post_init__(self) -> None:
        if self.elsewhere < 0.0:
            raise MechanismError("posterior: elsewhere must not be negative")

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, then infer."""
        noisy = data.measure(Identity())
        values = noisy.values.reshape(data.shape)
        # Loaded here: who only asks needs none of it.
        from dphist.inference.neighbours import denoise_field

        counts, model = denoise_field(values, float(noisy.scale), gaussian=noisy.law.gaussian)
        if self.elsewhere > 0.0:
            counts = _lowered(counts, float(noisy.scale), self.elsewhere)
        how = (
            "averaged over the boxes that explain the noisy counts best"
            if model is None
            else f"inferred from its neighbours; levels hold on from cell to cell with probability {model.stay:.2f}"
        )
        errors = PredictiveErrors(MeasuredCells(values, noisy.law), counts)
        return Estimate(counts, errors, f"every cell was noised, then {how}")


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
