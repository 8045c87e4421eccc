"""Cells of a cube that were measured one by one and are read by their neighbours, and how that is said in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphist.inference.estimate import Estimate
from dphist.inference.predictive import MeasuredCells, PredictiveErrors
from dphist.model.law import NoiseLaw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dphist.kernels.levels.fit import Denoised


def read_by_neighbours(noisy: NDArray[np.int64], law: NoiseLaw) -> Estimate:
    """Read noisy cells of several attributes, each measured once and by itself, by their neighbours.

    Args:
        noisy: Noisy counts, an axis an attribute.
        law: Of the noise in each.

    Returns:
        What `dphist.mechanisms.posterior.Posterior` makes of them, and how they were read.
    """
    # Loaded here: who only asks needs none of it.
    from dphist.inference.neighbours.fields import denoise_field

    counts, model = denoise_field(noisy, float(law.scale), gaussian=law.gaussian)
    return Estimate(counts, PredictiveErrors(MeasuredCells(noisy, law), counts), in_words(model))


def in_words(model: Denoised | None) -> str:
    """How cells were read.

    Args:
        model: The level model that was fitted; none where there are too many cells for it.

    Returns:
        The end of a sentence about them.
    """
    if model is None:
        return "averaged over the boxes that explain the noisy counts best"
    said = f"inferred from its neighbours; levels hold on from cell to cell with probability {model.stay:.2f}"
    if model.period > 0:
        said += ", and read as a trend" + (
            f" with a profile that repeats every {model.period} cells" if model.period > 1 else ""
        )
    return said
