"""What each question of `Mixture` costs: from public sizes, the noise law and noisy totals.

Most constants were tried on made-up tables (5 and 15 columns of 2, 10 or mixed numbers of values, with and without
dependence, 3,000 and 50,000 records, both currencies). Those of single attributes' share under ε and of merging were
set looking at the Adult records: figures on those are not blind. Which way is gone is decided by forecast
(`dphist.mechanisms.wide.outlook`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]

# The share of the first question: how many records there are.
COUNT_SHARE = {"gaussian": Fraction(1, 200), "laplace": Fraction(1, 400)}
# Of what is left then, to see whether pairs are worth measuring, and to choose among them.
DISTANCE_SHARE = Fraction(1, 50)
CHOICE_SHARE = Fraction(1, 20)
# The strength of a budget is counted in records × ε: noise of deviation σ is worth ε = √2 ÷ σ, under ρ 5.77 ÷ σ.
_LAPLACE_WORTH, _GAUSSIAN_WORTH = math.sqrt(2.0), 5.77
_USUAL = 3e4
# Under ε a budget that is split is worth less than the whole: below this strength single attributes get all of it.
_WEAK = 2e4
# A value of an attribute is merged with others unless it is seen above 6 deviations of a pair's noise.
_VISIBLE = 6.0
# Pairs are measured if they are further from the model than noise would be, by 2 deviations of that look at them.
_SURE = 2.0
# How much of their noise pairs must exceed on average for some of them to exceed all of it: dependence is uneven.
_OWN, _TELLING = 0.5, 16


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
        return _VISIBLE * self.law.deviation_of(share / picks)


def too_weak(strength: Strength) -> bool:
    """Whether single attributes should get the whole budget, without looking at pairs."""
    return not strength.law.gaussian and strength.records < _WEAK


def worth_from(strength: Strength, shape: Sequence[int], doubt: float, total: float) -> float:
    """What pairs must be away from a model, beyond their own noise, to be measured: sure of it, and of what it costs.

    Single attributes lose, in total variation of pairs, by not getting the whole budget.
    """
    noise = [
        0.18 * 0.4 * strength.law.deviation_of(1.0 / len(shape)) * min(size, 40) / total for size in shape
    ]
    worse = float(strength.singles) ** (-0.5 * strength.law.exponent) - 1.0
    return _SURE * doubt + float(math.sqrt(2.0) * float(np.mean(noise)) * worse)


def seen_from(
    strength: Strength, shape: Sequence[int], pairs: Sequence[tuple[int, ...]], total: float
) -> float:
    """The dependence below which pairs will not be found worth measuring, so that none is chosen.

    Their own noise would be in the way; of larger tables rare values are merged, and few cells hold what there is.
    """
    picks = strength.picks(len(shape), len(pairs))
    share = float(1 - strength.singles - DISTANCE_SHARE - CHOICE_SHARE)
    cells = [min(_TELLING, math.prod(shape[axis] for axis in axes)) for axes in pairs]
    noise = 0.4 * strength.law.deviation_of(share / picks) * float(np.mean(cells)) / total
    doubt = strength.law.deviation_of(float(DISTANCE_SHARE)) / (2.0 * total)
    return _OWN * noise + worth_from(strength, shape, doubt, total)


def pair_shares(law: NoiseLaw, cells: Sequence[int]) -> list[Fraction]:
    """Shares of chosen pairs: what each adds to the total variation counts, and large tables are mostly empty."""
    cost = np.array([min(float(size), 8.0 * math.sqrt(size)) for size in cells])
    wanted = cost ** (2.0 / 3.0 if law.gaussian else 0.5)
    # Rounded down to a grid, so that what a platform rounds otherwise changes no share.
    return [Fraction(max(1, int(4096 * part)), 4096 + len(cells)) for part in wanted / wanted.sum()]


def fraction(share: float) -> Fraction:
    """A share in thousandths."""
    return Fraction(round(1000 * share), 1000)
