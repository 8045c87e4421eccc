"""Counts made nicer to read from the top down: nowhere negative, whole, and no sum ruined on the way.

Zeros in place of negative counts make a sum of many cells too large, and one number taken from all cells to make up for
it ruins the sums of parts. So the table is divided step by step, and each part's number, once it is settled, is what
its own parts add up to: an error goes no further up than to the smallest part that can bear it.

The steps: attributes without groups first, ordered ones by halves, categories all at once; then hierarchies,
level by level. Several of a kind take turns, in the order of the domain. (Census TopDown, Abowd et al. 2022, divides
places in the same order.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from dphist.model.domain import Attribute, Domain, Nominal

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Binary digits that cells are cut to, so that they add up exactly: errors of a sum must not decide which is rounded up.
_FINEST = 30


def nonnegative_topdown(counts: FloatArray, domain: Domain, total: float | None = None) -> FloatArray:
    """Move counts so that none is negative and each part of the table keeps its sum as nearly as it can.

    At each step the parts of a part become the nearest numbers that are nowhere negative and add up to it.

    Example:
        >>> from dphist.model.domain import Ordinal
        >>> line = Domain([Ordinal("x", range(4))])
        >>> nonnegative_topdown(np.array([9.0, 3.0, -2.0, 1.0]), line).tolist()
        [8.5, 2.5, 0.0, 0.0]
    """
    wanted = max(0.0, float(counts.sum())) if total is None else float(total)
    return _settled(counts, domain, wanted, nearest)


def integers_topdown(counts: FloatArray, domain: Domain) -> FloatArray:
    """Round counts so that every part of the table is within one of its sum: largest remainders are rounded up.

    A part is its sum rounded down or up; then so can its parts be, since the sums of either hold it between them.

    Example:
        >>> from dphist.model.domain import Ordinal
        >>> line = Domain([Ordinal("x", range(4))])
        >>> integers_topdown(np.array([0.5, 0.25, 0.75, 0.5]), line).tolist()
        [1.0, 0.0, 1.0, 0.0]
    """
    places = min(_FINEST, 52 - int(np.frexp(np.abs(counts).sum())[1]))
    exact = np.ldexp(np.rint(np.ldexp(counts, places)), -places) if places > 0 else np.rint(counts)
    return _settled(exact, domain, float(np.rint(exact.sum())), largest_remainders)


def _settled(
    counts: FloatArray,
    domain: Domain,
    total: float,
    settle: Callable[[FloatArray, IntArray, FloatArray], FloatArray],
) -> FloatArray:
    """Divide the total step by step; ``settle`` makes numbers add up to what each of their owners has."""
    starts = [np.zeros(1, dtype=np.int64) for _ in domain.shape]
    above = np.full([1] * counts.ndim, total)
    for axis, finer in _steps(domain):
        parent = np.searchsorted(starts[axis], finer, side="right") - 1
        owner = np.arange(above.size).reshape(above.shape).take(parent, axis=axis).reshape(-1)
        starts[axis] = finer
        below = _summed(counts, starts)
        above = settle(below.reshape(-1), owner, above.reshape(-1)).reshape(below.shape)
    return above


def _steps(domain: Domain) -> Iterator[tuple[int, IntArray]]:
    """Which axis is divided next, and the first cells of its parts from then on."""
    grouped = [isinstance(each, Nominal) and each.hierarchy.levels > 2 for each in domain.attributes]
    for kind in (False, True):
        axes = [axis for axis, groups in enumerate(grouped) if groups is kind]
        for turn in zip_longest(*(_divided(domain.attributes[axis]) for axis in axes)):
            yield from ((axis, finer) for axis, finer in zip(axes, turn, strict=True) if finer is not None)


def _divided(attribute: Attribute) -> Iterator[IntArray]:
    """The first cells of an attribute's parts, finer and finer, until each cell is one."""
    if isinstance(attribute, Nominal):
        tree = attribute.hierarchy
        for level in range(1, tree.levels):
            # A group begins where the first of its parts does.
            yield np.unique(tree.start[tree.depth <= level])
        return
    ends = np.array([0, attribute.size])
    while ends.size <= attribute.size:
        ends = np.unique(np.concatenate([ends, (ends[:-1] + ends[1:]) // 2]))
        yield ends[:-1]


def _summed(counts: FloatArray, starts: list[IntArray]) -> FloatArray:
    for axis, first in enumerate(starts):
        if first.size < counts.shape[axis]:
            counts = np.add.reduceat(counts, first, axis=axis)
    return counts


def nearest(values: FloatArray, owner: IntArray, total: FloatArray) -> FloatArray:
    """The nearest numbers that are nowhere negative and add up, for each owner, to its total.

    The projection on a simplex: one number is taken from all that stay above zero (Michelot 1986).
    """
    kept, found = np.arange(values.size), np.zeros(values.size)
    # A total that vanishes beside the largest number leaves that one alone to hold it.
    largest = np.full(total.size, -np.inf)
    np.maximum.at(largest, owner, values)
    while True:
        here, of = values[kept], owner[kept]
        size = np.bincount(of, minlength=total.size)
        excess = (np.bincount(of, here, minlength=total.size) - total) / np.maximum(size, 1)
        stays = (here > excess[of]) | (here == largest[of])
        if stays.all():
            found[kept] = np.maximum(here - excess[of], 0.0)
            return found
        kept = kept[stays]


def largest_remainders(values: FloatArray, owner: IntArray, total: FloatArray) -> FloatArray:
    """Round down, then up where most was lost, until the numbers of each owner add up to its whole total."""
    whole = np.floor(values)
    missing = total - np.bincount(owner, whole, minlength=total.size)
    # Stable order: ties go to the first cell, so the same release always rounds the same way.
    order = np.lexsort((whole - values, owner))
    first = np.cumsum(np.bincount(owner, minlength=total.size)) - np.bincount(owner, minlength=total.size)
    ranked = owner[order]
    up = np.arange(values.size) - first[ranked] < missing[ranked]
    whole[order[up]] += 1.0
    return whole
