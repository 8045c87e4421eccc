"""Noise every cell, then infer each count from its neighbours' noisy ones: the best for single cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from dphist.inference.estimate import Estimate
from dphist.inference.guaranteed import NoisySums
from dphist.inference.predictive import Engine, PredictiveErrors
from dphist.mechanisms.options import checked
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity

# The least variance that is reckoned with: below it no sum of cells is off by a record.
_NEXT_TO_EXACT = 1e-6


@checked
@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Noise every cell with the whole budget, then publish each count's posterior mean.

    The noisy counts are read as a sequence of hidden levels that hold on, drift or jump; counts scatter about their
    level, and Laplace noise lies on top. The model is fitted to the noisy counts themselves (empirical
    Bayes, by expectation–maximisation) and each count is replaced by what the model expects of it given all of
    them. Runs of near-equal counts are averaged, empty stretches go to zero, and lone peaks stay if they stand far
    out of the noise. In several dimensions the cells are read along a Hilbert curve, and the result is averaged
    with a dyadic classification tree of the same noisy counts; on a plane with several, as their errors look.

    Private because one step moves one cell by one and each cell carries discrete Laplace noise of scale 1/ε;
    all that follows reads noisy counts only. Sums over long ranges are better served by `AdaptiveTree`; here an
    answer about many cells is the engine's mean where bias could add up (see `dphist.inference.predictive`), so it need
    not be the sum of the published cells.

    Args:
        fine: On a line, have models of finer levels join. What is measured is the same.

    Example:
        >>> from dphist.mechanisms import Posterior
        >>> from dphist.testing import run
        >>> run(Posterior(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    reuses_counts: ClassVar[bool] = True
    """What it publishes is what it made of its right (`PrivateCounts.published`), and nothing else."""

    fine: bool = False

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, then infer."""
        noisy = data.measure(Identity())
        scale = float(noisy.scale)
        values = noisy.values.reshape(data.shape)
        # Of the whole numbers that are drawn: at a large ε most are 0, and sums of noisy cells are next to exact.
        law = partial(Engine.of_cells, values, max(noisy.law.drawn_variance, _NEXT_TO_EXACT))
        proof = partial(NoisySums, values, noisy.law)
        if data.published is not None:
            known = data.published
            return Estimate(known.counts, PredictiveErrors(law, proof, known.counts, told=known.learned))
        # Loaded here: who only asks needs none of it.
        from dphist.inference.fields import denoise_field

        counts, model = denoise_field(values, scale, gaussian=noisy.law.gaussian, fine=self.fine)
        note = "every cell was noised with the whole budget, then "
        if model is None:
            # Too many cells for the level model.
            note += "averaged over the boxes that explain the noisy counts best"
        else:
            note += f"inferred from its neighbours; levels hold on from cell to cell with probability {model.stay:.2f}"
        return Estimate(counts, PredictiveErrors(law, proof, counts), note)
