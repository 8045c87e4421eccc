"""Cells of a cube that were measured one by one and are read by their neighbours, and how that is said in words."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dphist.inference.estimate import Estimate
from dphist.inference.guaranteed import NoisySums
from dphist.inference.predictive import Engine
from dphist.inference.predictive.hidden import HiddenErrors
from dphist.model.law import NoiseLaw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dphist.kernels.levels.fit import Denoised

# The least variance that is reckoned with: below it no sum of cells is off by a record.
NEXT_TO_EXACT = 1e-6


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
    predictive = partial(Engine.of_cells, noisy, max(law.drawn_variance, NEXT_TO_EXACT), None)
    errors = HiddenErrors(
        *(predictive, partial(NoisySums, noisy, law), counts), noisy=noisy, noise=law.drawn_variance
    )
    return Estimate(counts, errors, in_words(model))


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
