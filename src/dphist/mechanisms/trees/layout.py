"""Which blocks a line or a hierarchy is measured in, level by level, and for how much.

Public facts decide, and of an ordered line how full its cells are, which is paid for: where most are full, levels of
least noise serve sums better than those that find their way to where records are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist.arrays import IntArray
from dphist.mechanisms.trees.shares import Kind, searched
from dphist.model.domain import Nominal, Ordinal
from dphist.model.domain.hierarchy import Hierarchy
from dphist.private.facts import Facts
from dphist.private.gate import PrivateCounts
from dphist.private.queries import Heights

# Lines of 65 to 128 cells, of which the rule would make 32, 16 and 1: a step of two wastes a level. Without it sums of
# full lines have 0.87 (prefixes) and 0.82 (ranges) of the noise in closed form; on made-up lines of 100 cells 0.86 and
# 0.81 with 1,000 noise scales of records (bench/results/worth.md).
_SHORT, _SHORT_SIDES = 7, (32, 8, 1)
# How many noise scales a full cell holds, which part of a line must be full, what it may cost to ask, and how large the
# noise of the answer may be. On the judge's tuning lines levels of least noise where most cells are full have 0.96 of
# the error over all questions where nothing was announced, 0.92 under ρ. Where sums are announced under ε nobody
# asks: there they have 1.02, and 1.07 and 1.17 on prefixes (bench/results/tried.md). Where few cells have nearly all
# records prefixes have up to 2.2, however large the total is; not under ρ, where levels find those cells.
_FULL = 4
_MOST, _MOST_GAUSSIAN = 0.6, 0.1
_PRICES = tuple(Fraction(1, part) for part in (256, 128, 64, 32))
_DOUBT = 0.15
# No line has cells this full.
_TALLEST = 1 << 60


@dataclass(frozen=True, eq=False)
class Layout:
    """The blocks of a line or a hierarchy, coarse to fine, and what each level may spend."""

    blocks: tuple[IntArray, ...]
    """For each level, a number for every cell."""
    shares: tuple[Fraction, ...]
    """For each level, its share of the budget; they add up to one."""
    full: bool = False
    """Whether most cells are full, by a noisy answer."""
    halved: bool = False
    """Whether blocks are halved all the way, as they are under ρ if cells are full."""


def line_levels(size: int) -> tuple[int, ...]:
    """Lay out blocks of 2^k cells for prefixes and ranges: about a quarter, then steps of 8 to 16, then cells.

    The closed form for the mean squared error of prefix sums over a tree of blocks is within 1 % of its best
    near these sizes, from 16 cells to 65,536.
    """
    bits = math.ceil(math.log2(size)) if size > 1 else 0
    if bits == _SHORT:
        return _SHORT_SIDES
    top = bits - 2
    if bits <= 3:
        sides = [0]
    elif top <= 4:
        sides = [top, 0]
    else:
        steps = max(1, round((top - 4) / 3.4))
        sides = [round(top - (top - 4) * step / steps) for step in range(steps)] + [4, 0]
    return tuple(1 << k for k in sides)


def box_labels(places: Sequence[IntArray]) -> IntArray:
    """Number the boxes that cells lie in, by the number of their block along every axis, in C order."""
    labels = np.zeros((1,) * len(places), dtype=np.int64)
    for axis, place in enumerate(places):
        along = [-1 if other == axis else 1 for other in range(len(places))]
        labels = labels * (int(place[-1]) + 1) + place.reshape(along)
    return np.broadcast_to(labels, [place.size for place in places])


def group_labels(hierarchy: Hierarchy, level: int) -> IntArray:
    """Give every category the number of its ancestor at this depth, or of itself if it hangs higher up."""
    node = hierarchy.leaves.copy()
    for _ in range(hierarchy.levels):
        deep = hierarchy.depth[node] > level + 1
        node[deep] = hierarchy.parent[node[deep]]
    # Leaves are numbered left to right, so a group is a run of categories with the same first one.
    return np.asarray(hierarchy.start[node], dtype=np.int64)


def lay_out(data: PrivateCounts, first: int, other: int) -> tuple[PrivateCounts, Layout]:
    """Give what is left of a right, and the blocks that it should measure; shares go by the weights of levels.

    Private because how full an ordered line is, is a question with a share of its own (`Heights`); all else is public.
    """
    attribute = None if data.domain is None else data.domain.attributes[0]
    place = np.arange(data.size, dtype=np.int64)
    if isinstance(attribute, Nominal) and attribute.hierarchy.levels > 2:
        levels = range(attribute.hierarchy.levels - 1)
        blocks = tuple(group_labels(attribute.hierarchy, level) for level in levels)
    else:
        blocks = tuple(place // side for side in line_levels(data.size))
        announced = data.workload is not None and not data.workload.parts
        if len(blocks) > 1 and ordered_line(data) and (data.law().gaussian or not announced):
            data, full = _mostly_full(data)
            if full:
                told = data.workload is not None and data.workload.kind == "prefixes"
                kind: Kind = "prefixes" if told else "all_ranges"
                law = data.law()
                sides, shares = searched(1 << (data.size - 1).bit_length(), kind, law.exponent)
                blocks = tuple(place // side for (side,) in sides)
                return data, Layout(blocks, shares, full=True, halved=law.gaussian)
    weights = [other if level else first for level in range(len(blocks))]
    return data, Layout(blocks, tuple(Fraction(weight, sum(weights)) for weight in weights))


def _mostly_full(data: PrivateCounts) -> tuple[PrivateCounts, bool]:
    """Ask whether most cells of a line are full; gives what is left of the right, and the answer.

    Σ min(x, h) over all cells, h being what a full cell holds, is h times their number if all are full.
    """
    law = data.law()
    height = math.ceil(_FULL * law.scale)
    whole = float(height) * data.size
    for share in _PRICES:
        if height < _TALLEST and float(law.of_share(share).deviation) <= _DOUBT * whole:
            now, rest = data.split(share, 1 - share)
            most = _MOST_GAUSSIAN if law.gaussian else _MOST
            return rest, float(now.measure(Heights(height)).values.sum()) > most * whole
    return data, False


def ordered_line(data: Facts) -> bool:
    """Whether there is one attribute whose cells have an order; a line of which nothing is known counts as such."""
    return len(data.shape) == 1 and (data.domain is None or isinstance(data.domain.attributes[0], Ordinal))
