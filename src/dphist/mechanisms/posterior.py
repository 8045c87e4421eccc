"""Noise every cell, then infer each count from its neighbours' noisy ones: the best for single cells."""

from __future__ import annotations

from dataclasses import dataclass

from dphist.inference.estimate import Estimate
from dphist.inference.predictive import MeasuredCells, PredictiveErrors
from dphist.mechanisms.options import checked
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity


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

    Example:
        >>> from dphist.mechanisms import Posterior
        >>> from dphist.testing import run
        >>> run(Posterior(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, then infer."""
        noisy = data.measure(Identity())
        values = noisy.values.reshape(data.shape)
        # Loaded here: who only asks needs none of it.
        from dphist.inference.neighbours import denoise_field

        counts, model = denoise_field(values, float(noisy.scale), gaussian=noisy.law.gaussian)
        how = (
            "averaged over the boxes that explain the noisy counts best"
            if model is None
            else f"inferred from its neighbours; levels hold on from cell to cell with probability {model.stay:.2f}"
        )
        errors = PredictiveErrors(MeasuredCells(values, noisy.law), counts)
        return Estimate(counts, errors, f"every cell was noised, then {how}")
