"""Noise every cell, then infer each count from its neighbours' noisy ones: the best for single cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Estimate
from dphist.inference.intervals import Spread
from dphist.kernels.summed_area import add_box_sums, running_sums
from dphist.mechanisms.options import checked
from dphist.mechanisms.spatial import denoise_field
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PosteriorNoise:
    """Posterior intervals: what stays unknown of each count under the fitted model.

    In a range the counts' own variances add and the levels' deviations add, as if all its cells shared one level: never
    too little under the model. It is never let above what the noise alone allows: the interval around the noisy
    sum, widened by how far the estimate lies from it. Without a model only the latter is left.
    """

    within: FloatArray | None
    between: FloatArray | None
    gap: FloatArray
    scale: float
    method: str = (
        "posterior interval under the fitted level model, which was learned from the same noisy counts: "
        "cells are covered about as often as stated on average over cells, not cell by cell"
    )

    @cached_property
    def _gap(self) -> FloatArray:
        return running_sums(self.gap)

    @cached_property
    def _model(self) -> tuple[FloatArray, FloatArray] | None:
        if self.within is None or self.between is None:
            return None
        return running_sums(self.within), running_sums(np.sqrt(self.between))

    def spread(self, workload: Workload) -> Spread:
        """Add up the boxes of the workload."""
        return self.spread_boxes(workload.low, workload.high)

    def spread_boxes(self, low: IntArray, high: IntArray) -> Spread:
        """The same for bare bounds."""
        cells = np.prod(np.maximum(high - low, 0), axis=1)
        variance = (np.sqrt(2.0 * cells) * self.scale + np.abs(_box_sums(self._gap, low, high)) / 1.9) ** 2
        if self._model is not None:
            own, shared = (np.maximum(_box_sums(table, low, high), 0.0) for table in self._model)
            variance = np.minimum(variance, own + shared**2)
        return Spread(variance, np.minimum(self.scale, np.sqrt(variance / 2.0)))


def _box_sums(table: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    out = np.zeros(len(low))
    strides = np.array(table.strides, dtype=np.int64) // table.itemsize
    add_box_sums(table.reshape(-1), strides, low, high, np.arange(len(low)), out)
    return out


@checked
@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Noise every cell with the whole budget, then publish each count's posterior mean.

    The noisy counts are read as a sequence of hidden levels that hold on, drift or jump; counts scatter about their
    level, and Laplace noise lies on top. The model is fitted to the noisy counts themselves (empirical
    Bayes, by expectation–maximisation) and each count is replaced by what the model expects of it given all of
    them. Runs of near-equal counts are averaged, empty stretches go to zero, and lone peaks stay if they stand far
    out of the noise. In several dimensions the cells are read along a Hilbert curve, and the result is averaged
    with a dyadic classification tree of the same noisy counts.

    Private because one step moves one cell by one and each cell carries discrete Laplace noise of scale 1/ε;
    all that follows reads noisy counts only. Sums over long ranges are better served by `AdaptiveTree`.

    Example:
        >>> from dphist.mechanisms import Posterior
        >>> from dphist.testing import run
        >>> run(Posterior(), [9, 9, 9, 0, 0, 0, 5, 5], epsilon=1, seed=1).counts.shape
        (8,)
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, then infer."""
        noisy = data.measure(Identity())
        scale = float(noisy.scale)
        values = noisy.values.reshape(data.shape)
        counts, model = denoise_field(values, scale)
        note = "every cell was noised with the whole budget, then "
        if model is None:
            # Too many cells for the level model: the noise alone says how far off they may be.
            errors = PosteriorNoise(None, None, counts - values, scale)
            note += "averaged over the boxes that explain the noisy counts best"
        else:
            errors = PosteriorNoise(model.within, model.between, counts - values, scale)
            note += f"inferred from its neighbours; levels hold on from cell to cell with probability {model.stay:.2f}"
        return Estimate(counts, errors, note)
