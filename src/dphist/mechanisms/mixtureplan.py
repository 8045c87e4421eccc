"""Which recipe `Mixture` follows and what each question costs: from public sizes, the noise law and noisy totals.

Most constants were tried on made-up tables (5 and 15 columns of 2, 10 or mixed numbers of values, with and without
dependence, 3,000 and 50,000 records, both currencies). Those of single attributes' share under ε and of merging were
set looking at the Adult records, and what a first part must show was checked there: figures on those are not blind.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.inference.residuals import speaks
from dphist.inference.tables import Axes, subsets
from dphist.mechanisms.residualplan import plan_residuals, plan_totals
from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]

# Shares of the two questions that come first: how many records there are, and how far pairs are from independence.
COUNT_SHARE = Fraction(1, 200)
DEPENDENCE_SHARE = Fraction(1, 100)
# Of what is left then, to see whether pairs are worth measuring, and to choose among them.
DISTANCE_SHARE = Fraction(1, 50)
CHOICE_SHARE = Fraction(1, 20)
# All pairs are measured where their expected total variation is at most this times that of independence; they may turn
# out to be worth it up to that much (most of the noise may fall on empty cells, and be cut away).
_WORTH, _HOPE = 1.4, 3.2
# Tables without negative cells are nearer: an expected variation of v becomes v ÷ (1 + this · v).
_CUT = 1.2
# The total variation that sampling alone makes between independent attributes, over √(cells ÷ records): at most, and
# where values are uneven.
_SAMPLING, _LEAST_SAMPLING = 0.28, 0.16
# Dependence that may be hoped for where it could not be seen.
_UNSEEN = 0.04
# Under ρ nothing is lost by measuring pairs in two parts: where it cannot be told beforehand, the first part shows it;
# few cells need a larger one. Pairs are worth the rest if they show that much more than noise, for the whole budget.
_FIRST_PARTS, _FEW = (Fraction(1, 10), Fraction(1, 4)), 2000
SHOWN = 0.6
# The strength of a budget is counted in records × ε; under ρ one deviation is worth so much ε.
_LAPLACE_WORTH, _GAUSSIAN_WORTH = math.sqrt(2.0), 5.77
_USUAL = 3e4
# Under ε a budget that is split is worth less than the whole: below this strength single attributes get all of it.
_WEAK = 2e4
# A value of an attribute is merged with others unless it is seen above so many deviations of a pair's noise.
_VISIBLE = 6.0


@dataclass(frozen=True)
class Strength:
    """How much a budget can see: records times the ε it is worth, and whether its noise is Gaussian."""

    law: NoiseLaw
    total: float

    @property
    def records(self) -> float:
        """Records × ε, or what ρ is worth."""
        worth = _GAUSSIAN_WORTH if self.law.gaussian else _LAPLACE_WORTH
        return worth * self.total / float(self.law.deviation)

    def deviation(self, share: float) -> float:
        """Of the noise that a share of the budget buys."""
        return float(float(self.law.deviation) * share ** (-0.5 * self.law.exponent))

    @property
    def singles(self) -> Fraction:
        """The share of tables of one attribute: the more, the less can be seen of pairs."""
        most = 0.3 if self.law.gaussian else 0.4
        return fraction(float(np.clip(most * (self.records / _USUAL) ** -0.3, 0.15, 0.7)))

    def picks(self, columns: int, pairs: int) -> int:
        """How many pairs to measure."""
        wanted = (3.0 if self.law.gaussian else 2.0) * columns * (self.records / _USUAL) ** 0.4
        return int(min(pairs, max(1.0, wanted)))

    def visible(self, picks: int, share: float) -> float:
        """How many records a value must have to be measured by itself."""
        return _VISIBLE * self.deviation(share / picks)


def planned_deviations(
    law: NoiseLaw, shape: Sequence[int], wanted: Sequence[Axes], pairs: Sequence[Axes]
) -> FloatArray:
    """The deviation that a cell of each pair would have if all wanted tables were measured by the best plan.

    Args:
        law: Of the whole budget.
        shape: How many values each attribute has.
        wanted: The tables, none inside another.
        pairs: Pairs inside them.

    Returns:
        A deviation for each pair.

    Example:
        >>> law = NoiseLaw("gaussian", Fraction(1))
        >>> planned_deviations(law, (2, 2), [(0, 1)], [(0, 1)]).round(2).tolist()
        [1.0]
    """
    precision: dict[Axes, float] = {}
    if law.gaussian:
        plan = plan_residuals(shape, wanted)
        for axes, share in zip(plan.tables, plan.shares, strict=True):
            precision[axes] = float(share) / math.prod(1.0 - 1.0 / shape[axis] for axis in axes)
    else:
        plan = plan_totals(shape, wanted)
        for axes, share, chosen in zip(plan.tables, plan.shares, plan.differences, strict=True):
            for subset in subsets(axes):
                if set(chosen) <= set(subset):
                    known = speaks(shape, axes, chosen, subset) * float(share) ** 2
                    precision[subset] = precision.get(subset, 0.0) + known
    variances = [
        sum(
            math.prod(1.0 - 1.0 / shape[axis] for axis in subset)
            / math.prod(shape[axis] for axis in pair if axis not in subset) ** 2
            / precision[subset]
            for subset in subsets(pair)
        )
        for pair in pairs
    ]
    return np.asarray(float(law.deviation) * np.sqrt(variances), dtype=np.float64)


def all_pairs(
    strength: Strength, noise: FloatArray, cells: FloatArray, dependence: float, doubt: float
) -> bool | None:
    """Whether to measure all pairs at once: where their noise is small beside how far they are from independence.

    Args:
        strength: Of the budget.
        noise: The deviation that each pair's cells would have (`planned_deviations`).
        cells: How many cells each pair has.
        dependence: Mean total variation between pairs and independence, as measured.
        doubt: The deviation of that measurement.

    Returns:
        Whether all pairs are worth measuring; None where that cannot be told.
    """
    raw = 0.4 * noise * cells / strength.total
    expected = float(np.mean(raw / (1.0 + _CUT * raw)))
    sampling = float(np.mean(np.sqrt(cells / strength.total)))
    # Under ε it cannot be tried out: pairs that turn out independent cost less than dependence that was not looked at.
    least = _LEAST_SAMPLING if strength.law.gaussian else _SAMPLING
    if expected < _WORTH * max(dependence - 2.0 * doubt, least * sampling):
        return True
    hoped = max(dependence - doubt, _SAMPLING * sampling) + min(2.0 * doubt, _UNSEEN)
    return None if expected < _HOPE * hoped else False


def first_part(shape: Sequence[int], pairs: Sequence[Axes]) -> Fraction:
    """The part of a ρ that tries out whether pairs are worth the rest.

    Args:
        shape: How many values each attribute has.
        pairs: The pairs.

    Returns:
        The share.

    Example:
        >>> first_part((2, 2), [(0, 1)])
        Fraction(1, 4)
    """
    freedom = sum((shape[a] - 1) * (shape[b] - 1) for a, b in pairs)
    return _FIRST_PARTS[1] if freedom < _FEW else _FIRST_PARTS[0]


def looking_share(law: NoiseLaw, noise: FloatArray, cells: FloatArray) -> Fraction:
    """What the look at dependence may cost: enough to tell it from the noise of pairs, between 1 and 3 hundredths.

    Both noises fall with the number of records alike, so public sizes decide. Under ε a hundredth of the budget is a
    hundredth more noise for all that follows, so it stays at one.

    Args:
        law: Of the whole budget.
        noise: The deviation that each pair's cells would have.
        cells: How many cells each pair has.

    Returns:
        The share.
    """
    if not law.gaussian:
        return DEPENDENCE_SHARE
    wanted = 0.5 * float(np.mean(0.4 * noise * cells))
    share = (2.0 * float(law.deviation) / wanted) ** 2
    return fraction(float(np.clip(share, float(DEPENDENCE_SHARE), 3.0 * float(DEPENDENCE_SHARE))))


def too_weak(strength: Strength) -> bool:
    """Whether single attributes should get the whole budget, without looking at pairs."""
    return not strength.law.gaussian and strength.records < _WEAK


def pair_shares(law: NoiseLaw, cells: Sequence[int]) -> list[Fraction]:
    """Shares of chosen pairs: what each adds to the total variation counts, and large tables are mostly empty."""
    cost = np.array([min(float(size), 8.0 * math.sqrt(size)) for size in cells])
    wanted = cost ** (2.0 / 3.0 if law.gaussian else 0.5)
    # Rounded down to a grid, so that what a platform rounds otherwise changes no share.
    return [Fraction(max(1, int(4096 * part)), 4096 + len(cells)) for part in wanted / wanted.sum()]


def fraction(share: float) -> Fraction:
    """A share in thousandths."""
    return Fraction(round(1000 * share), 1000)
