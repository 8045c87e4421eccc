"""Single columns first, then the pairs that a model of what was measured gets most wrong.

How many pairs, and the share of single columns, were tried on made-up tables (5 and 15 columns of 2, 10 or mixed
numbers of values, with and without dependence, 3,000 and 50,000 records, both currencies); the share under ε was set
looking at the Adult records: figures on those are not blind. Whether any are chosen is decided by forecast
(`dphist.mechanisms.wide.outlook`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dphist.arrays import FloatArray, IntArray
from dphist.inference.tables.errors import ResidualNoise, noise_after
from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.residuals import measure_residuals
from dphist.mechanisms.wide.fit import fit_together
from dphist.mechanisms.wide.plan import Kinds, pair_weights
from dphist.model.law import NoiseLaw
from dphist.private.gate import PrivateCounts
from dphist.private.scores.tables import TableErrors, chosen_tables

# Rounds of choosing pairs; after the first the model knows what was measured.
_ROUNDS = 2
# Of what a round has, to choose its pairs.
_CHOICE_SHARE = Fraction(1, 20)
# The strength of a budget is counted in records × ε: noise of deviation σ is worth ε = √2 ÷ σ, under ρ 5.77 ÷ σ.
_LAPLACE_WORTH, _GAUSSIAN_WORTH, _USUAL = math.sqrt(2.0), 5.77, 3e4


def _strength(law: NoiseLaw, total: float) -> float:
    """How much a budget can see, beside what is usual."""
    worth = _GAUSSIAN_WORTH if law.gaussian else _LAPLACE_WORTH
    return worth * total / float(law.deviation) / _USUAL


def singles_share(law: NoiseLaw, total: float) -> Fraction:
    """The share of tables of one attribute: the more, the less can be seen of pairs."""
    most = 0.3 if law.gaussian else 0.4
    return Fraction(round(1000 * float(np.clip(most * _strength(law, total) ** -0.3, 0.15, 0.7))), 1000)


def picks(law: NoiseLaw, total: float, columns: int, pairs: int) -> int:
    """How many pairs to measure."""
    wanted = (3.0 if law.gaussian else 2.0) * columns * _strength(law, total) ** 0.4
    return int(min(pairs, max(1.0, wanted)))


def measure_singles(data: PrivateCounts) -> ResidualNoise:
    """Measure single columns with a whole right."""
    every = [(axis,) for axis, size in enumerate(data.shape) if size > 1]
    return ResidualNoise(measure_residuals(data, every or [()], by_cells=True))


def measure_chosen(
    data: PrivateCounts, pairs: Sequence[Axes], total: float, kinds: Kinds, classes: int, steps: int
) -> tuple[ResidualNoise, int]:
    """Measure single columns, then in rounds those pairs that a model gets most wrong; says how many.

    What a pair is away from the model counts by its weight among ``kinds``.
    """
    law, left, chosen = data.law(), list(pairs), list[Axes]()
    share = singles_share(law, total)
    wanted = picks(law, total, len(data.shape), len(left))
    one, rest = data.split(share, 1 - share)
    errors = measure_singles(one)
    rounds = _ROUNDS if 1 < wanted < len(left) else 1
    for number, right in enumerate(rest.split(*[Fraction(1, rounds)] * rounds)):
        take = min(len(left), wanted // rounds + (wanted % rounds if number == 0 else 0))
        here = left
        if take < len(left):
            choose, right = right.split(_CHOICE_SHARE, 1 - _CHOICE_SHARE)
            model = fit_together(errors.residuals, chosen, classes, steps).mixture
            said = [np.rint(total * model.table(axes)).astype(np.int64).reshape(-1) for axes in left]
            weights = _whole(pair_weights(kinds, left)) if kinds else None
            none = np.zeros(len(left), np.int64)
            score = TableErrors(tuple(left), np.concatenate(said), none, take, weights)
            here = sorted(left[place] for place in chosen_tables(choose.choose(score), len(left)))
        errors = noise_after(errors, measure_residuals(right, here, by_cells=True))
        chosen += here
        left = [pair for pair in left if pair not in here]
        if not left:
            break
    return errors, len(chosen)


def _whole(weights: FloatArray) -> IntArray:
    """Weights as whole numbers: the least that differs from nothing is a sixteenth of the largest."""
    return np.asarray(np.maximum(1, np.rint(16.0 * weights / weights.max())), dtype=np.int64)
