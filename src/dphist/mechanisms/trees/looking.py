"""A look inside blocks, beside a tree of boxes: sums with public signs, of which totals of blocks say nothing.

What they are good for, `dphist.inference.predictive.inside` says. One question is asked, after the total of everything
and before any box: for each attribute and each group of its values the sum of all cells with the sign of their value.

Private because signs and groups are fixed and public: a cell has one weight, 1 or −1, in one sum of each attribute, so
one step moves as many sums by one as there are attributes, which is what `Linear` works out by itself. How many groups
there are and what the question costs follows from a total that was paid for, and the share is split off the right as
that of any box is (`dphist.mechanisms.trees.growing`).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.inside import Sketches, value_groups, value_signs
from dphist.mechanisms.trees.growing import Front, Rule, grow
from dphist.model.law import NoiseLaw
from dphist.private.gate import PrivateCounts
from dphist.private.queries.linear import Linear

IntArray = NDArray[np.int64]

# What a look may cost: the most where there are few records, whose patterns are hard to see; the least is a hundredth
# of the error.
_SHARES = tuple(Fraction(1, part) for part in (96, 64, 48, 32, 24))
# A group tells enough if a pattern of strength one adds so many times the noise's variance to it. There are so many
# groups at most and at least: few, and all may look even by chance; many, and each is lost in its noise.
_TELLS = 1.5
_MOST, _LEAST = 16, 4
# Where such a pattern has less than so many variances in all, nothing is paid: intervals go by what is believed
# beforehand. Where so many noise scales lie in every cell, cells are measured one by one anyway.
_USEFUL = 1.6
_FULL = 32.0


# Cubes of more attributes or cells are not looked into: the noise of what is seen grows with the attributes, and the
# question names every cell once for each.
_MOST_ATTRIBUTES, _LARGEST = 3, 1 << 20


def may_hide(shape: tuple[int, ...]) -> bool:
    """Whether blocks of such a cube are worth a look inside.

    Example:
        >>> may_hide((64, 64)), may_hide((4096,)), may_hide((2, 3, 2, 3))
        (True, True, False)
    """
    return len(shape) <= _MOST_ATTRIBUTES and math.prod(shape) <= _LARGEST


def grow_and_look(
    data: PrivateCounts, rule: Rule, *, look: bool
) -> tuple[MeasuredTree, IntArray, Sketches | None]:
    """Grow a tree by a rule that measures a total first, and look inside its blocks as soon as that is known.

    Args:
        data: The right to ask; all of it is spent if the rule finishes every box.
        rule: Takes a front and gives those that go on.
        look: Whether to look.

    Returns:
        The tree, the level of each box, and what was seen: None if nothing was looked at.
    """
    seen: list[Sketches] = []

    def looking(front: Front) -> list[Front]:
        fronts = list(rule(front))
        if not look or front.level >= 0:
            return fronts
        # There is one box, and one front with all that is left.
        after = []
        for each in fronts:
            planned = look_of(
                each.nodes.shape, float(each.records[0]), each.right.law().of_share(1 / each.left)
            )
            if planned is None:
                return fronts
            share, groups = planned
            if not share:
                seen.append(Sketches(groups, np.zeros(0), 0.0))
                return fronts
            right, rest = each.pay(share)
            noisy = right.measure(signed_sums(each.nodes.shape, groups))
            seen.append(
                Sketches(groups, noisy.values.astype(np.float64), float(noisy.variance), noisy.law.gaussian)
            )
            after.append(rest)
        return after

    tree, level = grow(data, looking)
    return tree, level, seen[0] if seen else None


def look_of(shape: tuple[int, ...], records: float, law: NoiseLaw) -> tuple[Fraction, tuple[int, ...]] | None:
    """What a look costs and how many groups of each attribute's values it has.

    Args:
        shape: How many values each attribute has.
        records: A noisy total.
        law: The noise of a question that would spend the whole budget.

    Returns:
        A share and numbers of groups, none of either where a look would tell nothing; None where every cell is measured
        anyway.

    Example:
        >>> from dphist.model.law import NoiseLaw
        >>> look_of((64, 64), 20_000.0, NoiseLaw("laplace", Fraction(1)))
        (Fraction(1, 96), (16, 16))
    """
    if records > _FULL * float(law.scale) * math.prod(shape):
        return None
    # Of what rows of an even plane hold, the sum of squares: the sketches' sum of squares for a strength of one.
    squares = max(records, 0.0) ** 2 / max(shape)
    for share in _SHARES:
        variance = len(shape) ** law.exponent * float(law.of_share(share).variance)
        if squares >= _TELLS * _MOST * variance:
            break
    if squares < _USEFUL * variance:
        return Fraction(0), (0,) * len(shape)
    number = min(max(round(squares / (_TELLS * variance)), _LEAST), _MOST)
    return share, tuple(max(min(number, n // 2), 1) for n in shape)


def signed_sums(shape: tuple[int, ...], groups: tuple[int, ...]) -> Linear:
    """The question: for each attribute and group the sum of cells with the signs of their values.

    Example:
        >>> signed_sums((4, 2), (2, 1)).sensitivity
        2
    """
    flat = np.arange(math.prod(shape), dtype=np.int64)
    columns, weights, sizes = [], [], [np.zeros(1, dtype=np.int64)]
    for axis, (n, parts) in enumerate(zip(shape, groups, strict=True)):
        place = flat // math.prod(shape[axis + 1 :]) % n
        group = value_groups(axis, n, parts)[place]
        order = np.argsort(group, kind="stable")
        columns.append(flat[order])
        weights.append(value_signs(axis, n)[place[order]])
        sizes.append(np.bincount(group, minlength=parts).astype(np.int64))
    return Linear(np.cumsum(np.concatenate(sizes)), np.concatenate(columns), np.concatenate(weights))
