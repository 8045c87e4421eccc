"""From noisy tables and a model of them to tables that can be published, and values merged where noise hides them.

A measured table is unbiased and noisy, a model's table smooth and a little wrong. Shrinking (James and Stein 1961,
positive part) goes from the model towards the measurement as far as their difference exceeds what noise alone would
make of it:

    m + f (y − m),   f = max(0, 1 − (1 − 2/k) Σ variance ÷ ‖y − m‖²),

with k degrees of freedom, Π (values − 1); below three there is nothing to gain, and the measurement stands.

Where the model is wrong by more than the noise the measurement speaks; where it is not, the model does. The nearest
table without negative cells and with the same total follows; `dphist.inference.fitting.settle` then makes tables agree.
Arithmetic on released numbers throughout.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import nonnegative

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A value is merged into its neighbours unless the group's last one could stand alone with this part of the threshold.
_NEARLY = 0.3


def shrink(measured: FloatArray, variance: float | FloatArray, model: FloatArray) -> FloatArray:
    """Move a measured table towards a model of it, as far as noise alone may explain their difference.

    Args:
        measured: Noisy counts.
        variance: Of each, or of all.
        model: What the model says, as counts.

    Returns:
        A table between the two, without negative cells, of the model's total.

    Example:
        >>> import numpy as np
        >>> shrink(np.array([10.0, 30.0, 20.0, 40.0]), 3.0, np.array([12.0, 28.0, 20.0, 40.0])).tolist()
        [11.0, 29.0, 20.0, 40.0]
    """
    apart = measured - model
    freedom = math.prod(size - 1 for size in measured.shape)
    noise = float(np.broadcast_to(np.asarray(variance, dtype=np.float64), measured.shape).sum())
    noise *= max(0.0, 1.0 - 2.0 / freedom) if freedom else 0.0
    energy = float((apart * apart).sum())
    kept = max(0.0, 1.0 - noise / energy) if energy > noise else 0.0
    return nonnegative(model + kept * apart, float(model.sum()))


def merge_values(counts: FloatArray, least: float, *, ordered: bool) -> IntArray:
    """Merge values of one attribute until each group holds at least so many records, by noisy counts of them.

    Cells of pairs are the thinner, the finer the values; a value that is too rare to be seen in any pair is measured
    together with its neighbours (of ordered attributes) or with the other rare ones.

    Args:
        counts: Records of each value, from what was released.
        least: What a group should hold.
        ordered: Whether neighbours belong together.

    Returns:
        The group of each value, numbered from zero without gaps.

    Example:
        >>> import numpy as np
        >>> merge_values(np.array([50.0, 1.0, 2.0, 3.0, 60.0]), 5.0, ordered=True).tolist()
        [0, 1, 1, 1, 2]
        >>> merge_values(np.array([50.0, 1.0, 60.0, 3.0]), 5.0, ordered=False).tolist()
        [0, 1, 2, 1]
    """
    groups = np.zeros(counts.size, dtype=np.int64)
    if not ordered:
        rare = counts < least
        groups[~rare] = np.arange(int((~rare).sum()))
        groups[rare] = counts.size
    else:
        group, held = 0, 0.0
        for value, count in enumerate(counts):
            if held >= least or (count >= least and held > _NEARLY * least):
                group, held = group + 1, 0.0
            groups[value] = group
            held += float(count)
        if group and held < 0.5 * least:
            groups[groups == group] = group - 1
    _, first, inverse = np.unique(groups, return_index=True, return_inverse=True)
    # In the order in which groups first appear.
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[inverse.reshape(-1)], dtype=np.int64)


def shares_within(counts: FloatArray, groups: IntArray) -> FloatArray:
    """Give each value's part of its group; equal parts where a group holds nothing.

    Args:
        counts: Records of each value, none below zero.
        groups: The group of each value.

    Returns:
        Parts that sum to one in every group.

    Example:
        >>> import numpy as np
        >>> shares_within(np.array([1.0, 3.0, 0.0]), np.array([0, 0, 1])).tolist()
        [0.25, 0.75, 1.0]
    """
    held, sizes = np.bincount(groups, counts), np.bincount(groups)
    within = np.divide(counts, held[groups], out=1.0 / sizes[groups], where=held[groups] > 0.0)
    return np.asarray(within, dtype=np.float64)
