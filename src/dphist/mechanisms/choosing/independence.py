"""Whether attributes are taken to be independent: tables of one attribute with the whole budget, and their product.

Where attributes are independent nothing can be closer to a cube than the product of its tables of one attribute, each
measured with all that the others leave. How far pairs are from independence (*dependence* δ, the root mean square of
their total variations) is not known; a public prior says how likely every size is (`dphist.mechanisms.wide.outlook`).
For each size it is forecast what the product would miss, and what is left of larger tables that are moved towards
smaller ones. The way that is expected to lose less against the better of both is gone. Where a pilot query showed that
blocks of attributes depend on each other they are not taken to be independent.

**What larger tables hold.** A table of c cells departs from smaller ones by a mean square of about
(2 δ 0.7^(k − 2) n)² · π/2 ÷ c^1.6 a cell: a dependence δ moves 2 δ n of n records, which fall on few of its cells, and
tables of one attribute more depart by less, k being how many there are. Sampling adds n ÷ c. On 35 made-up cubes
products with exact tables were off by 0.77 to 0.9 of this, each within a third.

Arithmetic on public facts and on answers that were paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dphist.arrays import FloatArray
from dphist.inference.tables.residuals import Axes
from dphist.mechanisms.choosing.forecast import Forecaster, Plan
from dphist.mechanisms.choosing.pilot import PilotAnswer
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.wide.outlook import Outlook

# Attributes whose blocks depend on each other by more than this are not taken to be independent.
_DEPENDENT = 0.04
# Of c cells about c to this power are full, and how much less a table of one attribute more departs.
_FULL, _LESS = 0.6, 0.7


def independent_product(
    forecaster: Forecaster,
    other: float,
    plan: Plan | None,
    seen: PilotAnswer,
    announced: Sequence[Axes] = (),
) -> tuple[Marginals, float, float] | None:
    """The product of single attributes, if it is expected to lose less than another way and records were counted.

    Gives tables of one attribute with the whole budget, what they are expected to be off by, and what the other way is.
    ``other`` is what that way is expected to be off by; where it is the tables of a plan, which are moved towards
    smaller ones, that is worked out anew. Of announced tables their pairs count, else all.
    """
    every = tuple(axis for axis, size in enumerate(forecaster.shape) if size > 1)
    inside = [set(axes) & set(every) for axes in announced or [every]]
    pairs = tuple(sorted({pair for axes in inside for pair in combinations(sorted(axes), 2)}))
    looked = bool(announced) if seen.dependence is None else seen.dependence <= _DEPENDENT
    if seen.records is None or not looked or not pairs:
        return None
    total = max(1.0, seen.records)
    expected = Outlook(forecaster.law, forecaster.shape, pairs, pairs, total=total)
    apart, likely = expected.beyond[:, None], expected.likely
    singles = forecaster.singles()
    cells, orders, adds = forecaster.beyond()
    product = forecaster.scores(singles.squares + departing(total, apart, cells, orders) @ adds.T)
    moved = np.full(product.size, other)
    if plan is not None:
        moved = forecaster.scores(forecaster.moved(plan, departing(total, apart, plan.cells, plan.orders)))
    best = np.minimum(product, moved)
    if (product / best) @ likely >= (moved / best) @ likely:
        return None
    chosen = Marginals(tables=singles.tables, shares=singles.shares, estimator="weighed")
    return chosen, float(product @ likely), float(moved @ likely)


def departing(records: float, apart: FloatArray | float, cells: FloatArray, orders: FloatArray) -> FloatArray:
    """Mean squares of what a cell of tables of ``cells`` and ``orders`` attributes departs from smaller tables."""
    moved = 2.0 * math.pi / cells ** (1.0 + _FULL) * (records * _LESS ** (orders - 2.0)) ** 2
    return np.asarray(np.asarray(apart) ** 2 * moved + records / cells, dtype=np.float64)
