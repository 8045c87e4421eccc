"""Noise every cell, then infer each count from its neighbours' noisy ones: the best for single cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist.estimate import Estimate
from dphist.intervals import Spread
from dphist.kernels.levelfit import Denoised, denoise
from dphist.kernels.summed_area import add_box_sums, running_sums
from dphist.mechanisms.spatial import denoise_field
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Identity
from dphist.workload import Workload

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

@dataclass(frozen=True, eq=False)
class PosteriorNoise:
    """Posterior intervals: what stays unknown of each count under the fitted model.

    In a range the counts' own variances add and the levels' deviations add, as if all its cells shared one level: never
    too little under the model. It is not let above what the noise alone allows: the interval around the noisy
    sum, widened by how far the estimate lies from it.
    """

    within: FloatArray
    between: FloatArray
    gap: FloatArray
    scale: float
    method: str = (
        "posterior interval under the fitted level model, which was learned from the same noisy counts: "
        "cells are covered about as often as stated on average over cells, not cell by cell"
    )

    @cached_property
    def _tables(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return running_sums(self.within), running_sums(np.sqrt(self.between)), running_sums(self.gap)

    def spread(self, workload: Workload) -> Spread:
        """Add up the boxes of the workload."""
        return self.spread_boxes(workload.low, workload.high)

    def spread_boxes(self, low: IntArray, high: IntArray) -> Spread:
        """The same for bare bounds."""
        own, shared, gap = (_box_sums(table, low, high) for table in self._tables)
        cells = np.prod(np.maximum(high - low, 0), axis=1)
        plain = np.sqrt(2.0 * cells) * self.scale + np.abs(gap) / 1.9
        variance = np.minimum(np.maximum(own, 0.0) + np.maximum(shared, 0.0) ** 2, plain**2)
        return Spread(variance, np.minimum(self.scale, np.sqrt(variance / 2.0)))


def _box_sums(table: FloatArray, low: IntArray, high: IntArray) -> FloatArray:
    out = np.zeros(len(low))
    strides = np.array(table.strides, dtype=np.int64) // table.itemsize
    add_box_sums(table.reshape(-1), strides, low, high, np.arange(len(low)), out)
    return out


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Noise every cell with the whole budget, then publish each count's posterior mean.

    The noisy counts are read as a sequence of hidden levels that hold on, drift or jump; counts scatter about their
    level, and Laplace noise lies on top. The model is fitted to the noisy counts themselves (empirical
    Bayes, by expectation–maximisation) and each count is replaced by what the model expects of it given all of
    them. In several dimensions the cells are read along a Hilbert curve, and the result is averaged with a dyadic
    classification tree of the same noisy counts. Runs of near-equal counts are averaged, empty stretches go to zero, and lone peaks stay.

    Private because one step moves one cell by one and each cell carries discrete Laplace noise of scale 1/ε;
    all that follows reads noisy counts only. Sums over long ranges are better served by `AdaptiveTree`.
    """

    def estimate(self, data: PrivateCounts) -> Estimate:
        """Ask for every cell once, then infer."""
        noisy = data.measure(Identity())
        scale = float(noisy.scale)
        values = noisy.values.reshape(data.shape)
        if values.ndim == 1:
            model: Denoised | None = denoise(values, 1.0 / scale)
            counts = model.mean
        else:
            counts, model = denoise_field(values, scale)
        note = "every cell was noised with the whole budget, then "
        if model is None:
            # Too many cells for the level model: the noise alone says how far off they may be.
            plain = np.full(values.shape, 2.0 * scale * scale)
            errors = PosteriorNoise(plain, np.zeros(values.shape), counts - values, scale)
            note += "averaged over the boxes that explain the noisy counts best"
        else:
            errors = PosteriorNoise(model.within, model.between, counts - values, scale)
            note += f"inferred from its neighbours; levels hold on from cell to cell with probability {model.stay:.2f}"
        return Estimate(counts, errors, note)
