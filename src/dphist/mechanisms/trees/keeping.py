"""A share kept beside a tree, and spent when all else is done on how far what is published is from the truth.

What the answer is good for, `dphist.inference.predictive.apart` says. Each attribute's published table, the cells of a
line, the rows and the columns of a plane, is set beside the true one: Σ|x − p| is one number. So are the cells of a
plane, where diagonals are in the wrong place that no row and no column shows.

Private because the share is split off what is left of every cell's budget, once totals that were paid for say how large
it should be, and levels after that share what is left (`dphist.mechanisms.trees.growing`). What is published follows
from answers that were paid for, so each question has a public model, from which one step moves the distance by at most
one (`TableDistances`): a step moves one cell of any table. Questions have parts of the share that add up to it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist.inference.estimate import Estimate
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.apart import Distances, asked_tables, rounded_tables
from dphist.mechanisms.trees.growing import Front, Rule, grow
from dphist.model.law import NoiseLaw
from dphist.private.gate import PrivateCounts
from dphist.private.queries.dependence import TableDistances

IntArray = NDArray[np.int64]

# What it may cost to ask how far published tables are from the true ones; which part of all records in the wrong place
# should be as large as the noise; and from which part on it tells nothing.
_PARTS = tuple(Fraction(1, part) for part in (256, 128, 64, 48, 32, 24))
_SEEN, _BARELY = 0.05, 0.16
# Which part of the share asks about all cells of a plane. What stands out there are all records in the wrong place, far
# above the noise; where they could not be told from people who come one by one, no share would help.
_CELLS = Fraction(1, 5)
# Where so many noise scales lie in every cell, cells are measured one by one anyway.
_FULL = 32.0
# Of more attributes or cells nothing is asked: the noise of what is seen grows with the attributes.
_MOST_ATTRIBUTES, _LARGEST = 3, 1 << 20


def grow_and_keep(
    data: PrivateCounts, rule: Rule
) -> tuple[MeasuredTree, IntArray, PrivateCounts | Distances | None]:
    """Grow a tree by a rule that measures a total first, and keep a share of the budget as soon as that is known.

    Args:
        data: The right to ask; all of it but what is kept is spent if the rule finishes every box.
        rule: Takes a front and gives those that go on.

    Returns:
        The tree, the level of each box, and the right that was kept; where it would tell nothing, distances of nothing;
        None where every cell is measured anyway, and of large cubes.
    """
    kept: list[PrivateCounts | Distances | None] = []

    def keeping(front: Front) -> list[Front]:
        fronts = list(rule(front))
        if front.level >= 0:
            return fronts
        # There is one box, and one front with all that is left.
        right, rest = keep_for_distances(fronts[0])
        kept.append(right)
        return [rest]

    if not may_hide(data.shape):
        return *grow(data, rule), None
    tree, level = grow(data, keeping)
    return tree, level, kept[0]


def may_hide(shape: tuple[int, ...]) -> bool:
    """Whether it is worth asking how far what is published of such a cube is from the truth.

    Example:
        >>> may_hide((64, 64)), may_hide((4096,)), may_hide((2, 3, 2, 3))
        (True, True, False)
    """
    return len(shape) <= _MOST_ATTRIBUTES and math.prod(shape) <= _LARGEST


def part_for(shape: tuple[int, ...], records: float, law: NoiseLaw) -> Fraction | None:
    """Which share is worth keeping to ask how far published tables of one attribute are from the true ones.

    Args:
        shape: How many values each attribute has.
        records: A noisy total.
        law: The noise of a question that would spend the whole budget.

    Returns:
        The least share by which a twentieth of the records in the wrong place could be seen, 0 where even the largest
        would not show a sixth; None where every cell is measured anyway.

    Example:
        >>> from dphist.model.law import NoiseLaw
        >>> law = NoiseLaw("laplace", Fraction(1))
        >>> [str(part_for((64, 64), records, law)) for records in (100.0, 1_000.0, 20_000.0, 1e6)]
        ['0', '1/32', '1/256', 'None']
    """
    if records > _FULL * float(law.scale) * math.prod(shape):
        return None
    records = max(records, 1.0)
    for share in _PARTS:
        # Every attribute has a part of it, but for what cells have; a record in the wrong place is missing here and too
        # many there.
        seen = float(law.of_share(share / len(shape)).deviation) / (2.0 * records)
        if seen <= _SEEN:
            return share
    return share if seen <= _BARELY else Fraction(0)


def keep_for_distances(front: Front) -> tuple[PrivateCounts | Distances | None, Front]:
    """Keep a share of what is left of every cell's budget, as a total that was paid for says; and go on with the rest.

    Args:
        front: All cells, in boxes that were measured.

    Returns:
        The right that was kept; where it would tell nothing, distances of nothing; None where every cell is measured
        anyway. And the front.
    """
    shape = front.nodes.shape
    share = part_for(shape, float(front.records.sum()), front.right.law().of_share(1 / front.left))
    if not share:
        return None if share is None else Distances(np.zeros(0), np.zeros(0)), front
    return front.keep(share * front.left)


def with_distances(kept: PrivateCounts | Distances | None, made: Estimate) -> Estimate:
    """Ask how far what was made is from the truth, if a right was kept for that.

    Args:
        kept: What `keep_for_distances` gave.
        made: What is published, with errors of the predictive law.

    Returns:
        The same, with errors that know it.
    """
    if kept is None:
        return made
    errors: Any = made.errors
    seen = ask_distances(kept, made.counts) if isinstance(kept, PrivateCounts) else kept
    return replace(made, errors=replace(errors, distances=seen, looked=made.counts))


def ask_distances(right: PrivateCounts, counts: NDArray[np.float64]) -> Distances:
    """Ask how far published tables are from the true ones, with all of a right.

    Private because what is published was paid for, and each table is one question (`TableDistances`).

    Args:
        right: A right to ask about all cells.
        counts: What is published.

    Returns:
        What was seen.
    """
    axes = len(right.shape)
    of_cells = _CELLS if axes > 1 else Fraction(0)
    shares = [(1 - of_cells) / axes if len(kept) == 1 else of_cells for kept in asked_tables(axes)]
    none = np.zeros(1, dtype=np.int64)
    seen = [
        each.measure(TableDistances((kept,), table, none))
        for each, kept, table in zip(
            right.split(*shares), asked_tables(axes), rounded_tables(counts.reshape(right.shape)), strict=True
        )
    ]
    sums = np.array([float(each.values.sum()) for each in seen])
    return Distances(sums, np.array([float(np.max(each.variance)) for each in seen]), seen[0].law.gaussian)
