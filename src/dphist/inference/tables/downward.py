"""Tables moved towards what smaller ones suggest, from the total down: `shrink_together`, order by order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.fitting import implied
from dphist.inference.tables.residuals import Axes, TableResiduals, subsets
from dphist.inference.tables.shrinking import shrink_together

FloatArray = NDArray[np.float64]


def shrink_downward(measured: TableResiduals, tables: Sequence[Axes]) -> dict[Axes, FloatArray]:
    """Move measured tables towards what smaller ones suggest, from the total down, by what they show together.

    Tables of one attribute are moved towards an even spread of the total, larger ones towards the table of largest
    entropy that has the smaller ones inside it, as these are by then; all of as many attributes at once
    (`shrink_together`). Where noise hides everything an even spread is left, and where it hides how attributes go
    together, chance. Models are of populations: records that were drawn from one depart from it at least by that.

    Args:
        measured: All that was measured, by residuals, without trees.
        tables: Tables that are covered; those inside them follow.

    Returns:
        These tables, and all smaller ones inside them, without negative cells; margins need not agree.

    Example:
        >>> import numpy as np
        >>> from dphist.inference.tables.residuals import Measured, TableResiduals
        >>> noisy = TableResiduals((2, 2), [Measured((0, 1), np.array([[90.0, 40.0], [50.0, 60.0]]), 1e4, 0.0)])
        >>> bool(np.ptp(shrink_downward(noisy, [(0, 1)])[(0, 1)]) < 25.0)
        True
    """
    needed = {subset for axes in tables for subset in subsets(tuple(sorted(axes)))} | {()}
    found: dict[Axes, FloatArray] = {(): np.maximum(measured.table(()), 0.0)}

    def model(axes: Axes) -> FloatArray:
        return implied([measured.shape[axis] for axis in axes], axes, found)

    for ways in range(1, max(len(axes) for axes in needed) + 1):
        here = sorted(axes for axes in needed if len(axes) == ways)
        found |= shrink_together(measured, here, lru_cache(None)(model), sampled=True, bounded=True)
    return found
