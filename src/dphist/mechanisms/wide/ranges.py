"""How the budget along an axis is shared among the depths of its tree, for ranges or groups that will be asked.

The contrasts of depth d have noise of M² ÷ w_d (Gaussian) or (M ÷ w_d)² (Laplace, times two) for a share w_d
(`dphist.private.queries.tables`). An interval I meets a contrast h by ⟨I, h⟩, and its variance adds
⟨I, h⟩² ÷ ‖h‖⁴ times the contrast's. With G_d the mean of Σ ⟨I, h⟩² M² ÷ ‖h‖⁴ over the intervals that will be asked, the
least mean of Σ G_d ÷ w_d has w ∝ √G, that of Σ G_d ÷ w_d² has w ∝ G^⅓. Public facts throughout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.arrays import IntArray
from dphist.inference.tables.residuals import AxisNoise
from dphist.model.contrasts import contrasts_of
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.workload.questions import fractions, unrank

# All ranges of an attribute of at most 128 values are looked at, of a longer one a sample of 4,000.
_EVERY, _SAMPLE = 128, 4000
_GRID = 256
# A tree is measured where intervals pick up less than this part of what they would from single values.
_GAINS = 0.9


@dataclass(frozen=True, eq=False)
class AxisPlan:
    """How an axis is asked by contrasts, and what its intervals pick up then."""

    weights: tuple[Fraction, ...]
    """The share of every depth."""
    noise: AxisNoise
    squares: float
    """The mean of what intervals pick up of the noise."""
    shares: float
    """The mean square of the part of the axis that intervals are."""


def plan_axis(attribute: Ordinal | Nominal, *, gaussian: bool) -> AxisPlan:
    """Share an axis's budget among the depths of its tree."""
    tree = contrasts_of(attribute)
    low, high = _asked(attribute)
    reach = np.array(tree.reach, dtype=np.float64)
    met = np.zeros(len(tree.start))
    for begin in range(0, len(low), _SAMPLE):
        met += (tree.meets(low[begin : begin + _SAMPLE], high[begin : begin + _SAMPLE]) ** 2).sum(axis=0)
    each = met / len(low) * reach[tree.depth] ** 2 / tree.squares.astype(np.float64) ** 2
    gain = np.bincount(tree.depth, each, minlength=reach.size)
    best = gain ** (0.5 if gaussian else 1.0 / 3.0)
    best /= best.sum()
    # Rounded down to a grid, so that what a platform rounds otherwise changes no share.
    weights = tuple(Fraction(max(1, int(_GRID * part)), _GRID + reach.size) for part in best)
    share = np.array([float(weight) for weight in weights])
    noise = AxisNoise(tree, reach**2 / share if gaussian else (reach / share) ** 2, reach / share)
    squares = float((gain / (share if gaussian else share**2)).sum())
    return AxisPlan(weights, noise, squares, float(np.mean(((high - low) / attribute.size) ** 2)))


def plan_axes(domain: Domain, ranges: Sequence[int], *, gaussian: bool) -> dict[int, AxisPlan]:
    """Plan every axis whose ranges will be asked, and keep the plans that are better than cells added up.

    Laplace noise pays for every depth, so under ε only attributes of many hundreds of values gain by a tree.
    """
    found = {}
    for axis in sorted(set(ranges)):
        attribute = domain.attributes[axis]
        if attribute.size > 2:
            plan = plan_axis(attribute, gaussian=gaussian)
            if plan.squares < _GAINS * asked_squares(attribute):
                found[axis] = plan
    return found


def asked_squares(attribute: Ordinal | Nominal) -> float:
    """What intervals pick up, in the mean, where single values are measured: (k − k²/n)(1 − 1/n) of k values."""
    low, high = _asked(attribute)
    lengths = (high - low).astype(np.float64)
    return float(np.mean(lengths - lengths**2 / attribute.size)) * (1.0 - 1.0 / attribute.size)


def _asked(attribute: Ordinal | Nominal) -> tuple[IntArray, IntArray]:
    """The intervals that are asked of an attribute: groups and values of a hierarchy, ranges of an order."""
    if isinstance(attribute, Nominal):
        return attribute.hierarchy.start[1:], attribute.hierarchy.stop[1:]
    ranges = math.comb(attribute.size + 1, 2)
    rank = np.arange(ranges, dtype=np.int64)
    if attribute.size > _EVERY:
        rank = (fractions(_SAMPLE, 0, 0) * ranges).astype(np.int64)
    return unrank(rank, attribute.size)
