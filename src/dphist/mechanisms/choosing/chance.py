"""Whether a cube is left to chance: tables of one attribute with the whole budget, and their product.

Where attributes go together by chance nothing can be closer to a cube than the product of its tables of one attribute,
each measured with all that the others leave. How far pairs are from chance (*dependence* δ, the root mean square of
their total variations) is not known: a public prior and, where that may change anything, a noisy look at the strongest
pairs say how likely every size is (`dphist.mechanisms.wide.outlook`): few pairs may hold all of it, of which a mean
over all shows little, and errors are squared. What sampling makes of each pair is taken off before: a pair of many
values would hide one of few. For each size it is forecast what the product would miss,

    B(δ)² = Σ over tables S of one attribute of their noise + Σ over larger S of what they hold beyond smaller ones,

and set beside what the best other candidate is expected to be off by, A. If that is tables which are moved towards
smaller ones, A hangs on δ as well: h_S(δ) ÷ (1 + h_S(δ) · precision of S) is left of what a larger S holds. As a
constant it was as large for attributes that go together by chance, which lost much beside B and so were left to it too
readily. The way that is expected to lose less against the better of both is gone. Choices simulated on 68 made-up cubes
(those of the matrix, `dphist_bench.data.drawn` people 0 to 59 and cubes 300 to 344 of up to 13,000 cells, ε up to 3,
two draws, looks for 1/50) lost 1.065 against the better way; with a constant A and looks at all that pairs show 1.078,
with A at most its plain forecast 1.087.

**Where two attributes are all there is, or two are long and ordered**, a look has another use: blocks hide a narrow
diagonal, or categories with habits of their own, and whoever knows of them measures another table or the cells
(`dphist.mechanisms.choosing.cubes`). It is then bought wherever it is clear enough for little. On drawn spaces and
tables of two attributes (`dphist_bench.data.drawn`: spaces 500 to 556, `dphist_bench.data.crosstabs` 300 to 359) every
fifth and every tenth have such pairs, and errors of half or a third are worth more than a percent.

**What larger tables hold** is what `departing` says. Boxes add it up as they add up noise (`forecast`). On 35 made-up
cubes (matrix, `dphist_bench.data.drawn` 100 to 139) products with exact tables were off by 0.77 of this on ranges of
two attributes, 0.85 on boxes, 0.9 on cells, each within a third. All of it is reckoned with: of 36 cubes (144 cases,
choices simulated by a script) those lost 1.05 against the better of both, with 0.8 or 1.2 of it 1.06, 1.08.

Private because a look is one more measurement with its own share of the right; all else is arithmetic on public facts
and on answers that were paid for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.measured import Axes
from dphist.mechanisms.choosing.departing import departing
from dphist.mechanisms.choosing.forecast import Forecaster, Known
from dphist.mechanisms.choosing.glimpse import Glimpse, Look
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.wide.looks import given_strongest, strongest
from dphist.mechanisms.wide.outlook import LOOKS, Outlook
from dphist.private.gate import PrivateCounts

FloatArray = NDArray[np.float64]

# What the strongest pairs have where all depend about alike, in parts of the root mean square; at most they have all of
# it. So many guesses lie between the two.
_ALIKE, _GUESSES = 1.3, 3
# Where pairs may hide a look costs up to the third of `LOOKS`: what leaves a doubt of the first, or, if none does, of
# the second.
_LITTLE, _CLEAR = 3, (0.1, 0.2)


@dataclass(frozen=True, eq=False)
class ByChance(Outlook):
    """What is expected of another way, and of the product of single attributes, for every dependence."""

    ways: FloatArray = field(default_factory=lambda: np.zeros((2, 0)))

    @cached_property
    def _ways(self) -> FloatArray:
        return self.ways

    def lost(self, ways: FloatArray) -> FloatArray:
        """What ways are worse by than the better of both, for each dependence."""
        return np.asarray(ways / self.ways.min(axis=0) - 1.0)

    @cached_property
    def strongest(self) -> FloatArray:
        """What the strongest pairs would show beyond sampling, for every dependence; a row a guess how uneven it is."""
        alone = math.sqrt(len(self.pairs) / strongest(self.pairs))
        more = np.geomspace(_ALIKE, max(_ALIKE, alone), _GUESSES)[:, None]
        return np.asarray(np.hypot(self.sampling, more * self.beyond) - self.sampling)

    @property
    def chosen(self) -> bool:
        """Whether the product is expected to lose less."""
        other, product = self.losses()
        return bool(product < other)

    @property
    def expected(self) -> tuple[float, float]:
        """What the other way, and the product, are expected to be off by."""
        other, product = self.ways @ self.likely
        return float(other), float(product)


def pairs_of(shape: Sequence[int], tables: Sequence[Axes]) -> tuple[Axes, ...]:
    """All pairs of attributes that lie in some table, of two values and more each.

    Args:
        shape: How many values each attribute has.
        tables: The tables, each as the attributes it keeps.

    Returns:
        The pairs.

    Example:
        >>> pairs_of((3, 3, 1, 2), [(0, 1, 2), (3,)])
        ((0, 1),)
    """
    some = {pair for axes in tables for pair in combinations(sorted(set(axes)), 2)}
    return tuple(sorted(pair for pair in some if min(shape[axis] for axis in pair) > 1))


def outlook(
    forecaster: Forecaster,
    other: float,
    seen: Glimpse,
    known: Known | None = None,
    announced: tuple[Axes, ...] = (),
) -> ByChance:
    """What is expected of the product of single attributes, beside another way.

    Args:
        forecaster: Knows what will be asked, of what shape and with what noise.
        other: What the other way is expected to be off by.
        seen: What was seen.
        known: What the tables of the other way know, if it is tables that are moved towards smaller ones.
        announced: The pairs that count, if tables were announced; all of them unless told.

    Returns:
        The outlook.

    Example:
        >>> from fractions import Fraction
        >>> from dphist.mechanisms.choosing.asked import asked_kinds
        >>> from dphist.model.law import NoiseLaw
        >>> asked = asked_kinds((8, 8, 8), None, None, "cells")
        >>> few = Forecaster((8, 8, 8), asked, NoiseLaw("laplace", Fraction(10)), 1e3, 0.01)
        >>> near, far = (Glimpse(1e3, 0.01, 0.01, apart=apart) for apart in (0.0, 0.5))
        >>> outlook(few, 4.0, near).chosen, outlook(few, 4.0, far).chosen
        (True, False)
    """
    shape, total = forecaster.shape, max(1.0, seen.records or 1.0)
    pairs = announced or pairs_of(shape, [tuple(range(len(shape)))])
    found = ByChance(forecaster.law, shape, pairs, pairs, total=total)
    weights = np.array([each.weight for each in forecaster.kinds])

    def mean(squares: FloatArray) -> FloatArray:
        return np.asarray(np.exp(0.5 * np.log(np.maximum(squares, 1e-24)) @ weights / weights.sum()))

    low = np.array(forecaster.singles().forecast.errors) ** 2
    cells, orders, adds = forecaster.beyond()
    product = mean(low + _held(found, cells, orders) @ adds.T)
    others = np.full(product.size, other)
    if known is not None:
        others = mean(forecaster.moved(known, _held(found, known.cells, known.orders)))
    found = replace(found, ways=np.stack([others, product]))
    if seen.apart is None or seen.doubt is None:
        return found
    given = given_strongest(found, found.strongest, seen.apart, seen.doubt)
    return replace(found, weights=given.weights)


def _held(found: ByChance, cells: FloatArray, orders: FloatArray) -> FloatArray:
    """Mean squares of what a cell of larger tables departs from smaller ones, a row for each dependence."""
    return departing(found.total, found.beyond[:, None], cells, orders)


def look_at_pairs(
    look: Look, seen: Glimpse, data: PrivateCounts, found: ByChance, *, hidden: bool = False
) -> tuple[Look, Glimpse, PrivateCounts]:
    """See how far pairs are from chance too, where that is worth its price.

    Args:
        look: What was asked so far.
        seen: What that showed.
        data: What is left of the right.
        found: What is expected so far.
        hidden: Whether pairs may go together that blocks hide.

    Returns:
        All that was asked, what it showed, and what is left of the right.
    """
    if seen.records is None or not found.pairs:
        return look, seen, data
    shown = found.strongest
    doubts = [2.0 * found.law.deviation_of(float(share)) / found.total for share in LOOKS]
    share, _ = found.best(LOOKS, [shown] * len(LOOKS), [np.full(shown.shape, doubt**2) for doubt in doubts])
    if hidden:
        clear = [each for each, doubt in zip(LOOKS[:_LITTLE], doubts, strict=False) if doubt <= _CLEAR[0]]
        least = LOOKS[_LITTLE - 1] if doubts[_LITTLE - 1] <= _CLEAR[1] else Fraction(0)
        share = max(share, min(clear, default=least))
    if not share:
        return look, seen, data
    look = replace(look, pairs=share, among=found.pairs, top=strongest(found.pairs))
    return look, *look.further(data, seen)


def product_of(forecaster: Forecaster) -> Marginals:
    """Tables of one attribute with the whole budget: of larger ones there are bounds.

    Args:
        forecaster: Knows what will be asked, of what shape and with what noise.

    Returns:
        The mechanism.
    """
    plan = forecaster.singles()
    return Marginals(tables=plan.tables, shares=plan.shares, estimator="weighed")
