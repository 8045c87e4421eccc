"""Whether announced tables of two attributes and more are worth measuring, or chance says more of them than noise.

With few records a table's noise is larger than what it holds beyond its single attributes, and a product of tables of
one attribute, which have nearly all of the budget, is closer. Whether that is so hangs on how many records there are
and on how far pairs are from independence. The first is bought, the second where that may change anything, and what is
expected to lose least against the better of the two ways is done (`dphist.mechanisms.wide.outlook`).

Private because a look is two measurements, each with its own share of the right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

import numpy as np

from dphist.inference.tables import Axes
from dphist.mechanisms.choosing.asked import asked_tables
from dphist.mechanisms.choosing.forecast import Forecaster
from dphist.mechanisms.choosing.glimpse import Glimpse, Look
from dphist.mechanisms.marginals import Marginals
from dphist.mechanisms.wide.choice import residual_error
from dphist.mechanisms.wide.outlook import Outlook
from dphist.mechanisms.wide.plan import wanted_tables
from dphist.model.law import Kind as NoiseKind
from dphist.model.law import NoiseLaw
from dphist.private.gate import PrivateCounts

# What the number of records costs; a look at dependence costs what it is worth, four percent at most.
TOTAL = Fraction(1, 128)
# What the cube keeps where chance speaks for announced tables: what was never measured has no interval. With as much on
# the announced tables themselves errors are the same, but intervals are ten times as wide as if all of it were spent on
# them. Those of a cube that is moved towards its tables know how far it may depart from chance: where chance is chosen
# they have 0.2 to 0.9 of that width, and up to 2.5 where records are nearly enough to measure the tables.
_KEPT = Fraction(3, 20)
# Of c cells about c to this power are full, and the mean square of normal departures is so many times their mean's.
_FULL, _NORMAL = 0.6, math.pi / 2.0
# Where there is nothing but noise, shrinking leaves this part of its variance.
_STAYS = 0.25
# Shares are multiples of one over this: what a platform rounds otherwise must not change a share.
_GRID = 10_000


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


def look_further(
    look: Look, seen: Glimpse, data: PrivateCounts, tables: Sequence[Axes]
) -> tuple[Look, Glimpse, PrivateCounts]:
    """See how far pairs are from independence too, where that is worth its price.

    Args:
        look: What was asked so far: a noisy total.
        seen: What that showed.
        data: What is left of the right.
        tables: What was announced.

    Returns:
        All that was asked, what it showed, and what is left of the right.
    """
    share = outlook(data.law(), data.shape, tables, seen).look()
    if not share or seen.records is None:
        return look, seen, data
    look = replace(look, pairs=share, among=pairs_of(data.shape, tables))
    return look, *look.further(data, seen.records)


def outlook(law: NoiseLaw, shape: tuple[int, ...], tables: Sequence[Axes], seen: Glimpse) -> Outlook:
    """What is expected of announced tables, measured all together or left to chance.

    Args:
        law: Of what is left of the budget.
        shape: How many values each attribute has.
        tables: What was announced.
        seen: What was seen.

    Returns:
        The outlook.

    Example:
        >>> law, pairs = NoiseLaw("laplace", Fraction(1)), [(0, 1), (0, 2), (1, 2)]
        >>> outlook(law, (8, 8, 8), pairs, Glimpse(100.0)).pairs
        ((0, 1), (0, 2), (1, 2))
    """
    wanted = wanted_tables(shape, [*tables, *((axis,) for axis in range(len(shape)))])
    finer = _finer(law.kind, shape, tuple(tables))
    found = Outlook(
        law, shape, wanted, pairs_of(shape, tables), total=max(1.0, seen.records or 1.0), finer=finer
    )
    if seen.dependence is None or seen.doubt is None:
        return found
    return found.seen(seen.dependence, seen.doubt)


def losses(found: Outlook) -> tuple[float, float]:
    """What tables measured together, and chance, are expected to lose against the better of both, as a part of that.

    The outlook itself weighs total variation. Here squared errors of all cells count, to which full cells add most: a
    dependence δ moves 2 δ n records, and these fall on few of a pair's cells. What is left of it by shrinking a table
    whose noise has the variance v is h v ÷ (h + v), h being its mean square, and a part of the noise where h is small.

    Args:
        found: The outlook.

    Returns:
        Both: together, by chance.

    Example:
        >>> law, pairs = NoiseLaw("laplace", Fraction(1)), [(0, 1), (0, 2), (1, 2)]
        >>> few, many = (losses(outlook(law, (8, 8, 8), pairs, Glimpse(n))) for n in (10.0, 1e6))
        >>> few[0] > few[1], many[0] < many[1]
        (True, True)
    """
    whole, low = found.variances
    cells, weight = found.cells, found.cells / found.cells.sum()
    square = _NORMAL * 4.0 / cells ** (1.0 + _FULL)
    held = square * (found.sizes[:, None] * found.total) ** 2
    noise = np.maximum(whole - low, 1e-12)
    together = np.sqrt((low + noise * (held + _STAYS * noise) / (held + noise)) @ weight)
    single = np.array([math.hypot(found.single_noise[a], found.single_noise[b]) for a, b in found.pairs])
    apart = np.sqrt((held + square * (single * found.total / float(1 - _KEPT)) ** 2) @ weight)
    best = np.minimum(together, apart)
    return float(found.likely @ (together / best)) - 1.0, float(found.likely @ (apart / best)) - 1.0


@lru_cache(maxsize=8)
def _finer(noise: NoiseKind, shape: tuple[int, ...], tables: tuple[Axes, ...]) -> float:
    """How much less the tables that would be planned are expected to be off than residuals; at most as much."""
    law = NoiseLaw(noise, Fraction(1))
    planned = Forecaster(shape, (asked_tables("tables", shape, tables),), law).tables()
    return min(1.0, planned.forecast.score / residual_error(law, shape, tables))


def left_to_chance(shape: tuple[int, ...]) -> Marginals:
    """Tables of one attribute with nearly all of the budget, and the cube with so much that every table has intervals.

    Shares grow with the cube root of a table's cells, by which the sum of squares over all cells is least under ε.

    Args:
        shape: How many values each attribute has.

    Returns:
        The mechanism.

    Example:
        >>> left_to_chance((4, 4)).shares
        (Fraction(17, 40), Fraction(17, 40), Fraction(3, 20))
    """
    ones: list[Axes] = [(axis,) for axis, size in enumerate(shape) if size > 1]
    shares = (*_by_size(shape, ones, 1 - _KEPT), _KEPT)
    return Marginals(tables=(*ones, tuple(range(len(shape)))), shares=shares, estimator="chance")


def _by_size(shape: tuple[int, ...], tables: Sequence[Axes], share: Fraction) -> list[Fraction]:
    sizes = np.array([math.prod(shape[axis] for axis in axes) ** (1.0 / 3.0) for axes in tables])
    counts = np.maximum(np.floor(sizes / sizes.sum() * _GRID + 1e-6), 1.0).astype(np.int64)
    return [share * Fraction(int(each), int(counts.sum())) for each in counts]
