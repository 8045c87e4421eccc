"""What a range of a long ordered attribute is made of: contrasts of halves of blocks, from the whole down to cells.

What cells of a table depart from an even spread by adds up along a slope, so a range of many cells is off by far more
than as many cells that depart each by itself. Contrasts of blocks say so: halves of b cells each differ by what b cells
hold together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dphist.inference.tables.measured import Axes
from dphist.mechanisms.choosing.asked import Asked

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def by_blocks(
    shape: tuple[int, ...],
    about: Sequence[Axes],
    adds: FloatArray,
    kinds: Sequence[Asked],
    long: tuple[int, ...],
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Split residuals of one long attribute into contrasts of blocks; others stay as they are.

    Args:
        shape: How many values each attribute has.
        about: The residuals, each as the attributes it is about.
        adds: What each adds to every kind of question, a row a kind.
        kinds: The kinds of questions.
        long: The attributes that are ordered and long.

    Returns:
        Which residual each part is of, how many cells its blocks have, and what it adds to every kind.

    Example:
        >>> from dphist.mechanisms.choosing.asked import asked_tables
        >>> cells = asked_tables("cells", (4, 3), [(0, 1)])
        >>> place, blocks, parts = by_blocks((4, 3), [(), (0,)], np.ones((1, 2)), [cells], (0,))
        >>> place.tolist(), blocks.tolist(), (36 * parts).round().tolist()
        ([0, 1, 1], [1.0, 1.0, 2.0], [[36.0, 2.0, 1.0]])
    """
    place: list[int] = []
    blocks: list[IntArray] = []
    columns: list[FloatArray] = []
    for index, axes in enumerate(about):
        split = len(axes) == 1 and axes[0] in long
        sizes = halves(shape[axes[0]]) if split else np.ones(1, dtype=np.int64)
        own = [_contrasts(shape, axes[0], each) for each in kinds] if split else adds[:, [index]]
        place += [index] * sizes.size
        blocks.append(sizes)
        columns.append(np.asarray(own, dtype=np.float64))
    return np.array(place), np.concatenate(blocks).astype(np.float64), np.hstack(columns)


def _contrasts(shape: tuple[int, ...], axis: int, asked: Asked) -> FloatArray:
    """What contrasts of blocks of one attribute add to a kind of question."""
    mean = ((asked.high - asked.low) / np.array(shape)) ** 2
    mean[:, axis] = 1.0
    own = by_contrasts(shape[axis], asked.low[:, axis], asked.high[:, axis])
    return np.asarray((asked.times * mean.prod(axis=1)) @ own)


def halves(size: int) -> IntArray:
    """How many cells the halves of blocks have, from single cells up to half of an attribute.

    Args:
        size: How many values it has.

    Returns:
        Powers of two.

    Example:
        >>> halves(100).tolist()
        [1, 2, 4, 8, 16, 32, 64]
    """
    return np.left_shift(1, np.arange(max(size - 1, 1).bit_length(), dtype=np.int64))


def by_contrasts(size: int, low: IntArray, high: IntArray) -> FloatArray:
    """How much of the squares of a range lies in contrasts of halves of every size; all of it but its mean's.

    Args:
        size: How many values the attribute has.
        low: Where each range begins.
        high: Where it ends; above its beginning.

    Returns:
        A row a range, a column a size of `halves`.

    Example:
        >>> by_contrasts(4, np.array([0, 0]), np.array([1, 2])).tolist()
        [[0.5, 0.25], [0.0, 1.0]]
    """
    length = (high - low).astype(np.float64)
    means = [_kept(size, int(block), low, high) for block in halves(size)] + [length**2 / size]
    apart = [fine - coarse for fine, coarse in pairwise(means)]
    return np.maximum(np.stack(apart, axis=1), 0.0)


def _kept(size: int, block: int, low: IntArray, high: IntArray) -> FloatArray:
    """The squares of ranges that are left if every block has its mean: blocks are cut off at both ends."""
    first, last = low // block, (high - 1) // block
    length = np.minimum((last + 1) * block, size) - last * block
    apart = (
        ((first + 1) * block - low) ** 2 / block
        + (high - last * block) ** 2 / length
        + (last - first - 1.0) * block
    )
    return np.where(first == last, (high - low) ** 2 / length, apart)
