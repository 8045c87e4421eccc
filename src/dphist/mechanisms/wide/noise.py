"""How noisy tables of few attributes will be by the best plan, and what cutting them leaves: public arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.residuals import Axes, speaks, subsets
from dphist.mechanisms.wide.plan import Kinds, plan_residuals, plan_totals
from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]


def planned_precisions(
    law: NoiseLaw, shape: Sequence[int], wanted: Sequence[Axes], kinds: Kinds = (), *, by_cells: bool = False
) -> dict[Axes, float]:
    """How precisely the best plan of some tables knows every residual inside them: one over the variance of a cell.

    Args:
        law: Of the whole budget.
        shape: How many values each attribute has.
        wanted: The tables, none inside another.
        kinds: Kinds of tables that do not count alike.
        by_cells: Whether every cell counts alike in the plan, not every table.

    Returns:
        The precision of each residual, by its attributes.

    Example:
        >>> from fractions import Fraction
        >>> found = planned_precisions(NoiseLaw("gaussian", Fraction(1)), (2, 2), [(0, 1)])
        >>> sorted(found), round(found[(0, 1)], 2)
        ([(), (0,), (0, 1), (1,)], 1.0)
    """
    precision: dict[Axes, float] = {}
    if law.gaussian:
        plan = plan_residuals(shape, wanted, kinds=kinds, by_cells=by_cells)
        for axes, share in zip(plan.tables, plan.shares, strict=True):
            precision[axes] = float(share) / math.prod(1.0 - 1.0 / shape[axis] for axis in axes)
    else:
        plan = plan_totals(shape, wanted, kinds=kinds, by_cells=by_cells)
        for axes, share, chosen in zip(plan.tables, plan.shares, plan.differences, strict=True):
            for subset in subsets(axes):
                if set(chosen) <= set(subset):
                    known = speaks(shape, axes, chosen, subset) * float(share) ** 2
                    precision[subset] = precision.get(subset, 0.0) + known
    return {axes: known / float(law.variance) for axes, known in precision.items()}


def planned_variances(
    law: NoiseLaw,
    shape: Sequence[int],
    wanted: Sequence[Axes],
    pairs: Sequence[Axes],
    kinds: Kinds = (),
    *,
    by_cells: bool = False,
) -> tuple[FloatArray, FloatArray]:
    """The variance of a cell of each pair if all wanted tables were measured by the best plan; and its lower part.

    Args:
        law: Of the whole budget.
        shape: How many values each attribute has.
        wanted: The tables, none inside another.
        pairs: Pairs, or other tables, inside them.
        kinds: Kinds of tables that do not count alike.
        by_cells: Whether every cell counts alike in the plan, not every table.

    Returns:
        A variance for each, and what of it comes from smaller residuals.

    Example:
        >>> from fractions import Fraction
        >>> law = NoiseLaw("gaussian", Fraction(1))
        >>> whole, low = planned_variances(law, (2, 2), [(0, 1)], [(0, 1)])
        >>> whole.round(2).tolist(), low.round(2).tolist()
        ([1.0], [0.75])
    """
    precision = planned_precisions(law, shape, wanted, kinds, by_cells=by_cells)
    whole, low = np.zeros(len(pairs)), np.zeros(len(pairs))
    for place, pair in enumerate(pairs):
        for subset in subsets(pair):
            left = math.prod(1.0 - 1.0 / shape[axis] for axis in subset)
            others = math.prod(shape[axis] for axis in pair if axis not in subset)
            whole[place] += left / others**2 / precision[subset]
            low[place] += left / others**2 / precision[subset] if subset != pair else 0.0
    return whole, low


def cut(noise: FloatArray) -> FloatArray:
    """What is left of noise in tables that have no negative cells."""
    return noise / (1.0 + noise)
