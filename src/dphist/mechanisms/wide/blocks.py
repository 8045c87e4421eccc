"""Larger tables that hold many wanted ones: under ε fewer questions are worth more than fewer cells.

One record moves one cell of every table that is asked, so under ε T tables have noise of scale T each, whatever their
size. A table of more attributes is the sum of more cells, each with its noise: every value of a further attribute adds
one. A block of k columns of n values holds k(k − 1)/2 pairs: a pair read off it has √(n^(k−2)) times the noise of a
pair asked by itself, of which k(k − 1)/2 times as many would have to be asked. That is less up to six columns of two
values, four of three or four, and two of ten; and single columns come with it, from every block that has them. Covering
designs of blocks are those of PriView (Qardaji, Yang and Li, 2014). Under ρ residuals by themselves are the best there
is, and blocks gain nothing.

All from public sizes: the closed form of their errors says which blocks are best (`dphist.mechanisms.wide.plan`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from dphist.inference.tables.residuals import Axes

# Most cells of a block: of two values six columns are best, of three and four four of them.
_MOST = (8, 16, 32, 64, 128, 256)
# Of more wanted tables the search would take longer than counting them.
_FEW = 3_000


def coverings(shape: Sequence[int], wanted: Sequence[Axes]) -> Iterator[tuple[Axes, ...]]:
    """Give some ways to hold all wanted tables in fewer, larger ones; none where there is nothing to gain.

    Example:
        >>> [len(blocks) for blocks in coverings((2,) * 15, list(combinations(range(15), 2)))]
        [35, 20, 14, 11, 9, 6]
    """
    if len(wanted) > _FEW:
        return
    before = len(wanted)
    for most in _MOST:
        blocks = covering(shape, wanted, most)
        if len(blocks) < before:
            before = len(blocks)
            yield blocks


def covering(shape: Sequence[int], wanted: Sequence[Axes], most: int) -> tuple[Axes, ...]:
    """Hold all wanted tables in blocks of at most ``most`` cells, or in themselves if they have more.

    A block starts with the largest table that is left, and takes the attribute that brings most others with it for its
    size, again and again.
    """
    order = max((len(axes) for axes in wanted), default=0)
    left = dict.fromkeys(sorted(wanted, key=lambda axes: (-math.prod(shape[a] for a in axes), axes)))
    small = [axis for axis, size in enumerate(shape) if 1 < size <= most // 2]
    found = []
    while left:
        block = next(iter(left))
        del left[block]
        while len(block) > 1:
            room = most / math.prod(shape[axis] for axis in block)
            best, brings = 0.0, list[Axes]()
            for axis in small:
                if shape[axis] > room or axis in block:
                    continue
                new = [
                    axes
                    for size in range(order)
                    for part in combinations(block, size)
                    if (axes := tuple(sorted((*part, axis)))) in left
                ]
                # Rounded, so that what a platform rounds otherwise changes no block.
                gain = round(len(new) / math.log(shape[axis]), 9)
                if gain > best:
                    best, brings, larger = gain, new, tuple(sorted((*block, axis)))
            if not brings:
                break
            block = larger
            for axes in brings:
                del left[axes]
        found.append(block)
    return tuple(found)
